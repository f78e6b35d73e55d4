"""For people: one line per test, everything about what failed, one line at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from reenact.formats.result import AssertionResult, SuiteSummary
from reenact.suite.runner import EVIDENCE_CHARACTERS, PROBLEMS, Outcome
from reenact.suite.verdict import counted, shown

Tone: TypeAlias = Literal["pass", "fail", "error", "warning"]

_WORDS: Final = {"pass": "pass ", "fail": "FAIL ", "error": "ERROR"}
_SHOWN_EVENTS: Final = 8


class Line(NamedTuple):
    """A line for a terminal; its first *toned* characters are in the colour of *tone*."""

    text: str
    tone: Tone | None = None
    toned: int = 0


def test_line(outcome: Outcome) -> Line:
    """The test on one line: status, file, id, and how many assertions said what."""
    result = outcome.result
    word = _WORDS[result.status]
    name = f"  {result.test_case_id}" if result.test_case_id else ""
    return Line(f"{word}  {result.test_file}{name}  ({_tally(outcome)})", result.status, len(word))


def _tally(outcome: Outcome) -> str:
    if outcome.result.status == "error":
        return "could not be run"
    found = outcome.result.assertions
    failed = [each for each in found if each.status == "fail"]
    warnings = sum(each.severity == "warning" for each in failed)
    remarks = len(outcome.result.warnings or ())
    skipped = sum(each.status == "skip" for each in found)
    parts = [counted(len(found), "assertion")]
    parts += [f"{len(failed) - warnings} failed"] if len(failed) > warnings else []
    parts += [counted(warnings + remarks, "warning")] if warnings + remarks else []
    return ", ".join(parts + ([f"{skipped} skipped"] if skipped else []))


def evidence(outcome: Outcome) -> Iterator[Line]:
    """All there is to know about a test that failed, could not be run, or warns; nothing for others."""
    result = outcome.result
    failed = [found for found in result.assertions if found.status == "fail"]
    if not failed and not result.warnings and result.status != "error":
        return
    tone: Tone = "warning" if result.status == "pass" else result.status
    title = f": {outcome.title}" if outcome.title else ""
    yield Line(f"{tone.upper()} {result.test_file}{title}", tone, len(tone))
    if result.error:
        yield Line(f"  {place(outcome)}: {result.error.message}")
        for problem in result.error.extra.get(PROBLEMS, [])[1:]:
            yield Line(f"  {problem}")
    for warning in result.warnings or ():
        where = f"{result.test_file}:{warning.line}: {warning.json_path}"
        yield Line(f"  warning: {where}: {warning.message}", "warning", 10)
    for found in failed:
        yield from _failure(found, outcome)


def place(outcome: Outcome) -> str:
    """Where the culprit of an error stands, as editors take it."""
    error = outcome.result.error
    assert error
    parts = [error.file or outcome.result.test_file]
    parts += [str(error.line)] if isinstance(error.line, int) else []
    return ":".join(parts) + (f": {error.json_path}" if error.json_path else "")


def _failure(found: AssertionResult, outcome: Outcome) -> Iterator[Line]:
    tone: Tone = "fail" if found.severity == "critical" else "warning"
    where = f"{outcome.result.test_file}:{outcome.lines.get(found.id, 1)}"
    yield Line(f"  {found.id}  {found.type}, {found.severity}, {where}", tone, 2 + len(found.id))
    yield Line(f"    {found.message}")
    if found.params:
        yield Line(f"    params    {shown(found.params, EVIDENCE_CHARACTERS)}")
    if found.observed is not None:
        yield Line(f"    observed  {shown(found.observed, EVIDENCE_CHARACTERS)}")
    refs = found.evidence.event_refs
    for ref in refs[:_SHOWN_EVENTS]:
        yield Line(f"    {ref:<8}  {outcome.events.get(ref, '')}")
    if len(refs) > _SHOWN_EVENTS:
        yield Line(f"    … and {len(refs) - _SHOWN_EVENTS} more events")


def last_line(summary: SuiteSummary) -> Line:
    """The whole suite on one line, in the colour of the worst."""
    counts = {"passed": summary.passed, "failed": summary.failed, "could not be run": summary.errors}
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    text = f"{counted(summary.total, 'test')}: {said} in {summary.duration_ms / 1000:.2f} s"
    tone: Tone = "error" if summary.errors else "fail" if summary.failed else "pass"
    return Line(text, tone, len(text))


def all_evidence(outcomes: Iterable[Outcome]) -> Iterator[Line]:
    """The evidence of all *outcomes*, a blank line before each."""
    for outcome in outcomes:
        for index, line in enumerate(evidence(outcome)):
            if index == 0:
                yield Line("")
            yield line
