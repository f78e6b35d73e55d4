"""The fields that a model's answer adds to its event."""

from __future__ import annotations

from typing import Any

import msgspec

from reenact.canonical import digest_of_bytes
from reenact.providers.meaning import ModelResponse, Part, Thinking, ToolCall


def response_fields(response: ModelResponse) -> dict[str, Any]:
    """For ``llm_response``; ``responseId``, the lists of ids and ``error`` are left out when empty."""
    fields: dict[str, Any] = {
        "provider": response.provider,
        "model": response.model,
        "stopReason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "complete": response.complete,
    }
    reasoning_ids, call_ids = [], []
    for part in response.parts:
        if isinstance(part, ToolCall) and part.id:
            call_ids.append(part.id)
        if mark := _reasoning_id(part):
            reasoning_ids.append(mark)
    if response.id:
        fields["responseId"] = response.id
    if reasoning_ids:
        fields["reasoningIds"] = reasoning_ids
    if call_ids:
        fields["toolCallIds"] = call_ids
    if response.error:
        fields["error"] = response.error.to_json()
    return fields


def _reasoning_id(part: Part) -> str | None:
    """The id, else a digest of the signature or seal, which identifies the reasoning just as well."""
    if isinstance(part, Thinking):
        if part.id:
            return part.id
        mark = part.signature or part.sealed
    else:
        mark = getattr(part, "signature", None)
    return digest_of_bytes(mark.encode()) if mark else None
