"""The step of a call that is being recorded: the seam makes the call, the step records its outcome."""

from __future__ import annotations

from asyncio import CancelledError, _get_running_loop, current_task
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, Protocol, cast

import msgspec

from reenact.boundary import A, Call, Lane, is_cancellation
from reenact.recorder.payloads import freeze_piece


class Recorder(Protocol):
    """Writes what a step reports."""

    def write_deferred(self) -> None:
        """Write the calls that were sent before they were recorded, in the order they were made."""

    def stream_began(self, call_id: str, leave: Callable[[], None]) -> tuple[int, int]:
        """Return the latest event's number and the stream's ordinal, which place the stream in replay."""

    def record_outcome(self, step: CaptureStep[Any], error: BaseException | None) -> None:
        """Write the outcome of *step*'s call."""

    def note_piece(self, lane: Lane, before: object) -> object:
        """Note that *lane* read a piece; *before* is what this returned for the piece before it."""

    def give_up(self, error: Exception) -> None:
        """Stop recording because of *error*; the agent continues."""


class CaptureStep(msgspec.Struct, Generic[A], eq=False):
    """A struct, for speed: one is made for every call."""

    recorder: Recorder
    call: Call[A]
    call_id: str
    lane: Lane
    live: bool = True
    leaves_first: bool = False
    answer: A = cast("A", None)
    """``None`` until the call was made."""
    facts: dict[str, Any] = {}
    exact: object = None
    recorded_pieces: list[Any] | None = None
    """The pieces of a stream so far; ``None`` for a call that is no stream."""
    latest_piece: object = None
    """In which round of the event loop the latest piece came, as far as the recorder needs it."""
    opened: tuple[int, int] | None = None
    is_closed: bool = False
    is_deferred: bool = False
    """Whether the call was sent, or is about to be, and is not recorded yet."""
    gave_way: bool | None = None
    """Whether the event loop ran other work before the outcome came; ``None`` outside of a loop."""

    def wait(self) -> None:
        """A live call does not wait for a turn."""

    async def async_wait(self) -> None:
        """Find out whether the call yields to the event loop: the replayed call must do the same."""
        loop = _get_running_loop()
        if loop is not None:
            self.gave_way = False
            loop.call_soon(self._loop_went_on)

    def _loop_went_on(self) -> None:
        self.gave_way = True

    def mark_sent(self) -> None:
        self.recorder.write_deferred()

    def begin(self, leave: Callable[[], None]) -> None:
        """Note where the stream began: other tasks may have seen its first piece from here on."""
        self.recorded_pieces = []
        self.opened = self.recorder.stream_began(self.call_id, leave)

    def piece(self, value: object) -> None:
        """Record *value* as the stream's next piece."""
        if self.recorded_pieces is None:
            self.begin(lambda: self.close(GeneratorExit()))
        try:
            self.recorded_pieces.append(freeze_piece(value))  # type: ignore[union-attr]  # it has begun
            if self.call.kind in ("llm", "tool"):
                self.latest_piece = self.recorder.note_piece(self.lane, self.latest_piece)
        except Exception as error:
            self.give_up(error)

    def give_up(self, error: Exception) -> None:
        """Stop recording, for lack of memory for one; the call itself continues."""
        self.recorded_pieces = []
        self.recorder.give_up(error)

    def pieces(self) -> Iterator[object]:
        """A live stream has no recorded pieces."""
        return iter(())

    async def async_pieces(self) -> AsyncIterator[object]:
        """A live stream has no recorded pieces."""
        for piece in self.pieces():
            yield piece

    def close(self, error: BaseException | None) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.recorder.record_outcome(self, error)


def describe_leaving(error: BaseException) -> dict[str, object]:
    """The fields that say that the caller left early: it was cancelled, or it closed the stream.

    A cancellation that the call itself raised is an outcome, and gives no fields.
    """
    if isinstance(error, GeneratorExit):
        return {"cancelled": True, "closed": True}
    if isinstance(error, CancelledError):
        task = current_task() if _get_running_loop() else None
        return {"cancelled": True} if task is not None and task.cancelling() else {}
    return {"cancelled": True} if is_cancellation(error) else {}
