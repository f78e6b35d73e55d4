"""Compares two trees of files, and describes the changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from reenact.comparing.alignment import unified_diff
from reenact.errors import FormatError, StoreError
from reenact.formats.workspace import Tree, TreeEntry

ReadTree: TypeAlias = Callable[[str], Tree]
ReadContent: TypeAlias = Callable[[TreeEntry], bytes]
How: TypeAlias = Literal["added", "removed", "changed", "mode", "renamed"]

MAX_ENTRIES: Final = 4_000_000
"""No recorded tree has more; a forged one may contain the same folder many times."""
MAX_DEPTH: Final = 220
_MAX_DIFF_BYTES: Final = 1 << 20
_MAX_DIFF_LINES: Final = 400
_EMPTY: Final[Tree] = ()


class NotInGit(StoreError):
    """The capture does not store a file, and no git repository that was searched has it."""


class FileChange(msgspec.Struct, frozen=True):
    """One path that differs between two trees."""

    path: bytes
    how: How
    before: TreeEntry | None = None
    after: TreeEntry | None = None
    came_from: bytes = b""
    """The old path of a renamed file."""

    @property
    def text(self) -> str:
        """The path for display; a folder's ends with a slash."""
        entry = self.after or self.before
        is_folder = entry is not None and entry.kind == "folder"
        return printable_path(self.path) + ("/" if is_folder else "")

    def __str__(self) -> str:
        came_from = f" (was {printable_path(self.came_from)})" if self.came_from else ""
        return f"{self.how:<8}{self.text}{came_from}"


def printable_path(path: bytes) -> str:
    """*path* as text; bytes that are not UTF-8 are escaped."""
    return path.decode("utf-8", "backslashreplace")


def walk(read: ReadTree, digest: str) -> Iterator[tuple[bytes, TreeEntry]]:
    """Yield all entries below the tree *digest* with their paths, each folder before its content."""
    count = 0
    waiting = [(b"", digest, 0)]
    while waiting:
        prefix, digest, depth = waiting.pop()
        entries = read(digest)
        count += len(entries)
        refuse_endless(digest, count, depth)
        below = []
        for entry in entries:
            path = prefix + entry.name
            yield path, entry
            if entry.kind == "folder":
                below.append((path + b"/", entry.digest, depth + 1))
        waiting.extend(reversed(below))


def refuse_endless(digest: str, count: int, depth: int) -> None:
    """Raise :class:`FormatError` for a tree that is too large or too deep."""
    if depth > MAX_DEPTH:
        raise FormatError(
            f"{digest}: the folders are more than {MAX_DEPTH} deep; reenact does not record such a tree"
        )
    if count > MAX_ENTRIES:
        raise FormatError(f"{digest}: has more than {MAX_ENTRIES} files; reenact does not record such a tree")


def find_entry(read: ReadTree, digest: str, path: bytes) -> TreeEntry | None:
    found: TreeEntry | None = None
    for part in path.strip(b"/").split(b"/"):
        if found is not None and found.kind != "folder":
            return None
        entries = read(digest if found is None else found.digest)
        found = next((entry for entry in entries if entry.name == part), None)
        if found is None:
            return None
    return found


def compare_trees(read: ReadTree, before: str | None, after: str | None) -> list[FileChange]:
    """The paths that differ, sorted; paths that either tree leaves out are not compared."""
    changes = list(_compare(read, before, after, b"", 0)) if before != after else []
    return sorted(_with_renames(changes), key=lambda change: change.path)


def _compare(
    read: ReadTree, before: str | None, after: str | None, prefix: bytes, depth: int
) -> Iterator[FileChange]:
    if depth > MAX_DEPTH:
        raise FormatError(
            f"{after}: the folders are more than {MAX_DEPTH} deep; reenact does not record such a tree"
        )
    old = {entry.name: entry for entry in (read(before) if before else _EMPTY)}
    new = {entry.name: entry for entry in (read(after) if after else _EMPTY)}
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        if one == other or "left-out" in (one and one.kind, other and other.kind):
            continue
        yield from _compare_entries(read, one, other, prefix + name, depth)


def _compare_entries(
    read: ReadTree, one: TreeEntry | None, other: TreeEntry | None, path: bytes, depth: int
) -> Iterator[FileChange]:
    old_folder = one.digest if one is not None and one.kind == "folder" else None
    new_folder = other.digest if other is not None and other.kind == "folder" else None
    if one is None or other is None:
        yield FileChange(path, "added" if one is None else "removed", one, other)
    elif one.kind != other.kind or _content_key(one) != _content_key(other):
        if not (old_folder and new_folder):
            yield FileChange(path, "changed", one, other)
        elif one.mode != other.mode:
            yield FileChange(path, "mode", one, other)
    elif one.mode != other.mode:
        yield FileChange(path, "mode", one, other)
    if (old_folder or new_folder) and old_folder != new_folder:
        yield from _compare(read, old_folder, new_folder, path + b"/", depth + 1)


def is_restored(read: ReadTree, recorded: str, live: str, depth: int = 0) -> bool:
    """Whether *live* equals *recorded* after a restore, which cannot bring back left-out files."""
    if recorded == live:
        return True
    refuse_endless(recorded, 0, depth)
    old, new = ({entry.name: entry for entry in read(digest)} for digest in (recorded, live))
    for name in old.keys() | new.keys():
        one, other = old.get(name), new.get(name)
        if one == other:
            continue
        if one is not None and one.kind == "left-out":
            if other is not None and other.kind != "left-out":
                return False
        elif one is None or other is None or (one.kind, one.mode) != (other.kind, other.mode):
            return False
        elif one.kind == "folder":
            if not is_restored(read, one.digest, other.digest, depth + 1):
                return False
        elif _content_key(one) != _content_key(other):
            return False
    return True


def _content_key(entry: TreeEntry) -> tuple[str, bytes, bool]:
    return entry.digest, entry.target, entry.is_inside


def _with_renames(changes: list[FileChange]) -> Iterator[FileChange]:
    """Replace each pair of a removed and an added file with the same content by a rename."""
    gone: dict[str, list[FileChange]] = {}
    for change in changes:
        if change.how == "removed" and change.before is not None and change.before.kind == "file":
            gone.setdefault(change.before.digest, []).append(change)
    renamed: set[bytes] = set()
    found: list[FileChange] = []
    for change in changes:
        after = change.after
        if change.how == "added" and after is not None and after.kind == "file" and gone.get(after.digest):
            source = gone[after.digest].pop(0)
            renamed.add(source.path)
            change = FileChange(change.path, "renamed", source.before, after, source.path)
        found.append(change)
    return (change for change in found if not (change.how == "removed" and change.path in renamed))


def describe_change(change: FileChange, content: ReadContent) -> list[str]:
    """The change as lines: a heading, then a unified diff, or a note if there is no text to show."""
    before, after = change.before, change.after
    heads = [str(change)]
    if before is not None and after is not None and before.mode != after.mode and before.kind == after.kind:
        heads.append(f"mode {before.mode:03o} → {after.mode:03o}")
    if "link" in (before and before.kind, after and after.kind):
        return [*heads, *_link_lines(before, after)]
    files = [entry if entry is not None and entry.kind == "file" else None for entry in (before, after)]
    if not any(files) or _is_same_content(*files):
        return heads
    try:
        old, new = (content(entry) if entry is not None and _is_shown(entry) else b"" for entry in files)
    except NotInGit as error:
        return [*heads, str(error)]
    if any(entry is not None and not _is_shown(entry) for entry in files) or b"\0" in old or b"\0" in new:
        sizes = ", ".join(f"{entry.size_bytes:,} bytes" if entry else "none" for entry in files)
        return [*heads, f"binary or large: {sizes}"]
    return [*heads, *diff_lines(old, new)]


def _is_same_content(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    return one is not None and other is not None and one.digest == other.digest


def _is_shown(entry: TreeEntry) -> bool:
    return entry.size_bytes <= _MAX_DIFF_BYTES


def _link_lines(before: TreeEntry | None, after: TreeEntry | None) -> Iterable[str]:
    for sign, entry in (("-", before), ("+", after)):
        if entry is not None and entry.kind == "link":
            yield f"{sign}→ {printable_path(entry.target)}"


def diff_lines(old: bytes, new: bytes) -> list[str]:
    """The lines of a unified diff, up to a limit."""
    before, after = (data.decode("utf-8", "backslashreplace").splitlines() for data in (old, new))
    lines = list(unified_diff(before, after))
    if not lines:
        return ["only the ends of lines differ"]
    more = len(lines) - _MAX_DIFF_LINES
    return [*lines[:_MAX_DIFF_LINES], f"… {more} more lines"] if more > 0 else lines
