"""The turns of the scripted model: plain values, the same for every wire format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from reenact.errors import UsageError
from reenact.testing.request import Request

When: TypeAlias = str | int | Callable[[Request], bool]
"""A text in the user's last message, a turn number (0 is the first), or a predicate."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    """``None`` for an id in the style of the wire format (``toolu_…``, ``call_…``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the scripted model; use one of the classes below."""

    when: When | None = None
    """Which requests it answers; ``None`` for any."""

    def answers(self, request: Request) -> bool:
        """Whether this turn's ``when`` holds for *request*."""
        match self.when:
            case None:
                return True
            case str(text):
                return text in request.user_text
            case int(turn):
                return request.turn == turn
            case predicate:
                return predicate(request)


@dataclass(frozen=True, slots=True)
class Reply(Turn):
    """The model answers: with text, tool calls, thinking, or all three."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    thinking: str = ""
    stop_reason: str | None = None
    """``"end"``, ``"tool"``, ``"length"`` or ``"refusal"``, sent in the word of each format; any other word
    is sent unchanged. ``None`` follows from the content."""
    usage: tuple[int, int] | None = None
    """Input and output tokens; ``None`` estimates both at four bytes a token."""
    delay_ms: float = 0
    """Before the response's headers."""
    chunk_delay_ms: float = 0
    """Between the parts of a stream; without effect otherwise."""
    chunks: int | Sequence[str] | None = None
    """How to split the text of a stream: into this many pieces, exactly these, or (``None``) words."""

    def __post_init__(self) -> None:
        if self.chunks is None or isinstance(self.chunks, int):
            return
        joined = "".join(self.chunks)
        if self.text not in ("", joined):
            raise UsageError(f"Reply: the chunks spell {joined!r}, not the text; give one of the two")
        object.__setattr__(self, "text", joined)

    @property
    def text_pieces(self) -> tuple[str, ...]:
        """The text as a stream carries it; joined, they are the text."""
        if self.chunks is None or isinstance(self.chunks, int):
            return cut(self.text, self.chunks)
        return tuple(self.chunks)

    @property
    def thinking_pieces(self) -> tuple[str, ...]:
        """The thinking as a stream carries it."""
        return cut(self.thinking, self.chunks if isinstance(self.chunks, int) else None)

    def argument_pieces(self, arguments: str) -> tuple[str, ...]:
        """A tool call's JSON text as a stream carries it: in two pieces unless ``chunks`` is a number."""
        return cut(arguments, self.chunks if isinstance(self.chunks, int) else 2)


@dataclass(frozen=True, slots=True)
class Fail(Turn):
    """The provider refuses with an HTTP error."""

    status: int = 429
    body: Any = None
    """Sent as JSON (``str`` and ``bytes`` unchanged); ``None`` sends the error format of the provider."""
    headers: Mapping[str, str] = field(default_factory=lambda: {"retry-after": "0.01"})
    """In addition to the usual ones; the default lets SDKs retry at once."""


@dataclass(frozen=True, slots=True)
class Disconnect(Turn):
    """The connection breaks in the middle of *reply*."""

    after_chunks: int = 0
    """The number of parts of the stream that are sent; 0 closes without a response. An answer that is not
    streamed breaks in the middle of its body."""
    reply: Reply = field(default_factory=lambda: Reply("The rest of this answer is never sent."))


@dataclass(frozen=True, slots=True)
class Timeout(Turn):
    """The provider sends nothing for a time, then closes the connection."""

    seconds: float = 3600


@dataclass(frozen=True, slots=True)
class Raw(Turn):
    """Exactly these bytes: malformed JSON, odd chunk boundaries, a header no provider sends."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    """A ``content-length`` or ``transfer-encoding`` is sent unchanged, also a wrong one; the body is sent
    unframed, and the connection is closed after it."""
    body: bytes = b""
    chunks: Sequence[bytes] | None = None
    """Sends a chunked response with these chunks instead of *body*."""
    chunk_delay_ms: float = 0


def cut(text: str, pieces: int | None) -> tuple[str, ...]:
    """Cut *text* into pieces of nearly equal length, fewer if it is short; ``None`` cuts into words."""
    if pieces is None:
        return tuple(re.findall(r"\s*\S+|\s+$", text))
    count = max(1, min(pieces, len(text)))
    bounds = [len(text) * ordinal // count for ordinal in range(count + 1)]
    return tuple(text[start:end] for start, end in pairwise(bounds) if end > start)
