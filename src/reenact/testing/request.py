"""The requests to the scripted provider, in one form for all wire formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool."""

    call_id: str
    """The id of the call; the tool's name if the format has no ids (Ollama, older Gemini)."""
    text: str
    """A result that is not text is given as JSON."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation so far, in short form for scripts."""

    role: Role
    text: str = ""
    tool_results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One received request, for scripts and tests."""

    number: int
    """0-based, in order of arrival; parallel requests arrive in any order."""
    provider: str
    """``anthropic``, ``openai``, ``gemini`` or ``ollama``: by path and headers, never by host."""
    wire: str | None
    """The wire format, such as ``openai_responses``; ``None`` if it is not a model call."""
    method: str
    path: str
    """The target as sent, query included."""
    headers: Mapping[str, str]
    """Names in lower case; of a repeated name, the last value."""
    raw: bytes
    body: Any
    """The JSON value of *raw*; ``None`` when it is not JSON."""
    time: float
    """When it was completely read, in seconds since the epoch."""
    model: str = ""
    stream: bool = False
    messages: tuple[Message, ...] = ()
    """Includes the earlier messages of a stateful conversation (``previous_response_id``)."""

    @property
    def user_text(self) -> str:
        """The last text of the user, without tool results."""
        said = (message.text for message in reversed(self.messages) if message.role == "user")
        return next(filter(None, said), "")

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results since the last answer of the model, in order."""
        since = takewhile(lambda message: message.role != "assistant", reversed(self.messages))
        return tuple(result for message in reversed(list(since)) for result in message.tool_results)

    @property
    def turn(self) -> int:
        """The number of answers of the model in this conversation so far; 0 in the first request."""
        spoke = groupby(message.role == "assistant" for message in self.messages)
        return sum(by_model for by_model, _ in spoke)
