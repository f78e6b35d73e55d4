"""The trees of a capture: which one the files were at which event."""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import digest_of_bytes, is_digest
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.workspace import WORKSPACE, Tree, TreeEntry, read_tree
from reenact.store.reader import CaptureReader, EventReader
from reenact.workspace.restore import Restored, restore_tree

_MARK: Final = b'"workspace"'
_CACHED_TREES: Final = 4096


class WorkspaceStart(msgspec.Struct, frozen=True):
    """What ``run_start`` says of the workspace."""

    tree: str
    cwd: str | None = None
    """Where the run began, from the workspace's root; ``None`` where that was outside."""
    commit: str | None = None
    """The commit of which the capture holds no files but those that differ."""
    limit_bytes: int | None = msgspec.field(default=None, name="limitBytes")


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


class _Details(msgspec.Struct):
    tree: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    open: int = 0


class _Data(msgspec.Struct):
    type: str | None = None
    callId: str | None = None  # noqa: N815 — the wire's own name
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

    def __init__(self, reader: EventReader, *, repository: Path | None = None) -> None:
        """*repository* is where git has the files that the capture names by their objects only."""
        self.reader = reader
        self._repository = repository
        self.start, self.states = _read_states(reader)
        self.read_tree = lru_cache(_CACHED_TREES)(self._read_tree)
        manifest = getattr(reader, "manifest", None)
        end = manifest.workspaceEnd if manifest is not None else None
        self.end_tree: str = end if isinstance(end, str) else self.states[-1].tree
        """The last tree that is known."""
        self._seqs = [state.seq for state in self.states]

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
            raise UsageError(f"{self.reader.path}: has no event {seq}; choose 1 to {len(self.reader)}")
        return self.states[max(0, bisect_right(self._seqs, seq) - 1)]

    def tree_at(self, seq: int | None) -> str:
        """The tree at the event *seq*, or the last one."""
        if seq is None or seq == len(self.reader):
            return self.end_tree
        return self.state_at(seq).tree

    def content(self, entry: TreeEntry) -> bytes:
        """What the file of *entry* holds."""
        return self._from_git(entry) if entry.git else self.reader.blob(entry.digest)

    def restore(self, digest: str, folder: Path, *, refuse_links_out: bool = False) -> Restored:
        """Put the tree *digest* into *folder*, which must be new or empty."""
        return restore_tree(self.read_tree, self.content, digest, folder, refuse_links_out=refuse_links_out)

    def _read_tree(self, digest: str) -> Tree:
        file = f"{self.reader.path}/blobs: {digest}"
        return read_tree(self.reader.blob(digest), file=file)

    def _from_git(self, entry: TreeEntry) -> bytes:
        place = self._repository or Path.cwd()
        done = subprocess.run(
            ["git", "-C", os.fspath(place), "cat-file", "blob", entry.git], capture_output=True, check=False
        )
        if done.returncode != 0:
            raise StoreError(
                f"{os.fsdecode(entry.name)}: is kept by git alone, and {place} has no object {entry.git}; "
                "name the repository with --repository DIR"
            )
        if digest_of_bytes(done.stdout) != entry.digest:
            raise StoreError(f"{os.fsdecode(entry.name)}: git's object {entry.git} holds something else")
        return done.stdout


def restore_files(
    path: str | Path, folder: str | Path, *, at: int | None = None, repository: str | Path | None = None
) -> Restored:
    """Put the files of the capture in *path* into *folder*, as they were at the event *at*, or at the end.

    *folder* must be new or empty, and is made whole or not at all. *repository* is where git keeps what the
    capture names by its commit.
    """
    history = WorkspaceHistory(CaptureReader(path), repository=Path(repository) if repository else None)
    return history.restore(history.tree_at(at), Path(folder))


def _begin(reader: EventReader) -> WorkspaceStart | None:
    line = reader.line(1)
    if _MARK not in line:
        return None
    try:
        start = _decode_head(line).data.workspace
    except msgspec.DecodeError as error:
        raise FormatError(str(error), file=reader.events_file, line=1) from None
    if start is not None and not is_digest(start.tree):
        path = "$.data.workspace.tree"
        raise FormatError("must be a digest", file=reader.events_file, line=1, json_path=path)
    return start


def _read_states(reader: EventReader) -> tuple[WorkspaceStart, list[TreeState]]:
    start = _begin(reader) if len(reader) else None
    if start is None:
        raise UsageError(f"{reader.path}: has no files; record with --workspace")
    states = [TreeState(1, 1, start.tree)]
    outcomes: dict[str, int] = {}
    for seq in range(2, len(reader) + 1):
        line = reader.line(seq)
        if b'"callId"' not in line and _MARK not in line:
            continue
        head = _decode_head(line)
        if head.type == "state_mutation" and head.data.type == WORKSPACE:
            states.append(_read_state(reader, seq, bytes(head.data.details), outcomes, states[-1].seq))
        elif head.data.callId is not None and head.type in _OUTCOMES:
            outcomes[head.data.callId] = seq  # of two events with this id the second is the outcome
    return start, states


def _read_state(
    reader: EventReader, seq: int, details: bytes, outcomes: dict[str, int], least: int
) -> TreeState:
    try:
        told = _decode_details(details)
    except msgspec.DecodeError as error:
        raise FormatError(str(error), file=reader.events_file, line=seq, json_path="$.data.details") from None
    if not is_digest(told.tree):
        path = "$.data.details.tree"
        raise FormatError("must be a digest", file=reader.events_file, line=seq, json_path=path)
    since = min([outcomes[call] for call in told.after if call in outcomes], default=seq)
    return TreeState(max(since, least), seq, told.tree, told.before, told.after, told.open > 0)


def tree_blobs(read: Any, digest: str, seen: set[str]) -> list[str]:
    """The digests of all blobs that the tree *digest* needs and that are not in *seen*, which they enter."""
    found: list[str] = []
    waiting = [digest]
    while waiting:
        tree = waiting.pop()
        if tree in seen:
            continue
        seen.add(tree)
        found.append(tree)
        for entry in read(tree):
            if entry.kind == "folder":
                waiting.append(entry.digest)
            elif entry.kind == "file" and not entry.git and entry.digest not in seen:
                seen.add(entry.digest)
                found.append(entry.digest)
    return found
