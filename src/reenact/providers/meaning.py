"""Model calls in provider-neutral form: messages, parts, usage, errors.

``to_json`` of every value here is plain JSON in camelCase; members that were not sent are left out.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonValue

Provider: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses", "gemini", "ollama"]
"""The wire format; the bytes do not tell which company answers."""


class Meaning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base class of all values in this module."""

    def to_json(self) -> dict[str, Any]:
        """This value as plain JSON, without references to the bodies it was read from."""
        value: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return value


class Text(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    text: str
    signature: str | None = None
    """Gemini also signs ordinary parts, and expects the signature back."""


class Media(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="media"):
    """A reference to an image, a sound or a document; the bytes stay in the request body."""

    media_type: str | None = None
    url: str | None = None
    file_id: str | None = None
    digest: str | None = None
    """The digest of the inline data as sent (mostly base64)."""


class Thinking(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="thinking"):
    text: str
    """Empty if the provider sent it only encrypted."""
    id: str | None = None
    signature: str | None = None
    sealed: str | None = None
    """What only the provider can read: redacted thinking, encrypted reasoning."""


class ToolCallPart(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="tool_call"):
    name: str
    arguments: JsonValue
    """The decoded JSON; ``None`` if there is *arguments_text* instead."""
    id: str | None = None
    arguments_text: str | None = None
    """The arguments as sent, if they are not JSON: free text, or cut off."""
    signature: str | None = None


class ToolResultPart(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="tool_result"):
    content: JsonValue
    """As sent: a text, a list of parts or an object."""
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    """Also false if the wire format cannot express it."""


class Refusal(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="refusal"):
    text: str


class Other(Meaning, frozen=True, kw_only=True, tag_field="kind", tag="other"):
    """A part without a neutral meaning, such as a tool that the provider ran itself."""

    type: str
    value: dict[str, JsonValue]


Part: TypeAlias = Text | Media | Thinking | ToolCallPart | ToolResultPart | Refusal | Other


class ModelMessage(Meaning, frozen=True, kw_only=True):
    role: str
    parts: tuple[Part, ...]


class Tool(Meaning, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    schema: JsonValue = None
    """``None`` for tools that the provider defines and runs."""


class Conversation(Meaning, frozen=True, kw_only=True):
    """The content of a request, without the model."""

    messages: tuple[ModelMessage, ...]
    """Without the leading system messages, which are in *system*."""
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    params: dict[str, JsonValue] = {}
    """As sent, but the limit, the sampling and the stop words have one name everywhere:
    ``max_tokens``, ``temperature``, ``top_p``, ``top_k``, ``seed``, ``stop``."""


class ModelRequest(Conversation, frozen=True, kw_only=True):
    provider: Provider
    model: str | None
    """``None`` when neither the body nor the path names one."""
    stream: bool
    input_hash: str
    """Digest of the body as sent, with the model filled in and without ``stream`` and ``stream_options``."""
    tool_schema_hash: str | None = None
    """Digest of the tools as sent; ``None`` without tools."""


class TokenUsage(Meaning, frozen=True, kw_only=True):
    """Token counts as sent; whether cached tokens are part of the input differs between providers."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    sent: dict[str, JsonValue] = {}
    """The usage object of the provider."""


class ModelError(Meaning, frozen=True, kw_only=True):
    type: str
    message: str
    status: int
    """The HTTP status; 200 for an error that arrived inside a stream."""


class ModelReply(Meaning, frozen=True, kw_only=True):
    """The content of a response body; the first of several choices."""

    parts: tuple[Part, ...] = ()
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: TokenUsage | None = None


class ModelResponse(ModelReply, frozen=True, kw_only=True):
    provider: Provider
    status: int
    complete: bool
    """Whether the model ended its message: false after an error and for a stream that was cut."""
    error: ModelError | None = None
    body: dict[str, JsonValue] = {}
    """The response body as sent; for a stream, the body of the same answer without streaming."""

    @property
    def text(self) -> str:
        """All text, without thinking and refusals."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def thinking(self) -> tuple[Thinking, ...]:
        return tuple(part for part in self.parts if isinstance(part, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls that the agent must run, without those that the provider ran."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))
