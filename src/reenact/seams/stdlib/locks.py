"""Locks of ``threading`` that the agent's modules create: the order in which threads take them is recorded.

Which thread takes a lock first depends on chance, and decides what the run does next. So it is part of the
recorded order of the run's tasks, and replay repeats it. Conditions, semaphores and barriers are built on
these locks. Locks that libraries create are not recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, Final

from reenact.boundary import Lane
from reenact.formats.capture import TOOK
from reenact.seams.deadlines import RAN_OUT, is_in_wait, lane_with_turns, wait_with_deadline
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.stdlib.stand_ins import StandInMeta

_NO_LIMIT: Final = -1


class LockInTurn:
    """A lock that threads take in the recorded order."""

    _make: Any = staticmethod(threading.Lock)

    def __init__(self) -> None:
        self._real = self._make()

    def acquire(self, blocking: bool = True, timeout: float = _NO_LIMIT) -> bool:
        """Wait up to *timeout* for the lock; returns whether this thread has it now."""
        lane = self._lane_to_note()
        if lane is None:
            return bool(self._real.acquire(blocking, timeout))
        if blocking and timeout == _NO_LIMIT:
            lane.context.wait_to_act(lane, TOOK)
            self._real.acquire()
        elif not blocking and timeout != _NO_LIMIT:
            return bool(self._real.acquire(blocking, timeout))  # raises Python's own error
        elif not self._try(timeout if blocking else 0.0):
            return False
        lane.context.has_acted(lane, TOOK)
        return True

    def _try(self, seconds: float) -> bool:
        """Take the lock if it gets free in time, which replay repeats as recorded."""
        return (
            wait_with_deadline("l", seconds, lambda limit: self._real.acquire(True, limit) or RAN_OUT) is True
        )

    def _lane_to_note(self) -> Lane | None:
        """The lane whose turn is recorded; ``None`` if the order does not matter here."""
        return None if is_in_wait() else lane_with_turns()

    def release(self) -> None:
        """As the real lock does; the order of releases is not recorded."""
        self._real.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._real.release()

    def __getattr__(self, name: str) -> object:
        """Delegate to the real lock: ``locked``, and optional methods that conditions look for."""
        if name == "_real":  # not set yet, as while it is copied
            raise AttributeError(name)
        return getattr(self._real, name)

    def _is_owned(self) -> bool:
        """For conditions, which would otherwise try to take the lock to find out."""
        return bool(self._real.locked())

    def __reduce_ex__(self, protocol: object) -> Any:
        return self._real.__reduce_ex__(protocol)  # raises: a lock cannot be copied

    def __repr__(self) -> str:
        return repr(self._real)


class RLockInTurn(LockInTurn):
    """The same for a lock that its owner may take again; only the first time is recorded."""

    _make = staticmethod(threading.RLock)

    def _lane_to_note(self) -> Lane | None:
        return None if self._is_owned() else super()._lane_to_note()

    def _is_owned(self) -> bool:
        return bool(self._real._is_owned())  # noqa: SLF001

    def _acquire_restore(self, state: object) -> None:
        """Take it again after a condition's wait, as many times as before."""
        lane = self._lane_to_note()
        if lane is not None:
            lane.context.wait_to_act(lane, TOOK)
        self._real._acquire_restore(state)  # noqa: SLF001 — as conditions do
        if lane is not None:
            lane.context.has_acted(lane, TOOK)


class ConditionInTurn(threading.Condition, metaclass=StandInMeta):
    """A condition whose lock threads take in the recorded order."""

    __supertype__ = threading.Condition

    def __init__(self, lock: object = None) -> None:
        made: Any = RLockInTurn() if lock is None else lock
        super().__init__(made)


class SemaphoreInTurn(threading.Semaphore, metaclass=StandInMeta):
    """A semaphore that threads acquire and release in the recorded order."""

    __supertype__ = threading.Semaphore

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._cond = ConditionInTurn(LockInTurn())


class BoundedSemaphoreInTurn(threading.BoundedSemaphore, metaclass=StandInMeta):
    """The same for a bounded semaphore."""

    __supertype__ = threading.BoundedSemaphore

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._cond = ConditionInTurn(LockInTurn())


class BarrierInTurn(threading.Barrier, metaclass=StandInMeta):
    """A barrier at which threads arrive in the recorded order, which decides their numbers."""

    __supertype__ = threading.Barrier

    def __init__(self, parties: int, action: Any = None, timeout: float | None = None) -> None:
        super().__init__(parties, action, timeout)
        self._cond = ConditionInTurn(LockInTurn())


def _handle_in_turn(original: Callable[[object, object], object]) -> Callable[[object, object], object]:
    """Take the lock of a queue handler of ``logging`` in the recorded order.

    The handler puts records into a queue while it holds this lock, and puts have a recorded order, too. If
    the lock had none, its holder could wait for the thread that must put first, and that one for the lock.
    """

    def handle(self: Any, record: object) -> object:
        lane = lane_with_turns()
        if lane is None:
            return original(self, record)
        lane.context.wait_to_act(lane, TOOK)
        self.acquire()  # reentrant: the original takes it again
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
