"""The trees of a capture: which one the files were at which event."""

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

_MARK: Final = b'"workspace"'
_CACHED_TREES: Final = 4096
_STAYS_HERE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Git fetches nothing for us, not even from where a partial clone has the rest."""


class WorkspaceStart(msgspec.Struct, frozen=True):
    """What ``run_start`` says of the workspace."""

    tree: str
    cwd: str | None = None
    """Where the run began, from the workspace's root; ``None`` where that was outside."""
    commit: str | None = None
    """The commit of which the capture holds no files but those that differ."""
    limit_bytes: int | None = msgspec.field(default=None, name="limitBytes")
    above: tuple[tuple[str, ...], ...] = ()
    """What ignore files above the workspace say, as :func:`rules_above` has it."""
    path_bytes: int | None = msgspec.field(default=None, name="pathBytes")
    """How long the path of its root was."""


class TreeState(msgspec.Struct, frozen=True):
    """The tree from one event on."""

    seq: int
    """The first event at which the files are so: the outcome of the call that made them."""
    told_at: int
    """The event that says so."""
    tree: str
    before: tuple[str, ...] = ()
    """Ids of the calls that were about to be made."""
    after: tuple[str, ...] = ()
    """Ids of the calls that had just come back."""
    is_shared: bool = False
    """Whether other calls were under way, so that the moment is nobody's own."""
    unreadable: str = ""
    """Why nobody knows the files from here on; the tree is the last one that was known."""


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


class _Head(msgspec.Struct):
    type: str
    data: _Data


_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_details: Final = msgspec.json.Decoder(_Details).decode
_OUTCOMES: Final = frozenset({"tool_result", "llm_response", "nondeterministic"})


class WorkspaceHistory:
    """The states of the files in one capture; :class:`UsageError` where it has none."""

    def __init__(
        self,
        reader: EventReader,
        *,
        repository: Path | None = None,
        aside: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        """*repository* and *aside* are as :class:`GitObjects` has them."""
        self.reader = reader
        self._git = GitObjects(reader.path, repository, aside)
        self.start, self.states, self._by_outcome = _read_states(reader)
        self.read_tree = lru_cache(_CACHED_TREES)(self._read_tree)
        end = reader.manifest.workspaceEnd if isinstance(reader, CaptureReader) else None
        self.knows_end = isinstance(end, str)
        self.end_tree: str = end if isinstance(end, str) else self.states[-1].tree
        """The last tree that is known."""
        self._told_at = [state.told_at for state in self.states]

    @staticmethod
    def has_one(reader: EventReader) -> bool:
        """Whether the files were recorded too."""
        return len(reader) > 0 and _begin(reader) is not None

    @property
    def commit(self) -> str | None:
        return self.start.commit

    def state_at(self, seq: int) -> TreeState:
        """The files as they were when the event *seq* had happened."""
        if not 1 <= seq <= len(self.reader):
            raise UsageError(f"{self.reader.given}: there is no event {seq}; choose 1 to {len(self.reader)}")
        return self._by_outcome.get(seq) or self.states[max(0, bisect_right(self._told_at, seq) - 1)]

    def tree_before(self, seq: int) -> str:
        """The tree when the event *seq* was about to happen."""
        return self._state_before(seq).tree

    def is_known_before(self, seq: int) -> bool:
        """Whether the files could be read then."""
        return not self._state_before(seq).unreadable

    def _state_before(self, seq: int) -> TreeState:
        return self.states[max(0, bisect_right(self._told_at, seq - 1) - 1)]

    def has_blob(self, digest: str) -> bool:
        """Whether the capture holds the blob."""
        return self.reader.has_blob(digest)

    def tree_at(self, seq: int | None) -> str:
        """The tree at the event *seq*, or the last one; :class:`UsageError` where it could not be read."""
        is_end = seq is None or seq == len(self.reader)
        if is_end and self.knows_end:
            return self.end_tree
        state = self.states[-1] if seq is None or is_end else self.state_at(seq)
        if state.unreadable:
            when = "at the end" if is_end else f"at event {seq}"
            raise UsageError(
                f"{self.reader.given}: {when} the files could not be read: {state.unreadable}; "
                f"choose an event before {state.told_at} with --at"
            )
        return state.tree

    def content(self, entry: TreeEntry) -> bytes:
        """What the file of *entry* holds."""
        is_in_git = entry.git and not self.has_blob(entry.digest)
        return self._git.content(entry) if is_in_git else self.reader.blob(entry.digest)

    def restore(self, digest: str, folder: Path, *, refuse_links_out: bool = False) -> Restored:
        """Put the tree *digest* into *folder*, which must be new or empty."""
        with self.reader.open_blobs() as blob:

            def content(entry: TreeEntry) -> bytes:
                return self._git.content(entry) if entry.git else blob(entry.digest)

            return restore_tree(self.read_tree, content, digest, folder, refuse_links_out=refuse_links_out)

    def _read_tree(self, digest: str) -> Tree:
        file = f"{self.reader.given}/blobs: {digest}"
        return read_tree(self.reader.blob(digest), file=file)


class GitObjects:
    """What git has of a capture's files, asked for one by one of one process at a time."""

    def __init__(
        self,
        capture: str | Path,
        repository: Path | None = None,
        aside: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        """Git is asked in *repository*, by default where this process works, then where the *capture* lies.

        In the midst of a run it is asked within *aside*, as what is no part of that run, and left at once.
        """
        self._places = dict.fromkeys(map(os.path.abspath, (repository or Path.cwd(), capture)))
        self._aside = aside
        self._asking: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = Lock()

    def content(self, entry: TreeEntry) -> bytes:
        """What the file of *entry* holds; :class:`NotInGit` where no repository has that."""
        with self._lock, (self._aside or nullcontext)():
            try:
                for place in self._places:
                    data = self._ask(place, entry)
                    if data is not None and digest_of_bytes(data) == entry.digest:
                        return data
            finally:
                if self._aside is not None:
                    self._leave()
        name, places = os.fsdecode(entry.name), " and ".join(self._places)
        raise NotInGit(
            f"{name}: is only kept by git, and there is no object {entry.git} in {places}; "
            "name the repository with --repository DIR, or run this inside it"
        )

    def _ask(self, place: str, entry: TreeEntry) -> bytes | None:
        git = self._asking.get(place) or self._start(place)
        if git is None or git.stdin is None or git.stdout is None:
            return None
        try:
            git.stdin.write(f"{entry.git}\n".encode())
            git.stdin.flush()
        except OSError:  # this is no repository
            return None
        head = git.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            return None
        if int(head[2]) != entry.size_bytes:  # not what was recorded; and nobody asked for so much
            self._leave()
            return None
        return git.stdout.read(entry.size_bytes + 1)[:-1]

    def _start(self, place: str) -> subprocess.Popen[bytes] | None:
        try:
            git = subprocess.Popen(
                ["git", "-C", place, "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _STAYS_HERE,
            )
        except OSError as error:
            raise NotInGit(f"git cannot be asked for a file: {error.strerror}; install git") from error
        self._asking[place] = git
        finalize(self, _end_process, git)
        return git

    def _leave(self) -> None:
        while self._asking:
            _end_process(self._asking.popitem()[1])


def _end_process(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _begin(reader: EventReader) -> WorkspaceStart | None:
    if _MARK not in reader.line(1):
        return None
    start = _read_head(reader, 1).data.workspace
    if start is not None and not is_digest(start.tree):
        path = "$.data.workspace.tree"
        raise FormatError("must be a digest", file=reader.events_file, line=1, json_path=path)
    return start


def _read_head(reader: EventReader, seq: int) -> _Head:
    try:
        return _decode_head(reader.line(seq))
    except msgspec.DecodeError as error:
        raise FormatError(str(error), file=reader.events_file, line=seq) from None


def _read_states(reader: EventReader) -> tuple[WorkspaceStart, list[TreeState], dict[int, TreeState]]:
    """The start, all states as they were told, and those that calls left behind by the events of these."""
    start = _begin(reader) if len(reader) else None
    if start is None:
        raise UsageError(f"{reader.given}: has no files; record with --workspace")
    states = [TreeState(1, 1, start.tree)]
    outcomes: dict[str, int] = {}
    by_outcome: dict[int, TreeState] = {}
    for seq in range(2, len(reader) + 1):
        line = reader.line(seq)
        if b'"callId"' not in line and _MARK not in line:
            continue
        head = _read_head(reader, seq)
        if head.type == "state_mutation" and head.data.type == WORKSPACE:
            states.append(state := _read_state(reader, seq, bytes(head.data.details), outcomes))
            by_outcome |= {outcomes[call]: state for call in state.after if call in outcomes}
        elif head.data.call_id is not None and head.type in _OUTCOMES:
            outcomes[head.data.call_id] = seq  # of two events with this id the second is the outcome
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


def tree_in_event(event: object) -> str | None:
    """The tree that an event says there is, decoded from its line."""
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
    """All blobs that *tree* needs, itself among them, but for those in *seen*, which they enter.

    Nor is a tree followed that is not wanted.
    """
    waiting = [tree]
    while waiting:
        digest = waiting.pop()
        followed = f"{digest}/"  # a file may hold what a tree does, and is not followed
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
