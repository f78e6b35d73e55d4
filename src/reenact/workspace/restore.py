"""Trees put back into folders, whole or by what differs; no link is ever followed."""

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
from reenact.store.rundir import making_folder
from reenact.workspace.compare import FileChange, ReadContent, ReadTree, printable_path, walk

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKING_MODE: Final = 0o700


class Restored(msgspec.Struct, frozen=True):
    """What was put into a folder."""

    files: int
    hidden: list[str]
    """Files that hold placeholders in the place of secrets."""
    refused: list[str]
    """Links that were not made, because they lead out of the tree."""


def restore_tree(
    read: ReadTree, content: ReadContent, digest: str, folder: Path, *, refuse_links_out: bool = False
) -> Restored:
    """Make *folder*, which must be new or empty, into the tree *digest*; on failure it is as it was."""
    folder = Path(os.path.realpath(folder))
    hidden: list[str] = []
    refused: list[str] = []
    files = 0
    modes: list[tuple[bytes, int]] = []
    with making_folder(folder) as temp:
        top = os.fsencode(temp) + b"/"
        try:
            for path, entry in walk(read, digest):
                place = top + path
                if entry.kind == "folder":
                    os.mkdir(place, _MAKING_MODE)
                    modes.append((place, entry.mode))
                elif entry.kind == "file":
                    _write_file(place, content(entry), entry.mode)
                    files += 1
                    if entry.is_hidden:
                        hidden.append(printable_path(path))
                elif entry.kind == "link":
                    if refuse_links_out and leads_out(path, entry):
                        refused.append(printable_path(path))
                    else:
                        os.symlink(_link_target(entry, os.fsencode(folder)), place)
            for place_of, mode in reversed(modes):
                os.chmod(place_of, mode)
        except OSError as error:
            for place_of, _ in modes:  # what cannot be entered cannot be removed
                os.chmod(place_of, _MAKING_MODE)
            raise unwritable(folder, error) from error
    return Restored(files, hidden, refused)


def leads_out(path: bytes, entry: TreeEntry) -> bool:
    """Whether the link at *path* leads out of the tree."""
    return entry.kind == "link" and not entry.is_inside and is_leading_out(entry.target, path.count(b"/"))


def apply_changes(
    root: Path, changes: Iterable[FileChange], content: ReadContent, *, refuse_links_out: bool = True
) -> None:
    """Make the paths of *changes* below *root* what they are afterwards; others stay as they are."""
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
    """Whether what is there goes before something else comes."""
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
    folder, name = _open_parent(top, change.path)
    try:
        if entry.kind == "folder":
            with suppress(FileExistsError):
                os.mkdir(name, _MAKING_MODE, dir_fd=folder)
            # Not by following a link that stands there: the folder is opened as one.
            fd = os.open(name, _FOLDER, dir_fd=folder)
            os.fchmod(fd, entry.mode)
            os.close(fd)
        elif entry.kind == "file":
            fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
            _fill(fd, content(entry), entry.mode)
        elif entry.kind == "link" and not (refuse_links_out and leads_out(change.path, entry)):
            os.symlink(_link_target(entry, os.fsencode(root)), name, dir_fd=folder)
    finally:
        os.close(folder)


def _open_parent(top: int, path: bytes) -> tuple[int, bytes]:
    """The folder in which *path* stands, each part opened relative to the one before."""
    *parts, name = path.split(b"/")
    folder = os.dup(top)
    for part in parts:
        try:
            below = os.open(part, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder, name


def _write_file(place: bytes, data: bytes, mode: int) -> None:
    _fill(os.open(place, _NEW_FILE, 0o600), data, mode)


def _fill(fd: int, data: bytes, mode: int) -> None:
    try:
        write_all(fd, data)
        os.fchmod(fd, mode & MODE_BITS)
    finally:
        os.close(fd)


def _link_target(entry: TreeEntry, root: bytes) -> bytes:
    return os.path.join(root, entry.target) if entry.is_inside else entry.target
