"""The time between a replayed run and the end of its test: fixtures are torn down, nobody answers calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NoReturn

from reenact import seams
from reenact.boundary import Call, DescribeEnd, HeldTimer, Instant, Lane, RunMode, WaitFor, entered
from reenact.errors import LiveCallBlocked
from reenact.replayer.allow import Allow
from reenact.replayer.frames import agent_frame
from reenact.replayer.guard import Guard


class Aftermath:
    """A context that refuses every call, with a guard for what bypasses the seams."""

    latest_model_request: Any = None
    mode: RunMode = "replay"

    def __init__(self, allow: Allow) -> None:
        self._guard = Guard(allow)
        self._calls: list[LiveCallBlocked] = []
        self._open = ExitStack()

    def begin(self) -> None:
        self._open.enter_context(seams.attached())
        self._open.enter_context(entered(self))
        self._open.enter_context(self._guard)

    def end(self) -> None:
        self._open.close()

    @property
    def refused(self) -> LiveCallBlocked | None:
        """The first refusal, whatever became of the exception."""
        blocked = [call.error() for call in self._guard.blocked]
        return next(iter([*self._calls, *blocked]), None)

    def step(self, call: Call, lane: Lane) -> NoReturn:  # noqa: ARG002
        self._refuse(f"calling {call.kind} {call.name}")

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> NoReturn:  # noqa: ARG002
        self._refuse(f"recording a {instant.type}")

    def time_passes(self, lane: Lane) -> bool:  # noqa: ARG002
        """Tearing down takes the time it takes."""
        return True

    def leaves_to_server(self, call_name: str) -> bool:  # noqa: ARG002
        return True

    def note(self, text: str) -> None:
        """The test is over."""

    def refuse_unplaced(self, call: Call) -> LiveCallBlocked:
        """Whoever makes it: the run is over."""
        return self._refusal(f"calling {call.kind} {call.name}")

    def loop_seen(self, loop: object) -> None:
        """There are no turns to wait for."""

    def lane_starting(self, lane: Lane) -> None:
        """Nor when it starts."""

    def lane_began(self, lane: Lane) -> None:
        """Nor lanes to match."""

    def lane_ending(self, lane: Lane, how: str) -> None:
        """Nor in which order."""

    def lane_end_seen(self, lane: Lane) -> None:
        """Nor in which order."""

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:  # noqa: ARG002
        return coro

    def task_ended(self, lane: Lane, how: str) -> None:
        """Nor in which order."""

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """Nor in which order."""

    async def turn_to_act(self, lane: Lane, act: str) -> None:
        """Nor in which order."""

    def has_acted(self, lane: Lane, act: str) -> None:
        """Nor in which order."""

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:  # noqa: ARG002
        return False

    def drop_timer(self, lane: Lane, name: str) -> None:
        """None is held."""

    def timer_fired(self, lane: Lane, name: str) -> None:
        """Nor in which order."""

    def deadline(self, lane: Lane, name: str) -> WaitFor:  # noqa: ARG002
        return "its time"

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        """None is held."""

    def may_give_up(self, lane: Lane) -> bool:  # noqa: ARG002
        return True

    def lane_ended(self, lane: Lane) -> None:
        """Nor to end."""

    def _refuse(self, attempt: str) -> NoReturn:
        raise self._refusal(attempt)

    def _refusal(self, attempt: str) -> LiveCallBlocked:
        place = agent_frame() or "teardown"
        refusal = LiveCallBlocked(
            f"{place}: {attempt} is refused after the run; request reenact_run in the fixture"
        )
        self._calls.append(refusal)
        return refusal
