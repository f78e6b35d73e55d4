"""Assertions on the text of the final output, and on questions to the user.

The final output belongs to the run, so the types of the published format refer to no event.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal

from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError, UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace
from reenact.suite.events import calls, output_events, strings_in
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.values import bullets, has_key, paragraphs, schema_problems, sentence_count
from reenact.suite.verdict import Verdict, at, count_of, quote, verdict


class OutputContains(Params, frozen=True, kw_only=True):
    any_of: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    case_sensitive: bool = False


def output_contains(trace: Trace, params: OutputContains) -> Verdict:
    """One of *any_of*, all of *all_of* and a match of every *regex* are in the output."""
    if not params.any_of and not params.all_of and not params.regex:
        raise UsageError("params: give any_of, all_of or regex")
    text, searcher = trace.final_output.content, Searcher()
    missing = [*_find_missing(text, params, searcher)]
    wanted = f"expected the output to contain {' and '.join(missing)}, found" if missing else "all is in"
    return verdict(not missing, f"{wanted} {quote(text)}", observed={"missing": missing})


def _find_missing(text: str, params: OutputContains, searcher: Searcher) -> Iterator[str]:
    case_sensitive = params.case_sensitive
    if params.any_of and not any(
        searcher.contains(text, part, case_sensitive=case_sensitive) for part in params.any_of
    ):
        yield f"one of {', '.join(map(quote, params.any_of))}"
    for part in params.all_of:
        if not searcher.contains(text, part, case_sensitive=case_sensitive):
            yield quote(part)
    for pattern in params.regex:
        if not searcher.search(pattern, text, ignore_case=not case_sensitive):
            yield f"a match of {quote(pattern)}"


class OutputOmits(Params, frozen=True, kw_only=True):
    patterns: list[str]
    regex: bool = False
    case_sensitive: bool = False


def output_omits(trace: Trace, params: OutputOmits) -> Verdict:
    """None of the patterns is in the output."""
    text, searcher = trace.final_output.content, Searcher()
    found = []
    for pattern in params.patterns:
        if params.regex:
            match = searcher.search(pattern, text, ignore_case=not params.case_sensitive)
            found += [match[0]] if match else []
        elif searcher.contains(text, pattern, case_sensitive=params.case_sensitive):
            found.append(pattern)
    wanted = f"expected the output to omit {', '.join(map(quote, params.patterns))}"
    message = f"{wanted}, found {', '.join(map(quote, found)) or 'none of it'}"
    return verdict(not found, message, observed={"found": found})


class OutputMatchesFormat(Params, frozen=True, kw_only=True):
    format: Literal["bullet_list", "paragraphs", "json"]
    min_bullets: Count | None = None
    max_bullets: Count | None = None
    max_sentences_per_bullet: Count | None = None
    exact_paragraphs: Count | None = None
    required_keys: tuple[str, ...] = ()


def output_matches_format(trace: Trace, params: OutputMatchesFormat) -> Verdict:
    """The output is a list of bullets, some paragraphs, or JSON."""
    _refuse_foreign(params)
    check = {"bullet_list": _check_bullets, "paragraphs": _check_paragraphs, "json": _check_json}
    problems, observed = check[params.format](trace.final_output.content, params)
    name = {"bullet_list": "a bullet list"}.get(params.format, params.format)
    message = f"expected {name}, found " + ("; ".join(problems) or f"it: {_describe_observed(observed)}")
    return verdict(not problems, message, observed=observed)


_OF_FORMAT: Final = {
    "bullet_list": ("min_bullets", "max_bullets", "max_sentences_per_bullet"),
    "paragraphs": ("exact_paragraphs",),
    "json": ("required_keys",),
}


def _refuse_foreign(params: OutputMatchesFormat) -> None:
    """Raise for a parameter that belongs to another format, which would have no effect."""
    for format_name, names in _OF_FORMAT.items():
        for name in names if format_name != params.format else ():
            if getattr(params, name) not in (None, ()):
                raise UsageError(f"params.{name}: is for {format_name}, not for {params.format}")


def _describe_observed(observed: dict[str, JsonValue]) -> str:
    return ", ".join(f"{name} {value}" for name, value in observed.items() if name != "sentences") or "valid"


def _check_bullets(text: str, params: OutputMatchesFormat) -> tuple[list[str], dict[str, Any]]:
    found = bullets(text)
    at_least = max(1, params.min_bullets or 1)
    problems = []
    if len(found) < at_least:
        problems.append(f"{count_of(len(found), 'bullet')}, fewer than {at_least}")
    if params.max_bullets is not None and len(found) > params.max_bullets:
        problems.append(f"{count_of(len(found), 'bullet')}, more than {params.max_bullets}")
    sentences = [sentence_count(bullet) for bullet in found]
    limit = params.max_sentences_per_bullet
    for number, count in enumerate(sentences, 1):
        if limit is not None and count > limit:
            problems.append(f"{count_of(count, 'sentence')} in bullet {number}, more than {limit}")
    return problems, {"bullets": len(found), "sentences": sentences}


def _check_paragraphs(text: str, params: OutputMatchesFormat) -> tuple[list[str], dict[str, JsonValue]]:
    found, wanted = len(paragraphs(text)), params.exact_paragraphs
    is_good = found == wanted if wanted is not None else found > 0
    problem = f"{count_of(found, 'paragraph')} instead of {'some' if wanted is None else wanted}"
    return [] if is_good else [problem], {"paragraphs": found}


def _check_json(text: str, params: OutputMatchesFormat) -> tuple[list[str], dict[str, JsonValue]]:
    try:
        value = read_json(text.encode())
    except FormatError as error:
        return [f"text that is {error.reason}"], {"json": False}
    if params.required_keys and not isinstance(value, dict):
        return [f"JSON that is not an object with the keys {', '.join(params.required_keys)}"], {"json": True}
    missing = [key for key in params.required_keys if not has_key(value, key)]
    problems = [f"no key {', '.join(map(quote, missing))}"] if missing else []
    return problems, {"keys": sorted(value) if isinstance(value, dict) else []}


class FinalOutputJsonSchema(Params, frozen=True, kw_only=True):
    schema: Any


def final_output_json_schema(trace: Trace, params: FinalOutputJsonSchema) -> Verdict:
    """The output is JSON that follows a schema."""
    try:
        problems = schema_problems(read_json(trace.final_output.content.encode()), params.schema)
    except FormatError as error:
        problems = [f"$: {error.reason}"]
    wanted = "expected JSON that follows the schema"
    message = f"{wanted}, found " + ("; ".join(problems) or "it")
    return verdict(not problems, message, observed={"problems": problems}, events=output_events(trace))


class AskClarifying(Params, frozen=True, kw_only=True):
    when: str | None = None
    """A pattern for ambiguous requests; other requests pass. If absent, every request counts."""
    about_any_of: tuple[str, ...] = ()
    """What a question must mention; if empty, any question counts."""
    forbidden_tools: tuple[str, ...] | Literal["all"] = ()
    """Tools that must not be called before the user has answered."""
    max_questions: Count | None = None


def ask_clarifying_when_ambiguous(trace: Trace, params: AskClarifying) -> Verdict:
    """The agent answers an ambiguous request with a question."""
    if params.when is not None and not _has_question_for(trace, params.when):
        message = f"the request does not match {quote(params.when)}, so nothing need be asked"
        return verdict(True, message, observed={"ambiguous": False})
    searcher = Searcher()
    questions = _questions(trace.final_output.content)
    relevant = [each for each in questions if _is_about(each, params.about_any_of, searcher)]
    acted = [
        event
        for event in calls(trace)
        if params.forbidden_tools == "all" or event.data.get("tool") in params.forbidden_tools
    ]
    problems = _problems(params, questions, relevant)
    problems += [f"{count_of(len(acted), 'call')} made without knowing{at(acted)}"] if acted else []
    about = f" about {' or '.join(params.about_any_of)}" if params.about_any_of else ""
    message = f"expected a question{about}, found " + ("; ".join(problems) or quote(relevant[0]))
    observed = {"ambiguous": True, "questions": questions, "calls": [event.event_id for event in acted]}
    return verdict(not problems, message, observed=observed, events=[*output_events(trace), *acted])


def _problems(params: AskClarifying, questions: list[str], relevant: list[str]) -> list[str]:
    limit = params.max_questions
    problems = [] if relevant else [f"{count_of(len(questions), 'question')}, none of them about it"]
    if not questions:
        problems = ["no question in the output"]
    if limit is not None and len(questions) > limit:
        problems.append(f"{count_of(len(questions), 'question')}, more than {limit}")
    return problems


def _has_question_for(trace: Trace, pattern: str) -> bool:
    searcher = Searcher()
    texts = (text for message in trace.input_messages for text in strings_in(message.content))
    return any(searcher.search(pattern, text) for text in texts)


def _questions(text: str) -> list[str]:
    """The sentences that end with a question mark; a sentence may be the mark alone."""
    sentences = re.split(r"(?<=[.!?\n])", text)  # one pass, also for a long text without sentence ends
    return [sentence.strip() for sentence in sentences if sentence.endswith("?")]


def _is_about(question: str, topics: Collection[str], searcher: Searcher) -> bool:
    return not topics or any(searcher.contains(question, topic) for topic in topics)
