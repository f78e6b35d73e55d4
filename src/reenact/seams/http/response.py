"""A response as a recorded value, readable, and as what the client gets back from it."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from reenact.seams.http import headers as header_values
from reenact.seams.http.headers import Pairs, value_of

_TEXTUAL: Final = re.compile(r"text/|.*(?:json|xml|javascript|urlencoded)", re.IGNORECASE)
_ABOUT_THE_BODY: Final = ("content-encoding", "content-length", "transfer-encoding")


class Head(NamedTuple):
    """What comes before the body."""

    status: int
    reason: str
    http_version: str
    """Such as ``HTTP/1.1``."""
    headers: Pairs

    @property
    def content_encoding(self) -> str:
        return value_of(self.headers, "content-encoding")

    @property
    def is_textual(self) -> bool:
        return _TEXTUAL.match(value_of(self.headers, "content-type")) is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "headers": header_values.to_json(self.headers),
            "httpVersion": self.http_version,
            "reason": self.reason,
            "status": self.status,
        }

    @classmethod
    def from_json(cls, answer: dict[str, Any]) -> Head:
        return cls(
            answer["status"],
            answer["reason"],
            answer["httpVersion"],
            header_values.from_json(answer["headers"]),
        )

    def above(self, size_bytes: int | None) -> Head:
        """This head above a body that is not coded, of *size_bytes* where that is known."""
        headers = [(name, value) for name, value in self.headers if name.lower() not in _ABOUT_THE_BODY]
        if size_bytes is not None:
            headers.append(("content-length", str(size_bytes)))
        return self._replace(headers=headers)


def to_piece(chunk: bytes, *, is_textual: bool) -> str | bytes:
    """A chunk of a stream; text may be cut within a character, so odd bytes are escaped, not replaced."""
    return chunk.decode("utf-8", "surrogateescape") if is_textual else chunk


def from_piece(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape")
