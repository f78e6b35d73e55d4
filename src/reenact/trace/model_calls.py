"""What the model calls of a capture say: who was asked what, and what came back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from reenact.formats.bundle import Message
from reenact.formats.record import ABSENT
from reenact.formats.values import from_json
from reenact.providers import ModelRequest, ModelResponse, Text, read_request, read_response
from reenact.providers.meaning import Message as ModelMessage

_USAGE: Final[Mapping[str, str]] = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}
_PROVIDERS: Final = frozenset({"anthropic", "openai_chat", "openai_responses", "gemini", "ollama"})


def model_request(request: Any) -> ModelRequest | None:
    """What a resolved request asks; ``None`` where it is no known wire format."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return None
    return read_request(urlsplit(request["url"]).path, request.get("body"))


def input_messages(request: Any) -> list[Message]:
    """The conversation that a resolved request carries; empty where it is no known wire format."""
    asked = model_request(request)
    if asked is None:
        return []
    system = [Message(role="system", content=asked.system)] if asked.system else []
    return system + [Message(role=said.role, content=_text(said)) for said in asked.messages]


def _text(message: ModelMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def output_text(provider: str, response: Any, pieces: Any) -> str | None:
    """The text of a resolved answer, streamed or whole; ``None`` where the bytes are not at hand."""
    answer = model_response(provider, response, pieces)
    return None if answer is None else answer.text


def model_response(provider: str, response: Any, pieces: Any) -> ModelResponse | None:
    """What a resolved answer says, streamed or whole; ``None`` where the bytes are not at hand."""
    if provider not in _PROVIDERS or not isinstance(response, dict):
        return None
    body = _bytes(pieces if pieces is not ABSENT else [response.get("body")])
    if body is None:
        return None
    known: Any = provider
    status = response.get("status")
    return read_response(known, status if isinstance(status, int) else 200, {}, body)


def _bytes(pieces: Any) -> bytes | None:
    if not isinstance(pieces, list):
        return None
    chunks = [from_json(piece) for piece in pieces]
    if not all(isinstance(chunk, str | bytes) for chunk in chunks):
        return None
    return b"".join(
        chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape") for chunk in chunks
    )


def usage_of(recorded: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The token counts of one answer under the names of traces; ``None`` where none were sent."""
    counts = {
        name: recorded[key] for key, name in _USAGE.items() if recorded and isinstance(recorded.get(key), int)
    }
    return counts or None


def total_usage(usages: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """All counts together, with ``total_tokens``; ``None`` where no call had any."""
    totals: dict[str, int] = {}
    for usage in usages:
        for name, count in (usage or {}).items():
            totals[name] = totals.get(name, 0) + count
    if not totals:
        return None
    return totals | {"total_tokens": totals.get("input_tokens", 0) + totals.get("output_tokens", 0)}


def error_of(failure: Any) -> dict[str, Any]:
    """A recorded failure as an ``error`` event says it; a class is named without its module."""
    facts = failure if isinstance(failure, dict) else {"message": str(failure)}
    name = str(facts.get("type") or "error").rpartition(":")[2]
    error = {"error_type": name, "message": str(facts.get("message") or "")}
    return error | ({"status": facts["status"]} if isinstance(facts.get("status"), int) else {})


def as_text(value: Any) -> str:
    """An output as text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
