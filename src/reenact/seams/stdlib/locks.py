"""Locks of ``threading`` that the agent's own modules make: who takes one after whom is part of the run.

Which thread comes first to a lock is chance, and what it does under it decides what is asked next. So it is
recorded, as part of the order in which the run's tasks did things, and repeated. Conditions, semaphores and
barriers are made of such locks. What a library locks for itself is left alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, Final

from reenact.boundary import Lane, current_lane
from reenact.formats.capture import TOOK
from reenact.seams.deadlines import RAN_OUT, is_in_wait, wait_with_deadline
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.stdlib.standing import Standing

_NO_LIMIT: Final = -1


def _lane_with_turns() -> Lane | None:
    """The current lane; not that of a thread which the run did not start, nor of what such a one starts.

    A server that is no part of the run answers what is recorded, and is not asked in replay.
    """
    lane = current_lane()
    return lane if lane is not None and lane.has_order and "~" not in lane.name else None


class LockInTurn:
    """A lock that threads take in their turn."""

    _make: Any = staticmethod(threading.Lock)

    def __init__(self) -> None:
        self._real = self._make()

    def acquire(self, blocking: bool = True, timeout: float = _NO_LIMIT) -> bool:
        """Wait for the lock, at most so long; whether this thread has it now."""
        lane = self._lane_to_note()
        if lane is None:
            return bool(self._real.acquire(blocking, timeout))
        if blocking and timeout == _NO_LIMIT:
            lane.context.wait_to_act(lane, TOOK)
            self._real.acquire()
        elif not blocking and timeout != _NO_LIMIT:
            return bool(self._real.acquire(blocking, timeout))  # it says what is wrong with that
        elif not self._try(timeout if blocking else 0.0):
            return False
        lane.context.has_acted(lane, TOOK)
        return True

    def _try(self, seconds: float) -> bool:
        """Whether it was free, or became so in time, is chance too."""
        return (
            wait_with_deadline("l", seconds, lambda limit: self._real.acquire(True, limit) or RAN_OUT) is True
        )

    def _lane_to_note(self) -> Lane | None:
        """The lane that is to take it in its turn; no one where that means nothing."""
        return None if is_in_wait() else _lane_with_turns()

    def release(self) -> None:
        """Let another thread have it."""
        self._real.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._real.release()

    def __getattr__(self, name: str) -> Any:
        """What is asked for by name only where the real lock has it: ``locked``, and what conditions ask."""
        if name == "_real":  # not made yet, as while it is copied
            raise AttributeError(name)
        return getattr(self._real, name)

    def _is_owned(self) -> bool:
        """How a condition asks, which without it would try to take the lock."""
        return bool(self._real.locked())

    def __reduce_ex__(self, protocol: object) -> Any:
        return self._real.__reduce_ex__(protocol)  # which refuses: nobody can copy a lock

    def __repr__(self) -> str:
        return repr(self._real)


class RLockInTurn(LockInTurn):
    """The same for one that its owner may take again; only the first time is a turn."""

    _make = staticmethod(threading.RLock)

    def _lane_to_note(self) -> Lane | None:
        return None if self._is_owned() else super()._lane_to_note()

    def _is_owned(self) -> bool:
        return bool(self._real._is_owned())  # noqa: SLF001

    def _acquire_restore(self, state: object) -> None:
        """Take it again as often as it was, behind the wait of a condition."""
        lane = self._lane_to_note()
        if lane is not None:
            lane.context.wait_to_act(lane, TOOK)
        self._real._acquire_restore(state)  # noqa: SLF001 — as conditions do
        if lane is not None:
            lane.context.has_acted(lane, TOOK)


class ConditionInTurn(threading.Condition, metaclass=Standing):
    """A condition on such a lock."""

    __supertype__ = threading.Condition

    def __init__(self, lock: Any = None) -> None:
        made: Any = RLockInTurn() if lock is None else lock
        super().__init__(made)


class SemaphoreInTurn(threading.Semaphore, metaclass=Standing):
    """A semaphore that threads enter and leave in their turn."""

    __supertype__ = threading.Semaphore

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._cond = ConditionInTurn(LockInTurn())


class BoundedSemaphoreInTurn(threading.BoundedSemaphore, metaclass=Standing):
    """Likewise."""

    __supertype__ = threading.BoundedSemaphore

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._cond = ConditionInTurn(LockInTurn())


class BarrierInTurn(threading.Barrier, metaclass=Standing):
    """A barrier at which threads arrive in their turn: they get numbers by that."""

    __supertype__ = threading.Barrier

    def __init__(self, parties: int, action: Any = None, timeout: float | None = None) -> None:
        super().__init__(parties, action, timeout)
        self._cond = ConditionInTurn(LockInTurn())


def _handle_in_turn(original: Callable[[object, object], object]) -> Callable[[object, object], object]:
    """Take the lock of a log's handler in turn, under which the handler puts records into a queue in turn.

    Otherwise who has the lock would wait for who is to put first, and that one for the lock.
    """

    def handle(self: Any, record: object) -> object:
        lane = _lane_with_turns()
        if lane is None:
            return original(self, record)
        lane.context.wait_to_act(lane, TOOK)
        self.acquire()  # and again below: its owner may
        try:
            lane.context.has_acted(lane, TOOK)
            return original(self, record)
        finally:
            self.release()

    return handle


LIBRARIES: Final[Libraries] = {
    "logging.handlers": lambda module: [Patch(module.QueueHandler, "handle", _handle_in_turn)]
}
STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    threading: {
        "Lock": LockInTurn,
        "RLock": RLockInTurn,
        "Condition": ConditionInTurn,
        "Semaphore": SemaphoreInTurn,
        "BoundedSemaphore": BoundedSemaphoreInTurn,
        "Barrier": BarrierInTurn,
    }
}
