"""The folder through which a command of ours and the Python processes below it talk to each other.

orders.json      from the command: what to do
started-PID      from a process: it does as ordered; what it is about
failed-PID       it could not begin, and why
absent-PID       there is no reenact in its Python
left-out-PID     it made calls, but could not record them, and why
gateway-called   from the command: a program has come through the gateway; Python that starts now is its tool
plays-PID        which recorded process it is in the replay: that one's first lane
diverged-PID     its replay has diverged; the rest is in its report, if it lives to give one
begun-NUMBER-…   how many processes began with the same words: one each
taken            the first lanes of the processes that have made a call, in that order
replayed-PID     what its replay came to
updated-PID      what its update came to
forked-PID       what its fork came to
fork-reached     the point of the fork has come in one of the processes
input            from the command: what came by a pipe to its standard input
files            from the command: what it learned of the workspace's files before it began
latest-tree      which tree of these files was told last, by whichever process
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from reenact.canonical import digest_of_bytes
from reenact.errors import FormatError, UsageError
from reenact.forks.change import ForkPlan
from reenact.formats.capture import ProcessData, RedactionProfile, RunStart, RunStartData
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import ReplayReceipt, receipt_codec
from reenact.formats.volatile import VolatileRule
from reenact.lane_name import ROOT
from reenact.replayer.engine import Policy
from reenact.replayer.step import OnUnmatched
from reenact.run.capturing import Identity
from reenact.store.durable import Durability, write_whole
from reenact.store.reader import EventReader
from reenact.workspace.recording import WorkspaceOrder

HANDOVER_VARIABLE: Final = "REENACT_HANDOVER"
SEED_VARIABLE: Final = "REENACT_SEED"
"""Where chance begins in every run of one capture, in hex."""
_GATEWAY_CALLED: Final = "gateway-called"
_FORK_REACHED: Final = "fork-reached"
SITE: Final = Path(__file__).parent / "site"
"""What has to be in ``PYTHONPATH`` for a process to find the folder at all."""

Note: TypeAlias = Literal["started", "failed", "absent", "left-out", "plays", "diverged", "updated", "forked"]


BEFORE_VARIABLE: Final = "REENACT_BEFORE"
"""What the variables held that lead programs to the gateway, as JSON.

They may hold passwords: they stay in the environment, where they were, and are written to no file.
"""


class Diverted(msgspec.Struct, frozen=True):
    """How programs without seams are led to the gateway."""

    address: str


class ToRecord(msgspec.Struct, frozen=True, tag="record"):
    """Record the run into *path*."""

    path: str
    redact: RedactionProfile | None
    durability: Durability
    identity: Identity
    diverted: Diverted
    volatile: tuple[VolatileRule, ...] = ()
    workspace: WorkspaceOrder | None = None
    """The files to record too, of which the start is known."""


class ToReplay(msgspec.Struct, frozen=True, tag="replay"):
    """Replay the capture in *path*."""

    path: str
    policy: Policy
    diverted: Diverted
    volatile: tuple[VolatileRule, ...] = ()
    allowed: tuple[str, ...] = ()
    """Addresses that may be reached, as ``HOST:PORT``."""
    on_unmatched: OnUnmatched = "error"
    workspace: str | None = None
    """The folder with the recorded files, in which the run is made again."""
    repository: str | None = None
    """Where git is asked for files that the capture only names."""


class ToUpdate(msgspec.Struct, frozen=True, tag="update"):
    """Replay the capture in *path* as far as it goes, and record beyond."""

    path: str
    diverted: Diverted
    blobs: str
    """Where payloads of new events go."""
    volatile: tuple[VolatileRule, ...] = ()
    workspace: str | None = None
    """The folder with the recorded files, in which the run is made again."""
    repository: str | None = None
    """Where git is asked for files that the capture only names."""


class ToFork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork the capture in *path*."""

    path: str
    diverted: Diverted
    blobs: str
    """Where payloads of new events go."""
    plan: ForkPlan
    capture_id: str
    run_id: str
    volatile: tuple[VolatileRule, ...] = ()
    allowed: tuple[str, ...] = ()
    """Addresses that may be reached, as ``HOST:PORT``."""
    workspace: str | None = None
    """The folder with the recorded files, in which the run is made again."""
    repository: str | None = None
    """Where git is asked for files that the capture only names."""


Orders: TypeAlias = ToRecord | ToReplay | ToUpdate | ToFork


class Replayed(msgspec.Struct, frozen=True):
    """What one process's replay came to."""

    answered: int
    """How many recorded calls it was given the outcome of."""
    receipt: ReplayReceipt
    root: str | None = None
    """Its first lane; ``None`` for a process that asked nothing, and so is none of the recorded ones."""

    @property
    def has_acted(self) -> bool:
        """Whether anything was asked; a script may start other processes before the agent."""
        found = self.receipt.divergences
        is_different = any(divergence["code"] != "event_missing" for divergence in found)
        return bool(self.answered or self.receipt.liveCallsRefused or is_different)


class _ReplayedText(msgspec.Struct, frozen=True):
    answered: int
    receipt: msgspec.Raw
    root: str | None


def hash_seed(seed: bytes) -> str:
    """What ``PYTHONHASHSEED`` is in every run of one capture, where the user has not said it."""
    return str(int.from_bytes(seed[:4]) or 1)


class Handover:
    """See the module's docstring; *folder* is made and removed by the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # The command's side

    def give(self, orders: Orders) -> None:
        try:
            self._write("orders.json", msgspec.json.encode(orders))
        except UnicodeEncodeError:
            raise UsageError(f"{orders.path}: is not UTF-8; choose another path") from None

    def note_gateway_call(self) -> None:
        (self.folder / _GATEWAY_CALLED).touch()

    def notes(self, kind: Note) -> dict[int, str]:
        """What processes left under *kind*, by process id, in the order they left it."""
        return {pid: text.decode("utf-8", "replace") for pid, text in self._found(kind).items()}

    def process(self, pid: int) -> str:
        """A process that began, for messages."""
        return f"{self.notes('started').get(pid, '?')} (process {pid})"

    def replays(self) -> dict[int, Replayed]:
        """What each process's replay came to."""
        return {pid: _read_replayed(text) for pid, text in self._found("replayed").items()}

    def goes_on_diverged(self, patience_s: float) -> bool:
        """Whether a process has ended as diverged, and *patience_s* later others still run."""
        reports = {path.name.rpartition("-")[2]: path for path in self.folder.glob("replayed-*")}
        ended = [reports[pid] for pid in map(str, self.notes("diverged")) if pid in reports]
        return any(time.time() - path.stat().st_mtime > patience_s for path in ended)

    def goes_on_failed(self, patience_s: float) -> bool:
        """Whether a process has failed, and *patience_s* later others still run."""
        return any(time.time() - path.stat().st_mtime > patience_s for path in self.folder.glob("failed-*"))

    @property
    def input_copy(self) -> Path:
        """What the command has read from a pipe."""
        return self.folder / "input"

    @property
    def file_index(self) -> Path:
        """What is known of the workspace's files."""
        return self.folder / "files"

    @property
    def tree_file(self) -> Path:
        """By which all processes know what was told of these files."""
        return self.folder / "latest-tree"

    # A process's side

    @property
    def gateway_was_called(self) -> bool:
        return (self.folder / _GATEWAY_CALLED).exists()

    def orders(self) -> Orders:
        path = self.folder / "orders.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Orders)  # type: ignore[no-any-return]  # a union
        except msgspec.DecodeError as error:
            raise FormatError(f"{error}; have one version of reenact everywhere", file=str(path)) from error

    @property
    def began_s(self) -> float:
        """When the command gave its orders, and so the run began."""
        return (self.folder / "orders.json").stat().st_mtime

    def reach_fork(self) -> None:
        (self.folder / _FORK_REACHED).touch()

    @property
    def is_fork_reached(self) -> bool:
        return (self.folder / _FORK_REACHED).exists()

    def take(self, choose: Callable[[list[str]], str], then: Callable[[str], None]) -> str:
        """Take a first lane, chosen knowing those taken before; *then* is done before another may choose."""
        fd = os.open(self.folder / "taken", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            root = choose(os.pread(fd, os.fstat(fd).st_size, 0).decode().split())
            os.write(fd, f"{root}\n".encode())
            then(root)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would leave it to a child forked meanwhile
            os.close(fd)
        return root

    def begin_as(self, words: Sequence[str]) -> int:
        """How many processes began with the same *words* before this one."""
        name = digest_of_bytes("\0".join(words).encode("utf-8", "surrogatepass")).rpartition(":")[2]
        for number in itertools.count():
            with suppress(FileExistsError):
                (self.folder / f"begun-{number}-{name}").touch(exist_ok=False)
                return number
        raise AssertionError("a number is always found")

    def note(self, kind: Note, text: str) -> None:
        self._write(f"{kind}-{os.getpid()}", text.encode("utf-8", "replace"))

    def report(self, replayed: Replayed) -> None:
        receipt = msgspec.Raw(receipt_codec.to_bytes(replayed.receipt))
        text = msgspec.json.encode(_ReplayedText(replayed.answered, receipt, replayed.root))
        self._write(f"replayed-{os.getpid()}", text)

    def _write(self, name: str, text: bytes) -> None:
        write_whole(self.folder / name, text, temp_folder=self.folder, sync=False)

    def _found(self, kind: str) -> dict[int, bytes]:
        paths = sorted(self.folder.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime_ns)
        return {int(path.name.rpartition("-")[2]): path.read_bytes() for path in paths}


def _read_replayed(text: bytes) -> Replayed:
    stored = msgspec.json.decode(text, type=_ReplayedText)
    return Replayed(stored.answered, receipt_codec.from_bytes(bytes(stored.receipt)), stored.root)


def read_run_start(log: EventReader) -> RunStartData:
    """What the capture says of who recorded it: Python processes, the gateway or both."""
    first = log.event(1) if len(log) else None
    return first.data if isinstance(first, RunStart) else RunStartData()


def recorded_processes(began: RunStartData) -> dict[str, ProcessData]:
    """By their first lane, in the order of their first calls; children behind those that started them."""
    beside = began.processes if began.processes is not ABSENT else {}
    if began.python is ABSENT and not beside:
        return {}
    first = {} if ROOT in beside else {ROOT: ProcessData(ended=True, argv=began.argv)}
    return {**first, **{root: beside[root] for root in sorted(beside, key=_order)}}


def _order(root: str) -> tuple[int, str]:
    number = root[: len(root) - len(root.lstrip("0123456789"))]
    return int(number), root
