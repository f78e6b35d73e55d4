"""Transcripts of Claude Code: one JSON object per line, which form a tree by ``parentUuid``.

An answer has one line for each of its parts, with the same message id. Sidechains are lanes: inline, in files
below ``<session>/subagents/``, or in ``agent-*.jsonl`` beside the session. So are prompts that branch off
from an earlier entry of the tree. What ``--output-format stream-json`` prints has no tree: its subagents
name the call that began them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial
from glob import escape
from heapq import merge
from pathlib import Path
from typing import Final, NamedTuple

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    RunBuilder,
    ToolRequest,
    iso_ms,
    kind_of,
    text_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.known_ids import KnownIds
from reenact.importers.source import HEAD_BYTES, ForeignSource, JsonObject, read_value
from reenact.importers.turns import TranscriptTurns

_ROLES: Final = ("user", "assistant")
_NOTED: Final = frozenset({
    "system", "attachment", "summary", "queue-operation", "file-history-snapshot", "last-prompt", "progress",
    "custom-title", "ai-title", "agent-name", "tag", "pr-link", "worktree-state", "mode", "permission-mode",
    "content-replacement", "bridge-session", "result", "rate_limit_event", "stream_event", "tool_progress",
})  # fmt: skip
"""Line types outside the conversation; they are kept unchanged."""
_ENTRY: Final = KnownFields(
    "type", "uuid", "parentUuid", "logicalParentUuid", "isSidechain", "agentId", "sessionId", "session_id",
    "timestamp", "cwd", "version", "gitBranch", "slug", "userType", "entrypoint", "message", "requestId",
    "promptId", "promptSource", "permissionMode", "isMeta", "isVisibleInTranscriptOnly", "isCompactSummary",
    "isApiErrorMessage", "apiErrorStatus", "toolUseID", "sourceToolAssistantUUID", "sourceToolUseID",
    "imagePasteIds", "parent_tool_use_id", "costUSD", "durationMs", "teamName", "attributionAgent",
    "attributionSkill", "attributionPlugin",
    toolUseResult=None, error=None, errorDetails=None, todos=None, thinkingMetadata=None, forkedFrom=None,
    mcpMeta=None, origin=None,
)  # fmt: skip
_MESSAGE: Final = KnownFields(
    "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", stop_details=None,
    container=None, context_management=None, diagnostics=None,
)  # fmt: skip
_BLOCKS: Final = frozenset({
    "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document",
    "server_tool_use", "web_search_tool_result", "fallback",
})  # fmt: skip
_BLOCK: Final = KnownFields(
    "type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content",
    "is_error", "source", "title", "context", citations=None, cache_control=None, caller=None,
)  # fmt: skip
_COUNTS: Final = KnownFields(
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
    "service_tier", "inference_geo", "speed", cache_creation=KnownFields("ephemeral_1h_input_tokens",
    "ephemeral_5m_input_tokens"), output_tokens_details=None,
    server_tool_use=KnownFields("web_search_requests", "web_fetch_requests"), iterations=None,
)  # fmt: skip
_USAGE: Final = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cachedInputTokens",
    "cache_creation_input_tokens": "cacheWriteTokens",
}


def _recognises(source: ForeignSource) -> bool:
    if source.path.parent.name == "subagents" and _session_of(source).exists():
        return False  # imported together with its session
    if source.path.name.startswith("agent-") and (session := _session_beside(source.path)) is not None:
        return not source.path.with_name(f"{session}.jsonl").exists()
    return any(
        ("sessionId" in entry and entry.get("type") in (*_ROLES, *_NOTED))
        or ("session_id" in entry and entry.get("type") == "system" and "subtype" in entry)
        for entry in source.first_lines()
    )


def _session_of(source: ForeignSource) -> Path:
    folder = source.path.parent.parent
    return folder.with_name(f"{folder.name}.jsonl")


def _session_beside(path: Path) -> str | None:
    """The session that an ``agent-*.jsonl`` beside it belongs to; ``None`` if it names none."""
    with suppress(OSError, ValueError), path.open("rb") as stream:
        first = read_value(stream.readline(HEAD_BYTES))
        if isinstance(first, dict) and first.get("isSidechain") is True:
            session = first.get("sessionId")
            return session if isinstance(session, str) and Path(session).name == session else None
    return None


@lru_cache(maxsize=1)
def _agents_beside(folder: Path, _changed_ns: int) -> dict[str, list[str]]:
    """The files of agents in *folder*, by their sessions; a folder may have thousands of sessions."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("agent-*.jsonl")):
        if (session := _session_beside(path)) is not None:
            found.setdefault(session, []).append(path.name)
    return found


def _files_of_agents(source: ForeignSource) -> list[str]:
    stem, folder = source.path.stem, source.path.parent
    beside = _agents_beside(folder, folder.stat().st_mtime_ns).get(stem, [])
    return [*source.find_beside(f"{escape(stem)}/subagents/**/*.jsonl"), *beside]


class _Timed(NamedTuple):
    """An entry with its place, in the order of the times."""

    time_ms: float
    line: int
    entry: JsonObject
    below: str


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing(
        "requests as they were sent", "instructions and tools of the model", "temperature and limits"
    )
    reading = _Reading(run)

    def note_loss(below: str, reason: str, line: int | None) -> None:
        run.part = below
        run.note_loss(reason, line)

    def entries(below: str = "") -> Iterator[_Timed]:
        time_ms = 0.0
        for line, entry in source.objects(partial(note_loss, below), below):
            if files:
                time_ms = max(time_ms, iso_ms(entry.get("timestamp")) or 0.0)
            yield _Timed(time_ms, line, entry, below)

    files = _files_of_agents(source)
    lanes = {below: reading.new_lane("0") for below in files}
    timed = merge(entries(), *map(entries, files), key=_time_of) if files else entries()
    for _, line, entry, run.part in timed:
        run.attempt(line, reading.entry, line, entry, lanes.get(run.part))
    run.part = ""
    reading.turns.finish()
    if run.is_empty:
        raise FormatError("it holds no conversation", file=source.name)


def _time_of(timed: _Timed) -> float:
    return timed.time_ms


class _Reading:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self.turns = TranscriptTurns(run)
        self._lanes = KnownIds()
        """The lane of each entry."""
        self._latest: dict[str, str] = {}
        """The latest entry of each lane."""
        self._children: dict[str, int] = {}
        self._sidechains: dict[str, str] = {}
        self._begun: set[str] = set()
        """The lanes of files that were begun."""

    def new_lane(self, parent: str) -> str:
        number = self._children.get(parent, 0)
        self._children[parent] = number + 1
        return f"{parent}.{number}"

    def entry(self, line: int, entry: JsonObject, lane: str | None = None) -> None:
        run, kind = self._run, kind_of(entry)
        time_ms = run.time_ms(entry.get("timestamp"))
        message = entry.get("message")
        own, is_in_tree = entry.get("uuid"), lane is None and "session_id" not in entry
        is_repeated = is_in_tree and isinstance(own, str) and own in self._lanes
        blocks = self._blocks(line, message.get("content")) if isinstance(message, dict) else []
        if lane is None:
            lane = self._lane_of(line, entry, is_prompt=kind == "user" and not _has_results(blocks))
        elif lane not in self._begun:
            self._begun.add(lane)
            self.turns.begin_aside(lane)
        if kind not in _ROLES:
            if kind not in _NOTED:
                run.count_unknown("type", [kind])
                if "sessionId" not in entry and "session_id" not in entry:
                    run.note_loss("is not an entry of Claude Code; it is kept as a note", line)
            run.note(kind, {key: value for key, value in entry.items() if key != "type"}, time_ms=time_ms)
            return
        if is_repeated:
            run.note_loss("an entry of the same uuid was read before; this one is left out", line)
            return
        run.check_fields("entry", entry, _ENTRY)
        if not isinstance(message, dict):
            run.note_loss("the entry has no message", line)
            return
        run.check_fields("message", message, _MESSAGE)
        if kind == "assistant":
            self._answer(line, entry, message, blocks, time_ms, lane)
        else:
            self._read_user_message(line, blocks, time_ms, lane)

    def _blocks(self, line: int, content: JsonValue) -> list[JsonObject]:
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return self._run.objects("message.content", content, line)

    def _lane_of(self, line: int, entry: JsonObject, *, is_prompt: bool) -> str:
        own, parent = entry.get("uuid"), entry.get("parentUuid")
        if isinstance(caller := entry.get("parent_tool_use_id"), str):
            return self._sidechain(caller)
        if not isinstance(own, str) or "session_id" in entry:
            return "0"
        lane = self._parent_lane(line, entry, parent)
        if is_prompt and isinstance(parent, str) and self._latest.get(lane) not in (None, parent):
            # A prompt whose parent is not the latest entry starts a branch.
            lane = self.new_lane(lane) if parent in self._lanes else lane
        self._latest[lane] = own
        self._lanes[own] = lane
        return lane

    def _parent_lane(self, line: int, entry: JsonObject, parent: JsonValue) -> str:
        if isinstance(parent, str):
            found = self._lanes.get(parent)
            if found is None:
                self._run.note_loss(f"its parent is missing: {parent}", line)
            elif not (entry.get("isSidechain") is True and found == "0"):
                return found
        if entry.get("isSidechain") is not True:
            return "0"
        return self._sidechain(str(entry.get("agentId") or entry.get("uuid")))

    def _sidechain(self, agent: str) -> str:
        if agent not in self._sidechains:
            self._sidechains[agent] = lane = self.new_lane("0")
            self.turns.begin_aside(lane)
        return self._sidechains[agent]

    def _answer(
        self,
        line: int,
        entry: JsonObject,
        message: JsonObject,
        blocks: list[JsonObject],
        time_ms: float | None,
        lane: str,
    ) -> None:
        texts, reasoning, tools = [], [], []
        for block in blocks:
            kind = kind_of(block)
            self._run.check_fields("block", block, _BLOCK)
            if kind not in _BLOCKS:
                self._run.count_unknown("content", [kind])
            if kind == "text":
                texts.append(str(block.get("text") or ""))
            elif kind == "thinking":
                reasoning.append(str(block.get("thinking") or ""))
            elif kind == "tool_use":
                own = _id(block.get("id"))
                tools.append(ToolRequest(str(block.get("name")), block.get("input"), own, line))
            else:
                self._run.note(kind, block, time_ms=time_ms, lane=lane)
        usage = message.get("usage")
        if isinstance(usage, dict):
            self._run.check_fields("usage", usage, _COUNTS)
        is_error = entry.get("isApiErrorMessage") is True
        if message.get("model") == "<synthetic>" and not is_error:
            self._run.note("synthetic message", {"text": "\n".join(texts)}, time_ms=time_ms, lane=lane)
            return
        self.turns.answer(
            str(message.get("id") or entry.get("uuid")),
            text="\n".join(texts) if not is_error else "",
            reasoning="\n".join(filter(None, reasoning)),
            tools=tools,
            provider="anthropic",
            model=message.get("model"),
            usage=usage_counts(usage, _USAGE),
            stop_reason=message.get("stop_reason"),
            error="\n".join(texts) if is_error else None,
            time_ms=time_ms,
            lane=lane,
        )

    def _read_user_message(
        self, line: int, blocks: list[JsonObject], time_ms: float | None, lane: str
    ) -> None:
        said: list[JsonValue] = []
        is_text = True
        for block in blocks:
            self._run.check_fields("block", block, _BLOCK)
            kind = kind_of(block)
            if kind == "tool_result":
                self.turns.result(
                    str(block.get("tool_use_id")),
                    block.get("content"),
                    is_error=block.get("is_error") is True,
                    time_ms=time_ms,
                    line=line,
                    lane=lane,
                )
                continue
            if kind not in _BLOCKS:
                self._run.count_unknown("content", [kind])
            said.append(block)
            is_text &= kind == "text"
        if said:
            self.turns.say("user", text_of(said) if is_text else said, time_ms, lane)


def _has_results(blocks: list[JsonObject]) -> bool:
    return "tool_result" in [block.get("type") for block in blocks]


def _id(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


IMPORTER: Final = Importer(
    name="claude-code",
    title="transcripts of Claude Code",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)
