"""The folder through which a reenact command and the Python processes below it exchange files.

Written by the command:

orders.json      what the processes have to do
gateway-called   a program has called the gateway; a Python process that starts later is its tool: no run
input            a copy of what came through a pipe to the command's standard input
files            the index of the workspace's files, made before the run began

Written by the processes:

started-PID      the process follows the orders; the text is a short name for messages
failed-PID       it could not begin, and why
absent-PID       reenact is not installed in its Python
left-out-PID     it made calls, but could not record them, and why
plays-PID        which recorded process it replays: the first lane of that one
diverged-PID     its replay has diverged; details are in its report, unless it is killed before that
begun-NUMBER-…   counts the processes with the same command line: each creates one file
taken            the first lanes of the processes that have made a call, in that order
replayed-PID     the result of its replay
updated-PID      the result of its update
forked-PID       the result of its fork
answered-SEQ     a process has the outcome of this call of a transcript
fork-reached     one of the processes has reached the point of the fork
shared-order     the lanes that took what processes share, in order; in a replay, which of them have taken it
latest-tree      the tree of the workspace's files that was recorded last, by any process
"""

from __future__ import annotations

import fcntl
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Final, Literal, TypeAlias

import msgspec

from reenact.canonical import digest_of_bytes
from reenact.errors import FormatError, StoreError, UsageError
from reenact.forks.change import ForkPlan
from reenact.formats.capture import ProcessData, RedactionProfile, RunStartData
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import ReplayReceipt, receipt_codec
from reenact.formats.volatile import VolatileRule
from reenact.lane_name import ROOT
from reenact.replayer.egress import Connect
from reenact.replayer.engine import Policy
from reenact.replayer.step import OnUnmatched
from reenact.run.capturing import Identity
from reenact.store.durable import Durability, write_whole
from reenact.workspace.recording import WorkspaceOrder

HANDOVER_VARIABLE: Final = "REENACT_HANDOVER"
SEED_VARIABLE: Final = "REENACT_SEED"
"""Holds the seed of random generators, in hex, the same in every run of one capture."""
_GATEWAY_CALLED: Final = "gateway-called"
_FORK_REACHED: Final = "fork-reached"
_CONNECTIONS: Final = "connections"
SITE: Final = Path(__file__).parent / "site"
"""The ``PYTHONPATH`` entry whose ``sitecustomize`` begins the run in a process."""

Note: TypeAlias = Literal["started", "failed", "absent", "left-out", "plays", "diverged", "updated", "forked"]


BEFORE_VARIABLE: Final = "REENACT_BEFORE"
"""Holds, as JSON, the original values of the variables that route programs to the gateway.

They may contain passwords, so they stay in the environment and are written to no file.
"""


class ToAnswer(msgspec.Struct, frozen=True):
    """Answer the calls from the transcript in *path*."""

    path: str
    plan: ForkPlan
    allowed: tuple[str, ...] = ()
    """Addresses that may be reached, as ``HOST:PORT``."""
    volatile: tuple[VolatileRule, ...] = ()
    """The rules whose masks are used when texts are compared."""


class ToRecord(msgspec.Struct, frozen=True, kw_only=True, tag="record"):
    """Record the run into *path*."""

    path: str
    gateway: str
    """The address of the gateway, for programs without seams."""
    redact: RedactionProfile | None
    durability: Durability
    identity: Identity
    volatile: tuple[VolatileRule, ...] = ()
    workspace: WorkspaceOrder | None = None
    """The files to record too; their tree at the start is known already."""
    answers: ToAnswer | None = None
    """Whether calls are answered, as in a fork of a transcript."""


class _ToRunAgain(msgspec.Struct, frozen=True, kw_only=True):
    """Run the command again that was recorded in *path*."""

    path: str
    gateway: str
    """The address of the gateway, for programs without seams."""
    volatile: tuple[VolatileRule, ...] = ()
    files: str | None = None
    """The folder with the recorded files, in which the run is made again."""
    repository: str | None = None
    """Where git is asked for files that the capture only names."""

    @property
    def files_folder(self) -> Path | None:
        return Path(self.files) if self.files is not None else None

    @property
    def repository_folder(self) -> Path | None:
        return Path(self.repository) if self.repository is not None else None


class ToReplay(_ToRunAgain, frozen=True, kw_only=True, tag="replay"):
    """Answer all calls from the capture."""

    policy: Policy
    allowed: tuple[str, ...] = ()
    """Addresses that may be reached, as ``HOST:PORT``."""
    on_unmatched: OnUnmatched = "error"
    clock_shift_s: float | None = None
    """How much to move the wall clock to the time of the recorded run; nothing where calls may go live."""


class ToUpdate(_ToRunAgain, frozen=True, kw_only=True, tag="update"):
    """Answer the calls that are in the capture, and record new ones."""

    blobs: str
    """Where payloads of new events go."""


class ToFork(_ToRunAgain, frozen=True, kw_only=True, tag="fork"):
    """Fork the capture."""

    blobs: str
    """Where payloads of new events go."""
    plan: ForkPlan
    capture_id: str
    run_id: str
    allowed: tuple[str, ...] = ()
    """Addresses that may be reached, as ``HOST:PORT``."""


Orders: TypeAlias = ToRecord | ToReplay | ToUpdate | ToFork


class _Given(msgspec.Struct, frozen=True):
    orders: Orders
    began_s: float


class Replayed(msgspec.Struct, frozen=True):
    """The result of one process's replay."""

    answered: int
    """How many calls were answered from the recording."""
    receipt: ReplayReceipt
    root: str | None = None
    """Its first lane; ``None`` for a process without calls, which matches no recorded process."""

    @property
    def has_acted(self) -> bool:
        """Whether the process made a call; a script may start other processes before the agent."""
        found = self.receipt.divergences
        is_different = any(divergence["code"] != "event_missing" for divergence in found)
        return bool(self.answered or self.receipt.liveCallsRefused or is_different)


class _ReplayedText(msgspec.Struct, frozen=True):
    answered: int
    receipt: msgspec.Raw
    root: str | None


def _explain_not_utf_8(path: str) -> str:
    """Why *path* cannot be written into the orders, which are JSON."""
    try:
        text = os.fsencode(path).decode()
    except UnicodeDecodeError:
        return f"{path}: is not UTF-8; choose another path"
    encoding = sys.getfilesystemencoding()
    return f"{text}: this Python takes file names for {encoding}; set PYTHONUTF8=1, or choose another path"


def hash_seed(seed: bytes) -> str:
    """The ``PYTHONHASHSEED`` of every run of one capture, unless the user has set one."""
    return str(int.from_bytes(seed[:4]) or 1)


class Handover:
    """See the module's docstring; *folder* is made and removed by the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # The command's side

    def write_orders(self, orders: Orders) -> None:
        try:
            self._write("orders.json", msgspec.json.encode(_Given(orders, time())))
        except UnicodeEncodeError:
            raise UsageError(_explain_not_utf_8(orders.path)) from None

    def note_gateway_call(self) -> None:
        (self.folder / _GATEWAY_CALLED).touch()

    def note_connection(self, pid: int, socket: str, target: Connect) -> None:
        """Tell the process *pid* of a connection that it has, which it may not see itself."""
        with open(self.folder / f"{_CONNECTIONS}-{pid}", "a", encoding="utf-8") as file:
            file.write(f"{socket} {target.host} {target.port}\n")

    def notes(self, kind: Note) -> dict[int, str]:
        """The processes' notes of *kind* by process id, oldest first."""
        return {pid: text.decode("utf-8", "replace") for pid, text in self._read_notes(kind).items()}

    def process(self, pid: int) -> str:
        """Describe a process for messages."""
        return f"{self.notes('started').get(pid, '?')} (process {pid})"

    def replays(self) -> dict[int, Replayed]:
        """The results of the processes' replays, by process id."""
        return {pid: _read_replayed(text) for pid, text in self._read_notes("replayed").items()}

    def has_outlived_divergence(self, patience_s: float) -> bool:
        """Whether a diverged process ended more than *patience_s* ago, while the command still runs."""
        reports = {path.name.rpartition("-")[2]: path for path in self.folder.glob("replayed-*")}
        ended = [reports[pid] for pid in map(str, self.notes("diverged")) if pid in reports]
        return any(time() - path.stat().st_mtime > patience_s for path in ended)

    def has_outlived_failure(self, patience_s: float) -> bool:
        """Whether a process failed more than *patience_s* ago, while the command still runs."""
        return any(time() - path.stat().st_mtime > patience_s for path in self.folder.glob("failed-*"))

    @property
    def input_copy(self) -> Path:
        """A copy of the command's standard input, where that is a pipe."""
        return self.folder / "input"

    @property
    def file_index(self) -> Path:
        """The index of the workspace's files."""
        return self.folder / "files"

    @property
    def tree_file(self) -> Path:
        """Through this file the processes share the tree that was recorded last."""
        return self.folder / "latest-tree"

    @property
    def shared_order(self) -> Path:
        """Through this file the processes keep the order in which they take what they share."""
        return self.folder / "shared-order"

    def shared_acts(self) -> list[str]:
        """What was recorded of this order."""
        return self.shared_order.read_text().splitlines() if self.shared_order.exists() else []

    # A process's side

    def orders(self) -> Orders:
        return self._given().orders

    @property
    def began_s(self) -> float:
        """When the command wrote its orders, which is the begin of the run, by the clock."""
        return self._given().began_s

    @property
    def file_began_s(self) -> float:
        """The same by the file system, to compare with the times of other files: its clock may be another."""
        return (self.folder / "orders.json").stat().st_mtime

    def _given(self) -> _Given:
        path = self.folder / "orders.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Given)
        except msgspec.DecodeError as error:
            raise FormatError(f"{error}; have one version of reenact everywhere", file=str(path)) from error

    def connections(self) -> dict[str, Connect]:
        """The connections of this process that the command has seen, by socket."""
        with suppress(OSError):  # there are none, or the process has given up its rights
            text = (self.folder / f"{_CONNECTIONS}-{os.getpid()}").read_text("utf-8")
            seen = [line.split(" ") for line in text.split("\n")[:-1]]
            return {socket: Connect(host, int(port)) for socket, host, port in seen}
        return {}

    def claim(self, seq: int) -> bool:
        """Claim the outcome of the call at event *seq* of a transcript; false if a process has it already."""
        try:
            os.close(os.open(self.folder / f"answered-{seq}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def reach_fork(self) -> None:
        (self.folder / _FORK_REACHED).touch()

    @property
    def is_fork_reached(self) -> bool:
        return (self.folder / _FORK_REACHED).exists()

    def take(self, choose: Callable[[list[str]], str], then: Callable[[str], None]) -> str:
        """Let *choose* pick a first lane, given those taken before; the lock is held until *then* returns."""
        fd = os.open(self.folder / "taken", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            root = choose(os.pread(fd, os.fstat(fd).st_size, 0).decode().split())
            os.write(fd, f"{root}\n".encode())
            then(root)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked meanwhile would keep it beyond the close
            os.close(fd)
        return root

    def count_start(self, words: Sequence[str]) -> int:
        """Return how many processes began with the same command line before this one, and count this one."""
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
        with suppress(StoreError):  # the command says which processes have not reported
            self._write(f"replayed-{os.getpid()}", text)

    def _write(self, name: str, text: bytes) -> None:
        write_whole(self.folder / name, text, temp_folder=self.folder, sync=False)

    def _read_notes(self, kind: str) -> dict[int, bytes]:
        paths = sorted(self.folder.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime_ns)
        return {int(path.name.rpartition("-")[2]): path.read_bytes() for path in paths}


def _read_replayed(text: bytes) -> Replayed:
    stored = msgspec.json.decode(text, type=_ReplayedText)
    return Replayed(stored.answered, receipt_codec.from_bytes(bytes(stored.receipt)), stored.root)


def recorded_processes(began: RunStartData) -> dict[str, ProcessData]:
    """The recorded processes by first lane, in the order of their first calls, children after parents."""
    beside = began.processes if began.processes is not ABSENT else {}
    if began.python is ABSENT and began.upstreams is not ABSENT and not beside:
        return {}  # all its calls came through the gateway
    first = {} if ROOT in beside else {ROOT: ProcessData(ended=True, argv=began.argv, pids=began.pids)}
    return {**first, **{root: beside[root] for root in sorted(beside, key=_sort_key)}}


def _sort_key(root: str) -> tuple[int, str]:
    number = root[: len(root) - len(root.lstrip("0123456789"))]
    return int(number), root
