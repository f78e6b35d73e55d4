"""Converts a turn to the bytes and pauses that a client gets, without I/O."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import msgspec

from reenact.testing.request import Request
from reenact.testing.turns import Disconnect, Fail, Raw, Reply, Timeout, Turn
from reenact.testing.wire import Service, Wire, WireExchange
from reenact.testing.wire.wire import make_id

_FRAMING: Final = ("content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The bytes of an answer and their times."""

    status: int | None = 200
    """``None`` to close the connection without an answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    delay_ms: float = 0
    chunk_delay_ms: float = 0
    ends: bool = True
    """``False`` to close the connection after the last chunk, whatever the headers say."""

    @property
    def chunked(self) -> bool:
        """Whether the chunks are framed one by one."""
        return self.headers.get("transfer-encoding") == "chunked"


@dataclass(frozen=True, slots=True)
class Voice:
    """The formats, headers and ids of one provider for one request."""

    service: Service
    request: Request
    seed: str
    created_at: int
    gzip: bool = False
    """Whether to compress when the client accepts it."""

    def json(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
        """A complete JSON answer; ``str`` and ``bytes`` are sent unchanged."""
        text = body.encode() if isinstance(body, str) else body
        data = text if isinstance(text, bytes) else msgspec.json.encode(text)
        usual = self._headers(self.service.json_type)
        chunks = (data,)
        if "content-encoding" in usual:
            chunks = (b"".join(_gzip(chunks)),)
        length = {"content-length": str(len(chunks[0]))}
        return Answer(
            status=status, headers={**usual, **length, **_lower_names(headers or {})}, chunks=chunks
        )

    def stream(self, parts: Iterable[bytes], content_type: str) -> Answer:
        """A chunked answer: each part goes out as one chunk."""
        headers = {**self._headers(content_type), "cache-control": "no-cache", "transfer-encoding": "chunked"}
        chunks = _gzip(parts) if "content-encoding" in headers else parts
        return Answer(headers=headers, chunks=tuple(chunks))

    def error(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
        """An error in the format of the provider."""
        return self.json(self.service.error(status, message), status, headers)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"date": formatdate(self.created_at, usegmt=True), "content-type": content_type}
        if self.service.request_id_header:
            headers[self.service.request_id_header] = make_id(self.seed, "req_")
        if self.gzip and "gzip" in self.request.headers.get("accept-encoding", ""):
            headers.update({"content-encoding": "gzip", "vary": "accept-encoding"})
        return headers


def answer_with(turn: Turn, wire: Wire, voice: Voice) -> Answer:
    """The answer for *turn* in the format *wire*."""
    match turn:
        case Reply():
            return _reply(turn, wire, voice)
        case Fail():
            return _failure(turn, voice)
        case Disconnect():
            return _broken_answer(turn, wire, voice)
        case Raw():
            return _raw(turn)
        case Timeout():
            return Answer(status=None, delay_ms=turn.seconds * 1000)
    raise TypeError(f"{turn!r} is not a turn; use Reply, Fail, Disconnect, Timeout or Raw")


def answer_id(wire: Wire, seed: str) -> str:
    """The id of a reply: the same in its body and in the request that continues it."""
    return make_id(seed, wire.id_prefix)


def _reply(reply: Reply, wire: Wire, voice: Voice) -> Answer:
    calls = (
        replace(call, id=call.id or make_id(voice.seed, wire.call_prefix, ordinal))
        for ordinal, call in enumerate(reply.tool_calls)
    )
    exchange = WireExchange(
        request=voice.request,
        reply=reply,
        seed=voice.seed,
        id=answer_id(wire, voice.seed),
        calls=tuple(calls),
        created_at=voice.created_at,
    )
    if voice.request.stream:
        answer = voice.stream(wire.stream(exchange), wire.stream_type)
    else:
        answer = voice.json(wire.whole(exchange))
    return replace(answer, delay_ms=reply.delay_ms, chunk_delay_ms=reply.chunk_delay_ms)


def _failure(fail: Fail, voice: Voice) -> Answer:
    if fail.body is not None:
        return voice.json(fail.body, fail.status, fail.headers)
    return voice.error(fail.status, f"scripted failure: {phrase(fail.status)}", fail.headers)


def _broken_answer(turn: Disconnect, wire: Wire, voice: Voice) -> Answer:
    answer = _reply(turn.reply, wire, voice)
    if turn.after_chunks == 0:
        return Answer(status=None, delay_ms=answer.delay_ms)
    if answer.chunked:
        return replace(answer, chunks=answer.chunks[: turn.after_chunks], ends=False)
    [body] = answer.chunks
    return replace(answer, chunks=(body[: len(body) // 2],), ends=False)


def _raw(raw: Raw) -> Answer:
    given = _lower_names(raw.headers)
    chunks = (raw.body,) if raw.chunks is None else tuple(raw.chunks)
    if any(name in given for name in _FRAMING):
        framing = {}
    elif raw.chunks is None:
        framing = {"content-length": str(len(raw.body))}
    else:
        framing = {"transfer-encoding": "chunked"}
    return Answer(
        status=raw.status,
        headers={**given, **framing},
        chunks=chunks,
        chunk_delay_ms=raw.chunk_delay_ms,
        ends=bool(framing),
    )


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def phrase(status: int) -> str:
    """The reason phrase of a status, also of non-standard ones that providers use."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"


def _gzip(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Compress and flush each part, so that a client can read it at once."""
    packer = zlib.compressobj(wbits=31)
    for part in parts:
        yield packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()
