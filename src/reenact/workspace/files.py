"""The functions behind the verbs that list, compare and check out the files of a recorded run."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from reenact.errors import StoreError, UsageError
from reenact.formats.workspace import EntryKind, Tree, TreeEntry
from reenact.store.paths import takes_addresses
from reenact.store.reader import CaptureReader, EventReader
from reenact.store.rundir import RunDir
from reenact.workspace.compare import (
    FileChange,
    How,
    NotInGit,
    ReadContent,
    compare_trees,
    describe_change,
    printable_path,
    walk,
)
from reenact.workspace.history import WorkspaceHistory

_RANGE: Final = re.compile(r"(\d*)\.\.(\d*)")


class RecordedFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of the tree of a run's files."""

    path: str
    """Bytes that are not UTF-8 are escaped."""
    kind: EntryKind
    mode: str = ""
    size_bytes: int = 0
    digest: str = ""
    target: str = ""
    hidden: bool = False
    """Whether placeholders replace secrets in it."""
    why: str = ""
    """Why it is left out."""


class ChangedFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One path that differs between two moments of a run."""

    path: str
    how: How
    diff: list[str]
    """The lines of a unified diff, or a note if there is no text to show."""
    came_from: str = ""


class FilesReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The files at one moment of a run, or what changed between two."""

    path: str
    tree: str
    at: int | None = None
    """The event; ``None`` for the end."""
    files: list[RecordedFile] = []
    since: int | None = None
    """The event from which on *changes* are listed."""
    changes: list[ChangedFile] | None = None


class CheckoutReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`checkout`."""

    path: str
    folder: str
    tree: str
    files: int
    hidden: list[str]
    """Files in which placeholders replace secrets."""


@takes_addresses("path")
def files(
    path: str | Path,
    *,
    at: int | None = None,
    diff: str | None = None,
    repository: str | Path | None = None,
) -> FilesReport:
    """List the files of the run in *path* after the event *at*, or at the end.

    With *diff*, such as ``"4..9"``, list the changes between two events; a missing number is the start or the
    end. *repository* is the git repository of a capture that was recorded with ``--workspace-base git``.
    """
    history = _open(path, repository)
    if diff is None:
        return FilesReport(str(path), tree := history.tree_at(at), at, _list_files(history, tree))
    if at is not None:
        raise UsageError("--at lists one moment, --diff compares two; give one of them")
    found = _RANGE.fullmatch(diff)
    if found is None:
        raise UsageError(f"--diff {diff}: is not A..B; write two events, as 4..9")
    since, until = (int(number) if number else None for number in found.groups())
    before, after = history.tree_at(since if since is not None else 1), history.tree_at(until)
    changes = _describe(compare_trees(history.read_tree, before, after), history.content)
    return FilesReport(str(path), after, until, since=since, changes=changes)


class FilesMoment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A moment of a run at which its files had changed; the first is its start."""

    seq: int
    """The event after which the files were in this state; the last event for the end."""
    changes: int
    is_end: bool = False


def list_moments(path: str | Path) -> list[FilesMoment]:
    """The moments of the run in *path*, each with the number of paths that changed before it."""
    history = _open_history(path)
    return [
        FilesMoment(seq, len(compare_trees(history.read_tree, before, tree)) if before else 0, is_end)
        for seq, before, tree, is_end in _list_trees(history)
    ]


def read_moment(path: str | Path, number: int) -> FilesReport:
    """The files at the moment *number*, counted from 0, and the changes since the one before."""
    history = _open_history(path)
    trees = _list_trees(history)
    if number >= len(trees):
        raise UsageError(f"{path}: has its files at {len(trees)} moments; there is no moment {number}")
    seq, before, tree, _ = trees[number]
    changes = compare_trees(history.read_tree, before, tree) if before else []
    described = _describe(changes, history.content)
    return FilesReport(str(path), tree, seq, _list_files(history, tree), changes=described)


def _list_trees(history: WorkspaceHistory) -> list[tuple[int, str, str, bool]]:
    """For each moment its event, the tree before it, its tree, and whether it is the end."""
    trees = [(state.seq, state.tree, False) for state in history.states]
    if history.end_tree != history.states[-1].tree:
        trees.append((len(history.reader), history.end_tree, True))
    before = ["", *(tree for _, tree, _ in trees)]
    return [(seq, earlier, tree, is_end) for (seq, tree, is_end), earlier in zip(trees, before, strict=False)]


def _open_history(path: str | Path) -> WorkspaceHistory:
    """Open the history of a run in any state, even while it is being recorded."""
    return WorkspaceHistory(EventReader(RunDir(Path(path))))


def compare_ends(left: str | Path, right: str | Path) -> list[ChangedFile]:
    """How the files at the end of two runs differ; empty if one was recorded without files."""
    histories = [_find_history(path) for path in (left, right)]
    ours, theirs = histories
    if ours is None or theirs is None:
        return []

    def read(digest: str) -> Tree:
        return (ours if ours.has_blob(digest) else theirs).read_tree(digest)

    def content(entry: TreeEntry) -> bytes:
        with suppress(NotInGit):
            return (theirs if theirs.has_blob(entry.digest) else ours).content(entry)
        return theirs.content(entry)

    return _describe(compare_trees(read, ours.end_tree, theirs.end_tree), content)


def _find_history(path: str | Path) -> WorkspaceHistory | None:
    if not os.path.isdir(path):
        return None
    try:
        reader = CaptureReader(path)
    except StoreError:
        return None  # no capture, or a run that is not finished
    return WorkspaceHistory(reader) if WorkspaceHistory.has_one(reader) else None


def _describe(changes: list[FileChange], content: ReadContent) -> list[ChangedFile]:
    return [
        ChangedFile(
            change.text, change.how, describe_change(change, content)[1:], printable_path(change.came_from)
        )
        for change in changes
    ]


@takes_addresses("path")
def checkout(
    path: str | Path,
    folder: str | Path,
    *,
    at: int | None = None,
    repository: str | Path | None = None,
) -> CheckoutReport:
    """Write the files of the run in *path* to *folder*, as they were after the event *at*, or at the end.

    *folder* must be new or empty; on failure it is unchanged. *repository* is the git repository of a capture
    that was recorded with ``--workspace-base git``.
    """
    history = _open(path, repository)
    tree = history.tree_at(at)
    restored = history.restore(tree, Path(folder))
    return CheckoutReport(str(path), str(folder), tree, restored.files, restored.hidden)


def _open(path: str | Path, repository: str | Path | None) -> WorkspaceHistory:
    reader = CaptureReader(path)
    if not WorkspaceHistory.has_one(reader):
        raise UsageError(f"{path}: has no files; record with --workspace")
    return WorkspaceHistory(reader, repository=Path(repository) if repository else None)


def _list_files(history: WorkspaceHistory, tree: str) -> list[RecordedFile]:
    return [
        RecordedFile(
            printable_path(path) + ("/" if entry.kind == "folder" else ""),
            entry.kind,
            f"{entry.mode:03o}" if entry.mode or entry.kind in ("file", "folder") else "",
            entry.size_bytes,
            entry.digest,
            printable_path(entry.target),
            entry.is_hidden,
            entry.why,
        )
        for path, entry in walk(history.read_tree, tree)
    ]
