"""The context between a replayed run and the end of its test: teardown must not make calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NoReturn

from reenact import seams
from reenact.boundary import Call, DescribeEnd, HeldTimer, Instant, Lane, RunMode, WaitFor, enter_context
from reenact.errors import LiveCallBlocked
from reenact.replayer.allow import Allow
from reenact.replayer.frames import agent_frame
from reenact.replayer.guard import Guard


class Aftermath:
    """A context that refuses every call, with a guard against calls that bypass the seams."""

    latest_model_request: Any = None
    mode: RunMode = "replay"
    sends_in_pieces = False

    def __init__(self, allow: Allow) -> None:
        self._guard = Guard(allow)
        self._calls: list[LiveCallBlocked] = []
        self._open = ExitStack()

    def begin(self) -> None:
        self._open.enter_context(seams.attach_seams())
        self._open.enter_context(enter_context(self))
        self._open.enter_context(self._guard)

    def end(self) -> None:
        self._open.close()

    @property
    def refused(self) -> LiveCallBlocked | None:
        """The first refused call, also if its exception was swallowed."""
        blocked = [call.error() for call in self._guard.blocked]
        return next(iter([*self._calls, *blocked]), None)

    def step(self, call: Call, lane: Lane) -> NoReturn:  # noqa: ARG002
        self._refuse(f"calling {call.kind} {call.name}")

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> NoReturn:  # noqa: ARG002
        self._refuse(f"recording a {instant.type}")

    def time_passes(self, lane: Lane) -> bool:  # noqa: ARG002
        """Sleeps in a teardown are real."""
        return True

    def leaves_to_server(self, call_name: str) -> bool:  # noqa: ARG002
        return True

    def note(self, text: str) -> None:
        """Notes are dropped after the run."""

    def hide(self, secret: str) -> None:
        """Nothing is written after the run."""

    def refuse_unplaced(self, call: Call) -> LiveCallBlocked:
        """Refuse the call: the run has ended."""
        return self._refusal(f"calling {call.kind} {call.name}")

    def notice_loop(self, loop: object) -> None:
        """Nothing is ordered after the run."""

    def lane_starting(self, lane: Lane) -> None:
        """Nothing is ordered after the run."""

    def lane_began(self, lane: Lane) -> None:
        """Nothing is ordered after the run."""

    def lane_ending(self, lane: Lane, how: str) -> None:
        """Nothing is ordered after the run."""

    def lane_end_seen(self, lane: Lane) -> None:
        """Nothing is ordered after the run."""

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:  # noqa: ARG002
        return coro

    def task_ended(self, lane: Lane, how: str) -> None:
        """Nothing is ordered after the run."""

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """Nothing is ordered after the run."""

    async def async_wait_to_act(self, lane: Lane, act: str) -> None:
        """Nothing is ordered after the run."""

    def has_acted(self, lane: Lane, act: str) -> None:
        """Nothing is ordered after the run."""

    def await_shared(self, lane: Lane) -> str | None:  # noqa: ARG002
        return None

    def note_shared(self, lane: Lane, found: str) -> None:
        """Nothing is ordered after the run."""

    def print_piece(self, lane: Lane, write: Callable[[], object]) -> None:  # noqa: ARG002
        write()

    def read_wall_clock(self, lane: Lane, place: str, now_ns: int) -> int:  # noqa: ARG002
        return now_ns

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:  # noqa: ARG002
        return False

    def drop_timer(self, lane: Lane, name: str) -> None:
        """Nothing is ordered after the run."""

    def timer_fired(self, lane: Lane, name: str) -> None:
        """Nothing is ordered after the run."""

    def timer_ran(self, lane: Lane) -> None:
        """Nothing is ordered after the run."""

    def deadline(self, lane: Lane, name: str) -> WaitFor:  # noqa: ARG002
        return "its time"

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        """Nothing is ordered after the run."""

    def may_give_up(self, lane: Lane) -> bool:  # noqa: ARG002
        return True

    def lane_ended(self, lane: Lane) -> None:
        """Nothing is ordered after the run."""

    def _refuse(self, attempt: str) -> NoReturn:
        raise self._refusal(attempt)

    def _refusal(self, attempt: str) -> LiveCallBlocked:
        place = agent_frame() or "teardown"
        refusal = LiveCallBlocked(
            f"{place}: {attempt} is refused after the run; request reenact_run in the fixture"
        )
        self._calls.append(refusal)
        return refusal
