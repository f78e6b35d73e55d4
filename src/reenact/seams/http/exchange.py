"""One HTTP call in progress, from its request to the last byte of its answer, or to where it failed.

The seams of all HTTP clients build on it; it does no I/O itself. In a live exchange the seam reports what
arrives (:meth:`begin_answer`, :meth:`receive`, :meth:`end`); in a replayed one it reads what was recorded
(:attr:`head`, :meth:`chunks`). A whole answer is one outcome. A streamed answer begins with its head, and
each chunk is one piece.
"""

from __future__ import annotations

import _socket
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from reenact.boundary import Context, OtherCall, crossing, current_lane, running_in
from reenact.process_state import exchanges_under_way, left_alone_var
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
"""Their socket classes wrap a real socket, but are no subclass of Python's."""


def is_any_under_way(context: Context) -> bool:
    """Whether a client in the run of *context* is making a call: it may connect in another task."""
    return any(one is context for one, _ in tuple(exchanges_under_way))


def is_outermost() -> bool:
    """Whether a request made here is a call of a run, and not part of another HTTP call of that run."""
    lane = current_lane()
    if lane is None or left_alone_var.get() or (socket.socket is not _Socket and _is_socket_fake()):
        return False
    return lane.within is None or (lane.context, lane.within) not in exchanges_under_way


def _is_socket_fake() -> bool:
    """Whether a test has replaced Python's sockets by fakes, as httpretty and mocket do."""
    package = socket.socket.__module__.partition(".")[0]
    return not issubclass(socket.socket, _socket.socket) and package not in _AROUND_SOCKETS


@contextmanager
def without_recording() -> Iterator[None]:
    """Make the block's request without recording it, neither here nor in a client library below."""
    token = left_alone_var.set(True)
    try:
        yield
    finally:
        left_alone_var.reset(token)


def is_own(function: object, library: str) -> bool:
    """Whether *function* belongs to *library*, perhaps wrapped by instrumentation, and is no test's fake.

    Decided by the module in which it was compiled: a mock may copy the name and signature, but not that.
    """
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    name: str = getattr(function, "__globals__", {}).get("__name__", "")
    return name == library or name.startswith(f"{library}.")


class Exchange(crossing[dict[str, Any]]):
    """See the module's docstring; *is_streamed* says whether the agent's code runs between head and end."""

    def __init__(
        self,
        sent: Sent,
        *,
        is_streamed: bool,
        is_decoded: bool = False,
        may_leave_first: Callable[[], bool] | None = None,
        is_elsewhere: bool = False,
    ) -> None:
        """*is_decoded*: the client has already decoded the bodies that it hands over.

        *may_leave_first* says whether the client sends the request at once and then calls
        :meth:`~reenact.boundary.Step.mark_sent`; a model call is then recorded while the model reads it.
        *is_elsewhere*: the call is forwarded for another program.
        """
        self.asked = RequestMeaning.of_sent(sent)
        """The client's request, or the one sent instead; a seam does not record it if ``is_left_alone``."""
        self._is_elsewhere = is_elsewhere
        call = self.asked.call(
            may_leave_first=may_leave_first, is_elsewhere=is_elsewhere, ask_otherwise=self._ask_otherwise
        )
        super().__init__(call, streaming=True)
        self.is_streamed = is_streamed
        self._is_decoded = is_decoded
        self.sent_instead: Sent | None = None
        """What a live exchange sends instead of the client's request; set when the exchange opens."""
        self._is_over = False
        self._decode: Decode | None = None
        self._decoded_from = ""
        self._raw: list[bytes] = []
        self._plain: list[bytes] = []

    @property
    def asks_model(self) -> bool:
        return self.asked.provider is not None

    def _ask_otherwise(self, change: RequestChange) -> OtherCall[dict[str, object]] | None:
        other = self.asked.with_change(change)
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
        exchanges_under_way.add(self._identity)

    # What the seam reports in a live exchange

    def inside(self) -> AbstractContextManager[None]:
        """Run the block as part of the call, to send it or to read its answer; an error ends the call."""
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
        """Record the whole answer at once; *content* is decoded already."""
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
        """End the call: the answer is complete, has failed, or was abandoned. Only the first call counts."""
        if self._is_over:
            return
        self._is_over = True
        if isinstance(error, GeneratorExit) and self._has_last_event():
            error = None
        if self.step.live:
            exchanges_under_way.discard(self._identity)
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
        """What has arrived so far, before decoding."""
        return b"".join(self._raw)

    def hand_over(self) -> list[bytes]:
        """Return the chunks for the client and forget them here, because they may be large."""
        chunks, self._raw, self._plain = self._raw, [], []
        return chunks

    def abandon(self) -> None:
        """End the call: the client stopped reading before the end."""
        self.end(GeneratorExit())

    def _has_last_event(self) -> bool:
        """Whether the last server-sent event arrived: clients stop reading there, before the body ends."""
        return b"".join(self._plain[-2:]).rstrip().endswith(_DONE)

    def _plain_of(self, decode: Decode, chunk: bytes) -> bytes:
        try:
            return decode(chunk)
        except Undecodable:
            # Keep what was decoded so far; the client reports the broken rest itself.
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
            # An answer that broke off is recorded like a stream, as far as it came.
            self.step.begin(self.abandon)
            for chunk in self._plain:
                self.step.piece(to_piece(chunk, is_textual=self._head.is_textual))
        # With sorted keys it is written directly; other orders are kept by writing it as a quoted text.
        self.step.answer = dict(sorted((self.step.answer | described).items()))

    def _model_fields(self, provider: Provider) -> dict[str, object]:
        """The fields of the call's ``llm_response`` event."""
        fields: dict[str, object] = {"provider": provider, "model": None, "stopReason": None, "usage": None}
        if self.step.answer:
            fields = {**response_fields(read_response(provider, self._head.status, {}, self._plain))}
        # `error` in an outcome means an exception that the call raised; this call got an answer.
        if "error" in fields:
            fields["modelError"] = fields.pop("error")
        fields["model"] = fields["model"] or self.asked.facts()["model"]
        return fields

    # What the seam reads in a replayed exchange

    @property
    def head(self) -> Head:
        """The recorded head, but with the length of an unencoded body where the recorded body was altered.

        Redaction decodes a compressed body, and replaced names change its length.
        """
        answer = self.step.answer
        head = Head.from_json(answer)
        piece = answer.get("body")
        is_ascii = isinstance(piece, str) and piece.isascii()  # then its size is known without encoding it
        size_bytes = None if piece is None else len(piece) if is_ascii else len(from_piece(piece))
        is_altered = "decodedFrom" in answer or size_bytes not in (None, answer["bytes"])
        is_altered = is_altered or "isResized" in answer
        return head.for_decoded_body(size_bytes) if is_altered and self.step.exact is None else head

    @property
    def body(self) -> bytes | None:
        """The whole body; ``None`` for a stream, whose chunks follow."""
        answer, exact = self.step.answer, self.step.exact
        if "body" not in answer:
            return None
        return exact if isinstance(exact, bytes) else from_piece(answer["body"])

    def chunks(self) -> Iterator[bytes]:
        """The recorded chunks; raises at the end what the recorded body raised."""
        try:
            for position, piece in enumerate(self.step.pieces() if self.body is None else [self.body]):
                yield self._chunk(position, piece)
        except BaseException as error:
            self.end(error)
            raise
        self.end()

    async def achunks(self) -> AsyncIterator[bytes]:
        """The same on an event loop; a read that was cancelled when recorded waits for its cancellation."""
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
