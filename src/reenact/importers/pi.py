"""Sessions of pi: one JSON object per line, which form a tree by ``parentId`` with branches as siblings."""

from __future__ import annotations

from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    RunBuilder,
    ToolRequest,
    kind_of,
    text_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.known_ids import KnownIds
from reenact.importers.source import ForeignSource, JsonObject
from reenact.importers.turns import TranscriptTurns

_VERSIONS: Final = (1, 2, 3)
_ENTRY: Final = frozenset({"type", "id", "parentId", "timestamp", "message"})
_MESSAGE: Final = KnownFields(
    "role", "content", "api", "provider", "model", "usage", "stopReason", "errorMessage", "timestamp",
    "responseId", "responseModel", "toolCallId", "toolName", "isError", "command", "output", "exitCode",
    "cancelled", "truncated", "fullOutputPath", "excludeFromContext", "summary", "fromId", "tokensBefore",
    "customType", "display", details=None, diagnostics=None,
)  # fmt: skip
_NOTED: Final = frozenset({
    "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message",
    "label", "session_info",
})  # fmt: skip
_BLOCK: Final = frozenset({
    "type", "text", "textSignature", "thinking", "thinkingSignature", "redacted", "id", "name", "arguments",
    "thoughtSignature",
})  # fmt: skip
_COUNTS: Final = KnownFields(
    "input", "output", "cacheRead", "cacheWrite", "totalTokens", "reasoning", cost=KnownFields("input",
    "output", "cacheRead", "cacheWrite", "total"),
)  # fmt: skip
_USAGE: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cacheRead": "cachedInputTokens",
    "cacheWrite": "cacheWriteTokens",
}


def _recognises(source: ForeignSource) -> bool:
    first = source.first_line
    return isinstance(first, dict) and first.get("type") == "session" and "cwd" in first


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing("requests as they were sent", "instructions and tools of the model")
    reading = _Reading(run)
    for line, entry in source.objects(run.note_loss):
        run.attempt(line, reading.entry, line, entry)
    reading.turns.finish()
    if run.is_empty:
        raise FormatError("it holds no conversation", file=source.name)


class _Reading:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self.turns = TranscriptTurns(run)
        self._lanes = KnownIds()
        """The lane of each entry."""
        self._latest: dict[str, str] = {}
        self._branches = 0

    def entry(self, line: int, entry: JsonObject) -> None:
        run, kind = self._run, kind_of(entry)
        time_ms = run.time_ms(entry.get("timestamp"))
        if kind == "session":
            if entry.get("version", 1) not in _VERSIONS:
                run.note_loss(f"version {entry.get('version')!r} of sessions is not known", line)
            run.note(
                "session", {key: value for key, value in entry.items() if key != "type"}, time_ms=time_ms
            )
            return
        lane = self._lane_of(line, entry)
        if kind != "message":
            if kind not in _NOTED:
                run.count_unknown("type", [kind])
                if "parentId" not in entry:
                    run.note_loss("is not an entry of pi; it is kept as a note", line)
            details = {key: value for key, value in entry.items() if key != "type"}
            run.note(kind, details, time_ms=time_ms, lane=lane)
            return
        run.check_fields("entry", entry, _ENTRY)
        message = entry.get("message")
        if not isinstance(message, dict):
            run.note_loss("the entry has no message", line)
            return
        run.check_fields("message", message, _MESSAGE)
        self._message(line, str(entry.get("id")), message, time_ms, lane)

    def _lane_of(self, line: int, entry: JsonObject) -> str:
        own, parent = entry.get("id"), entry.get("parentId")
        lane = "0"
        if isinstance(parent, str):
            found = self._lanes.get(parent)
            if found is None:
                self._run.note_loss(f"its parent is missing: {parent}", line)
            elif self._latest.get(found) != parent:
                lane = f"0.{self._branches}"  # a branch: its parent already has a child
                self._branches += 1
            else:
                lane = found
        if isinstance(own, str):
            self._lanes[own] = lane
            self._latest[lane] = own
        return lane

    def _message(self, line: int, own: str, message: JsonObject, time_ms: float | None, lane: str) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self._answer(line, own, message, time_ms, lane)
            return
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "text":
                self._run.check_fields("block", block, _BLOCK)
        if role == "toolResult":
            self.turns.result(
                str(message.get("toolCallId")),
                _plain(content),
                is_error=message.get("isError") is True,
                time_ms=time_ms,
                line=line,
                lane=lane,
            )
        elif role == "user":
            self.turns.say("user", _plain(content), time_ms, lane)
        elif role == "bashExecution":
            command = f"Ran `{message.get('command')}`\n{message.get('output')}"
            self.turns.say("user", command, time_ms, lane)
        else:
            if role not in ("compactionSummary", "branchSummary", "custom"):
                self._run.count_unknown("message", [f"role={role}"])
            said = message.get("summary") or _plain(content)
            self.turns.say("user", said, time_ms, lane)

    def _answer(self, line: int, own: str, message: JsonObject, time_ms: float | None, lane: str) -> None:
        texts, reasoning, tools = [], [], []
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in self._run.objects("message.content", blocks, line):
            kind = kind_of(block)
            self._run.check_fields("block", block, _BLOCK)
            if kind == "text":
                texts.append(text_of(block))
            elif kind == "thinking":
                reasoning.append(str(block.get("thinking") or ""))
            elif kind == "toolCall":
                called = block.get("id")
                named = called if isinstance(called, str) else None
                tools.append(ToolRequest(str(block.get("name")), block.get("arguments"), named, line))
            else:
                self._run.count_unknown("content", [kind])
        usage = message.get("usage")
        if isinstance(usage, dict):
            self._run.check_fields("usage", usage, _COUNTS)
        failed = message.get("errorMessage") if message.get("stopReason") in ("error", "aborted") else None
        self.turns.answer(
            own,
            text="\n".join(texts),
            reasoning="\n".join(filter(None, reasoning)),
            tools=tools,
            provider=str(message.get("provider") or "unknown"),
            model=message.get("model"),
            usage=usage_counts(usage, _USAGE),
            stop_reason=message.get("stopReason"),
            error=str(failed) if failed else None,
            time_ms=time_ms,
            lane=lane,
        )


def _plain(content: JsonValue) -> JsonValue:
    """The content as one text, if all its parts are texts."""
    if not isinstance(content, list):
        return content
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
    if len(parts) != len(content):
        return content
    return "\n".join(str(part.get("text") or "") for part in parts)


IMPORTER: Final = Importer(
    name="pi", title="sessions of pi", version=1, fidelity="tools", recognises=_recognises, read=_read
)
