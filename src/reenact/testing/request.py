"""What the scripted provider was asked, in one shape for all wire formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one of the user's tools gave back."""

    call_id: str
    """The id of the call it answers; the tool's name where the format has no ids (Ollama, older Gemini)."""
    text: str
    """A result that is not text appears as its JSON."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation so far, reduced to what a script can decide by."""

    role: Role
    text: str = ""
    tool_results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One received request; scripts decide by it, tests look at it afterwards."""

    number: int
    """0-based, in order of arrival; parallel requests arrive in any order."""
    provider: str
    """``anthropic``, ``openai``, ``gemini`` or ``ollama``: by path and headers, never by host."""
    wire: str | None
    """The format spoken, such as ``openai_responses``; ``None`` when it is not a model call."""
    method: str
    path: str
    """The target as sent, query included."""
    headers: Mapping[str, str]
    """Names in lower case; of a repeated name, the last value."""
    raw: bytes
    body: Any
    """The JSON value of *raw*; ``None`` when it is not JSON."""
    time: float
    """When it had been read completely, in seconds since the epoch."""
    model: str = ""
    stream: bool = False
    messages: tuple[Message, ...] = ()
    """Includes what a stateful conversation (``previous_response_id``) said before."""

    @property
    def user_text(self) -> str:
        """The last thing the user said in words; tool results are not words of the user."""
        said = (message.text for message in reversed(self.messages) if message.role == "user")
        return next(filter(None, said), "")

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results that arrived since the model spoke last, in their order."""
        since = takewhile(lambda message: message.role != "assistant", reversed(self.messages))
        return tuple(result for message in reversed(list(since)) for result in message.tool_results)

    @property
    def turn(self) -> int:
        """How often the model has spoken in this conversation already: 0 in its first request."""
        spoke = groupby(message.role == "assistant" for message in self.messages)
        return sum(by_model for by_model, _ in spoke)
