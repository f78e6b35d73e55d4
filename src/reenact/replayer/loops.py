"""Event loops of a replayed run: finds out whether they have come to rest."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, Protocol

from reenact.boundary import is_on_trio, outside, watch_rounds
from reenact.replayer.idle import MovingThread, PatientClock

_MAX_SPINS: Final = 200
"""A loop that always has something ready, because a task polls, counts as at rest after this many rounds."""
_BLOCKED_S: Final = 0.5
"""A loop that does not run a scheduled callback for this long is blocked."""
_BLIND_SPINS: Final = 40
"""The same for a loop that hides its ready queue, such as uvloop; nothing takes more rounds to settle."""


class Loop:
    """An event loop with calls of this run; it is *dry* when it has nothing left to do."""

    def __init__(
        self,
        loop: Any,
        on_round: Callable[[Loop], None],
        on_dry: Callable[[], None],
        clock: PatientClock,
    ) -> None:
        self.loop = loop
        self.is_dry = False
        self._clock = clock
        self._thread_id = 0
        """The thread in which the loop was last seen running; 0 if never."""
        self._thread = MovingThread(0, clock, clock.now_s)
        self._on_round = on_round
        self._on_dry = on_dry
        self._is_probing = False
        """Whether it will be looked at before its next round."""
        self._scheduling = threading.Lock()
        self._called_s: float | None = None
        """Since when a callback waits to run on it."""
        self._spins = 0
        self._round = 0
        """How many rounds it has begun."""
        self._came_in = 0
        """In which of them something came in from outside, or will."""
        self._stop_watching = watch_rounds(loop, self._begin_round)

    def release(self) -> None:
        """The run is over: leave the loop as it was."""
        if self._stop_watching is not None:
            self._stop_watching()

    @property
    def rounds(self) -> int:
        """How many rounds lie between what came in last and what is delivered now, in the next round."""
        return self._round + 1 - self._came_in

    @property
    def is_here(self) -> bool:
        """Whether the calling code runs on this loop."""
        return asyncio._get_running_loop() is self.loop  # noqa: SLF001 — in asyncio's __all__

    @property
    def thread(self) -> int:
        """The identity of the thread in which it was last seen running; 0 if never."""
        return self._thread_id

    def notice(self) -> None:
        """Remember the loop's thread, if it can be known here."""
        thread_id = threading.get_ident() if self.is_here else getattr(self.loop, "_thread_id", None)
        if thread_id and thread_id != self._thread_id:
            self._thread_id = thread_id
            self._thread = MovingThread(thread_id, self._clock, self._clock.now_s)

    def run(self, callback: Callable[[], object]) -> None:
        """Run *callback* on the loop, from any thread."""
        if self.is_here:
            self.loop.call_soon(callback)
        else:
            # Outside the run, so that the seam does not record this as a callback of the agent.
            with suppress(RuntimeError), outside():  # the loop was closed meanwhile; nothing waits on it
                self.loop.call_soon_threadsafe(callback)

    def call(self, callback: Callable[[], None]) -> bool:
        """Schedule *callback* on the loop unless one is already scheduled; false if the thread is blocked."""

        def come_to_it() -> None:
            self._called_s = None
            callback()

        if self._called_s is None:
            self._called_s = self._clock.now_s
            self.run(come_to_it)
            return True
        return self._clock.now_s - self._called_s < _BLOCKED_S

    def resolve(self, future: Wait) -> None:
        """Resolve *future*, from any thread, unless it is done already."""

        def settle() -> None:
            if not future.done():
                future.set_result(None)

        if self.is_here:
            settle()  # the awaiting task continues in the next round, as after a wakeup by the loop
        else:
            self.run(settle)

    def new_wait(self) -> Wait:
        """A future that a task on this loop can await."""
        return self.loop.create_future()  # type: ignore[no-any-return]

    @property
    def is_driven_here(self) -> bool:
        """Whether it stands still while the calling thread waits, although no task of it is running here."""
        return False

    @property
    def is_closed(self) -> bool:
        """Whether it will never run again."""
        return bool(self.loop.is_closed())

    def expect_arrival(self, rounds_later: int = 0) -> None:
        """Note that something comes in from outside, in the next round or so many *rounds_later*."""
        self._came_in = self._round + 1 + rounds_later
        self.watch_rest()

    def note_arrival(self) -> None:
        """Note that something has come in, in this round: the next callback is made in the next one."""
        self._came_in = self._round
        self.watch_rest()

    def watch_rest(self) -> None:
        """Note that something was woken; find out when the loop has come to rest."""
        self.notice()
        self.is_dry = self.is_closed
        self._thread = MovingThread(self._thread_id, self._clock, self._clock.now_s)
        self._spins = 0
        if not self.is_dry:
            self._look_again()

    def _look_again(self) -> None:
        with self._scheduling:
            if self._is_probing:
                return
            self._is_probing = True
        if self._stop_watching is None:
            self.run(self._probe)
        elif not self.is_here:
            self.run(int)  # wake it up

    def _begin_round(self) -> None:
        """Let come in what comes in the next round, which begins now."""
        if self._is_probing:
            self._look()
        self._round += 1

    def _probe(self) -> None:
        """The same on a loop that does not say when a round begins, such as uvloop: in that round."""
        self._round += 1
        self._look()

    def _look(self) -> None:
        self._spins += 1
        self._is_probing = False
        self._on_round(self)
        if self._has_more_to_do():
            self._look_again()
        else:
            self.is_dry = True
            self._on_dry()

    def _has_more_to_do(self) -> bool:
        try:
            due = self.loop._ready  # noqa: SLF001 — asyncio's own loops have it
        except AttributeError:
            return self._spins < _BLIND_SPINS
        return bool(due) and self._spins < _MAX_SPINS

    @property
    def polling_thread(self) -> int | None:
        """The loop's thread if the loop only polls; else ``None``."""
        return self._thread_id if self.is_dry and self._spins >= _MAX_SPINS else None

    @property
    def is_busy(self) -> bool:
        return not self.is_dry and self.loop.is_running()

    def look(self) -> None:
        """Treat the loop as dry if its thread is stuck in a blocking call, or computes."""
        if self.is_busy:
            self.notice()
            self.is_dry = self._thread.is_at_rest()


class TrioLoop(Loop):
    """The same for a run of trio, whose instruments report before each wait whether anything is ready."""

    def __init__(
        self,
        token: object,
        on_round: Callable[[Loop], None],
        on_dry: Callable[[], None],
        clock: PatientClock,
    ) -> None:
        super().__init__(token, on_round, on_dry, clock)
        self._is_over = False
        sys.modules["trio"].lowlevel.add_instrument(self)

    @property
    def is_here(self) -> bool:
        return running_loop() is self.loop

    @property
    def is_driven_here(self) -> bool:
        """In guest mode, under another loop or pytest, trio's rounds need the thread that would block."""
        return not self._is_over and self._thread_id == threading.get_ident()

    @property
    def is_closed(self) -> bool:
        return self._is_over

    @property
    def is_busy(self) -> bool:
        return not self.is_dry and not self._is_over

    def new_wait(self) -> Wait:
        return _TrioWait()

    def run(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError), outside():  # it has ended meanwhile
            self.loop.run_sync_soon(callback)

    def _look_again(self) -> None:
        if not self.is_here:
            self.run(int)  # one more round, to find out

    def before_io_wait(self, timeout: float) -> None:
        """trio's instrument hook: if trio is about to wait, no task is ready."""
        if timeout > 0 and not self.is_dry:
            self.is_dry = True
            self.run(self._on_dry)

    def after_run(self) -> None:
        """trio's instrument hook: the run has ended."""
        self._is_over = self.is_dry = True


class Wait(Protocol):
    """What a task awaits: a future of asyncio, or its equivalent on trio."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def __await__(self) -> Generator[object, object, None]: ...


class _TrioWait:
    def __init__(self) -> None:
        self._event = sys.modules["trio"].Event()

    def done(self) -> bool:
        return bool(self._event.is_set())

    def set_result(self, _: None, /) -> None:
        self._event.set()

    def __await__(self) -> Generator[object, object, None]:
        return self._event.wait().__await__()  # type: ignore[no-any-return]


def running_loop() -> object:
    """The event loop that the calling code runs on, or the token of its trio run; ``None`` if on neither."""
    if is_on_trio():
        return sys.modules["trio"].lowlevel.current_trio_token()
    return asyncio._get_running_loop()  # noqa: SLF001 — in asyncio's __all__


async def give_way() -> None:
    """Let the event loop run one round."""
    if is_on_trio():
        await sys.modules["trio"].lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)
