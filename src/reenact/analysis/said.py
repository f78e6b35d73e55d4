"""What was said in a model call, in short: the last word of the request, and the answer."""

from __future__ import annotations

from typing import Any, Final, get_args

from reenact.analysis.brief import brief, brief_arguments, unquoted
from reenact.providers import read_response
from reenact.providers.meaning import Provider

_CONVERSATION: Final = ("messages", "input", "contents", "prompt")
"""Where the wire formats keep what is said to the model."""
_CONTENT: Final = ("then", "content", "parts", "text", "output")
"""Where a conversation, a message or a part keeps what it says; ``then`` follows what was sent before."""


def asked(request: Any) -> str:
    """The last thing that *request*, as it stands in its event, says to the model."""
    body = request.get("body", request) if isinstance(request, dict) else request
    if not isinstance(body, dict):
        return ""
    return next((brief(_last_word(body[key])) for key in _CONVERSATION if key in body), "")


def answered(data: dict[str, Any]) -> str:
    """The text and the tool calls of an ``llm_response``; how it ended where there is neither."""
    if "modelError" in data:
        return brief(data["modelError"])
    body = _body(data)
    if data.get("provider") in get_args(Provider) and body:
        response = read_response(data["provider"], 200, {}, body)
        calls = [f"{call.name}({brief_arguments(call.arguments)})" for call in response.tool_calls]
        if response.text or calls:
            return ", ".join([*([brief(response.text)] if response.text else []), *calls])
    return str(data.get("stopReason") or "")


def _last_word(value: Any) -> Any:
    while isinstance(value, list | dict):
        if isinstance(value, list):
            inner = value[-1:]
        else:
            inner = [value[key] for key in _CONTENT if value.get(key)][:1]
        if not inner:
            return value
        [value] = inner
    return value


def _body(data: dict[str, Any]) -> bytes:
    """The body that came, as far as it stands in the event and is text."""
    response, pieces = unquoted(data.get("response")), unquoted(data.get("pieces"))
    body = response.get("body") if isinstance(response, dict) else None
    chunks = pieces if isinstance(pieces, list) else [body]
    return "".join(chunk for chunk in chunks if isinstance(chunk, str)).encode("utf-8", "surrogateescape")
