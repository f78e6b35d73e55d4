"""A clock that stands still while the machine is too busy to let anybody run.

Waiting for a fixed time on a loaded machine gives up on threads that merely got no processor. This
clock advances with the rounds its owner manages to make: a round that took longer than asked for
counts as little more than what was asked.
"""

from __future__ import annotations

from threading import Event
from time import monotonic


class PatientClock:
    """Advances in :meth:`pause` only, by at most half more than each pause was meant to take."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def pause(self, wake: Event, pause_s: float) -> None:
        """Wait for *wake*, at most *pause_s*."""
        began = monotonic()
        wake.wait(pause_s)
        self.now_s += min(monotonic() - began, pause_s * 1.5)
