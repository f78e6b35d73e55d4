"""What was asked in a step and what came of it, on one line each."""

from __future__ import annotations

from typing import Any, Final

from reenact.analysis import said
from reenact.analysis.brief import brief, brief_arguments, brief_failure, plural, size, unquoted
from reenact.analysis.events import Event

_HASHES: Final = 19
"""How much of a digest is shown: its algorithm and twelve digits."""


def asked(event: Event) -> str:
    """What the event that began a step asks for."""
    data = event.data
    if event.type == "tool_call":
        return brief_arguments(data["args"]) if "args" in data else _digest(data.get("argsHash"))
    if event.type == "llm_request":
        return said.asked(data.get("request"))
    if event.type == "state_mutation":
        return str(data.get("path") or "")
    request = data.get("request")
    if isinstance(request, dict) and "url" in request:  # its name says the rest
        request = request.get("body")
    return brief(request) if request is not None else ""


def came(event: Event) -> str:
    """What the event that ended a step says."""
    data = event.data
    if data.get("cancelled"):
        text = "cancelled"
    elif data.get("error") is not None:
        text = brief_failure(data["error"])
    elif data.get("ok") is False:
        text = "failed"
    else:
        text = _answer(event)
    pieces = unquoted(data.get("pieces"))
    if isinstance(pieces, list):
        text = f"{plural(len(pieces), 'piece')} {text}".rstrip()
    return text


def _answer(event: Event) -> str:
    data = event.data
    if event.type == "tool_result":
        return brief(data["result"]) if data.get("result") is not None else _digest(data.get("resultHash"))
    if event.type == "llm_response":
        return brief(data["text"]) if data.get("text") else said.answered(data)
    value = unquoted(data.get("value"))
    if event.type == "nondeterministic" and isinstance(value, dict) and "status" in value:
        return f"{value['status']} {value.get('reason', '')} {size(value.get('bytes', 0))}"
    if event.type == "state_mutation":
        value = next((data[name] for name in ("value", "content", "details") if name in data), None)
    return brief(value) if value is not None else ""


def _digest(digest: Any) -> str:
    """A published log has digests instead of values."""
    return f"‹{digest[:_HASHES]}…›" if isinstance(digest, str) else ""
