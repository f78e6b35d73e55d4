"""One exchange with a model as an action that the capsule accepts."""

from __future__ import annotations

from typing import Any, Final

from reenact.canonical import encode
from reenact.check.action import PARAMS
from reenact.check.schema_accept import compile_schema
from reenact.errors import UsageError
from reenact.providers import (
    Message,
    ModelRequest,
    ModelResponse,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

_VENDORS: Final = {"openai_chat": "openai", "openai_responses": "openai"}
_ACCEPTS_PARAM: Final = {field.name: compile_schema(field.schema) for field in PARAMS.fields}


def action_from_exchange(
    request: ModelRequest,
    response: ModelResponse,
    *,
    agent_id: str,
    action_id: str,
    occurred_at_unix_ms: int,
    provider: str | None = None,
    context: Any = None,
) -> dict[str, Any] | None:
    """The action of *request* and *response*, always accepted; ``None`` where there was none.

    There is none where the model was asked nothing, or answered neither with text nor with a tool call.
    *provider* says who serves the model where the wire format's vendor does not.
    """
    if not agent_id or not action_id:
        raise UsageError(f"{'action' if agent_id else 'agent'}_id is empty; an action needs both ids")
    messages, output = _messages(request), _output(response)
    if not messages or not (output.get("content") or output.get("tool_calls")):
        return None
    action = {
        "agent_id": agent_id,
        "action_id": action_id,
        "occurred_at_unix_ms": str(occurred_at_unix_ms),
        "model": _model(provider or _VENDORS.get(request.provider, request.provider), request, response),
        "params": _params(request.params),
        "input": {"messages": messages, **_tools(request)},
        "output": output,
        "context": context,
    }
    return {key: value for key, value in action.items() if value not in (None, {})}


def _model(provider: str, request: ModelRequest, response: ModelResponse) -> dict[str, Any]:
    """The model as asked for; what the answer's own name adds to it is the version."""
    name = request.model or response.model or "unknown"
    model = {"provider": provider, "name": name}
    version = (response.model or "").removeprefix(f"{name}-")
    return model if version in ("", response.model) else {**model, "version": version}


def _params(sent: dict[str, Any]) -> dict[str, Any]:
    """The parameters as sent; those beyond what the format allows stand aside, under ``sent``."""
    given = {name: value for name, value in sent.items() if value is not None}
    if isinstance(given.get("stop"), str):
        given["stop"] = [given["stop"]]
    beyond = {
        name: given.pop(name) for name, ok in _ACCEPTS_PARAM.items() if name in given and not ok(given[name])
    }
    return {**given, "sent": beyond} if beyond else given


def _tools(request: ModelRequest) -> dict[str, Any]:
    return {"tools": [tool.to_json() for tool in request.tools]} if request.tools else {}


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_message(message) for message in request.messages]


def _message(message: Message) -> dict[str, Any]:
    content = "\n".join(filter(None, map(_words, message.parts)))
    return {"role": message.role, "content": content, **_all_parts(message.parts, Text)}


def _output(response: ModelResponse) -> dict[str, Any]:
    refusal = "".join(part.text for part in response.parts if isinstance(part, Refusal))
    output = {
        "content": response.text or refusal,
        "tool_calls": [_call(call) for call in response.tool_calls],
        "finish_reason": response.stop_reason,
        "usage": _usage(response.usage),
        **_all_parts(response.parts, Text, ToolCall),
    }
    return {key: value for key, value in output.items() if value}


def _all_parts(parts: tuple[Part, ...], *plain: type[Part]) -> dict[str, Any]:
    """Every part as it was, where not all of them are *plain*."""
    if all(isinstance(part, plain) for part in parts):
        return {}
    return {"parts": [part.to_json() for part in parts]}


def _words(part: Part) -> str:
    if isinstance(part, Text | Refusal):
        return part.text
    if isinstance(part, ToolResult):
        return part.content if isinstance(part.content, str) else encode(part.content).decode()
    return ""


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if call.arguments_text is None else call.arguments_text
    identity = {} if call.id is None else {"id": call.id}
    return {**identity, "name": call.name, "arguments": arguments}


def _usage(usage: Usage | None) -> dict[str, Any]:
    counts = (
        {} if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    )
    return {name: count for name, count in counts.items() if count is not None and count >= 0}
