"""The fields that a model's answer adds to its event."""

from __future__ import annotations

from typing import Any

from reenact.canonical import digest_of_bytes
from reenact.providers.meaning import ModelResponse, Part, Text, Thinking, ToolCall


def response_fields(response: ModelResponse) -> dict[str, Any]:
    """For ``llm_response``; ``responseId``, the lists of ids and ``error`` are left out when empty."""
    fields: dict[str, Any] = {
        "provider": response.provider,
        "model": response.model,
        "stopReason": response.stop_reason,
        "usage": response.usage.to_json() if response.usage else None,
        "complete": response.complete,
    }
    optional = {
        "responseId": response.id,
        "reasoningIds": [mark for mark in map(_reasoning_id, response.parts) if mark],
        "toolCallIds": [call.id for call in response.tool_calls if call.id],
        "error": response.error.to_json() if response.error else None,
    }
    return fields | {name: value for name, value in optional.items() if value}


def _reasoning_id(part: Part) -> str | None:
    """The id, else a digest of the signature or seal, which identifies the reasoning just as well."""
    if isinstance(part, Thinking) and part.id:
        return part.id
    mark = part.signature if isinstance(part, Text | Thinking | ToolCall) else None
    mark = mark or (part.sealed if isinstance(part, Thinking) else None)
    return digest_of_bytes(mark.encode()) if mark else None
