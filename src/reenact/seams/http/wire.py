"""A response read from a simulated socket, for clients that build on ``http.client``.

Such a client may read by size, by line or by transfer chunk. It gets a real :class:`http.client.HTTPResponse`
whose socket is an iterator of chunks, so each way of reading works as on a network.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from itertools import chain
from typing import Any, NamedTuple

from reenact.seams.http.message import Head, header_value


def response_over(
    chunks: Iterator[bytes],
    head: Head,
    method: str,
    on_close: Callable[[], None],
    *,
    response_class: type[HTTPResponse] = HTTPResponse,
    has_length: bool = False,
) -> HTTPResponse:
    """A response with *head* that takes *chunks* as the client reads; closing it calls *on_close*.

    Without *has_length* the body is read to its end, whatever length the head announces, because only there
    its outcome is known.
    """
    body = _frame(chunks) if is_chunked(head) else chunks
    wire: Any = _Chunks(chain([_first_lines(head, has_length=has_length)], body), on_close)
    socket: Any = _Socket(io.BufferedReader(wire))
    response = response_class(socket, method=method)
    response.begin()
    return response


def is_chunked(head: Head) -> bool:
    return "chunked" in header_value(head.headers, "transfer-encoding").lower()


def _first_lines(head: Head, *, has_length: bool) -> bytes:
    dropped = ("connection",) if has_length else ("content-length",)
    kept = [f"{name}: {value}" for name, value in head.headers if name.lower() not in dropped]
    lines = [f"{head.http_version} {head.status} {head.reason}", *kept, "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _frame(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if chunk:
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"


class _Socket(NamedTuple):
    """The part of a socket that ``http.client`` uses."""

    file: io.BufferedReader

    def makefile(self, _mode: str) -> io.BufferedReader:
        return self.file


class _Chunks(io.RawIOBase):
    """A file over an iterator; one read takes at most one chunk, and nothing is read ahead."""

    def __init__(self, chunks: Iterator[bytes], on_close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._on_close = on_close
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader passes no other
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._on_close()
