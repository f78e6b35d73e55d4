"""The formats of requests, replies and errors of each provider; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.testing.wire import anthropic, gemini, ollama, openai_chat, openai_responses
from reenact.testing.wire.wire import Service, Wire, WireExchange, WireRequest

WIRES: Final = (
    anthropic.MESSAGES,
    openai_chat.CHAT,
    openai_responses.RESPONSES,
    gemini.GENERATE,
    ollama.CHAT,
)
SERVICES: Final = {wire.service.name: wire.service for wire in WIRES}


def wire_for(method: str, path: str) -> Wire | None:
    """The wire format of a model call to *path*; ``None`` for any other request."""
    return next((wire for wire in WIRES if method == "POST" and wire.path.search(path)), None)


def service_for(path: str, headers: Mapping[str, str]) -> Service:
    """The provider whose formats are used for a request that is not a model call."""
    if "anthropic-version" in headers:
        return anthropic.ANTHROPIC
    if "x-goog-api-key" in headers or "/v1beta" in path:
        return gemini.GEMINI
    return ollama.OLLAMA if "/api/" in path else openai_chat.OPENAI


__all__ = ["SERVICES", "WIRES", "Service", "Wire", "WireExchange", "WireRequest", "service_for", "wire_for"]
