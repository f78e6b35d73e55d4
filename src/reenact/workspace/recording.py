"""Records the files of a run: scans them before and after calls, and writes an event when they changed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock, RLock, get_ident
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import ReenactError, UsageError
from reenact.formats.workspace import WORKSPACE
from reenact.redaction import Redactor
from reenact.workspace.history import WorkspaceStart
from reenact.workspace.ignore import find_repository, make_rules, rules_above
from reenact.workspace.scan import LIMIT_BYTES, Index, Scanner

Base: TypeAlias = Literal["git"]
_GIT_S: Final = 60.0
_STATE_BYTES: Final = 256
_PATIENCE_S: Final = 5.0
"""A process that holds the lock for longer is taken for a stopped one; nothing waits for the lock again."""
_SEVERAL: Final = -1
"""In place of a process's number: more than one process has scanned."""
# Bound here because seams replace the functions of `os` and `time` while the agent is recorded.
_sleep, _monotonic, _time_ns = time.sleep, time.monotonic, time.time_ns
_open, _close, _pread, _pwrite, _getpid = os.open, os.close, os.pread, os.pwrite, os.getpid


class WorkspaceOrder(msgspec.Struct, frozen=True):
    """Which files to record with a run."""

    root: str
    limit_bytes: int = LIMIT_BYTES
    base: Base | None = None
    """With ``git``, unchanged files of the commit are referred to by their git objects and not stored."""
    leave_out: tuple[str, ...] = ()
    above: tuple[tuple[str, ...], ...] = ()
    """The ignore rules above the folder, as :func:`rules_above` returns them."""
    start: WorkspaceStart | None = None
    """The state at the start, if it has been scanned already."""
    index: str = ""
    """The file with the index of that scan."""
    given: str = ""
    """The folder's path as the user gave it."""
    tree_file: str = ""
    """The file of :class:`LatestTree`, where several processes record the run."""

    @classmethod
    def for_folder(
        cls,
        root: str | Path,
        *,
        limit_bytes: int = LIMIT_BYTES,
        base: Base | None = None,
        leave_out: tuple[str | Path, ...] = (),
    ) -> WorkspaceOrder:
        """Check the arguments and make the order to record *root*."""
        if not os.path.isdir(root):
            what = "is not a folder" if os.path.exists(root) else "is not there"
            raise UsageError(f"{root}: the workspace {what}; name the folder that the run works in")
        if limit_bytes < 0:
            raise UsageError(f"{limit_bytes} bytes: the largest file to keep; choose 0 or more")
        if base not in (None, "git"):
            raise UsageError(f"{base!r}: no such base of a workspace; choose 'git'")
        if base == "git":
            commit_of(os.path.realpath(root))  # raises before anything runs
        places = tuple(os.path.abspath(place) for place in leave_out)
        folder = Path(os.path.realpath(root))
        _refuse_other_than_utf8(str(folder), os.path.abspath(root), *places)
        above = tuple(rules_above(folder, _find_excludes(folder)))
        return cls(str(folder), limit_bytes, base, places, above, given=os.path.abspath(root))

    def scanner(self, put: Callable[[bytes], str], redactor: Redactor | None = None) -> Scanner:
        """A scanner of the folder that starts with the saved index, if there is one."""
        return Scanner(
            Path(self.root),
            put,
            redactor=redactor,
            limit_bytes=self.limit_bytes,
            leave_out=[Path(place) for place in self.leave_out],
            rules=make_rules(self.above),
            index=Index.load(Path(self.index)) if self.index else None,
        )

    def begin(self, scanner: Scanner) -> WorkspaceStart:
        """Scan the folder for the first time."""
        commit, objects = commit_of(self.root) if self.base == "git" else (None, {})
        tree = scanner.take(in_git=objects)
        here = os.path.relpath(os.path.realpath(os.getcwd()), self.root)
        cwd = None if here == os.pardir or here.startswith(os.pardir + os.sep) else here
        _refuse_other_than_utf8(cwd or "")
        return WorkspaceStart(tree, cwd, commit, self.limit_bytes, self.above, len(os.fsencode(self.root)))


def _refuse_other_than_utf8(*places: str) -> None:
    """Raise for a path that a capture cannot store; names below the folder need not be UTF-8."""
    for place in places:
        try:
            place.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(place).decode("utf-8", "backslashreplace")
            raise UsageError(f"{shown}: is not UTF-8; let the run work in another folder") from None


def commit_of(root: str) -> tuple[str, dict[str, str]]:
    """The commit that is checked out in *root*, and by path the git objects of its files there."""
    head = _ask_git(root, "rev-parse", "--verify", "HEAD")
    listed = _ask_git(root, "ls-tree", "-r", "-z", "HEAD")
    objects: dict[str, str] = {}
    for line in listed.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        if facts.startswith(b"100"):  # regular files; our trees contain the targets of links
            objects[os.fsdecode(path)] = facts.split(b" ")[2].decode()
    return head.decode().strip(), objects


def _find_excludes(root: Path) -> list[Path]:
    """The user's ignore file, then that of the repository around *root*."""
    top = find_repository(root)
    if top is None:
        return []
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found = [config / "git" / "ignore", top / ".git" / "info" / "exclude"]
    questions = (["config", "--type=path", "core.excludesFile"], ["rev-parse", "--git-path", "info/exclude"])
    for number, words in enumerate(questions):
        with suppress(UsageError):  # not set, or git is not installed: the default path holds
            place = os.fsdecode(_ask_git(str(root), *words)).rstrip("\n")
            found[number] = root / place
    return found


def _ask_git(root: str, *words: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", root, *words],
            capture_output=True,
            check=False,
            timeout=_GIT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{root}: git cannot be asked for the commit: {error}") from error
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise UsageError(f"{root}: has no commit to start from: {reason}; leave --workspace-base out")
    return done.stdout


class _LastScan(msgspec.Struct, frozen=True):
    """What the processes of a run know of each other's scans."""

    number: int
    """How many trees have been recorded."""
    scanner: int = 0
    """The number of the only process that has scanned, 0 if there was none, or ``_SEVERAL``."""
    tree: str = ""
    """The tree that was recorded last."""


class LatestTree:
    """The tree that the processes of a run recorded last, in a file that is locked during each scan.

    So a process knows whether another has recorded a tree since its own last scan, and all trees have one
    order. Without the file, which goes with the command, a process records alone. The file is opened for each
    scan, because some agents close descriptors that they did not open.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._fd: int | None = None
        self._patience_s = _PATIENCE_S
        self._seen = 0
        """How many trees had been recorded at this process's last scan."""
        self._held_since_ms = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the other processes from scanning, for the block."""
        try:
            fd = _open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            self._wait(fd)
            self._fd = fd
            self._held_since_ms = _time_ns() // 1_000_000
            self._note_scanner()
            yield
        finally:
            self._fd = None
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked meanwhile would keep it beyond the close
                _close(fd)

    def _wait(self, fd: int) -> None:
        give_up_s = _monotonic() + self._patience_s
        pause_s = 0.0002
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if _monotonic() >= give_up_s:
                    self._patience_s = 0.0
                    return
                _sleep(pause_s)
                pause_s = min(2 * pause_s, 0.005)
            else:
                return

    @property
    def has_newer(self) -> bool:
        """Whether another process has recorded a tree since this one's last scan."""
        return self._read().number != self._seen

    def wait_for_next_moment(self) -> None:
        """Once several processes scan, wait for the millisecond after the one in which this scan began.

        The processes' logs are merged by these, so a tree must not share one with an event before it.
        """
        if self._read().scanner == _SEVERAL:
            left_ms = self._held_since_ms + 1 - _time_ns() / 1_000_000
            if 0 < left_ms <= 1:
                _sleep(left_ms / 1000)

    def note_recorded(self, tree: str) -> None:
        """Note that *tree* is recorded now; the same tree again is no news for the other processes."""
        last = self._read()
        self._seen = last.number + (tree != last.tree)
        self._write(_LastScan(self._seen, last.scanner, tree))

    def _note_scanner(self) -> None:
        last, own = self._read(), _getpid()
        if last.scanner not in (own, _SEVERAL):
            scanner = _SEVERAL if last.scanner else own
            self._write(_LastScan(last.number, scanner, last.tree))

    def _read(self) -> _LastScan:
        text = _pread(self._fd, _STATE_BYTES, 0).decode() if self._fd is not None else ""
        if not text:
            return _LastScan(self._seen)
        number, scanner, tree = text.split(" ")
        return _LastScan(int(number), int(scanner), tree)

    def _write(self, last: _LastScan) -> None:
        if self._fd is not None:
            with suppress(OSError):  # the disk is full
                _pwrite(self._fd, f"{last.number:020d} {last.scanner:020d} {last.tree}".encode(), 0)


class WorkspaceRecorder:
    """Records the trees of a run in one of its processes, called from any number of threads.

    One scan serves all calls that asked for one while the scan before it was running.
    """

    def __init__(
        self,
        scanner: Scanner,
        tree: str,
        write: Callable[[dict[str, JsonValue]], None],
        warn: Callable[[str], None],
        find_recorded: Callable[[str], str] = str,
        shared: LatestTree | None = None,
    ) -> None:
        """*tree* is the one at the start; *write* appends the data of an event.

        *find_recorded* maps a tree to the recorded one that it equals up to left-out files. *shared* is for a
        run that several processes record.
        """
        self._shared = shared
        self._find_recorded = find_recorded
        self._scanner = scanner
        self._write = write
        self._warn = warn
        self.tree = tree
        self._scan_lock = RLock()
        self._scanning_thread = 0
        self._queue_lock = Lock()
        self._requested = 0
        self._served = 0
        self._waiting: list[tuple[str, str]] = []
        """The calls that wait for a scan: ``before`` or ``after``, and the id."""
        self._is_overtaken = False
        """Whether a call asked during a running scan, which may have written its event since."""
        self._open: dict[str, str | None] = {}
        """The open calls, each with its parent call."""
        self._has_failed = False

    def scan_before(self, call_id: str, parent: str | None) -> None:
        """Scan before a call is made."""
        self._request_scan("before", call_id)
        self.note_begin(call_id, parent)

    def note_begin(self, call_id: str, parent: str | None) -> None:
        """Note a call that needs no scan before it."""
        self._open[call_id] = parent

    def scan_after(self, call_id: str, *, may_write: bool) -> None:
        """Note that a call has returned, and scan if it *may_write* files."""
        self._open.pop(call_id, None)
        if may_write:
            self._request_scan("after", call_id)

    def end(self) -> str | None:
        """The tree at the end; ``None`` if it cannot be read."""
        self._request_scan("", "")
        return None if self._has_failed else self.tree

    def _request_scan(self, when: str, call_id: str) -> None:
        with self._queue_lock:
            self._requested += 1
            mine = self._requested
            if when:
                self._waiting.append((when, call_id))
                self._is_overtaken |= self._scanning_thread != 0
        if self._scanning_thread == get_ident():  # a finalizer made a call during this thread's scan
            return
        with self._scan_lock:
            if self._served >= mine:
                return
            self._scanning_thread = get_ident()
            try:
                self._scan_locked()
            finally:
                self._scanning_thread = 0

    def _scan_locked(self) -> None:
        with nullcontext() if self._shared is None else self._shared.hold():
            self._scan_and_record()

    def _scan_and_record(self) -> None:
        with self._queue_lock:
            covered, waiting, self._waiting = self._requested, self._waiting, []
            is_overtaken, self._is_overtaken = self._is_overtaken, False
        for_calls = {call_id for _, call_id in waiting}
        others = self._count_others(for_calls)
        try:
            tree = self._find_recorded(self._scanner.take())
        except ReenactError as error:
            if not self._has_failed:
                self._has_failed = True
                self._warn(f"{error}; its files are not recorded until it can be")
                reason = str(error).removeprefix(f"{self._scanner.root}: ")  # captures contain no local path
                self._write_event({"tree": self.tree, "unreadable": reason}, waiting, others)
            self._served = covered
            return
        is_back, self._has_failed = self._has_failed, False
        is_news = self._shared is not None and self._shared.has_newer
        if tree != self.tree or is_overtaken or is_news or is_back:
            if self._shared is not None:
                self._shared.wait_for_next_moment()
            self._write_event({"tree": tree}, waiting, others)
            self.tree = tree
            if self._shared is not None:
                self._shared.note_recorded(tree)
        self._served = covered

    def _write_event(self, details: dict[str, Any], waiting: list[tuple[str, str]], others: int) -> None:
        """Write an event for the *waiting* calls; *others* is the number of other open calls."""
        for when in ("before", "after"):
            calls = [call_id for at, call_id in waiting if at == when]
            details |= {when: calls} if calls else {}
        details |= {"open": others} if others else {}
        self._write({"type": WORKSPACE, "derived": True, "details": details})

    def _count_others(self, calls: set[str]) -> int:
        """How many calls are open besides *calls* and their ancestors."""
        known = dict(self._open)
        related: set[str] = set(calls)
        for call in calls:
            parent = known.get(call)
            while parent is not None and parent not in related:
                related.add(parent)
                parent = known.get(parent)
        return sum(call not in related for call in known)
