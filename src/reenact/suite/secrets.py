"""The assertion that the output contains no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from reenact.formats.trace import Trace, TraceEvent
from reenact.redaction import SHAPES, Shapes
from reenact.suite.events import output_events, strings_in
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import Verdict, verdict

_SHOWN_CHARACTERS: Final = 4

_NAMES: Final = {"private-key": "a private key", "aws-key-id": "an AWS credential"}
"""How the kinds of secrets are called in messages."""


def _describe_kind(kind: str) -> str:
    return _NAMES.get(kind) or ("an API key" if kind.endswith("-key") else "an access token")


_PHRASES: Final = {
    "an AWS credential": r"(?i:aws_secret_access_key)\W{1,4}[\w/+=]{30,}",
    "a bearer token": r"(?i:\bbearer)\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,}",
    "a named secret": (
        r"(?i:\b\w*(?:api_?key|access_?token|secret|passw(?:or)?d))[\"']?\s*[:=]\s*[\"']?"
        r"(?=[^\s\"']{0,200}\d)[^\s\"'<>\[\]{}]{12,}"
    ),
    "a password in an address": r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]+:[^\s/@]{3,}@",
}
"""Secrets that are recognized by their context. Recording hides more: there a false alarm is harmless."""

_SHAPED: Final = [(_describe_kind(rule.kind), Shapes([rule])) for rule in SHAPES]
_PHRASED: Final = [(kind, re.compile(phrase)) for kind, phrase in _PHRASES.items()]


class NoSecret(Params, frozen=True, kw_only=True):
    patterns: tuple[str, ...] = ()
    """Additional regular expressions."""
    values: tuple[str, ...] = ()
    """Texts that must not appear, such as a canary."""
    scope: Literal["output", "everything"] = "output"
    """``everything`` includes the arguments, results and errors of the run."""


class _FoundSecret(NamedTuple):
    kind: str
    hint: str
    """The secret, mostly masked."""
    event: TraceEvent | None


def no_secret_in_output(trace: Trace, params: NoSecret) -> Verdict:
    """The output contains nothing that looks like a secret; messages show it masked."""
    searcher = Searcher()
    found = [*_findings(trace.final_output.content, None, params, searcher)]
    if params.scope == "everything":
        for event in trace.events:
            for text in strings_in(event.data):
                found += _findings(text, event, params, searcher)
    listed = "; ".join(f"{kind} {hint} in {_describe_place(event)}" for kind, hint, event in found[:5])
    events = [event for _, _, event in found if event is not None] or output_events(trace)
    observed = [{"kind": kind, "event": event.event_id if event else None} for kind, _, event in found]
    message = f"expected no secret, found {listed or 'none'}"
    return verdict(not found, message, observed={"secrets": observed}, events=events)


def _findings(
    text: str, event: TraceEvent | None, params: NoSecret, searcher: Searcher
) -> Iterator[_FoundSecret]:
    for kind, secret in _secrets_in(text):
        yield _FoundSecret(kind, _shorten_secret(secret), event)
    for pattern in params.patterns:
        if match := searcher.search(pattern, text):
            yield _FoundSecret("a match of a pattern", _shorten_secret(match[0]), event)
    for value in params.values:
        if value and value in text:
            yield _FoundSecret("a listed value", _shorten_secret(value), event)


def _secrets_in(text: str) -> Iterator[tuple[str, str]]:
    """The first secret of each pattern and phrase, in linear time."""
    for kind, shapes in _SHAPED:
        for start, end in islice(shapes.find(text), 1):
            yield kind, text[start:end]
    for kind, phrase in _PHRASED:
        if found := phrase.search(text):
            yield kind, found[0]


def _shorten_secret(secret: str) -> str:
    return f"{secret[:_SHOWN_CHARACTERS]}… ({len(secret)} characters)"


def _describe_place(event: TraceEvent | None) -> str:
    return event.event_id if event is not None else "the output"
