"""Rollouts of Codex: one JSON object per line, with the items of the Responses API as they were exchanged.

A forked session repeats the history of its parent session; the repeated part is left out.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

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
from reenact.importers.source import ForeignSource, JsonObject, Losses, read_value
from reenact.importers.turns import TranscriptTurns

_LINE: Final = KnownFields("timestamp", "ordinal", "type", "payload", metadata=None)
_PART: Final = KnownFields("type", "text", "refusal", annotations=None, logprobs=None)
"""The fields of text parts; other parts are kept unchanged."""
_NOTED: Final = frozenset({
    "session_meta", "turn_context", "compacted", "world_state", "event_msg", "inter_agent_communication",
    "token_usage_record",
    "ghost_snapshot", "session_state",
})  # fmt: skip
_CALLS: Final = frozenset({
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call",
})  # fmt: skip
_ROLES: Final = ("assistant", "user", "system", "developer")
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_ITEM: Final = KnownFields(
    "type", "id", "role", "content", "status", "name", "namespace", "arguments", "input", "call_id",
    "output", "summary", "encrypted_content", "action", "tools", "phase", "execution", "result",
    "revised_prompt", "end_turn", internal_chat_message_metadata_passthrough=None, metadata=None,
)  # fmt: skip
_OTHER_ITEMS: Final = frozenset({
    "additional_tools", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "other",
})  # fmt: skip
USAGE: Final = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_input_tokens": "cacheWriteTokens",
    "reasoning_output_tokens": "reasoningTokens",
}


def _recognises(source: ForeignSource) -> bool:
    first = source.first_lines(3)
    is_current = any(each.get("type") == "session_meta" and "payload" in each for each in first)
    # In the first version lines had no type: the first line described the session, the others were items.
    is_early = (
        bool(first) and {"id", "timestamp", "instructions"} <= first[0].keys() and "type" not in first[0]
    )
    is_document = source.head.lstrip().startswith(b"{") and source.has("session", "items", "instructions")
    return is_current or is_early or is_document


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing(
        "requests as they were sent", "the request of each answer, if there is no token count between them"
    )
    reading = _Reading(run)
    if b'"items"' in source.head and not _is_by_lines(source):
        _read_document(source, run, reading)
    else:
        for line, entry in source.objects(run.note_loss):
            run.attempt(line, reading.entry, line, entry)
    reading.turns.finish()
    if reading.repeated:
        run.note("repeated history", {"items": reading.repeated})
        run.note_missing("repeated history of the session that this one was forked from; it is left out")
    if run.is_empty:
        raise FormatError("it holds no conversation", file=source.name)


def _is_by_lines(source: ForeignSource) -> bool:
    first = source.first_line
    return isinstance(first, dict) and not {"session", "items"} <= first.keys()


def _read_document(source: ForeignSource, run: RunBuilder, reading: _Reading) -> None:
    """Read a rollout of the first version, which was in TypeScript: one document."""
    lost: Losses = []
    number = 0
    for path, line, value, is_item in source.members([("items",)], lost):
        if is_item:
            number += 1
            run.attempt(line, reading.early_entry, line, value, None, what=f"item {number}")
        elif path == ("session",):
            run.attempt(line, reading.session, value)
        elif path not in ((), ("items",)):
            run.count_unknown("", path)
    for reason, at in lost:
        run.note_loss(reason, at)


class _Reading:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self.turns = TranscriptTurns(run)
        self._model: str | None = None
        self._session: str | None = None
        self._answers = 0
        self._is_answering = False
        self._forked_ms: float | None = None
        """The time at which the session was forked; older entries belong to the parent session."""
        self._seen = KnownIds()
        self.repeated = 0

    def entry(self, line: int, entry: JsonObject) -> None:
        run, time_ms = self._run, self._run.time_ms(entry.get("timestamp"))
        if "payload" not in entry:
            if self._session is not None:
                run.note_loss("the line has no payload, so it is not one of Codex; it is kept as it is", line)
            self.early_entry(line, entry, time_ms)
            return
        run.check_fields("line", entry, _LINE)
        kind, payload = kind_of(entry), entry["payload"]
        if not isinstance(payload, dict):
            run.note_loss("the line has no payload", line)
            return
        if self._forked_ms is not None and kind != "session_meta" and self._is_older(payload, time_ms):
            self.repeated += kind == "response_item"
        elif kind == "response_item":
            self._item(line, payload, time_ms)
        elif kind == "session_meta":
            self._meta(payload, time_ms)
        else:
            self._note(kind, payload, time_ms)

    def _is_older(self, payload: JsonObject, time_ms: float | None) -> bool:
        metadata = payload.get("internal_chat_message_metadata_passthrough")
        made_ms = iso_ms(metadata.get("create_time")) if isinstance(metadata, dict) else None
        made_ms = made_ms or iso_ms(payload.get("started_at")) or time_ms
        return made_ms is not None and self._forked_ms is not None and made_ms < self._forked_ms

    def early_entry(self, line: int, entry: JsonObject, time_ms: float | None) -> None:
        if entry.get("type") in ("message", "reasoning", *_CALLS, *_OUTPUTS):
            self._item(line, entry, time_ms)
        else:
            if "type" in entry:
                self._run.count_unknown("type", [kind_of(entry)])
            kind = str(entry.get("type") or entry.get("record_type") or "session")
            self._run.note(kind, entry, time_ms=time_ms)

    def session(self, session: JsonObject) -> None:
        self._run.note("session", session, time_ms=self._run.time_ms(session.get("timestamp")))

    def _meta(self, payload: JsonObject, time_ms: float | None) -> None:
        if self._session is None:
            self._session = str(payload.get("id"))
            if payload.get("forked_from_id") is not None:
                self._forked_ms = iso_ms(payload.get("timestamp")) or time_ms
        elif self._session != str(payload.get("id")):
            return  # the header of the parent session whose history is repeated here
        self._run.note("session_meta", payload, time_ms=time_ms)

    def _note(self, kind: str, payload: JsonObject, time_ms: float | None) -> None:
        if kind == "turn_context" and isinstance(model := payload.get("model"), str):
            self._model = model
        if kind == "event_msg" and payload.get("type") == "token_count":
            info = payload.get("info")
            usage = usage_counts(info.get("last_token_usage"), USAGE) if isinstance(info, dict) else None
            self.turns.usage(usage)
            self._is_answering = False
        elif kind == "token_usage_record":
            self.turns.usage(usage_counts(payload.get("usage"), USAGE))
            self._is_answering = False
        elif kind == "event_msg" and payload.get("type") in ("task_complete", "turn_complete"):
            self._is_answering = False
        if kind not in _NOTED:
            self._run.count_unknown("type", [kind])
        named = f"{kind} {payload['type']}" if kind == "event_msg" and "type" in payload else kind
        self._run.note(named, payload, time_ms=time_ms)

    def _item(self, line: int, item: JsonObject, time_ms: float | None) -> None:
        run, kind = self._run, kind_of(item)
        run.check_fields("item", item, _ITEM)
        own = item.get("call_id") or item.get("id")
        if kind in _CALLS and isinstance(own, str):
            if own in self._seen:
                self.repeated += 1  # repeated by a fork or by a resumed session
                return
            self._seen[own] = ""
        if kind == "message":
            self._message(item, time_ms)
        elif kind == "reasoning":
            for other in [*self._check_parts(item.get("summary")), *self._check_parts(item.get("content"))]:
                run.note("part of an answer", other, time_ms=time_ms)
            self._answer(time_ms, reasoning=text_of(item.get("summary")) or text_of(item.get("content")))
        elif kind in _CALLS:
            self._answer(time_ms, tools=[_tool_of(item, line)])
        elif kind in _OUTPUTS:
            self._is_answering = False
            self._output(line, item, time_ms)
        else:
            if kind not in _OTHER_ITEMS:
                run.count_unknown("item", [f"type={kind}"])
            run.note(kind, item, time_ms=time_ms)

    def _message(self, item: JsonObject, time_ms: float | None) -> None:
        role, content = item.get("role"), item.get("content")
        if role not in _ROLES:
            self._run.count_unknown("item", [f"role={role}"])
        other_parts = self._check_parts(content)
        if role == "assistant":
            for other in other_parts:
                self._run.note("part of an answer", other, time_ms=time_ms)
            self._answer(time_ms, text=text_of(content))
        else:
            self._is_answering = False
            said = content if other_parts else text_of(content)
            self.turns.say("system" if role in ("system", "developer") else "user", said, time_ms)

    def _check_parts(self, content: JsonValue) -> list[JsonValue]:
        """The parts of a content that are not text."""
        other_parts = []
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                self._run.check_fields("part", part, _PART)
            else:
                other_parts.append(part)
        return other_parts

    def _answer(
        self,
        time_ms: float | None,
        text: str = "",
        reasoning: str = "",
        tools: list[ToolRequest] | None = None,
    ) -> None:
        if not self._is_answering:
            self._answers += 1
            self._is_answering = True
        self.turns.answer(
            str(self._answers),
            text=text,
            reasoning=reasoning,
            tools=tools,
            provider="openai_responses",
            model=self._model,
            time_ms=time_ms,
        )

    def _output(self, line: int, item: JsonObject, time_ms: float | None) -> None:
        output = item.get("output")
        is_error = isinstance(output, dict) and output.get("success") is False
        content = output.get("content", output) if isinstance(output, dict) else output
        own = str(item.get("call_id") or item.get("id"))
        if own in self._seen and f"{own}=" in self._seen:
            self.repeated += 1
            return
        self._seen[f"{own}="] = ""
        self.turns.result(own, content, is_error=is_error, time_ms=time_ms, line=line)


def _tool_of(item: JsonObject, line: int) -> ToolRequest:
    arguments = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(arguments, str) and item.get("type") != "custom_tool_call":
        with suppress(ValueError):
            arguments = read_value(arguments.encode("utf-8", "surrogatepass")) if arguments else {}
    own = item.get("call_id") or item.get("id")
    name = str(item.get("name") or str(item.get("type")).removesuffix("_call"))
    return ToolRequest(name, arguments, own if isinstance(own, str) else None, line)


IMPORTER: Final = Importer(
    name="codex", title="rollouts of Codex", version=1, fidelity="tools", recognises=_recognises, read=_read
)
