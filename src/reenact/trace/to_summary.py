"""Writes PR_SUMMARY.md, the summary of a run for reviewers; every statement links to its event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from reenact.canonical import encode
from reenact.formats import capture
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT
from reenact.formats.session import Session, ToolUse
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import input_messages, request_of
from reenact.values.tags import strip_tags

_LONGEST_TEXT: Final = 2_000
_LONGEST_PARAMS: Final = 120
_MOST_ROWS: Final = 200


def summary_of_log(
    lines: Iterable[tuple[Line, Event]], *, file: str, reader: CaptureReader | None = None
) -> Iterator[str]:
    """The lines of the summary of a log, of either dialect, whose events are in *file*.

    With the *reader* of its capture, the summary includes the first questions and the changed files.
    """
    session = Session()
    uses = [*session.tool_uses(lines)]
    yield f"# {_title(session)}"
    yield ""
    yield from _frame(session, file)
    if reader is not None:
        yield from _section("Asked", _first_questions(reader, file))
    yield from _section("Done", _tool_rows(uses, file))
    if reader is not None:
        yield from _section("Changed", _changes(reader, file))
    yield from _section("Verified", _verifications(session, file), otherwise="Nothing was verified.")
    yield from _section("Result", _result(session, file))


def _title(session: Session) -> str:
    status = str(getattr(session.end, "status", "interrupted")).lower()
    outcome = {"success": "succeeded", "failed": "failed", "failure": "failed"}.get(
        status, f"ended: {status}"
    )
    name = "" if session.start is None else f" {_text(session.start.session_id)}"
    return f"Session{name} {outcome}"


def _frame(session: Session, file: str) -> Iterator[str]:
    facts: list[str] = []
    if session.policy:
        facts.append(f"policy `{_code(session.policy)}`")
    if isinstance(session.issue_number, int):
        facts.append(f"issue #{session.issue_number}")
    repo = getattr(session.start, "repo", ABSENT)
    if repo is not ABSENT:
        named = [value for value in (repo.remote, repo.branch, repo.commit) if isinstance(value, str)]
        dirty = " with uncommitted changes" if repo.dirty is True else ""
        facts.append("repository " + " ".join(f"`{_code(value)}`" for value in named) + dirty)
    if session.end is not None:
        facts.append(f"confidence {session.end.confidence:g} ({_link(file, session.end_line)})")
    if facts:
        yield "; ".join(facts)
        yield ""


def _section(title: str, rows: Iterator[str], otherwise: str | None = None) -> Iterator[str]:
    body = [*rows]
    if not body and otherwise is None:
        return
    yield f"## {title}"
    yield ""
    yield from body or [otherwise or ""]
    yield ""


def _first_questions(reader: CaptureReader, file: str) -> Iterator[str]:
    """The user messages of the first model call that has a conversation."""
    for event in reader.events():
        if not isinstance(event, capture.LlmRequest) or request_of(reader, event) is None:
            continue
        for message in input_messages(reader.resolve(event.data.request)):
            if message.role == "user" and isinstance(message.content, str):
                yield f"{_quote(message.content)} ({_link(file, event.seq)})"
        return


def _tool_rows(uses: list[ToolUse], file: str) -> Iterator[str]:
    for number, use in enumerate(sorted(uses, key=lambda use: use.call_line), 1):
        if number > _MOST_ROWS:
            yield f"- and {len(uses) - _MOST_ROWS} more calls"
            return
        asked = f"`{_code(use.call.tool)}` {_params(use.call)}"
        yield f"- {asked} → {_outcome(use)} ({_link(file, use.call_line)})"


def _params(call: Any) -> str:
    if call.params is ABSENT:
        return "with parameters that are not shown"
    text = encode(call.params).decode()
    return f"`{_code(text if len(text) <= _LONGEST_PARAMS else text[:_LONGEST_PARAMS] + '…')}`"


def _outcome(use: ToolUse) -> str:
    result = use.result
    if result is None:
        return "no result"
    error = getattr(result, "error", ABSENT)
    if error is not ABSENT:
        return f"failed: {_text(error.name)}: {_text(error.message)[:200]}"
    if isinstance(result, legacy.ToolResult):
        return "done" if result.exit_code in (None, ABSENT, 0) else f"failed with {result.exit_code}"
    effects = f" ({', '.join(map(_text, result.side_effects))})" if result.side_effects else ""
    return f"{'done' if result.ok else 'failed'}{effects}"


def _changes(reader: CaptureReader, file: str) -> Iterator[str]:
    for event in reader.events():
        if isinstance(event, capture.StateMutation) and event.data.type in ("file_write", "memory_write"):
            path = event.data.path if isinstance(event.data.path, str) else "?"
            kind = "wrote" if event.data.type == "file_write" else "remembered"
            yield f"- {kind} `{_code(path)}` ({_link(file, event.seq)})"
        elif isinstance(event, capture.StateMutation) and event.data.type == "side_effect":
            facts = strip_tags(reader.resolve(event.data.details))
            yield f"- {_text(str(facts.get('tag')))} ({_link(file, event.seq)})"


def _verifications(session: Session, file: str) -> Iterator[str]:
    for run in session.verification:
        verdict = "passed" if run.exit_code == 0 else f"failed with {run.exit_code}"
        change = _change_of(run.verification_delta)
        yield f"- `{_code(run.command)}` {verdict}{change} ({_link(file, run.line)})"


def _change_of(delta: object) -> str:
    """A delta is the number of failing tests before minus the number after."""
    if not isinstance(delta, int) or delta == 0:
        return ""
    tests = "test fails" if abs(delta) == 1 else "tests fail"
    return f", {abs(delta)} {'fewer' if delta > 0 else 'more'} {tests} than before"


def _result(session: Session, file: str) -> Iterator[str]:
    summary = getattr(session.end, "summary", ABSENT)
    if isinstance(summary, str) and isinstance(session.end, current.SessionEnd):
        yield f"{_quote(summary)} ({_link(file, session.end_line)})"


def _link(file: str, line: int | None) -> str:
    return f"[event {line}]({file}#L{line})"


def _text(text: str) -> str:
    """*text* as one line with all Markdown and HTML escaped."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#!|" else sign for sign in flat)


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'")


def _quote(text: str) -> str:
    shown = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    return "\n".join(f"> {_text(line)}" for line in shown.splitlines()) or "> "
