"""Sessions of Gemini CLI: one JSON object per line, which may repeat a message; older ones are one object.

Chats that were saved by ``/chat save`` are the contents as they are sent: a list, or an object that holds it.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
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
from reenact.importers.source import ForeignSource, JsonObject, Losses
from reenact.importers.turns import TranscriptTurns
from reenact.values.codec import dump_sorted

_SESSION: Final = frozenset({
    "sessionId", "projectHash", "startTime", "lastUpdated", "kind", "messages", "summary", "directories",
    "memoryScratchpad",
})  # fmt: skip
_MESSAGE: Final = frozenset({
    "id", "timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls",
})  # fmt: skip
_CALL: Final = frozenset({
    "id", "name", "args", "result", "status", "timestamp", "agentId", "displayName", "description",
    "resultDisplay", "renderOutputAsMarkdown",
})  # fmt: skip
_LINE: Final = frozenset({"$set"})
_TEXT: Final = frozenset({"text"})
_RESULT: Final = KnownFields(
    functionResponse=KnownFields("id", "name", "response", "willContinue", "scheduling")
)
"""The result of a tool as it is sent to the model; it is repeated in the next user message."""
_THOUGHT: Final = frozenset({"subject", "description", "timestamp"})
_TOKENS: Final = frozenset({"input", "output", "cached", "thoughts", "tool", "total"})
_USAGE: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cachedInputTokens",
    "thoughts": "reasoningTokens",
}
_NOTICES: Final = ("info", "error", "warning")
_CONTENT: Final = frozenset({"role", "parts"})
_PART: Final = KnownFields(
    "text", "thought", "thoughtSignature", functionCall=frozenset({"id", "name", "args"}),
    functionResponse=frozenset({"id", "name", "response"}),
)  # fmt: skip
_SAVED: Final = re.compile(rb'\s*\[\s*\{\s*"(?:role|parts)"\s*:')


def _recognises(source: ForeignSource) -> bool:
    first = source.first_line
    if _is_saved(source):
        return True
    if isinstance(first, dict):
        return {"sessionId", "projectHash"} <= first.keys()
    return source.head.lstrip().startswith(b"{") and source.has("sessionId", "projectHash", "messages")


def _is_saved(source: ForeignSource) -> bool:
    """Whether it is a chat that was saved by its user."""
    is_list = _SAVED.match(source.head) is not None
    is_object = (
        source.head.lstrip().startswith(b"{") and source.has("history") and not source.has("sessionId")
    )
    return (is_list or is_object) and source.has("role", "parts")


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing("requests as they were sent", "instructions and tools of the model")
    reading = _Reading(run)
    if _is_saved(source):
        _read_saved(source, run)
        return
    if isinstance(source.first_line, dict):
        for line, entry in source.objects(run.note_loss):
            run.attempt(line, reading.entry, line, entry)
    else:
        lost: Losses = []
        document = source.document(lost)
        for reason, line_number in lost:
            run.note_loss(reason, line_number)
        if not isinstance(document, dict):
            raise FormatError("expected an object", file=source.name)
        reading.session(document)
    run.attempt(None, reading.finish)
    if run.is_empty:
        raise FormatError("it holds no conversation", file=source.name)


def _read_saved(source: ForeignSource, run: RunBuilder) -> None:
    lost: Losses = []
    chat = _SavedChat(run)
    number = 0
    for path, line, value, is_item in source.members([(), ("history",)], lost):
        if is_item:
            number += 1
            run.attempt(line, chat.content, value, number, line, what=f"content {number}")
        elif path not in ((), ("history",)):
            run.note("saved chat", {path[0]: value})
    for reason, at in lost:
        run.note_loss(reason, at)
    chat.turns.finish()
    if run.is_empty:
        raise FormatError("it holds no conversation", file=source.name)


class _SavedChat:
    """Contents as they are sent to the model; a call without an id is answered in its order."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self.turns = TranscriptTurns(run)
        self._waiting: list[tuple[str, str]] = []
        """The id and name of each call without a result."""

    def content(self, content: JsonObject, number: int, line: int) -> None:
        self._run.check_fields("content", content, _CONTENT)
        parts = self._run.objects("parts", content.get("parts"), line)
        for part in parts:
            self._run.check_fields("part", part, _PART)
        if content.get("role") == "model":
            self._answer(parts, number, line)
            return
        said: list[JsonValue] = []
        for part in parts:
            if isinstance(given := part.get("functionResponse"), dict):
                self.turns.result(self._call_of(given), given.get("response"), line=line)
            else:
                said.append(part)
        if said:
            is_text = all(isinstance(each, dict) and "text" in each for each in said)
            self.turns.say("user", text_of(said) if is_text else said)

    def _answer(self, parts: list[JsonObject], number: int, line: int) -> None:
        tools: list[ToolRequest] = []
        texts: list[str] = []
        thoughts: list[str] = []
        for at, part in enumerate(parts):
            if isinstance(call := part.get("functionCall"), dict):
                own = call.get("id")
                own = own if isinstance(own, str) else f"call-{number}-{at}"
                self._waiting.append((own, str(call.get("name"))))
                tools.append(ToolRequest(str(call.get("name")), call.get("args"), own, line))
            elif isinstance(text := part.get("text"), str):
                (thoughts if part.get("thought") is True else texts).append(text)
            else:
                self._run.note("part of an answer", part)
        self.turns.answer(
            str(number), text="\n".join(texts), reasoning="\n".join(thoughts), tools=tools, provider="gemini"
        )

    def _call_of(self, given: JsonObject) -> str:
        own, name = given.get("id"), str(given.get("name"))
        found = next((each for each in self._waiting if own == each[0]), None)
        found = found or next((each for each in self._waiting if name == each[1]), None)
        if found is None:
            return str(own or name)
        self._waiting.remove(found)
        return found[0]


class _Reading:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._turns = TranscriptTurns(run)
        self._pending: JsonObject | None = None
        """The latest message, which may be repeated with more content."""
        self._line: int | None = None
        self._results = KnownIds()
        """The digest of each result, by call id."""
        self._done = KnownIds()
        """The digest of each complete message, by its id."""

    def entry(self, line: int, entry: JsonObject) -> None:
        change = entry.get("$set")
        if isinstance(change, dict):
            self._run.check_fields("line", entry, _LINE)
            self.session(change, line)
        elif "$rewindTo" in entry or "$set" in entry:
            self._flush()
            self._run.note("rewind", entry)
        elif "sessionId" in entry and "type" not in entry:
            self.session(entry, line)
        else:
            self._message(entry, line)

    def session(self, session: JsonObject, line: int | None = None) -> None:
        self._run.check_fields("session", session, _SESSION)
        messages = session.get("messages")
        if "sessionId" not in session and session.keys() - {"messages", "lastUpdated"}:
            self._run.note("session", {key: value for key, value in session.items() if key != "messages"})
        for message in self._run.objects("messages", messages, line):
            self._message(message, line)
        if "sessionId" in session:
            named = {key: value for key, value in session.items() if key != "messages"}
            self._run.note("session", named, time_ms=self._run.time_ms(session.get("startTime"), line))

    def _message(self, message: JsonObject, line: int | None) -> None:
        own = message.get("id")
        if own is None or (self._pending is not None and self._pending.get("id") != own):
            self._flush()
        before = self._done.get(own) if isinstance(own, str) else None
        if before is not None:
            # Repeated when the whole session was written again.
            if before != _digest(message):
                self._run.note("repeated message", message, time_ms=iso_ms(message.get("timestamp")))
            return
        if self._pending is not None and not self._pending.keys() <= message.keys():
            self._run.note("repeated message", self._pending)
        self._pending, self._line = message, line

    def _flush(self) -> None:
        message, self._pending = self._pending, None
        if message is None:
            return
        run, line = self._run, self._line
        run.check_fields("message", message, _MESSAGE)
        kind, time_ms = kind_of(message), run.time_ms(message.get("timestamp"), line)
        if isinstance(own := message.get("id"), str):
            self._done[own] = _digest(message)
        if kind == "gemini":
            self._answer(message, time_ms, line)
        elif kind == "user":
            self._read_user_message(message.get("content"), time_ms, line)
        elif kind in _NOTICES:
            run.note(kind, {"content": message.get("content")}, time_ms=time_ms)
        else:
            run.count_unknown("type", [kind])
            if not {"id", "content"} <= message.keys():
                run.note_loss("is not a message of Gemini CLI; it is kept as a note", line)
            run.note(kind, message, time_ms=time_ms)

    def _read_user_message(self, content: JsonValue, time_ms: float | None, line: int | None) -> None:
        parts = content if isinstance(content, list) else [content]
        # Results of tools are also stored with their calls.
        given = [part for part in parts if isinstance(part, dict) and "functionResponse" in part]
        for part in given:
            self._run.check_fields("result", part, _RESULT)
            self._take_result(part["functionResponse"], time_ms, line)
        said = [part for part in parts if part not in given]
        if said:
            is_text = all(
                isinstance(part, str) or (isinstance(part, dict) and "text" in part) for part in said
            )
            for each in said if is_text else ():
                if isinstance(each, dict):
                    self._run.check_fields("part", each, _TEXT)
            self._turns.say("user", text_of(said) if is_text else said, time_ms)

    def _take_result(self, response: JsonValue, time_ms: float | None, line: int | None) -> None:
        """Add the result that was sent to the model, unless it is already known from the call."""
        own = response.get("id") if isinstance(response, dict) else None
        if (
            not isinstance(response, dict)
            or not isinstance(own, str)
            or self._results.get(own) == _digest(response.get("response"))
        ):
            return
        if own in self._results:
            self._run.note("repeated result", response, time_ms=time_ms)
        else:
            self._turns.result(own, response.get("response"), time_ms=time_ms, line=line)

    def _answer(self, message: JsonObject, time_ms: float | None, line: int | None) -> None:
        calls = self._run.objects("toolCalls", message.get("toolCalls"), line)
        thoughts = self._run.objects("thoughts", message.get("thoughts"), line)
        for thought in thoughts:
            self._run.check_fields("thought", thought, _THOUGHT)
        tokens = message.get("tokens")
        if isinstance(tokens, dict):
            self._run.check_fields("tokens", tokens, _TOKENS)
        tools = []
        for number, call in enumerate(calls):
            self._run.check_fields("toolCall", call, _CALL)
            tools.append(
                ToolRequest(str(call.get("name")), call.get("args"), _call_id(message, call, number), line)
            )
        self._turns.answer(
            str(message.get("id")),
            text=text_of(message.get("content")),
            reasoning="\n".join(f"{each.get('subject')}: {each.get('description')}" for each in thoughts),
            tools=tools,
            provider="gemini",
            model=message.get("model"),
            usage=usage_counts(tokens, _USAGE),
            time_ms=time_ms,
        )
        for number, call in enumerate(calls):
            if "result" in call:
                for part in call["result"] if isinstance(call["result"], list) else ():
                    if isinstance(part, dict) and "functionResponse" in part:
                        self._run.check_fields("result", part, _RESULT)
                own, result = _call_id(message, call, number), _result_of(call["result"])
                self._results[own] = _digest(result)
                self._turns.result(
                    own,
                    result,
                    is_error=call.get("status") in ("error", "cancelled"),
                    time_ms=self._run.time_ms(call.get("timestamp"), line),
                    line=line,
                )

    def finish(self) -> None:
        self._flush()
        self._turns.finish()


def _digest(value: JsonValue) -> str:
    try:
        text = dump_sorted(value)
    except TypeError:  # half a character, or a large number
        text = json.dumps(value, sort_keys=True).encode()
    return sha256(text).hexdigest()


def _call_id(message: JsonObject, call: JsonObject, number: int) -> str:
    own = call.get("id")
    return own if isinstance(own, str) else f"{message.get('id')}-{number}"


def _result_of(result: JsonValue) -> JsonValue:
    """The result of a tool without its ``functionResponse`` envelope."""
    if isinstance(result, list) and len(result) == 1 and isinstance(result[0], dict):
        response = result[0].get("functionResponse")
        if isinstance(response, dict) and "response" in response:
            return response["response"]
    return result


IMPORTER: Final = Importer(
    name="gemini-cli",
    title="sessions of Gemini CLI",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)
