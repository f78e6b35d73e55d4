"""Writes trees to folders, completely or only the changes; it never follows a link."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from reenact.errors import StoreError
from reenact.formats.workspace import MODE_BITS, TreeEntry, is_leading_out
from reenact.store.durable import unwritable, write_all
from reenact.store.paths import OPEN_FOLDER
from reenact.store.place import build_folder
from reenact.workspace.compare import (
    FileChange,
    ReadContent,
    ReadTree,
    printable_path,
    refuse_endless,
)

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKING_MODE: Final = 0o700


class Restored(msgspec.Struct, frozen=True):
    """The result of :func:`restore_tree`."""

    files: int
    hidden: list[str]
    """Files in which placeholders replace secrets."""
    refused: list[str]
    """Links that were not created, because they lead out of the tree."""


def restore_tree(
    read: ReadTree, content: ReadContent, digest: str, folder: Path, *, refuse_links_out: bool = False
) -> Restored:
    """Write the tree *digest* to *folder*, which must be new or empty; on failure it is unchanged."""
    folder = Path(os.path.realpath(folder))
    with build_folder(folder) as temp:
        restorer = _Restorer(read, content, os.fsencode(folder), refuse_links_out)
        try:
            top = os.open(temp, OPEN_FOLDER)
            try:
                restorer.fill(top, b"", digest, 0)
                restorer.close_folders(top)
            finally:
                os.close(top)
        except OSError as error:
            raise unwritable(folder, error) from error
    return Restored(restorer.files, restorer.hidden, restorer.refused)


class _Restorer:
    """Creates the entries of a tree relative to open folders, so that no path is too long or leads out."""

    def __init__(self, read: ReadTree, content: ReadContent, root: bytes, refuse_links_out: bool) -> None:
        self._read = read
        self._content = content
        self._root = root
        self._refuse_links_out = refuse_links_out
        self._count = 0
        self._late_modes: list[tuple[bytes, int]] = []
        """Folders whose owner may not enter or write them; they get their modes last."""
        self.files = 0
        self.hidden: list[str] = []
        self.refused: list[str] = []

    def fill(self, fd: int, prefix: bytes, digest: str, depth: int) -> None:
        """Create all entries of the tree *digest* in the open folder *fd*."""
        entries = self._read(digest)
        self._count += len(entries)
        refuse_endless(digest, self._count, depth)
        for entry in entries:
            if entry.kind == "file":
                _write_new(os.open(entry.name, _NEW_FILE, 0o600, dir_fd=fd), self._content(entry), entry.mode)
                self.files += 1
                if entry.is_hidden:
                    self.hidden.append(printable_path(prefix + entry.name))
            elif entry.kind == "folder":
                self._make_folder(fd, prefix, entry, depth)
            elif entry.kind == "link":
                if self._refuse_links_out and is_outside_link(prefix + entry.name, entry):
                    self.refused.append(printable_path(prefix + entry.name))
                else:
                    os.symlink(_link_target(entry, self._root), entry.name, dir_fd=fd)

    def _make_folder(self, fd: int, prefix: bytes, entry: TreeEntry, depth: int) -> None:
        os.mkdir(entry.name, _MAKING_MODE, dir_fd=fd)
        below = os.open(entry.name, OPEN_FOLDER, dir_fd=fd)
        try:
            self.fill(below, prefix + entry.name + b"/", entry.digest, depth + 1)
            if entry.mode & _MAKING_MODE == _MAKING_MODE:
                os.fchmod(below, entry.mode)
            else:
                self._late_modes.append((prefix + entry.name, entry.mode))
        finally:
            os.close(below)

    def close_folders(self, top: int) -> None:
        """Set the postponed modes: a folder with such a mode could not be removed after a failure."""
        for path, mode in self._late_modes:  # subfolders come before their parents
            folder, name = _open_parent(top, path)
            try:
                os.chmod(name, mode, dir_fd=folder)
            finally:
                os.close(folder)


def is_outside_link(path: bytes, entry: TreeEntry) -> bool:
    """Whether the link at *path* leads out of the tree."""
    return entry.kind == "link" and not entry.is_inside and is_leading_out(entry.target, path.count(b"/"))


def apply_changes(
    root: Path, changes: Iterable[FileChange], content: ReadContent, *, refuse_links_out: bool = True
) -> None:
    """Apply *changes* to the files below *root*; other paths stay as they are."""
    ordered = sorted(changes, key=lambda change: change.path)
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for change in reversed(ordered):
            for path in filter(None, [change.came_from, change.path if _is_replaced(change) else b""]):
                _remove(top, path)
        for change in ordered:
            if change.after is not None:
                _make(top, root, change, content, refuse_links_out=refuse_links_out)
    except OSError as error:
        raise StoreError(f"{root}: could not be brought to its recorded state: {error}") from error
    finally:
        os.close(top)


def _is_replaced(change: FileChange) -> bool:
    """Whether the existing entry must be removed first."""
    return change.after is None or change.after.kind != "folder" or change.how == "changed"


def _remove(top: int, path: bytes) -> None:
    try:
        folder, name = _open_parent(top, path)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(os.fsdecode(name), dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    finally:
        os.close(folder)


def _make(top: int, root: Path, change: FileChange, content: ReadContent, *, refuse_links_out: bool) -> None:
    entry = change.after
    assert entry is not None
    folder, name = _open_parent(top, change.path, is_made=True)
    try:
        if entry.kind == "folder":
            with suppress(FileExistsError):
                os.mkdir(name, _MAKING_MODE, dir_fd=folder)
            # Opened with O_NOFOLLOW, since the name may be a link.
            fd = os.open(name, OPEN_FOLDER, dir_fd=folder)
            os.fchmod(fd, entry.mode)
            os.close(fd)
        elif entry.kind == "file":
            fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
            _write_new(fd, content(entry), entry.mode)
        elif entry.kind == "link" and not (refuse_links_out and is_outside_link(change.path, entry)):
            os.symlink(_link_target(entry, os.fsencode(root)), name, dir_fd=folder)
    finally:
        os.close(folder)


def _open_parent(top: int, path: bytes, *, is_made: bool = False) -> tuple[int, bytes]:
    """Open the parent folder of *path*, each part relative to the one before; also returns the name."""
    *parts, name = path.split(b"/")
    folder = os.dup(top)
    for part in parts:
        try:
            if is_made:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder, name


def _write_new(fd: int, data: bytes, mode: int) -> None:
    try:
        write_all(fd, data)
        os.fchmod(fd, mode & MODE_BITS)
    finally:
        os.close(fd)


def _link_target(entry: TreeEntry, root: bytes) -> bytes:
    return os.path.join(root, entry.target) if entry.is_inside else entry.target
