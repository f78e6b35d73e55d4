"""Decides whether a run is at rest: nothing that the last delivery has woken still runs.

That is so when the event loops have nothing ready, and the threads have reached their next call or their end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from reenact.boundary import Lane, is_on_loop
from reenact.replayer.idle import (
    Bystanders,
    MovingThread,
    PatientClock,
    StartingJob,
    UnseenThread,
    do_others_run,
    this_thread,
)
from reenact.replayer.loops import Loop, TrioLoop, running_loop


class Rest:
    """The threads and event loops of a run; its owner holds the lock."""

    def __init__(
        self, clock: PatientClock, on_round: Callable[[Loop], None], on_dry: Callable[[], None]
    ) -> None:
        """*on_round* is called after each round of a busy loop, *on_dry* when it is at rest."""
        self._clock = clock
        self._on_round = on_round
        self._on_dry = on_dry
        self._moving: dict[Lane | UnseenThread, MovingThread | StartingJob | float] = {}
        """Threads that run since a delivery or their start; the time of that, until they are first examined.

        By lane; by identity if threads share a loose lane, as those do whose start no seam saw.
        """
        self.has_threads = False
        """Whether the run has more threads than the one in which it began."""
        self._bystanders = Bystanders(clock)
        self._blocked: set[int] = set()
        """The identities of threads that wait for their turn."""
        self._loops: dict[object, Loop] = {}

    # Event loops

    def find_loop(self, loop: object) -> Loop | None:
        """What is known of the event loop *loop*, if it was noticed."""
        return self._loops.get(loop)

    def notice_loop(self, loop: object) -> Loop:
        """From now on, *loop* must be at rest, too."""
        found = self._loops.get(loop)
        if found is None:
            kind = TrioLoop if hasattr(loop, "run_sync_soon") else Loop
            new = kind(loop, self._on_round, self._on_dry, self._clock)
            found = self._loops.setdefault(loop, new)
        found.notice()
        return found

    def release_loops(self) -> None:
        for loop in self._loops.values():
            loop.release()

    def watch_loops(self) -> None:
        for loop in self._loops.values():
            loop.watch_rest()

    def would_block_loop(self) -> bool:
        """Whether an event loop would stand still if the calling thread blocked."""
        if is_on_loop():
            return True
        return bool(self._loops) and any(loop.is_driven_here for loop in list(self._loops.values()))

    # Threads

    def start_job(self, lane: Lane) -> None:
        """A job of *lane* was given to an executor, or its thread is about to begin."""
        self.has_threads = True
        self._moving.setdefault(lane, StartingJob(self._clock))

    def begin_thread(self, lane: Lane) -> None:
        self.has_threads = True
        self.wake(lane)

    def wake(self, runner: Lane | UnseenThread) -> None:
        """The thread runs now; find out when it comes to rest."""
        self._moving[runner] = self._clock.now_s

    def stop(self, runner: Lane | UnseenThread) -> MovingThread | StartingJob | float | None:
        """The thread waits now, or has ended; returns what :meth:`resume` needs."""
        self.has_threads |= isinstance(runner, UnseenThread)
        return self._moving.pop(runner, None)

    def resume(self, runner: Lane, moving: MovingThread | StartingJob | float | None) -> None:
        """The thread does not wait after all."""
        if moving is not None:
            self._moving[runner] = moving

    def block(self) -> None:
        """The calling thread waits for its turn, until :meth:`unblock`."""
        self._blocked.add(threading.get_ident())

    def unblock(self) -> None:
        self._blocked.discard(threading.get_ident())

    # Rest

    @property
    def is_there(self) -> bool:
        """Whether all that is known to have been woken is at rest."""
        if self._moving or not self._loops:
            return not self._moving
        for key, loop in list(self._loops.items()):
            if loop.is_closed:
                loop.release()
                del self._loops[key]
            elif loop.is_busy:
                return False
        return True

    def is_quiet(self, ticker: threading.Thread | None) -> bool:
        """The same, also for threads of which it is not known whether anything woke them."""
        return self.is_there and (not self.has_threads or self._are_bystanders_quiet(ticker))

    def are_threads_quiet(self, ticker: threading.Thread | None) -> bool:
        """The same, whatever the event loops do."""
        return not self._moving and (not self.has_threads or self._are_bystanders_quiet(ticker))

    def _are_bystanders_quiet(self, ticker: threading.Thread | None) -> bool:
        loops = (loop.thread for loop in self._loops.values())
        ticking = ticker.ident if ticker is not None else None
        return self._bystanders.are_at_rest({*self._blocked, ticking, *loops})

    @property
    def may_come_soon(self) -> bool:
        """Whether something ran when it was last looked at."""
        return not self.is_there or self._bystanders.any_awake

    def look_around(self) -> None:
        """Look once more at all that moves."""
        for runner, thread in list(self._moving.items()):
            if isinstance(thread, float):
                identity = runner if isinstance(runner, UnseenThread) else runner.owner
                thread = self._moving[runner] = MovingThread(identity, self._clock, thread)
            if thread.is_at_rest():
                del self._moving[runner]
        for loop in self._loops.values():
            loop.look()

    def do_others_run(self) -> bool:
        """Whether any thread but the caller and those of polling loops runs or waits for a processor."""
        polling = [loop.polling_thread for loop in self._loops.values()]
        return do_others_run(besides=[thread for thread in polling if thread is not None])


def who_runs(lane: Lane) -> Lane | UnseenThread:
    """The lane of the calling thread, or its identity if several threads may share the lane."""
    return this_thread() if lane.is_loose else lane


def note_running_loop(rest: Rest) -> Loop:
    """The event loop that the calling code runs on."""
    return rest.notice_loop(running_loop())
