"""``transcript.md``: what was said and done in a run, for people who review a change of its recording.

It is made from the events alone, so it is redacted as they are, and the same events make the same text. There
are no ids, times or lanes in it: what a reviewer sees change has changed. Long texts are cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import msgspec

from reenact.errors import ReenactError
from reenact.providers import ModelResponse, Part, Text, ToolCall, ToolResult, read_request, read_response
from reenact.providers.meaning import Provider
from reenact.store.reader import EventLog

TRANSCRIPT: Final = "transcript.md"
_TITLE: Final = "# Transcript\n\nMade by reenact from events.jsonl, for review; do not edit.\n"
_TEXT_CHARACTERS: Final = 4_000
_WHOLE_CHARACTERS: Final = 1_000_000
_OUTSIDE: Final = ("network", "process", "file")
"""Sources of values that are calls of the outside; clocks and chance say nothing to a reviewer."""
UNREADABLE_EVENT: Final = "an event that says something else than events do"
_UNREADABLE: Final = (ReenactError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
_decode: Final = msgspec.json.Decoder().decode


def transcript_of(log: EventLog) -> bytes:
    """The transcript of the events in *log*."""
    pieces, size = [_TITLE], 0
    for text in _Writer(log).paragraphs():
        pieces.append(text)
        size += len(text)
        if size > _WHOLE_CHARACTERS:
            pieces.append("## …\n\nThe rest is too long for a transcript.\n")
            break
    return "\n".join(pieces).encode()


class _Writer:
    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._said: list[str] = []
        """What the latest request to a model said, message by message."""
        self._names: dict[str, str] = {}
        """By call id: what a call is called, for its outcome."""

    def paragraphs(self) -> Iterator[str]:
        for line in self._log.lines():
            try:
                event = _decode(line)
                yield from self._event(event["type"], event["data"])
            except _UNREADABLE:
                yield _section("unreadable", UNREADABLE_EVENT)

    def _event(self, kind: str, data: dict[str, Any]) -> Iterator[str]:
        match kind:
            case "llm_request":
                yield from self._asked(data)
            case "llm_response":
                yield _section("answer", self._answer(data))
            case "tool_call":
                self._names[data["callId"]] = data["tool"]
                yield _section(f"tool {data['tool']}", _json(self._value(data["args"])))
            case "tool_result":
                name = self._names.get(data["callId"], "a tool")
                yield _section(f"result of {name}", self._came(data, "result"))
            case "nondeterministic" if data["source"] in _OUTSIDE:
                yield from self._outside(data)
            case "state_mutation":
                known = {key: data[key] for key in ("path", "content", "details", "value") if key in data}
                yield _section(str(data["type"]), _json(self._value(known)))
            case "run_end" if "finalOutput" in data or "error" in data:
                yield _section("end", self._came(data, "finalOutput"))

    def _value(self, stored: Any) -> Any:
        return _plain(self._log.resolved(stored))

    def _came(self, data: dict[str, Any], member: str) -> str:
        if data.get("cancelled"):
            return "cancelled"
        if data.get("error") is not None:
            return _failure(self._value(data["error"]))
        if "pieces" in data and not data.get(member):
            return _json(self._value(data["pieces"]))
        return _json(self._value(data.get(member)))

    def _outside(self, data: dict[str, Any]) -> Iterator[str]:
        name = f"{data['source']} {data['key']}"
        if "request" in data:
            request = self._value(data["request"])
            shown = request.get("body") if isinstance(request, dict) and "url" in request else request
            yield _section(name, _json(shown) if shown is not None else "")
        else:
            yield _section(f"outcome of {name}", self._came(data, "value"))

    def _asked(self, data: dict[str, Any]) -> Iterator[str]:
        """What is new in a request: chat histories repeat."""
        request = self._value(data["request"])
        said = list(_messages(request))
        shared = 0
        for one, other in zip(said, self._said, strict=False):
            if one != other:
                break
            shared += 1
        self._said = said
        yield _section(f"model {data.get('model') or data.get('provider')}", "")
        yield from said[shared:]

    def _answer(self, data: dict[str, Any]) -> str:
        if data.get("cancelled") or data.get("error") is not None:
            return self._came(data, "response")
        if data.get("modelError") is not None:
            return _json(self._value(data["modelError"]))
        response = self._response(data)
        if response is None:
            return _json(self._value(data.get("response")))
        calls = [f"calls {call.name} with {_json(call.arguments)}" for call in response.tool_calls]
        return "\n".join([*([response.text] if response.text else []), *calls]) or str(data.get("stopReason"))

    def _response(self, data: dict[str, Any]) -> ModelResponse | None:
        answer, pieces = self._value(data.get("response")), self._value(data.get("pieces"))
        body = answer.get("body") if isinstance(answer, dict) else None
        chunks = pieces if isinstance(pieces, list) else [body]
        text = "".join(chunk for chunk in chunks if isinstance(chunk, str))
        if data.get("provider") not in get_args(Provider) or not text:
            return None
        return read_response(data["provider"], 200, {}, text.encode("utf-8", "surrogateescape"))


def _messages(request: Any) -> Iterator[str]:
    """What a request says to the model, a section per message."""
    is_http = isinstance(request, dict) and isinstance(request.get("url"), str)
    asked = read_request(urlsplit(request["url"]).path, request.get("body")) if is_http else None
    if asked is None:
        yield _section("asked", _json(request.get("body", request) if isinstance(request, dict) else request))
        return
    if asked.system:
        yield _section("system", asked.system)
    for message in asked.messages:
        yield _section(message.role, "\n".join(filter(None, map(_part, message.parts))))


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"calls {name} with {_json(arguments)}"
        case ToolResult():
            return f"result: {_json(_plain(part.to_json().get('content')))}"
        case _:
            return f"({type(part).__name__.lower()})"


def _plain(value: Any) -> Any:
    """A recorded value without the marks that keep its Python type."""
    if isinstance(value, list):
        return [_plain(child) for child in value]
    if not isinstance(value, dict):
        return value
    if "$py" in value:
        return _plain(value["value"]) if "value" in value else f"({value.get('type', value['$py'])})"
    return {key: _plain(child) for key, child in value.items()}


def _failure(error: Any) -> str:
    if not isinstance(error, dict) or "type" not in error:
        return f"failed: {_json(error)}"
    name = str(error["type"]).rpartition(":")[2]
    return f"failed: {name}: {error.get('message', '')}".removesuffix(": ")


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=None if len(str(value)) < 80 else 2)


def _section(title: str, text: str) -> str:
    """A heading and, indented so that no text can end it, what was said."""
    if len(text) > _TEXT_CHARACTERS:
        text = f"{text[:_TEXT_CHARACTERS]}\n… {len(text) - _TEXT_CHARACTERS:,} further characters"
    lines = "".join(f"    {_visible(line)}".rstrip() + "\n" for line in text.split("\n")) if text else ""
    return f"## {_visible(title)}\n" + (f"\n{lines}" if lines else "")


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        sign if sign.isprintable() or sign == "\t" else sign.encode("unicode_escape", "replace").decode()
        for sign in line
    )
