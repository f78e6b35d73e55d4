"""One HTTP call under way, from its request to the last byte of its answer, or to where it broke off.

What a client of any library needs to cross the boundary; it does no I/O itself. A live exchange is told what
came (:meth:`begin_answer`, :meth:`receive`, :meth:`end`), a replayed one says it (:attr:`head`,
:meth:`chunks`). A whole answer is one outcome; a stream's answer begins with its head, and its chunks are
pieces.
"""

from __future__ import annotations

import _socket
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from reenact.boundary import Context, OtherCall, crossing, current_lane, running_in
from reenact.canonical import JsonValue
from reenact.providers import Provider, RequestChange, read_response, response_fields
from reenact.seams.http.message import (
    Decode,
    Head,
    Undecodable,
    decoder,
    from_piece,
    header_value,
    text_or_bytes,
    to_piece,
)
from reenact.seams.http.request import RequestMeaning, Sent

_DONE: Final = b"data: [DONE]"

_Socket: Final = socket.socket
_AROUND_SOCKETS: Final = ("gevent", "eventlet")
"""Theirs are no subclass, and have a real socket inside."""

_under_way: set[tuple[Context, str]] = set()
"""Live exchanges, by their context and their call's id."""
_is_left_alone: Final[ContextVar[bool]] = ContextVar("reenact_http_is_left_alone", default=False)


def is_any_under_way(context: Context) -> bool:
    """Whether a client of *context*'s run is making a call: it may connect in a task of its own."""
    return any(one is context for one, _ in tuple(_under_way))


def is_outermost() -> bool:
    """Whether a call made here is the agent's own, in a run, not one of which another HTTP call is made."""
    lane = current_lane()
    if lane is None or _is_left_alone.get() or (socket.socket is not _Socket and _is_socket_fake()):
        return False
    return lane.within is None or (lane.context, lane.within) not in _under_way


def _is_socket_fake() -> bool:
    """Whether a test has put in the place of Python's sockets what has none, as httpretty and mocket do."""
    package = socket.socket.__module__.partition(".")[0]
    return not issubclass(socket.socket, _socket.socket) and package not in _AROUND_SOCKETS


@contextmanager
def leave_alone() -> Iterator[None]:
    """The block makes a request that is no call; the client below it must not take it for one either."""
    token = _is_left_alone.set(True)
    try:
        yield
    finally:
        _is_left_alone.reset(token)


def is_own(function: object, library: str) -> bool:
    """Whether *function* is *library*'s, maybe wrapped by instrumentation; a test's fake is not.

    Told by where it was compiled: a mock with the original's signature and name was not compiled there.
    """
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    name: str = getattr(function, "__globals__", {}).get("__name__", "")
    return name == library or name.startswith(f"{library}.")


class Exchange(crossing):
    """See the module's docstring; *is_streamed* says whether the agent runs between head and end."""

    def __init__(
        self,
        sent: Sent,
        *,
        is_streamed: bool,
        is_decoded: bool = False,
        may_leave_first: Callable[[], bool] | None = None,
        is_elsewhere: bool = False,
    ) -> None:
        """*is_decoded*: the client hands over bodies with their content coding undone already.

        *may_leave_first* tells whether the client would say by :meth:`left` when the request is on its way,
        which is at once; a call that asks a model is recorded then, while the model reads it.
        *is_elsewhere*: the call is passed on for another program.
        """
        self.asked = RequestMeaning.by(sent)
        """What the client asks, or what is asked in its place; to be left alone where it says so."""
        self._is_elsewhere = is_elsewhere
        call = self.asked.call(
            may_leave_first=may_leave_first, is_elsewhere=is_elsewhere, ask_otherwise=self._ask_otherwise
        )
        super().__init__(call, streaming=True)
        self.is_streamed = is_streamed
        self._is_decoded = is_decoded
        self.sent_instead: Sent | None = None
        """What a live exchange sends in the place of the client's request; known when it is open."""
        self._is_over = False
        self._decode: Decode | None = None
        self._decoded_from = ""
        self._raw: list[bytes] = []
        self._plain: list[bytes] = []

    @property
    def asks_model(self) -> bool:
        return self.asked.provider is not None

    def _ask_otherwise(self, change: RequestChange) -> OtherCall | None:
        other = self.asked.otherwise(change)
        if other is None:
            return None
        self.asked, undo = other
        self.sent_instead = self.asked.sent
        call = self.asked.call(may_leave_first=None, is_elsewhere=self._is_elsewhere)
        return OtherCall(call, undo)

    open = crossing.__enter__
    """Cross the boundary; in replay, raises what the recorded call raised."""
    aopen = crossing.__aenter__
    """The same on an event loop."""

    def _enter_call(self) -> None:
        super()._enter_call()
        assert self.lane is not None
        self._identity = self.lane.context, self.step.call_id
        _under_way.add(self._identity)

    # What a live exchange is told

    def inside(self) -> AbstractContextManager[None]:
        """The block makes the call, or pulls from its answer; what it raises is the call's outcome."""
        return running_in(self.inside_lane, self.end)

    def begin_answer(self, head: Head) -> None:
        self._head = head
        self.step.answer = head.to_json()
        if not self._is_decoded:
            coding = header_value(head.headers, "content-encoding")
            self._decode = decoder(coding) if coding else None
            self._decoded_from = coding if self._decode is not None else ""
        if self.is_streamed:
            self.step.begin(self.abandon)

    def take_whole(self, head: Head, content: bytes) -> None:
        """The whole answer came at once, with its content coding undone."""
        self.is_streamed, self._is_decoded = False, True
        self.begin_answer(head)
        self._decoded_from = head.content_encoding
        self.receive(content)
        self.end()

    def receive(self, chunk: bytes) -> None:
        self._raw.append(chunk)
        try:
            plain = chunk if self._decode is None else self._plain_of(self._decode, chunk)
            self._plain.append(plain)
            if self.is_streamed:
                self.step.piece(to_piece(plain, is_textual=self._head.is_textual))
        except MemoryError as error:
            self.step.give_up(error)

    def end(self, error: BaseException | None = None) -> None:
        """The answer is complete, has failed, or was abandoned; the first ending counts."""
        if self._is_over:
            return
        self._is_over = True
        if isinstance(error, GeneratorExit) and self._has_said_all():
            error = None
        if self.step.live:
            _under_way.discard(self._identity)
            try:
                if self.step.answer is not None:
                    self._describe_body(is_whole=error is None)
                if self.asked.provider is not None:
                    self.step.facts = self._model_fields(self.asked.provider)
            except MemoryError as failure:
                self.step.give_up(failure)
        self.__exit__(None if error is None else type(error), error, None)

    @property
    def raw(self) -> bytes:
        """What came so far, as it came."""
        return b"".join(self._raw)

    def hand_over(self) -> list[bytes]:
        """What came, for the client; nothing of it is kept here, because it may be large."""
        chunks, self._raw, self._plain = self._raw, [], []
        return chunks

    def abandon(self) -> None:
        """The client has left the answer where it was."""
        self.end(GeneratorExit())

    def _has_said_all(self) -> bool:
        """Readers of server-sent events leave at the word that ends them, without waiting for the end."""
        return b"".join(self._plain[-2:]).rstrip().endswith(_DONE)

    def _plain_of(self, decode: Decode, chunk: bytes) -> bytes:
        try:
            return decode(chunk)
        except Undecodable:
            # What came so far stays as it is shown; the client will complain about the rest by itself.
            self._decode = lambda _: b""
            return b""

    def _describe_body(self, *, is_whole: bool) -> None:
        described: dict[str, object] = {"bytes": sum(map(len, self._raw))}
        if self._decoded_from:
            described["decodedFrom"] = self._decoded_from
        if self._decode is not None:
            self.step.exact = self.raw if is_whole and not self.is_streamed else self._raw
        if is_whole and not self.is_streamed:
            described["body"] = text_or_bytes(b"".join(self._plain))
        elif not self.is_streamed:
            # An answer that broke off is told like a stream: as far as it came.
            self.step.begin(self.abandon)
            for chunk in self._plain:
                self.step.piece(to_piece(chunk, is_textual=self._head.is_textual))
        # Sorted, it can be written as it is; otherwise its order must be kept in a quoted text.
        self.step.answer = dict(sorted((self.step.answer | described).items()))

    def _model_fields(self, provider: Provider) -> dict[str, JsonValue]:
        """What an ``llm_response`` says of its call."""
        if self.step.answer is None:
            fields: dict[str, Any] = {"provider": provider, "model": None, "stopReason": None, "usage": None}
        else:
            fields = response_fields(read_response(provider, self._head.status, {}, self._plain))
        # `error` in an outcome is what the call raised; this call was answered.
        if "error" in fields:
            fields["modelError"] = fields.pop("error")
        fields["model"] = fields["model"] or self.asked.facts()["model"]
        return fields

    # What a replayed exchange says

    @property
    def head(self) -> Head:
        """As recorded; above a plain body where redaction went into a coded one, or names made it longer."""
        answer = self.step.answer
        head = Head.from_json(answer)
        piece = answer.get("body")
        is_ascii = isinstance(piece, str) and piece.isascii()  # it need not be encoded to know its size
        size_bytes = None if piece is None else len(piece) if is_ascii else len(from_piece(piece))
        is_altered = "decodedFrom" in answer or size_bytes not in (None, answer["bytes"])
        is_altered = is_altered or "isResized" in answer
        return head.above(size_bytes) if is_altered and self.step.exact is None else head

    @property
    def body(self) -> bytes | None:
        """The whole body; ``None`` for a stream, whose chunks follow."""
        answer, exact = self.step.answer, self.step.exact
        if "body" not in answer:
            return None
        return exact if exact is not None else from_piece(answer["body"])

    def chunks(self) -> Iterator[bytes]:
        """The body as it came; ends as the recorded one ended, with its error or without."""
        try:
            for position, piece in enumerate(self.step.pieces() if self.body is None else [self.body]):
                yield self._chunk(position, piece)
        except BaseException as error:
            self.end(error)
            raise
        self.end()

    async def achunks(self) -> AsyncIterator[bytes]:
        """The same on an event loop, where a reader that was cancelled waits to be cancelled again."""
        try:
            if self.body is not None:
                yield self.body
            else:
                position = 0
                async for piece in self.step.async_pieces():
                    yield self._chunk(position, piece)
                    position += 1
        except BaseException as error:
            self.end(error)
            raise
        self.end()

    def _chunk(self, position: int, piece: str | bytes) -> bytes:
        exact = self.step.exact
        chunk: bytes = exact[position] if isinstance(exact, list) else from_piece(piece)
        return chunk
