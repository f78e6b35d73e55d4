"""Whether a thread is blocked: waiting for a lock, a queue or another thread, not computing.

There is no way to ask; a thread that stays at the same instruction and uses no CPU time over several
looks is taken to be blocked. A wrong answer costs order, never correctness.
"""

from __future__ import annotations

import sys
import time
from typing import Final

_LOOKS: Final = 4


class BlockedThreads:
    """Looks at threads from time to time; see :meth:`look`."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[object, int]] = {}

    def look(self, thread_id: int) -> bool:
        """Look once more; true when the thread has not moved for several looks, or is gone."""
        frame = sys._current_frames().get(thread_id)  # noqa: SLF001 — the only way to see another thread
        if frame is None:
            return True
        place = (id(frame), frame.f_lasti, _cpu_time_ns(thread_id))
        before, looks = self._seen.get(thread_id, (None, 0))
        looks = looks + 1 if place == before else 1
        self._seen[thread_id] = (place, looks)
        return looks >= _LOOKS

    def forget(self, thread_id: int) -> None:
        """The thread has been seen to move."""
        self._seen.pop(thread_id, None)


def _cpu_time_ns(thread_id: int) -> int:
    try:
        return time.clock_gettime_ns(time.pthread_getcpuclockid(thread_id))
    except (OSError, AttributeError):  # the thread is gone, or the platform has no such clock
        return 0
