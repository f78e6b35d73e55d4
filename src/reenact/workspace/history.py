"""The trees in a capture: the state of the run's files at each event."""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import finalize

import msgspec

from reenact.canonical import digest_of_bytes, is_digest
from reenact.errors import FormatError, UsageError
from reenact.formats.workspace import WORKSPACE, Tree, TreeEntry, read_tree
from reenact.store.reader import CaptureReader, EventReader
from reenact.workspace.compare import NotInGit
from reenact.workspace.restore import Restored, restore_tree

TREE_MARK: Final = b'"workspace"'
"""In the text of every event that has a tree."""
_CACHED_TREES: Final = 4096
_OFFLINE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Git must not fetch, not even the missing objects of a partial clone."""


class WorkspaceStart(msgspec.Struct, frozen=True):
    """The workspace as ``run_start`` describes it."""

    tree: str
    cwd: str | None = None
    """The working directory relative to the workspace's root; ``None`` if it was outside."""
    commit: str | None = None
    """The git commit whose unchanged files are not stored in the capture."""
    limit_bytes: int | None = msgspec.field(default=None, name="limitBytes")
    above: tuple[tuple[str, ...], ...] = ()
    """The ignore rules above the workspace, as :func:`rules_above` returns them."""
    path_bytes: int | None = msgspec.field(default=None, name="pathBytes")
    """The length of the root's path."""


class TreeState(msgspec.Struct, frozen=True):
    """The tree of the files from one event on."""

    seq: int
    """The first event with this tree: the outcome of the call that changed the files."""
    recorded_at: int
    """The event that records the tree."""
    tree: str
    before: tuple[str, ...] = ()
    """Ids of the calls that were about to be made."""
    after: tuple[str, ...] = ()
    """Ids of the calls that had just returned."""
    is_shared: bool = False
    """Whether other calls were open, so that any of them may have changed the files."""
    unreadable: str = ""
    """Why the files could not be read from here on; the tree is then the last known one."""


class _Details(msgspec.Struct):
    tree: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    open: int = 0
    unreadable: str = ""


class _Data(msgspec.Struct, rename="camel"):
    type: str | None = None
    call_id: str | None = None
    details: msgspec.Raw = msgspec.Raw()
    workspace: WorkspaceStart | None = None


class _TreeHead(msgspec.Struct):
    type: str
    data: _Data


_decode: Final = msgspec.json.Decoder().decode
_decode_head: Final = msgspec.json.Decoder(_TreeHead).decode
_decode_details: Final = msgspec.json.Decoder(_Details).decode
_OUTCOMES: Final = frozenset({"tool_result", "llm_response", "nondeterministic"})


class WorkspaceHistory:
    """The states of the files in one capture; raises :class:`UsageError` if files were not recorded."""

    def __init__(
        self,
        reader: EventReader,
        *,
        repository: Path | None = None,
        aside: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        """*repository* and *aside* are those of :class:`GitObjects`."""
        self.reader = reader
        self._git = GitObjects(reader.path, repository, aside)
        self.start, self.states, self._by_outcome = _read_states(reader)
        self.read_tree = lru_cache(_CACHED_TREES)(self._read_tree)
        end = reader.manifest.workspaceEnd if isinstance(reader, CaptureReader) else None
        self.knows_end = isinstance(end, str)
        self.end_tree: str = end if isinstance(end, str) else self.states[-1].tree
        """The last known tree."""
        self._recorded_at = [state.recorded_at for state in self.states]

    @staticmethod
    def has_one(reader: EventReader) -> bool:
        """Whether the capture records files."""
        return len(reader) > 0 and _read_start(reader) is not None

    @property
    def commit(self) -> str | None:
        return self.start.commit

    def state_at(self, seq: int) -> TreeState:
        """The state of the files after the event *seq*."""
        if not 1 <= seq <= len(self.reader):
            raise UsageError(f"{self.reader.given}: there is no event {seq}; choose 1 to {len(self.reader)}")
        return self._by_outcome.get(seq) or self.states[max(0, bisect_right(self._recorded_at, seq) - 1)]

    def tree_before(self, seq: int) -> str:
        """The tree just before the event *seq*."""
        return self._state_before(seq).tree

    def is_known_before(self, seq: int) -> bool:
        """Whether the files could be read just before the event *seq*."""
        return not self._state_before(seq).unreadable

    def _state_before(self, seq: int) -> TreeState:
        return self.states[max(0, bisect_right(self._recorded_at, seq - 1) - 1)]

    def has_blob(self, digest: str) -> bool:
        """Whether the capture stores the blob."""
        return self.reader.has_blob(digest)

    def tree_at(self, seq: int | None) -> str:
        """The tree at the event *seq*, or at the end; raises :class:`UsageError` if it could not be read."""
        is_end = seq is None or seq == len(self.reader)
        if is_end and self.knows_end:
            return self.end_tree
        state = self.states[-1] if seq is None or is_end else self.state_at(seq)
        if state.unreadable:
            when = "at the end" if is_end else f"at event {seq}"
            raise UsageError(
                f"{self.reader.given}: {when} the files could not be read: {state.unreadable}; "
                f"choose an event before {state.recorded_at} with --at"
            )
        return state.tree

    def content(self, entry: TreeEntry) -> bytes:
        """The content of the file *entry*."""
        is_in_git = entry.git and not self.has_blob(entry.digest)
        return self._git.content(entry) if is_in_git else self.reader.blob(entry.digest)

    def restore(self, digest: str, folder: Path, *, refuse_links_out: bool = False) -> Restored:
        """Write the files of the tree *digest* to *folder*, which must be new or empty."""
        with self.reader.open_blobs() as blob:

            def content(entry: TreeEntry) -> bytes:
                return self._git.content(entry) if entry.git else blob(entry.digest)

            return restore_tree(self.read_tree, content, digest, folder, refuse_links_out=refuse_links_out)

    def _read_tree(self, digest: str) -> Tree:
        file = f"{self.reader.given}/blobs: {digest}"
        return read_tree(self.reader.blob(digest), file=file)


class GitObjects:
    """Reads files of a capture from git, through one ``git cat-file`` process per repository."""

    def __init__(
        self,
        capture: str | Path,
        repository: Path | None = None,
        aside: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        """Git looks in *repository*, by default the working directory, then in the folder of *capture*.

        During a run, *aside* is entered for each lookup, so that git is not recorded, and git ends after it.
        """
        self._places = dict.fromkeys(map(os.path.abspath, (repository or Path.cwd(), capture)))
        self._aside = aside
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = Lock()

    def content(self, entry: TreeEntry) -> bytes:
        """The content of the file *entry*; raises :class:`NotInGit` if no repository has it."""
        with self._lock, (self._aside or nullcontext)():
            try:
                for place in self._places:
                    data = self._read_object(place, entry)
                    if data is not None and digest_of_bytes(data) == entry.digest:
                        return data
            finally:
                if self._aside is not None:
                    self._end_processes()
        name, places = os.fsdecode(entry.name), " and ".join(self._places)
        raise NotInGit(
            f"{name}: is only kept by git, and there is no object {entry.git} in {places}; "
            "name the repository with --repository DIR, or run this inside it"
        )

    def _read_object(self, place: str, entry: TreeEntry) -> bytes | None:
        git = self._processes.get(place) or self._start(place)
        if git is None or git.stdin is None or git.stdout is None:
            return None
        try:
            git.stdin.write(f"{entry.git}\n".encode())
            git.stdin.flush()
        except OSError:  # git has ended: this is no repository
            return None
        head = git.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            return None
        if int(head[2]) != entry.size_bytes:  # another content, perhaps a huge one: do not read it
            self._end_processes()
            return None
        return git.stdout.read(entry.size_bytes + 1)[:-1]

    def _start(self, place: str) -> subprocess.Popen[bytes] | None:
        try:
            git = subprocess.Popen(
                ["git", "-C", place, "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _OFFLINE,
            )
        except OSError as error:
            raise NotInGit(f"git cannot be asked for a file: {error.strerror}; install git") from error
        self._processes[place] = git
        finalize(self, _end_process, git)
        return git

    def _end_processes(self) -> None:
        while self._processes:
            _end_process(self._processes.popitem()[1])


def _end_process(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _read_start(reader: EventReader) -> WorkspaceStart | None:
    if TREE_MARK not in reader.line(1):
        return None
    start = _read_head(reader, 1).data.workspace
    if start is not None and not is_digest(start.tree):
        path = "$.data.workspace.tree"
        raise FormatError("must be a digest", file=reader.events_file, line=1, json_path=path)
    return start


def _read_head(reader: EventReader, seq: int) -> _TreeHead:
    try:
        return _decode_head(reader.line(seq))
    except msgspec.DecodeError as error:
        raise FormatError(str(error), file=reader.events_file, line=seq) from None


def _read_states(reader: EventReader) -> tuple[WorkspaceStart, list[TreeState], dict[int, TreeState]]:
    """Read the start, all states in order, and the states that calls left behind, by the outcome's event."""
    start = _read_start(reader) if len(reader) else None
    if start is None:
        raise UsageError(f"{reader.given}: has no files; record with --workspace")
    states = [TreeState(1, 1, start.tree)]
    outcomes: dict[str, int] = {}
    by_outcome: dict[int, TreeState] = {}
    for seq in range(2, len(reader) + 1):
        line = reader.line(seq)
        if b'"callId"' not in line and TREE_MARK not in line:
            continue
        head = _read_head(reader, seq)
        if head.type == "state_mutation" and head.data.type == WORKSPACE:
            states.append(state := _read_state(reader, seq, bytes(head.data.details), outcomes))
            by_outcome |= {outcomes[call]: state for call in state.after if call in outcomes}
        elif head.data.call_id is not None and head.type in _OUTCOMES:
            outcomes[head.data.call_id] = seq  # the second of two events with this id is the outcome
    return start, states, by_outcome


def _read_state(reader: EventReader, seq: int, details: bytes, outcomes: dict[str, int]) -> TreeState:
    try:
        state = _decode_details(details)
    except msgspec.DecodeError as error:
        raise FormatError(str(error), file=reader.events_file, line=seq, json_path="$.data.details") from None
    if not is_digest(state.tree):
        path = "$.data.details.tree"
        raise FormatError("must be a digest", file=reader.events_file, line=seq, json_path=path)
    since = min([outcomes[call] for call in state.after if call in outcomes], default=seq)
    return TreeState(since, seq, state.tree, state.before, state.after, state.open > 0, state.unreadable)


def tree_in_line(line: bytes) -> str | None:
    """The tree in the event of *line*, if it has one."""
    return tree_in_event(_decode(line)) if TREE_MARK in line else None


def tree_in_event(event: object) -> str | None:
    """The tree in a decoded event, if it has one."""
    data = event.get("data") if isinstance(event, dict) else None
    if not isinstance(data, dict):
        return None
    details = data.get("details") if data.get("type") == WORKSPACE else data.get("workspace")
    tree = details.get("tree") if isinstance(details, dict) else None
    return tree if isinstance(tree, str) else None


def blobs_below(
    read_blob: Callable[[str], bytes],
    tree: str,
    seen: set[str],
    is_wanted: Callable[[str], bool] = lambda digest: True,  # noqa: ARG005
) -> Iterator[str]:
    """Yield all blobs of *tree*, including its own, that are not in *seen*, and add them to it.

    Trees for which *is_wanted* is false are skipped with all their blobs.
    """
    waiting = [tree]
    while waiting:
        digest = waiting.pop()
        followed = f"{digest}/"  # a file may have the same content as a tree, and is not followed
        if followed in seen or not is_wanted(digest):
            continue
        seen |= {digest, followed}
        yield digest
        for entry in read_tree(read_blob(digest), file=digest):
            if entry.kind == "folder":
                waiting.append(entry.digest)
            elif entry.kind == "file" and not entry.git and entry.digest not in seen:
                seen.add(entry.digest)
                yield entry.digest
