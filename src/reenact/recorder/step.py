"""A crossing that is being recorded: the seam makes the call."""

from __future__ import annotations

from asyncio import CancelledError, _get_running_loop, current_task
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import msgspec

from reenact.boundary import Call, Lane, is_cancellation
from reenact.recorder.payloads import frozen_piece


class Recorder(Protocol):
    """Who writes down what a step sees."""

    def write_deferred(self) -> None:
        """Write the calls that have left before they were recorded, in the order in which they were made."""

    def stream_began(self, call_id: str, leave: Callable[[], None]) -> tuple[int, int]:
        """The latest event, and which stream of the run this is: what tells its place in replay."""

    def record_outcome(self, step: CaptureStep, error: BaseException | None) -> None:
        """Write the outcome of *step*'s call."""

    def give_up(self, error: Exception) -> None:
        """Record nothing more, because of *error*; the agent goes on."""


class CaptureStep(msgspec.Struct, eq=False):
    """See the module's docstring; a struct because one is made for every call."""

    recorder: Recorder
    call: Call
    call_id: str
    lane: Lane
    live: bool = True
    leaves_first: bool = False
    answer: Any = None
    facts: dict[str, Any] = {}
    exact: object = None
    recorded_pieces: list[Any] | None = None
    """What a stream handed out so far; ``None`` for a call that is no stream."""
    opened: tuple[int, int] | None = None
    is_closed: bool = False
    is_deferred: bool = False
    """Whether the call has left, or is about to, and is not recorded yet."""
    gave_way: bool | None = None
    """Whether the event loop went on before the outcome came; ``None`` outside of one."""

    def wait(self) -> None:
        """A recorded call waits for nothing."""

    async def turn(self) -> None:
        """Find out whether the call gives way to the loop: a replayed one must do the same."""
        loop = _get_running_loop()
        if loop is not None:
            self.gave_way = False
            loop.call_soon(self._loop_went_on)

    def _loop_went_on(self) -> None:
        self.gave_way = True

    def mark_sent(self) -> None:
        self.recorder.write_deferred()

    def begin(self, leave: Callable[[], None]) -> None:
        """From here on others may have seen the answer begin."""
        self.recorded_pieces = []
        self.opened = self.recorder.stream_began(self.call_id, leave)

    def piece(self, value: object) -> None:
        """A stream handed out *value*."""
        if self.recorded_pieces is None:
            self.begin(lambda: self.close(GeneratorExit()))
        try:
            self.recorded_pieces.append(frozen_piece(value))  # type: ignore[union-attr]  # it has begun
        except Exception as error:
            self.give_up(error)

    def give_up(self, error: Exception) -> None:
        """What came cannot be told, for want of memory say: recording ends here, the call does not."""
        self.recorded_pieces = []
        self.recorder.give_up(error)

    def pieces(self) -> Iterator[object]:
        """A live stream has no recorded pieces."""
        return iter(())

    async def async_pieces(self) -> AsyncIterator[object]:
        """Nor on an event loop."""
        for piece in self.pieces():
            yield piece

    def close(self, error: BaseException | None) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.recorder.record_outcome(self, error)


def describe_leaving(error: BaseException) -> dict[str, object]:
    """How the caller went away before the end, if it did: cancelled where it waited, or closing a stream.

    A cancellation that came from within is the call's own outcome.
    """
    if isinstance(error, GeneratorExit):
        return {"cancelled": True, "closed": True}
    if isinstance(error, CancelledError):
        task = current_task() if _get_running_loop() else None
        return {"cancelled": True} if task is not None and task.cancelling() else {}
    return {"cancelled": True} if is_cancellation(error) else {}
