"""The files of a run that is being recorded: looked at before and after its calls, told when they changed."""

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
_TOLD_BYTES: Final = 256
_PATIENCE_S: Final = 5.0
"""A process that looks for longer was stopped, and nobody waits for it again."""
# Bound here because a capture may replace the names in `os` and `time` while it records what the agent does.
_sleep, _monotonic, _time_ns = time.sleep, time.monotonic, time.time_ns
_open, _close, _pread, _pwrite = os.open, os.close, os.pread, os.pwrite


class WorkspaceOrder(msgspec.Struct, frozen=True):
    """Which files to record with a run."""

    root: str
    limit_bytes: int = LIMIT_BYTES
    base: Base | None = None
    """Where ``git``, files that are as in the commit are named by their objects and not stored."""
    leave_out: tuple[str, ...] = ()
    above: tuple[tuple[str, ...], ...] = ()
    """What ignore files above the folder say, as :func:`rules_above` has it."""
    start: WorkspaceStart | None = None
    """The tree at the start, where that was looked at before."""
    index: str = ""
    """The file that has what that look learned."""
    given: str = ""
    """How the folder was named."""
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
        """The order to record *root*, which must be a folder."""
        if not os.path.isdir(root):
            what = "is not a folder" if os.path.exists(root) else "is not there"
            raise UsageError(f"{root}: the workspace {what}; name the folder that the run works in")
        if limit_bytes < 0:
            raise UsageError(f"{limit_bytes} bytes: the largest file to keep; choose 0 or more")
        if base not in (None, "git"):
            raise UsageError(f"{base!r}: no such base of a workspace; choose 'git'")
        if base == "git":
            commit_of(os.path.realpath(root))  # what is wrong with it is said before anything runs
        places = tuple(os.path.abspath(place) for place in leave_out)
        folder = Path(os.path.realpath(root))
        _refuse_other_than_utf8(str(folder), os.path.abspath(root), *places)
        above = tuple(rules_above(folder, _find_excludes(folder)))
        return cls(str(folder), limit_bytes, base, places, above, given=os.path.abspath(root))

    def scanner(self, put: Callable[[bytes], str], redactor: Redactor | None = None) -> Scanner:
        """What looks at the folder, from what is known of it."""
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
        """Look at the folder for the first time."""
        commit, objects = commit_of(self.root) if self.base == "git" else (None, {})
        tree = scanner.take(in_git=objects)
        here = os.path.relpath(os.path.realpath(os.getcwd()), self.root)
        cwd = None if here == os.pardir or here.startswith(os.pardir + os.sep) else here
        _refuse_other_than_utf8(cwd or "")
        return WorkspaceStart(tree, cwd, commit, self.limit_bytes, self.above, len(os.fsencode(self.root)))


def _refuse_other_than_utf8(*places: str) -> None:
    """Raise for a place that no recording can name; what is below the folder may be called as it likes."""
    for place in places:
        try:
            place.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(place).decode("utf-8", "backslashreplace")
            raise UsageError(f"{shown}: is not UTF-8; let the run work in another folder") from None


def commit_of(root: str) -> tuple[str, dict[str, str]]:
    """The commit that is checked out in *root*, and its files below it with the names of their objects."""
    head = _ask_git(root, "rev-parse", "--verify", "HEAD")
    listed = _ask_git(root, "ls-tree", "-r", "-z", "HEAD")
    objects: dict[str, str] = {}
    for line in listed.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        if facts.startswith(b"100"):  # files; links are in the tree itself
            objects[os.fsdecode(path)] = facts.split(b" ")[2].decode()
    return head.decode().strip(), objects


def _find_excludes(root: Path) -> list[Path]:
    """The files in which a user and the repository around *root* say what is ignored, the latter last."""
    top = find_repository(root)
    if top is None:
        return []
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found = [config / "git" / "ignore", top / ".git" / "info" / "exclude"]
    questions = (["config", "--type=path", "core.excludesFile"], ["rev-parse", "--git-path", "info/exclude"])
    for number, words in enumerate(questions):
        with suppress(UsageError):  # not set, or there is no git: it is where it is by default
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


class LatestTree:
    """What the processes of a run told of its files last: a file that one of them holds while it looks.

    So each knows whether another has told something since it looked, and all that they tell is in one order.
    A process without the file is alone: the command is over. It is opened for each look, because an agent
    may close what it did not open itself.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._fd: int | None = None
        self._patience_s = _PATIENCE_S
        self._seen = 0
        """How many trees were told when this process looked last."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the other processes from looking for the block."""
        try:
            fd = _open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            self._wait(fd)
            self._fd = fd
            yield
        finally:
            self._fd = None
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would leave it to a child forked meanwhile
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
    def is_news(self) -> bool:
        """Whether another process has told a tree since this one looked."""
        return self._read()[0] != self._seen

    def wait_for_next_moment(self) -> None:
        """Let the millisecond pass in which something was told: by these the logs of processes are joined."""
        left_ms = self._read()[1] + 1 - _time_ns() / 1_000_000
        if 0 < left_ms <= 1:
            _sleep(left_ms / 1000)

    def tell(self, tree: str) -> None:
        """Say that *tree* was told now; one that is told again is no news for the others."""
        number, _, before = self._read()
        number += tree != before
        if self._fd is not None:
            with suppress(OSError):  # a disk that is full
                _pwrite(self._fd, f"{number:020d} {_time_ns() // 1_000_000:020d} {tree}".encode(), 0)
                self._seen = number

    def _read(self) -> tuple[int, int, str]:
        """How many trees were told, when the last one was, and which it is."""
        text = _pread(self._fd, _TOLD_BYTES, 0).decode() if self._fd is not None else ""
        if not text:
            return self._seen, 0, ""
        number, at_ms, tree = text.split()
        return int(number), int(at_ms), tree


class WorkspaceRecorder:
    """Tells the trees of one run, in one process of it, from any number of threads.

    Who asks while somebody looks is served by the next look, together with all who asked meanwhile.
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

        *find_recorded* knows of a tree which recorded one it is, up to what is left out. *shared* is what
        the other processes of the run tell.
        """
        self._shared = shared
        self._find_recorded = find_recorded
        self._scanner = scanner
        self._write = write
        self._warn = warn
        self.tree = tree
        self._looking = RLock()
        self._looker = 0
        self._asking = Lock()
        self._asked = 0
        self._answered = 0
        self._waiting: list[tuple[str, str]] = []
        """Which calls wait for a look: before or after them, and their ids."""
        self._is_overtaken = False
        """Whether one of them came back in the middle of a look, which may have told a tree meanwhile."""
        self._open: dict[str, str | None] = {}
        """The calls under way, each with the one inside which it was made."""
        self._has_failed = False

    def before(self, call_id: str, parent: str | None) -> None:
        """A call is about to be made."""
        self._look("before", call_id)
        self.began(call_id, parent)

    def began(self, call_id: str, parent: str | None) -> None:
        """A call is under way before which nobody need look."""
        self._open[call_id] = parent

    def after(self, call_id: str, *, may_write: bool) -> None:
        """A call has come back; only where it *may_write* files it is worth a look."""
        self._open.pop(call_id, None)
        if may_write:
            self._look("after", call_id)

    def end(self) -> str | None:
        """The tree at the end; ``None`` where it cannot be read."""
        self._look("", "")
        return None if self._has_failed else self.tree

    def _look(self, when: str, call_id: str) -> None:
        with self._asking:
            self._asked += 1
            mine = self._asked
            if when:
                self._waiting.append((when, call_id))
                self._is_overtaken |= self._looker != 0
        if self._looker == get_ident():  # a finaliser that makes a call in the middle of a look
            return
        with self._looking:
            if self._answered >= mine:
                return
            self._looker = get_ident()
            try:
                self._look_now()
            finally:
                self._looker = 0

    def _look_now(self) -> None:
        with nullcontext() if self._shared is None else self._shared.held():
            self._look_in_turn()

    def _look_in_turn(self) -> None:
        with self._asking:
            covered, waiting, self._waiting = self._asked, self._waiting, []
            is_overtaken, self._is_overtaken = self._is_overtaken, False
        for_calls = {call_id for _, call_id in waiting}
        others = self._count_others(for_calls)
        try:
            tree = self._find_recorded(self._scanner.take())
        except ReenactError as error:
            if not self._has_failed:
                self._has_failed = True
                self._warn(f"{error}; its files are not recorded until it can be")
                reason = str(error).removeprefix(f"{self._scanner.root}: ")  # no place is told
                self._tell({"tree": self.tree, "unreadable": reason}, waiting, others)
            self._answered = covered
            return
        is_back, self._has_failed = self._has_failed, False
        is_news = self._shared is not None and self._shared.is_news
        if tree != self.tree or is_overtaken or is_news or is_back:
            if self._shared is not None and is_news:
                self._shared.wait_for_next_moment()
            self._tell({"tree": tree}, waiting, others)
            self.tree = tree
            if self._shared is not None:
                self._shared.tell(tree)
        self._answered = covered

    def _tell(self, details: dict[str, Any], waiting: list[tuple[str, str]], others: int) -> None:
        """Write an event, for the calls that are *waiting* while *others* are under way."""
        for when in ("before", "after"):
            calls = [call_id for at, call_id in waiting if at == when]
            details |= {when: calls} if calls else {}
        details |= {"open": others} if others else {}
        self._write({"type": WORKSPACE, "derived": True, "details": details})

    def _count_others(self, calls: set[str]) -> int:
        """How many calls are under way beside *calls* and those inside which these were made."""
        known = dict(self._open)
        related: set[str] = set(calls)
        for call in calls:
            parent = known.get(call)
            while parent is not None and parent not in related:
                related.add(parent)
                parent = known.get(parent)
        return sum(call not in related for call in known)
