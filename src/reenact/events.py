"""Captures from the event stream of an agent framework, for agents whose traffic cannot be recorded.

A function per framework turns its stream into :class:`AgentEvent` values on a few channels, and
:func:`capture_events` turns these into capture events. All are ``derived``: they can be shown, verified,
tested, compared and converted, but not replayed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from reenact.canonical import digest
from reenact.errors import UsageError
from reenact.formats.capture import BLOB_THRESHOLD_BYTES, RunStatus
from reenact.recorder.sink import FileCaptureSink
from reenact.run.capturing import CaptureRun, Identity
from reenact.run.redact import Redact
from reenact.seams import stdlib
from reenact.values.objects import message_of

LIFECYCLE: Final = "lifecycle"
ASSISTANT: Final = "assistant"
TOOL: Final = "tool"
ERROR: Final = "error"
_LANE: Final = "0"


class AgentEvent(msgspec.Struct, frozen=True):
    """One event that an agent framework reported.

    ``lifecycle`` has ``phase`` (``start`` and ``end`` of the whole run, else anything), ``input`` and
    ``output``. ``assistant`` has ``text``, ``tool_calls``, ``model``, ``provider``, ``usage``,
    ``stop_reason`` and ``messages`` (the request), as far as they are known. ``tool`` has ``phase``
    (``call``, ``result`` or ``error``), ``tool``, ``args``, ``result``, ``error``. ``error`` has ``type`` and
    ``message``. Other channels are recorded unchanged.
    """

    channel: str
    data: Mapping[str, object] = {}
    id: str | None = None
    """The id of a tool call, in call and result; or of a message, so that a repeated one counts once."""


CaptureData: TypeAlias = tuple[str, dict[str, object]]
"""The type of a capture event, and its data."""


class EventStreamState(msgspec.Struct):
    """The state of a stream."""

    calls: dict[str, str] = {}
    """The ids of tool calls without a result, by the id that the framework uses."""
    messages: set[str] = set()
    count: int = 0
    """The number of calls so far."""
    output: object = None
    """The latest known output of the agent."""
    error: str | None = None
    """The error of a failed run."""


def capture_events(event: AgentEvent, state: EventStreamState) -> list[CaptureData]:
    """Convert *event* to capture events, and update *state*.

    The start and the end of a run give no events; *state* keeps its output and error.
    """
    data = dict(event.data)
    if event.channel == LIFECYCLE:
        if data.get("phase") not in ("start", "end"):
            return [_state(LIFECYCLE, data)]
        state.output = data["output"] if data.get("output") is not None else state.output
        return [_state(LIFECYCLE, data)] if data["phase"] == "start" and data.get("input") is not None else []
    if event.channel == ERROR:
        state.error = ": ".join(str(data[name]) for name in ("type", "message") if data.get(name))
        return [_state(ERROR, data)]
    if event.channel == ASSISTANT:
        return _model_events(event, data, state)
    if event.channel == TOOL:
        return _tool_event(event, data, state)
    return [_state(event.channel, data)]


def _state(kind: str, details: dict[str, object]) -> CaptureData:
    return "state_mutation", {"type": kind, "details": details, "lane": _LANE, "derived": True}


def _model_events(event: AgentEvent, data: dict[str, object], state: EventStreamState) -> list[CaptureData]:
    if event.id is not None and event.id in state.messages:
        return []
    state.messages |= set() if event.id is None else {event.id}
    state.count += 1
    ids = {"callId": f"c{state.count}", "derived": True}
    named = {"provider": str(data.get("provider") or "unknown"), "model": str(data.get("model") or "unknown")}
    request = {"messages": data["messages"]} if data.get("messages") is not None else None
    response = {name: data[name] for name in ("text", "tool_calls") if data.get(name)}
    state.output = data["text"] if data.get("text") else state.output
    call = ids | named | {"lane": _LANE, "request": request, "inputHash": _digest_of(request)}
    ended = {"stopReason": data.get("stop_reason"), "usage": data.get("usage"), "response": response}
    return [("llm_request", call), ("llm_response", ids | named | ended)]


def _tool_event(event: AgentEvent, data: dict[str, object], state: EventStreamState) -> list[CaptureData]:
    phase, own = data.get("phase"), event.id
    if own is None or phase not in ("call", "result", "error"):
        raise UsageError(f"a tool event needs an id, and call, result or error for its phase, not {phase!r}")
    is_new = own not in state.calls and (phase == "call" or own not in state.messages)
    found: list[CaptureData] = []
    if is_new and own not in state.messages:
        # A result without a reported call gets a call.
        state.count += 1
        state.calls[own] = f"c{state.count}"
        state.messages.add(own)
        call = {"callId": state.calls[own], "tool": str(data.get("tool") or "unknown"), "lane": _LANE}
        found.append(("tool_call", call | {"args": data.get("args"), "derived": True}))
    if phase == "call" or own not in state.calls:
        return found
    outcome = {"callId": state.calls.pop(own), "ok": phase == "result", "derived": True}
    result = {"result": data.get("result")} if phase == "result" else {"error": data.get("error")}
    return [*found, ("tool_result", outcome | result)]


def _digest_of(request: object) -> str:
    try:
        return digest(_plain(request))
    except Exception:  # a value without a canonical form has no digest
        return digest(None)


Adapter: TypeAlias = Callable[[object], Iterable[AgentEvent]]
"""Converts one item of a framework's stream."""


class StreamCapture(CaptureRun):
    """Records the items that are added to it, and nothing else of this process.

    >>> with StreamCapture("runs/order", from_openai_agents) as capture:
    ...     async for event in result.stream_events():
    ...         capture.add(event)
    """

    def __init__(
        self,
        path: str | Path,
        adapter: Adapter | None = None,
        *,
        redact: Redact = None,
        identity: Identity | None = None,
    ) -> None:
        """Without an *adapter*, the items are :class:`AgentEvent` values."""
        super().__init__(
            FileCaptureSink(path),
            redact=redact,
            blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
            stand_ins=stdlib.NOTHING,
            on_warning=None,
            identity=identity,
        )
        self._adapter = adapter
        self._state = EventStreamState()

    def __enter__(self) -> Self:
        """No seam is attached: only the stream is recorded, no calls of the block."""
        self._context.start()
        self._context.record_event("run_start", self.surroundings())
        return self

    def add(self, item: Any) -> None:
        """Record one item of the stream; a failure gives a warning, no error."""
        try:
            events = [item] if self._adapter is None else self._adapter(item)
            for event in events:
                for kind, data in capture_events(event, self._state):
                    self._context.record_event(kind, _plain(data))
        except Exception as error:
            self._context.warn(f"an event of the agent's stream was not recorded: {error}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        output = self._state.output if self.final_output is None else self.final_output
        message = self._state.error if error is None else f"{type(error).__name__}: {message_of(error)}"
        status: RunStatus = "ok" if message is None else "error"
        self.manifest = self._context.finalize(status, message, _plain(output), self.confidence)


def _plain(value: object) -> Any:
    """Convert *value* to JSON: objects of frameworks by their fields, other objects by ``repr``."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(child) for name, child in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(child) for child in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return _plain(dump(mode="json", exclude_none=True))
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": str(value)}
    try:
        return _plain(msgspec.to_builtins(value))
    except TypeError:
        return repr(value)


# The OpenAI Agents SDK


def from_openai_agents(event: Any) -> Iterator[AgentEvent]:
    """Convert an event of ``Runner.run_streamed(…).stream_events()``; deltas give nothing."""
    if event.type == "raw_response_event":
        if event.data.type == "response.completed":
            yield _openai_answer(event.data.response)
    elif event.type == "agent_updated_stream_event":
        yield AgentEvent(LIFECYCLE, {"phase": "agent", "name": event.new_agent.name})
    elif event.name == "tool_called":
        raw = event.item.raw_item
        tool, args = _field(raw, "name"), _arguments(_field(raw, "arguments"))
        call_id = _field(raw, "call_id") or _field(raw, "id")
        tool = tool or str(_field(raw, "type") or "").removesuffix("_call")
        yield AgentEvent(TOOL, {"phase": "call", "tool": tool, "args": args}, call_id)
    elif event.name == "tool_output":
        raw = event.item.raw_item
        yield AgentEvent(TOOL, {"phase": "result", "result": event.item.output}, _field(raw, "call_id"))
    elif event.name in ("handoff_requested", "handoff_occured", "handoff_occurred"):
        yield AgentEvent(event.name.replace("occured", "occurred"), {"agent": event.item.agent.name})


def _openai_answer(response: Any) -> AgentEvent:
    calls = [
        {"id": item.call_id, "name": item.name, "arguments": _arguments(item.arguments)}
        for item in response.output
        if item.type == "function_call"
    ]
    data = {
        "provider": "openai",
        "model": str(response.model),
        "text": response.output_text,
        "tool_calls": calls,
        "usage": response.usage,
        "stop_reason": response.status,
    }
    return AgentEvent(ASSISTANT, data)


def _field(item: object, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _arguments(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


# LangGraph and what is built on it


def from_langgraph(item: object) -> Iterator[AgentEvent]:
    """Convert an item of a graph's ``astream_events``, ``stream`` or ``astream``.

    Of the modes of ``stream``, ``updates``, ``values`` and ``custom`` have messages; others give nothing.
    """
    if isinstance(item, Mapping) and isinstance(item.get("event"), str) and "run_id" in item:
        yield from _langgraph_event(item)
        return
    mode, content = None, item
    if isinstance(item, tuple):
        if len(item) not in (2, 3) or not isinstance(item[-2], str):
            return  # deltas of messages, or of a subgraph
        mode, content = item[-2], item[-1]
    if mode == "custom":
        yield AgentEvent("custom", content if isinstance(content, Mapping) else {"value": content})
    elif isinstance(content, Mapping) and mode in (None, "updates", "values"):
        is_state = mode == "values" or (mode is None and "messages" in content)
        for node, update in [("", content)] if is_state else content.items():
            if node == "__interrupt__":
                yield AgentEvent("interrupt", {"value": update})
            for message in _messages_in(update):
                yield from _langchain_message(message)


def _langgraph_event(event: Mapping[str, Any]) -> Iterator[AgentEvent]:
    kind, data, run_id = event["event"], event.get("data", {}), str(event["run_id"])
    is_whole = not event.get("parent_ids")
    node = event.get("metadata", {}).get("langgraph_node")
    if kind == "on_chat_model_end":
        yield from _assistant(data.get("output"), request=data.get("input"))
    elif kind == "on_tool_start":
        fields = {"phase": "call", "tool": event.get("name"), "args": data.get("input")}
        yield AgentEvent(TOOL, fields, run_id)
    elif kind in ("on_tool_end", "on_tool_error"):
        yield _tool_outcome(data, run_id)
    elif kind == "on_custom_event":
        value = data if isinstance(data, Mapping) else {"value": data}
        yield AgentEvent(str(event.get("name") or "custom"), value)
    elif kind == "on_chain_error" or (kind == "on_chat_model_error"):
        failed = data.get("error")
        yield AgentEvent(ERROR, {"type": type(failed).__name__, "message": str(failed)})
    elif kind in ("on_chain_start", "on_chain_end") and is_whole:
        fields = {"input": data.get("input"), "output": _last_text(data.get("output"))}
        yield AgentEvent(LIFECYCLE, {"phase": kind.removeprefix("on_chain_"), **fields})
    elif kind == "on_chain_start" and node is not None and node == event.get("name"):
        yield AgentEvent(LIFECYCLE, {"phase": "node", "name": node})


def _tool_outcome(data: Mapping[str, object], run_id: str) -> AgentEvent:
    if "error" in data:
        return AgentEvent(TOOL, {"phase": "error", "error": data["error"]}, run_id)
    output = data.get("output")
    content = getattr(output, "content", output)
    if getattr(output, "status", None) == "error":
        return AgentEvent(TOOL, {"phase": "error", "error": content}, run_id)
    return AgentEvent(TOOL, {"phase": "result", "result": content}, run_id)


def _messages_in(update: object) -> list[object]:
    found = update.get("messages") if isinstance(update, Mapping) else None
    return list(found) if isinstance(found, list | tuple) else [found] if found is not None else []


def _langchain_message(message: Any) -> Iterator[AgentEvent]:
    kind = getattr(message, "type", None)
    if kind == "ai":
        yield from _assistant(message)
        for call in message.tool_calls:
            fields = {"phase": "call", "tool": call["name"], "args": call["args"]}
            yield AgentEvent(TOOL, fields, call.get("id"))
    elif kind == "tool":
        phase = "error" if message.status == "error" else "result"
        fields = {"phase": phase, "tool": message.name, phase: message.content}
        yield AgentEvent(TOOL, fields, message.tool_call_id)


def _assistant(message: Any, request: object = None) -> Iterator[AgentEvent]:
    if getattr(message, "type", None) not in ("ai", "AIMessageChunk"):
        return
    metadata = message.response_metadata
    data = {
        "text": _text_of(message),
        "tool_calls": [
            {"id": call.get("id"), "name": call["name"], "arguments": call["args"]}
            for call in message.tool_calls
        ],
        "model": metadata.get("model_name") or metadata.get("model"),
        "provider": metadata.get("model_provider"),
        "usage": message.usage_metadata,
        "stop_reason": metadata.get("finish_reason") or metadata.get("stop_reason"),
        "messages": request.get("messages") if isinstance(request, Mapping) else request,
    }
    yield AgentEvent(ASSISTANT, data, message.id)


def _text_of(message: Any) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def _last_text(output: object) -> object:
    """The output of a graph: its last message, if it has messages."""
    messages = _messages_in(output)
    return _text_of(messages[-1]) if messages and hasattr(messages[-1], "content") else output
