"""What a process shares: context variables, locks, registries, and facts about objects of other code.

This is the one module that keeps such state; every other module takes what it needs by name. What belongs
to runs is gone when the last one is closed. The types are those of the rooms above, which are not imported.
"""

from __future__ import annotations

import _random
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet, ref

if TYPE_CHECKING:
    import socket
    from asyncio import Server
    from concurrent.futures import Future
    from pathlib import Path
    from random import Random
    from types import ModuleType

    from reenact.boundary import AuditListener, Context, Lane
    from reenact.injected.children import NewChild, Parent
    from reenact.replayer.guard import Guard, Watch
    from reenact.seams.deadlines import LoopTimer
    from reenact.seams.entered import ExecutedFiles
    from reenact.seams.imports import WatchedLibraries
    from reenact.seams.patches import AppliedPatch
    from reenact.seams.probes import Probe
    from reenact.seams.stdlib.digests import Digests
    from reenact.seams.stdlib.draws import Draws
    from reenact.seams.stdlib.exchange import ExchangedNames
    from reenact.seams.stdlib.process.command import Command, EnvironmentChange
    from reenact.seams.stdlib.sources import RecordedSources
    from reenact.seams.stdlib.wall_clock import ClockShift
    from reenact.seams.stdlib.written import WrittenFiles
    from reenact.seams.trio import TrioDeadline
    from reenact.store.durable import ParentsOwn

T = TypeVar("T")


class Registry(Generic[T]):
    """What open runs have registered, oldest first.

    Hooks read :attr:`entries` without a lock: it is replaced, never modified.
    """

    __slots__ = ("entries", "lock")

    def __init__(self) -> None:
        self.entries: tuple[T, ...] = ()
        self.lock = RLock()
        """For a change, and for what has to happen with it, such as attaching a patch for the first entry."""

    def add(self, entry: T) -> None:
        with self.lock:
            self.entries = (*self.entries, entry)

    def remove(self, entry: T) -> None:
        """Remove *entry*; the latest, if several are equal."""
        with self.lock:
            entries = list(reversed(self.entries))
            entries.remove(entry)
            self.entries = tuple(reversed(entries))

    @contextmanager
    def holding(self, entry: T) -> Iterator[None]:
        """Register *entry* for the block."""
        self.add(entry)
        try:
            yield
        finally:
            self.remove(entry)


class Locks:
    """The locks of what is no registry; reentrant, because garbage collection may run code of the agent."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.runs = RLock()
        """For the open runs and the listeners of audit events."""
        self.patches = RLock()


class ThisProcess:
    """The part of this process in the run of a command; a forked child inherits it."""

    def __init__(self) -> None:
        self.parent: Parent | None = None
        """What its children join."""
        self.watching: AbstractContextManager[None] | None = None
        """The patches by which children join, which last until the process ends."""
        self.attached = ExitStack()
        """The same for what this process itself needs."""
        self.shared_order: Path | None = None
        """The file in which the processes of the run note in which order they take what they share."""
        self.seed = ""
        """What the seeds of its generators are made from; empty if they are not seeded."""
        self.name = ""
        """Its words and their ordinal, or its first lane; also part of each seed."""
        self.generators: dict[str, int] = {}
        """The number of unseeded generators by the module that made them."""
        self.numpy_seeds = _random.Random()


class ThisThread(threading.local):
    """What a thread is doing at the moment."""

    timer: LoopTimer | None = None
    """The timer whose callback it is running."""
    telling: Lane | None = None
    """The lane of the job that just ended, while it runs its done callbacks."""
    is_waiting = False
    """Whether it is inside a wait with a deadline, whose inner waits do not count."""
    is_producing = False
    """Whether it reads a recorded value, which may call a fake, as ``date.today`` calls ``time.time``."""

    def __init__(self) -> None:
        self.fakes_running: set[object] = set()
        """What is replaced by the fakes of a test that a stand-in has called."""


this_process: Final = ThisProcess()
this_thread: Final = ThisThread()
locks: Final = Locks()


# The current run and lane

lane_var: Final[ContextVar[Lane | None]] = ContextVar("reenact_lane", default=None)
owned_lanes: Final[dict[int, Lane]] = {}
"""Lanes of threads and tasks whose context variable may be wrong (foreign contexts)."""
# Keyed by the context itself: id() raises an audit event, which calls our hooks.
open_runs: Final[dict[Context, Lane]] = {}
"""Root lanes of the open runs."""
audit_listeners: Final[dict[str, tuple[AuditListener, ...]]] = {}
"""By event; they stay until the process ends."""


# What is patched and exchanged

applied_patches: Final[dict[tuple[int, str], AppliedPatch]] = {}
patches_left_below: Final[dict[tuple[int, str], AppliedPatch]] = {}
"""Patches that could not be removed, because another library's lies on top; the next run uses them again."""
watched_libraries: Final[Registry[WatchedLibraries]] = Registry()
name_exchange: Final[Registry[ExchangedNames]] = Registry()
"""One entry for all open runs: the names exchanged in the agent's modules."""
names_of_libraries: Final[set[str]] = set()
"""A cache for the exchange: the names of modules that do not belong to the agent."""
library_modules: Final[dict[str, ModuleType]] = {}
"""A cache for later runs: loaded modules that are known to be libraries, by name."""


# What open runs record and watch

recorded_sources: Final[dict[Context, RecordedSources]] = {}
executed_files: Final[Registry[ExecutedFiles]] = Registry()
written_files: Final[Registry[WrittenFiles]] = Registry()
open_digests: Final[Registry[Digests]] = Registry()
open_draws: Final[Registry[Draws]] = Registry()
seeded_generators: Final[dict[int, ref[Random]]] = {}
"""By identity: generators with an explicit seed, whose values are not random."""
workspaces: Final[Registry[Path]] = Registry()
clock_shifts: Final[Registry[ClockShift]] = Registry()
time_zones: Final[Registry[str | None]] = Registry()
"""The variable ``TZ`` as it was before all open runs, then those of the runs."""
file_digests: Final[dict[str, tuple[tuple[int, ...], str]]] = {}
"""A cache: by file, its state when it was read, and its digest."""


# What would go live

open_guards: Final[Registry[Guard]] = Registry()
open_watches: Final[Registry[Watch]] = Registry()
attached_for_guards: Final = ExitStack()
"""What the first guard attached, until the last one closes."""
suspended_guards_var: Final[ContextVar[tuple[Guard, ...]]] = ContextVar(
    "reenact_suspended_guards", default=()
)


# Connections

exchanges_under_way: Final[set[tuple[Context, str]]] = set()
"""Live HTTP exchanges, each as its context and call id."""
left_alone_var: Final[ContextVar[bool]] = ContextVar("reenact_http_is_left_alone", default=False)
"""Whether a request made here is not recorded."""
httpx_streamed_var: Final[ContextVar[bool]] = ContextVar("reenact_httpx_is_streamed", default=True)
urllib3_streamed_var: Final[ContextVar[bool | None]] = ContextVar("reenact_urllib3_is_streamed", default=None)
left_to_gateway: Final[list[str]] = []
"""Addresses of gateways, which record the calls to them themselves."""
hosts_beside: Final[Registry[tuple[str, ...]]] = Registry()
"""The hosts that the project of each run excludes from it."""
probe_judges: Final[dict[Context, Callable[[str, int], bool]]] = {}
"""By the context of an open run: whether a probe of a host and port is a call."""
probed_sockets: Final[WeakKeyDictionary[socket.socket, Probe]] = WeakKeyDictionary()
listening_sockets: Final[WeakSet[socket.socket]] = WeakSet()
"""The sockets on which code of a run listens."""
loop_servers: Final[list[Server]] = []
"""Servers of event loops that do not use Python's sockets."""
native_servers: Final[WeakKeyDictionary[object, set[int]]] = WeakKeyDictionary()
"""The ports of servers whose sockets Python does not know, until they stop."""


# Tasks, jobs and timers

ended_at: Final[WeakKeyDictionary[object, int]] = WeakKeyDictionary()
"""The order in which tasks and executor jobs ended."""
endings: Final = itertools.count(1)
lane_of_job: Final[WeakKeyDictionary[Future[object], Lane]] = WeakKeyDictionary()
"""The lane of each executor job that a run submitted."""
loops_ahead_s: Final[WeakKeyDictionary[object, float]] = WeakKeyDictionary()
"""How far the clock of a replayed event loop is ahead of the real one: the total of its skipped sleeps."""
trio_deadlines: Final[dict[object, TrioDeadline]] = {}
"""By cancel scope: the deadlines that are set in a run."""


# Programs and child processes

environment_changes: Final[dict[Context | None, EnvironmentChange]] = {}
"""By the context of an open run; under ``None`` for all programs that this process starts."""
environment_change_var: Final[ContextVar[EnvironmentChange | None]] = ContextVar(
    "reenact_process_running", default=None
)
program_watches: Final[dict[Context, Callable[[int], bool]]] = {}
"""By the context of a recorded run: whether the run has a connection with the program of a process id."""
spawned_programs: Final[dict[int, Command]] = {}
"""Programs that were not started by ``subprocess``, by process id, until the agent has seen their end."""
programs_run_again: Final[list[int]] = []
"""The process ids of programs that were really started in a replay."""
starting_child_var: Final[ContextVar[NewChild | bool | None]] = ContextVar("reenact_starting", default=False)
"""The child that ``multiprocessing`` is starting: ``None`` if it does not join, ``False`` for no child."""
forked_child_var: Final[ContextVar[NewChild | None]] = ContextVar("reenact_forking", default=None)


# Files of our own

temp_numbers: Final = itertools.count()
left_to_parent: Final[WeakSet[ParentsOwn]] = WeakSet()
"""What a forked child must not use."""
distrusted_files: Final[set[Path]] = set()
"""Project files of others, of which the user has been warned."""


def _renew_locks() -> None:
    """Replace the locks in a forked child: a thread of the parent may have held them."""
    locks.renew()
    for value in globals().values():
        if isinstance(value, Registry):
            value.lock = RLock()


os.register_at_fork(after_in_child=_renew_locks)
