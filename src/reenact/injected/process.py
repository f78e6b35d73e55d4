"""The run inside the agent's process: opened when its interpreter starts, closed when it ends.

It installs no signal handler and no exception hook. A killed process leaves an interrupted capture, which the
command recovers. ``sys.exit`` is no error of the run: the command sees the exit status.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import urlsplit

import msgspec

from reenact.boundary import Lane, forget_runs
from reenact.errors import Diverged, StoreError
from reenact.formats.capture import BLOB_THRESHOLD_BYTES, ProcessData
from reenact.gateway.lane import BELOW
from reenact.gateway.upstreams import environment_below, variables
from reenact.injected import chance
from reenact.injected.children import NewChild, Parent, follow, is_starting_child
from reenact.injected.first_call import FirstCallSink
from reenact.injected.handover import (
    BEFORE_VARIABLE,
    HANDOVER_VARIABLE,
    SEED_VARIABLE,
    SITE,
    Handover,
    Orders,
    Replayed,
    ToAnswer,
    ToFork,
    ToRecord,
    ToReplay,
    ToUpdate,
    hash_seed,
    recorded_processes,
)
from reenact.injected.launch import subject
from reenact.lane_name import ROOT
from reenact.library import possible_agents
from reenact.process_state import this_process
from reenact.recorder.eventlog import ProcessNames
from reenact.recorder.joining import process_part
from reenact.recorder.sink import CaptureSink
from reenact.replayer.allow import Allow, read_allow
from reenact.replayer.guard import Guard
from reenact.replayer.source import lanes_of
from reenact.run import MODE_VARIABLE, CaptureRun, ReplayRun, Run, UpdateRun
from reenact.run.capturing import without_places
from reenact.run.evidence import RunEvidence
from reenact.run.given import Given, OpenedFiles
from reenact.run.provenance import origin_of_run
from reenact.run.updating import UpdatePart
from reenact.seams import stdlib
from reenact.seams.http.request import leave_to_gateway
from reenact.seams.printing import print_in_turn
from reenact.seams.stdlib.draws import Draws
from reenact.seams.stdlib.process import end_programs, set_environment_change
from reenact.store.blobs import BlobStore
from reenact.store.reader import CaptureReader, read_run_start
from reenact.values.objects import message_of
from reenact.volatile.places import own_places

if TYPE_CHECKING:
    from reenact.forks.run import ForkRun
    from reenact.forks.transcript import AnsweredRun


def hide() -> str | None:
    """Restore the environment that the program would have without us.

    A process with seams calls its upstreams directly: through the gateway its calls would be recorded twice.
    Returns the original values of the upstream variables, which the programs it starts need.
    """
    text = os.environ.pop(BEFORE_VARIABLE, None)
    before: dict[str, str | None] = json.loads(text) if text else {}
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    os.environ.pop(HANDOVER_VARIABLE, None)
    seed = bytes.fromhex(os.environ.pop(SEED_VARIABLE, ""))
    if seed and os.environ.get("PYTHONHASHSEED") == hash_seed(seed):
        del os.environ["PYTHONHASHSEED"]
    entries = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    if rest := os.pathsep.join(entry for entry in entries if entry != str(SITE)):
        os.environ["PYTHONPATH"] = rest
    # A `with reenact.capture(...)` in the program does nothing: the whole program is the run.
    os.environ[MODE_VARIABLE] = "off"
    return text


def route_programs_below(gateway: str, before: str | None) -> None:
    """Route the programs that this process starts to the *gateway*, so that their model calls are recorded.

    ``putenv`` does not change ``os.environ``: this process itself must not use the gateway. An explicit
    environment is usually a copy of ``os.environ``, so it is changed when the program is started.
    """
    for name, value in variables(f"{gateway}/{BELOW}", os.environ).items():
        os.putenv(name, value)
    if before is not None:
        os.putenv(BEFORE_VARIABLE, before)
    set_environment_change(None, partial(environment_below, gateway, is_whole=False))


def at_the_end(end_run: Callable[[BaseException | None], None]) -> None:
    """Call *end_run* with the uncaught exception when the process ends.

    It is registered before any handler of the program, so it runs after all of them.
    """
    home_pid = os.getpid()
    is_over = False

    def end() -> None:
        nonlocal is_over
        if os.getpid() == home_pid and not is_over:
            is_over = True
            # The interpreter stores the uncaught exception here; there is none for sys.exit.
            end_run(getattr(sys, "last_value", None))

    atexit.register(end)
    os._exit = _end_first(end, os._exit)  # type: ignore[assignment]  # mypy wants the very function


def _end_first(end: Callable[[], None], leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    def _exit(status: int) -> NoReturn:
        try:
            end()
        finally:
            leave(status)

    return _exit


class _Part(Parent, Protocol):
    """The part of this process in the command's run."""

    runs_programs: bool
    """Whether a replay starts recorded programs again instead of answering them from the capture."""

    def end(self, error: BaseException | None) -> None:
        """Close the run; *error* is the uncaught exception."""


def begin(folder: str) -> None:
    """Open the run that the orders in *folder* describe; it is closed when the program ends."""
    _begin(Handover(Path(folder)), None)


def begin_spawned(folder: str, root: str, within: str | None, seed: str) -> None:
    """Do the same in a process that ``multiprocessing`` spawned, before it unpickles the agent's objects."""
    this_process.seed = seed
    handover = Handover(Path(folder))
    with _fail_closed(handover):
        _begin(handover, NewChild(root, within))


def _begin(handover: Handover, new_child: NewChild | None) -> None:
    chance.seed_process(handover, new_child)
    chance.seed_libraries()
    orders = handover.orders()
    if isinstance(orders, ToRecord | ToReplay):
        this_process.shared_order = handover.shared_order
    part = _make_part(orders, handover, new_child)
    leave_to_gateway(orders.gateway)
    before = hide()
    if not is_hermetic(orders) or part.runs_programs:
        route_programs_below(orders.gateway, before)
    this_process.attached.enter_context(print_in_turn())
    at_the_end(part.end)
    follow(part)


def _make_part(orders: Orders, handover: Handover, new_child: NewChild | None) -> _Part:
    if isinstance(orders, ToRecord):
        if orders.answers is not None:
            return _AnsweredProcess(orders, handover, new_child, orders.answers)
        return _RecordedProcess(orders, handover, new_child)
    if isinstance(orders, ToUpdate):
        return _UpdatedProcess(orders, handover, new_child)
    if isinstance(orders, ToFork):
        return _ForkedProcess(orders, handover, new_child)
    return _ReplayedProcess(orders, handover, new_child)


@contextmanager
def _fail_closed(handover: Handover) -> Iterator[None]:
    """Report a child that could not begin; in a hermetic run it must not continue."""
    try:
        yield
    except Exception as error:
        handover.note("failed", f"a child process could not begin: {message_of(error)}")
        if is_hermetic(handover.orders()):
            os._exit(70)


def is_hermetic(orders: Orders) -> bool:
    """Whether the run must make no live call."""
    if isinstance(orders, ToRecord):
        return orders.answers is not None and orders.answers.plan.on_miss != "live"
    return isinstance(orders, ToReplay) or (isinstance(orders, ToFork) and orders.plan.on_miss != "live")


class _Process:
    """One process of the command, recorded or replayed."""

    runs_programs = False

    def __init__(self, orders: Orders, handover: Handover, new_child: NewChild | None) -> None:
        self._orders = orders
        self._handover = handover
        self._born = new_child
        self._root_lock = Lock()
        self._root: str | None = None if new_child is None else new_child.root

    def begin_fork(self, new_child: NewChild) -> None:
        forget_runs()
        with _fail_closed(self._handover):
            chance.seed_process(self._handover, new_child)  # else it would draw the same values as its parent
            part = _make_part(self._orders, self._handover, new_child)
            at_the_end(part.end)
            follow(part)

    def make_beginning(self, new_child: NewChild) -> object:
        return _Beginning(str(self._handover.folder), new_child)

    def _find_root(self, choose: Callable[[list[str]], str], then: Callable[[], None]) -> str:
        """Return this process's first lane: its parent named it, or *choose* picks it at the first call."""
        with self._root_lock:
            if self._root is not None:
                return self._root
            return self._handover.take(choose, partial(self._become, then))

    def _become(self, then: Callable[[], None], root: str) -> None:
        self._root = root
        then()


class _Beginning:
    """Begins the run in the interpreter that unpickles it."""

    def __init__(self, folder: str, new_child: NewChild) -> None:
        self._words = (folder, new_child.root, new_child.within, this_process.seed)

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str, str, str | None, str]]:
        return begin_spawned, self._words


class _RecordedProcess(_Process):
    def __init__(self, orders: ToRecord, handover: Handover, new_child: NewChild | None) -> None:
        super().__init__(orders, handover, new_child)
        self._path = Path(orders.path)
        self._sink = FirstCallSink(self._path, durability=orders.durability, beside=self._beside)
        self._run = self.make_run(
            self._sink,
            redact=orders.redact,
            blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
            stand_ins=stdlib.stand_ins(None, ()),
            volatile=orders.volatile,
            allow=_read_allowed(orders),
            on_warning=None,
            identity=orders.identity,
            find_names=lambda: ProcessNames.of_process(self._first_lane()),
            within=new_child.within if new_child is not None else None,
            origin=origin_of_run() if new_child is None else None,
            workspace=orders.workspace,
            watches_clock=True,
            seen_outside=handover.connections,
        )
        self._run.__enter__()
        handover.note("started", subject(sys.orig_argv))

    def make_run(self, sink: CaptureSink, **options: Any) -> CaptureRun:
        return CaptureRun(sink, **options)

    def join_run(self) -> None:
        self._first_lane()

    def lane_name(self, lane: Lane) -> str:
        return lane.name_under(self._first_lane())

    def _first_lane(self) -> str:
        return self._find_root(lambda taken: str(len(taken)), self._take_directory)

    def _take_directory(self) -> None:
        """Claim the capture directory for the first process; the first call reports what goes wrong here."""
        with suppress(StoreError):
            self._sink.open()

    def _beside(self) -> Path:
        return process_part(self._path, self._root or ROOT)

    def end(self, error: BaseException | None) -> None:
        if self._sink.is_open:
            _close_run(self._run, error)
            return
        self._run.abandon()
        if self._sink.refusal is not None:
            self._handover.note("left-out", str(self._sink.refusal))


class _AnsweredProcess(_RecordedProcess):
    """A process of a fork of a transcript."""

    _run: AnsweredRun

    def __init__(
        self, orders: ToRecord, handover: Handover, new_child: NewChild | None, answers: ToAnswer
    ) -> None:
        self._answers = answers
        super().__init__(orders, handover, new_child)
        self._allow = _read_allowed(orders, handover.file_began_s)

    def make_run(self, sink: CaptureSink, **options: Any) -> AnsweredRun:
        # Imported here, because every recorded process loads this module and few are forks.
        from reenact.forks.answering import Answers
        from reenact.forks.matching import TranscriptCalls
        from reenact.forks.transcript import AnsweredRun

        handover, plan = self._handover, self._answers.plan
        calls = TranscriptCalls(CaptureReader(self._answers.path), self._answers.volatile, handover.claim)
        return AnsweredRun(
            sink,
            plan,
            lambda redactor: Answers(
                calls,
                plan,
                redactor,
                on_reached=handover.reach_fork,
                is_reached_elsewhere=lambda: handover.is_fork_reached,
                on_missed=lambda headline: handover.note("diverged", headline),
            ),
            **options,
        )

    def end(self, error: BaseException | None) -> None:
        if is_hermetic(self._orders):
            Guard(self._allow).__enter__()  # for daemon threads, which run on
        super().end(error)
        self._handover.note("forked", msgspec.json.encode(self._run.result()).decode())


class _Rerun(_Process):
    """A process that is run again; its first call decides which recorded process it corresponds to."""

    _run: ReplayRun | UpdateRun | ForkRun

    def __init__(self, orders: Orders, handover: Handover, new_child: NewChild | None) -> None:
        super().__init__(orders, handover, new_child)
        self._has_joined = False

    def join_run(self) -> None:
        self._run.context.choose_process()

    def lane_name(self, lane: Lane) -> str:
        return lane.recorded.name if lane.recorded is not None else lane.name_under(self._first_lane())

    def _first_lane(self) -> str:
        root = self._find_root(self._choose, lambda: None)
        if not self._has_joined:
            self._has_joined = True
            self._handover.note("plays", root)
            if self._born is not None:
                self._note_start()  # not earlier: a child without calls may be killed before it reports
        return root

    def _begin(self) -> None:
        self._run.__enter__()
        self._run.context.is_placed_by_order = lambda: self._is_certain
        if self._born is None:
            self._note_start()

    @cached_property
    def _processes(self) -> dict[str, ProcessData]:
        return recorded_processes(read_run_start(self._run.context.source.reader))

    @cached_property
    def _is_certain(self) -> bool:
        """Whether only one recorded process can correspond to this one, even before its first call."""
        if self._born is not None:
            return self._born.root in self._processes
        own = [root for root in self._processes if ":" not in root]
        return len(own) == 1 and self._has_same_words(own[0])

    def _has_same_words(self, root: str) -> bool:
        """Compare the command lines without the interpreter's path."""
        return without_places(self._processes[root].argv or [])[1:] == self._run.arguments()[1:]

    def _find_pids(self) -> dict[int, int]:
        """The ids of the processes that play recorded ones, and of this one's parent, by the recorded ids."""
        live = {root: pid for pid, root in self._handover.notes("plays").items()}
        recorded = {root: process.pids or [] for root, process in self._processes.items()}
        own = recorded.get(self._root or ROOT, [])
        parents = {own[1]: os.getppid()} if len(own) > 1 else {}
        return parents | {pids[0]: live[root] for root, pids in recorded.items() if pids and root in live}

    def _note_start(self) -> None:
        self._handover.note("started", subject(sys.orig_argv))

    def _choose(self, taken: list[str]) -> str:
        """Prefer the first free recorded process with the same command line, else take the first free one."""
        left = [root for root in self._processes if root not in taken and ":" not in root]
        return next(iter([*filter(self._has_same_words, left), *left]), str(len(taken)))


class _ReplayedProcess(_Rerun):
    _run: ReplayRun

    def __init__(self, orders: ToReplay, handover: Handover, new_child: NewChild | None) -> None:
        super().__init__(orders, handover, new_child)
        root = new_child.root if new_child is not None else ROOT
        self._allow = _read_allowed(orders, handover.file_began_s)
        self._run = ReplayRun(
            orders.path,
            policy=orders.policy,
            on_unmatched=orders.on_unmatched,
            volatile=orders.volatile,
            allow=self._allow,
            on_divergence=lambda divergence: handover.note("diverged", divergence.headline),
            is_ours=lanes_of(root),
            root=root,
            find_root=self._first_lane,
            within=new_child.within if new_child is not None else None,
            evidence=_gather_evidence(handover, orders.path, orders.files, self._find_pids),
            workspace=orders.files_folder,
            repository=orders.repository_folder,
            runs_programs=True,
            clock_shift_s=orders.clock_shift_s,
        )
        self._begin()
        self.runs_programs = bool(self._run.context.source.programs)

    def end(self, error: BaseException | None) -> None:
        # Daemon threads run until the interpreter has ended, so the guard stays.
        Guard(self._allow).__enter__()
        with suppress(Diverged):  # it is in the receipt, and the command explains it
            _close_run(self._run, error)
        end_programs()
        if self._run.receipt is not None:
            root = self._root if self._has_joined else None
            self._handover.report(Replayed(self._run.answered, self._run.receipt, root))


class _UpdatedProcess(_Rerun):
    _run: UpdateRun

    def __init__(self, orders: ToUpdate, handover: Handover, new_child: NewChild | None) -> None:
        super().__init__(orders, handover, new_child)
        root = new_child.root if new_child is not None else ROOT
        part = UpdatePart(
            orders.blobs,
            lanes_of(root),
            root,
            self._first_lane,
            new_child.within if new_child is not None else None,
            tree_file=str(handover.tree_file),
        )
        self._run = UpdateRun(
            orders.path,
            volatile=orders.volatile,
            part=part,
            workspace=orders.files_folder,
            repository=orders.repository_folder,
        )
        self._begin()

    def end(self, error: BaseException | None) -> None:
        _close_run(self._run, error)
        if self._run.manifest is None:
            why = self._run.warnings[-1] if self._run.warnings else "the update was not finished"
            self._handover.note("failed", why)
        elif self._has_joined:
            self._handover.note("updated", msgspec.json.encode(self._run.result()).decode())


class _ForkedProcess(_Rerun):
    _run: ForkRun

    def __init__(self, orders: ToFork, handover: Handover, new_child: NewChild | None) -> None:
        # Imported here, because every recorded process loads this module and few are forks.
        from reenact.forks.capture import seed_of_fork
        from reenact.forks.engine import ForkPart
        from reenact.forks.run import ForkRun

        super().__init__(orders, handover, new_child)
        root = new_child.root if new_child is not None else ROOT
        self._allow = _read_allowed(orders, handover.file_began_s)
        self._is_hermetic = is_hermetic(orders)
        self._run = ForkRun(
            orders.path,
            ForkPart(
                plan=orders.plan,
                seed=seed_of_fork(Path(orders.path), orders.capture_id, orders.run_id),
                blobs=BlobStore(Path(orders.blobs)),
                on_reached=handover.reach_fork,
                is_reached_elsewhere=lambda: handover.is_fork_reached,
                tree_file=str(handover.tree_file),
            ),
            volatile=orders.volatile,
            allow=self._allow,
            on_divergence=lambda divergence: handover.note("diverged", divergence.headline),
            is_ours=lanes_of(root),
            root=root,
            find_root=self._first_lane,
            within=new_child.within if new_child is not None else None,
            evidence=_gather_evidence(handover, orders.path, orders.files),
            workspace=orders.files_folder,
            repository=orders.repository_folder,
        )
        self._begin()

    def end(self, error: BaseException | None) -> None:
        if self._is_hermetic:
            Guard(self._allow).__enter__()  # for daemon threads, which run on
        self._run.close(error)
        problem = self._run.problem()
        if problem is not None:
            self._handover.note("failed", str(problem))
        elif self._has_joined:
            self._handover.note("forked", msgspec.json.encode(self._run.result()).decode())


def _read_allowed(orders: ToRecord | ToReplay | ToFork, file_began_s: float = 0.0) -> Allow:
    port = urlsplit(orders.gateway).port
    if isinstance(orders, ToRecord):
        allowed = () if orders.answers is None else orders.answers.allowed
    else:
        allowed = orders.allowed
    return Allow(
        loopback_ports=[port] if port else [],
        addresses=read_allow(allowed).addresses,
        children=is_starting_child,
        began_s=file_began_s,
    )


def _gather_evidence(
    handover: Handover,
    path: str,
    workspace: str | None = None,
    find_pids: Callable[[], dict[int, int]] = dict,
) -> RunEvidence:
    """The evidence of a run that is the whole program: its input is what existed before it began."""
    before_s = handover.file_began_s
    opened = OpenedFiles(before_s, [handover.folder, Path(path)])
    opened.watch()
    given = Given(
        sys.orig_argv,
        os.environ,
        Path.cwd(),
        before_s=before_s,
        more=_own_files,
        input_copy=handover.input_copy,
        opened=opened,
    )
    places = own_places(workspace)
    return RunEvidence(
        "unique", draws=Draws(), given=given, began_s=handover.began_s, places=places, processes=find_pids
    )


def _own_files() -> Iterator[Path]:
    for _, namespace in possible_agents():
        file = namespace.get("__file__")
        if isinstance(file, str):
            yield Path(file)


def _close_run(run: Run, error: BaseException | None) -> None:
    run.__exit__(type(error) if error is not None else None, error, None)
