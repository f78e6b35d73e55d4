"""As much HTTP/1.1 as a server needs that must also be able to break it."""

from __future__ import annotations

import asyncio
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from dataclasses import dataclass
from typing import Final

from reenact.testing.answer import Answer, phrase

MAX_HEAD_BYTES: Final = 1 << 20


class BadRequest(Exception):
    """What arrived is not HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came, uninterpreted."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def keeps_open(self) -> bool:
        """Whether the client wants to use the connection again."""
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: StreamReader, writer: StreamWriter) -> Received | None:
    """The next request on this connection; ``None`` when the client is done with it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parse_head(head)
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Received(method, target, headers, await _read_body(reader, headers))
    except IncompleteReadError:
        return None
    except (ValueError, asyncio.LimitOverrunError) as error:
        raise BadRequest(f"not HTTP/1.1: {error}") from error


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"unknown version {version!r}")
    pairs = (line.partition(":") for line in lines)
    return method, target, {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    chunks = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    while (await reader.readline()).strip():
        pass  # trailers
    return b"".join(chunks)


async def write_answer(writer: StreamWriter, answer: Answer, *, has_body: bool = True) -> bool:
    """Send *answer* in its own time; ``False`` when the connection must be closed behind it.

    It *has_body* unless HEAD was asked.
    """
    await asyncio.sleep(answer.delay_ms / 1000)
    if answer.status is None:
        return False
    if answer.chunked and has_body:
        await _write_chunks(writer, answer)
    else:
        writer.write(_head(answer) + (b"".join(answer.chunks) if has_body else b""))
        await writer.drain()
    return answer.ends


async def _write_chunks(writer: StreamWriter, answer: Answer) -> None:
    writer.write(_head(answer))
    for ordinal, chunk in enumerate(answer.chunks):
        if ordinal and answer.chunk_delay_ms:
            await asyncio.sleep(answer.chunk_delay_ms / 1000)
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
    if answer.ends:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _head(answer: Answer) -> bytes:
    assert answer.status is not None
    lines = [f"HTTP/1.1 {answer.status} {phrase(answer.status)}"]
    lines += (f"{name}: {value}" for name, value in answer.headers.items())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
