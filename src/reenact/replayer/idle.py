"""Whether a thread has come to rest: blocked, gone, or off computing by itself.

There is no way to ask a thread. One that sleeps and has used no CPU time for longer than the
interpreter's switch interval is blocked: a thread that only waits for the interpreter's lock wakes up
that often to ask for it, and one that waits for a processor does not sleep. A wrong answer costs
recorded order, never correctness.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Final

from reenact.replayer.patience import PatientClock

_HAS_THREAD_CLOCKS: Final = hasattr(time, "pthread_getcpuclockid")
"""Linux and the BSDs have them; macOS and Windows do not."""
_COMPUTING_S: Final = 0.05
"""A thread that computes for so long without a call is not waited for."""
_LONGEST_S: Final = 0.25
"""Nor is one that is under way for so long, looking at something again and again."""
_MARGIN_S: Final = 0.003


class MovingThread:
    """A thread that was set in motion and may come to rest."""

    def __init__(self, thread_id: int, clock: PatientClock) -> None:
        self._thread_id = thread_id
        self._clock = clock
        self._started_cpu_s = self._cpu_s = _cpu_time_s(thread_id)
        self._started_s = self._still_since_s = clock.now_s

    def is_at_rest(self) -> bool:
        """Look once more."""
        cpu_s = _cpu_time_s(self._thread_id)
        if cpu_s is None or self._started_cpu_s is None or self._clock.now_s - self._started_s > _LONGEST_S:
            return True
        if cpu_s != self._cpu_s or not _sleeps(self._thread_id):
            self._cpu_s, self._still_since_s = cpu_s, self._clock.now_s
            return cpu_s - self._started_cpu_s > _COMPUTING_S
        return self._clock.now_s - self._still_since_s > sys.getswitchinterval() + _MARGIN_S


def _cpu_time_s(thread_id: int) -> float | None:
    """``None`` for a thread that is gone; always the same where the platform keeps no such clock."""
    if thread_id not in sys._current_frames():  # noqa: SLF001 — asking the clock of a dead thread may crash
        return None
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread_id)) if _HAS_THREAD_CLOCKS else 0.0
    except OSError:  # it ended between the two questions
        return None


def _sleeps(thread_id: int) -> bool:
    """What the kernel says, where it says anything; elsewhere the CPU time must do."""
    for thread in threading.enumerate():
        if thread.ident == thread_id:
            try:
                stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_bytes()
            except OSError:
                return True
            return stat.rpartition(b") ")[2][:1] in b"SD"
    return True
