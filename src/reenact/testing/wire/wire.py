"""The interface of a wire format: reading a request, rendering a reply complete or as a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha512
from typing import Any, Final, TypeAlias

import msgspec

from reenact.testing.request import Message, Request
from reenact.testing.turns import Reply, ToolCall

Json: TypeAlias = dict[str, Any]

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Service:
    """The parts that all wire formats of a provider share: errors, models, headers."""

    name: str
    base_path: str
    """The path of the base URL for its SDK."""
    json_type: str
    """Its ``content-type`` for JSON."""
    request_id_header: str | None
    error: Callable[[int, str], Json]
    """The error body for a status and a message."""
    models: Callable[[Sequence[str], int], Json]
    """The model list for names and a creation time."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A parsed request body."""

    model: str
    stream: bool
    messages: tuple[Message, ...]
    follows: str = ""
    """The id of the answer that this request continues, if the server keeps conversations."""


@dataclass(frozen=True, slots=True)
class WireExchange:
    """Everything that a rendered reply depends on."""

    request: Request
    reply: Reply
    seed: str
    id: str
    calls: tuple[ToolCall, ...]
    """The reply's tool calls, each with an id."""
    created_at: int
    """Seconds since the epoch."""

    def make_id(self, prefix: str, ordinal: int = 0, length: int = 24) -> str:
        """A unique id of this exchange."""
        return make_id(self.seed, prefix, ordinal, length)

    @property
    def input_tokens(self) -> int:
        return self.reply.usage[0] if self.reply.usage else max(1, len(self.request.raw) // 4)

    @property
    def output_tokens(self) -> int:
        """Including the tokens of thinking."""
        if self.reply.usage:
            return self.reply.usage[1]
        arguments = (json_text(call.arguments) for call in self.calls)
        return max(1, sum(map(len, (self.reply.text, self.reply.thinking, *arguments))) // 4)

    @property
    def thinking_tokens(self) -> int:
        return min(len(self.reply.thinking) // 4, self.output_tokens)

    @property
    def stop(self) -> str:
        return self.reply.stop_reason or ("tool" if self.calls else "end")


@dataclass(frozen=True, slots=True)
class Wire:
    """One wire format, as pure functions."""

    name: str
    service: Service
    path: re.Pattern[str]
    """Matches the end of the path of a model call."""
    id_prefix: str
    call_prefix: str
    stream_type: str
    read: Callable[[str, Json], WireRequest]
    """Parses the path and body of a request."""
    whole: Callable[[WireExchange], Json]
    stream: Callable[[WireExchange], Iterator[bytes]]
    """The parts of a streamed answer, each sent as one HTTP chunk."""


def json_text(value: object) -> str:
    """Compact JSON that keeps the order of keys, with integers of any size."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def timestamp(seconds: int) -> str:
    """Seconds since the epoch as RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sse(data: object, event: str | None = None) -> bytes:
    """One server-sent event."""
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + msgspec.json.encode(data) + b"\n\n"


def items(value: object) -> list[Json]:
    """The objects in the list *value*; anything else is ignored."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    """The text of a message: a string, or the texts among its parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in items(content) if isinstance(part.get("text"), str))


_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def make_id(seed: str, prefix: str, ordinal: int = 0, length: int = 24) -> str:
    """*prefix* and *length* letters and digits; equal arguments give equal ids."""
    number = int.from_bytes(sha512(f"{seed}\0{prefix}\0{ordinal}".encode()).digest(), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return prefix + "".join(letters)
