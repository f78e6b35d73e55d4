"""Sessions of opencode, as ``opencode export`` writes them: messages and their parts."""

from __future__ import annotations

from functools import partial
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    Line,
    RunBuilder,
    ToolRequest,
    kind_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, JsonObject, Losses, expect_object
from reenact.importers.turns import TranscriptTurns

_ROLES: Final = ("user", "assistant")
_TOP: Final = frozenset({"info", "messages"})
_MESSAGE: Final = frozenset({"info", "parts"})
_TOKENS: Final = KnownFields("input", "output", "reasoning", "total", cache=KnownFields("read", "write"))
_INFO: Final = KnownFields(
    "id", "sessionID", "role", "parentID", "mode", "agent", "cost", "modelID", "providerID", "finish",
    "system", "variant", time=KnownFields("created", "completed"), path=KnownFields("cwd", "root"),
    model=KnownFields("providerID", "modelID", "variant"), tokens=_TOKENS, summary=None, error=None,
    tools=None, structured=None, format=None,
)  # fmt: skip
_PARTS: Final = frozenset({
    "text", "reasoning", "tool", "step-start", "step-finish", "file", "snapshot", "patch", "agent", "subtask",
    "compaction", "retry",
})  # fmt: skip
_PART: Final = KnownFields(
    "id", "sessionID", "messageID", "type", "text", "synthetic", "ignored", "tool", "callID", "state",
    "snapshot", "reason", "cost", "tokens", "mime", "filename", "url", "hash", "name", "prompt",
    "description", "agent", "auto", "attempt", "command", time=KnownFields("start", "end", "created"),
    metadata=None, source=None, files=None, error=None, model=None,
)  # fmt: skip
_STATE: Final = KnownFields(
    "status", "input", "output", "title", "error", "raw", time=KnownFields("start", "end", "compacted"),
    metadata=None, attachments=None,
)  # fmt: skip
_USAGE: Final = {"input": "inputTokens", "output": "outputTokens", "reasoning": "reasoningTokens"}


def _recognises(source: ForeignSource) -> bool:
    return source.head.lstrip().startswith(b"{") and source.has("info", "messages", "directory", "projectID")


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    document = source.document(lost)
    messages = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(messages, list):
        raise FormatError("expected an object with messages", file=source.name)
    run = runs.open()
    for reason, line in lost:
        run.lose(reason, line)
    run.missing("requests as they were sent", "instructions and tools of the model")
    run.check_fields("", document, _TOP)
    info = document.get("info")
    run.note("session", info, time_ms=_time(run, info, "created"))
    turns = TranscriptTurns(run)
    for number, message in enumerate(messages, 1):
        line_of = partial(source.line_of, ("messages",), number)
        run.attempt(line_of, _import_message, run, turns, message, line_of, what=f"message {number}")
    turns.finish()


def _time(run: RunBuilder, info: JsonValue, name: str) -> float | None:
    time = info.get("time") if isinstance(info, dict) else None
    return run.time_ms(time.get(name)) if isinstance(time, dict) else None


def _import_message(run: RunBuilder, turns: TranscriptTurns, message: JsonObject, line: Line) -> None:
    run.check_fields("message", message, _MESSAGE)
    info = expect_object("info", message.get("info"))
    run.check_fields("info", info, _INFO)
    parts = run.objects("parts", message.get("parts"), line)
    for part in parts:
        if kind_of(part) not in _PARTS:
            run.unknown("part", [kind_of(part)])
        run.check_fields("part", part, _PART)
        for name, known in (("state", _STATE), ("tokens", _TOKENS)):
            if isinstance(inner := part.get(name), dict):
                run.check_fields(name, inner, known)
    if info.get("role") not in _ROLES:
        run.unknown("info", [f"role={info.get('role')}"])
    created_ms = _time(run, info, "created")
    if info.get("role") == "user":
        texts = [part for part in parts if part.get("type") == "text"]
        others = [part for part in parts if part.get("type") != "text"]
        text = "\n".join(str(part.get("text") or "") for part in texts)
        turns.say("user", [{"type": "text", "text": text}, *others] if others else text, created_ms)
    else:
        _import_answer(run, turns, info, parts, created_ms, line)


def _import_answer(
    run: RunBuilder,
    turns: TranscriptTurns,
    info: JsonObject,
    parts: list[JsonObject],
    created_ms: float | None,
    line: Line,
) -> None:
    steps, completed_ms = _steps(parts), _time(run, info, "completed")
    failed = info.get("error")
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        finished = next((part for part in step if part.get("type") == "step-finish"), {})
        tokens = finished.get("tokens", info.get("tokens") if len(steps) == 1 else None)
        turns.answer(
            f"{info.get('id')}-{number}",
            text="\n".join(str(part.get("text") or "") for part in step if part.get("type") == "text"),
            reasoning="\n".join(
                str(part.get("text") or "") for part in step if part.get("type") == "reasoning"
            ),
            tools=[_tool_of(part, line) for part in step if part.get("type") == "tool"],
            provider=str(info.get("providerID") or "unknown"),
            model=info.get("modelID"),
            usage=_usage_of(tokens),
            stop_reason=finished.get("reason") or (info.get("finish") if is_last else None),
            error=str(failed) if failed and is_last else None,
            time_ms=(completed_ms if is_last else None) or created_ms,
        )
        for part in step:
            if part.get("type") == "tool":
                _import_result(run, turns, part, line)


def _steps(parts: list[JsonObject]) -> list[list[JsonObject]]:
    """The parts of each answer of the model; a message without step marks is one answer."""
    steps: list[list[JsonObject]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    return steps


def _tool_of(part: JsonObject, line: Line) -> ToolRequest:
    return ToolRequest(str(part.get("tool")), _state_of(part).get("input"), str(part.get("callID")), line)


def _state_of(part: JsonObject) -> JsonObject:
    return expect_object("part.state", part.get("state"))


def _import_result(run: RunBuilder, turns: TranscriptTurns, part: JsonObject, line: Line) -> None:
    state = _state_of(part)
    status = state.get("status")
    if status in ("completed", "error"):
        is_error = status == "error"
        result = state.get("error" if is_error else "output")
        time_ms = _time(run, state, "end")
        turns.result(str(part.get("callID")), result, is_error=is_error, time_ms=time_ms, line=line)


def _usage_of(tokens: JsonValue) -> JsonObject | None:
    counts = usage_counts(tokens, _USAGE) or {}
    cache = tokens.get("cache") if isinstance(tokens, dict) else None
    cached = usage_counts(cache, {"read": "cachedInputTokens", "write": "cacheWriteTokens"})
    return counts | (cached or {}) or None


IMPORTER: Final = Importer(
    name="opencode",
    title="sessions of opencode",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)
