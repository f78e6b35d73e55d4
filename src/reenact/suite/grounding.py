"""Assertions that the output is based on what the tools returned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import strings_in, successful_results
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.values import content_units, stems, urls
from reenact.suite.verdict import Verdict, count_of, quote, verdict


class ClaimsSupported(Params, frozen=True, kw_only=True):
    allowed_sources: list[str]
    """Names of tools or fixtures."""


def claims_supported_by_fixtures(trace: Trace, params: ClaimsSupported) -> Verdict:
    """A source answered, all URLs come from it, and each claim shares enough words with it."""
    results = successful_results(trace, params.allowed_sources)
    returned = _returned_texts(results)
    output = trace.final_output.content
    invented = [url for url in urls(output) if url not in returned]
    known = {stem for text in returned for stem in stems(text)}
    unsupported = [unit for unit in content_units(output) if not _is_supported(unit, known)]
    problems = [f"the address {url}" for url in invented]
    problems += [f"the claim {quote(unit)}" for unit in unsupported]
    problems += [] if results or problems else ["anything: no source answered"]
    sources = ", ".join(params.allowed_sources) or "no tool"
    message = (
        f"expected everything to come from {sources} ({count_of(len(results), 'successful result')}), found "
        + (f"no support for {'; '.join(problems)}" if problems else "it so")
    )
    observed = {"unsupported_urls": invented, "unsupported_claims": unsupported}
    return verdict(not problems, message, observed=observed, events=results)


def _returned_texts(results: list[TraceEvent]) -> set[str]:
    return {text for event in results for text in strings_in(event.data.get("result"))}


def _is_supported(unit: str, known: set[str]) -> bool:
    found = stems(unit)
    needed = min(2, max(1, len(found) // 3))
    return not found or len(known.intersection(found)) >= needed


class NoFabricatedSource(Params, frozen=True, kw_only=True):
    allowed_sources: list[str] | None = None
    """Names of tools or fixtures; every successful result counts if absent."""
    known_sources: tuple[str, ...] = ()
    """URLs and names that may be cited although no tool returned them."""


_DOI: Final = re.compile(r"\b10\.\d{4,9}/[^\s\"<>\])}]+")
_ARXIV: Final = re.compile(r"\barXiv:\s?(\d{4}\.\d{4,5})", re.IGNORECASE)
_NAME: Final = r"(?P<name>[A-Z][\w&.'’-]*(?:\s+(?:of|the|and|for)?\s*[A-Z][\w&.'’-]*){0,5})"
_ATTRIBUTION: Final = re.compile(rf"\b(?:[Aa]ccording to|[Ss]ource:|[Aa]s reported by)\s+(?:the\s+)?{_NAME}")
_MARKER: Final = re.compile(r"\[(\d{1,3})\](?!\()")
_REFERENCE: Final = re.compile(r"^[ \t]*(?:[-*][ \t]*)?\[(\d{1,3})\]:?[ \t]+\S", re.MULTILINE)


def no_fabricated_source_or_citation(trace: Trace, params: NoFabricatedSource) -> Verdict:
    """Everything that the output cites (URLs, DOIs, named sources, numbered notes) was returned by a tool."""
    results = successful_results(trace, params.allowed_sources)
    asked = [text for message in trace.input_messages for text in strings_in(message.content)]
    seen = "\n".join([*_returned_texts(results), *asked, *params.known_sources])
    searcher = Searcher()
    output = trace.final_output.content
    invented = [cited for cited in _cited_sources(output) if not searcher.contains(seen, cited)]
    dangling = sorted(set(_MARKER.findall(output)) - set(_REFERENCE.findall(output)), key=int)
    problems = [*map(quote, invented), *(f"the note [{number}], which leads nowhere" for number in dangling)]
    wanted = f"expected every source to be among {count_of(len(results), 'successful result')}"
    message = f"{wanted}, found {', '.join(problems) if problems else 'it so'}"
    observed = {"fabricated": invented, "dangling_notes": dangling}
    return verdict(not problems, message, observed=observed, events=results)


def _cited_sources(output: str) -> Iterator[str]:
    """The sources that *output* names, each once, without surrounding punctuation."""
    found = [*urls(output), *_DOI.findall(output), *_ARXIV.findall(output)]
    found += [match["name"] for match in _ATTRIBUTION.finditer(output)]
    yield from dict.fromkeys(source.rstrip(".,;:!?*_") for source in found)
