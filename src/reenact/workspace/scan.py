"""Scans a folder into a tree; a later scan reads only the files that changed.

An index remembers size and times of each file that was read, as git's index does. A file that changed just
before it was read is *racy*: the clock of the file system may be too coarse to show a later change, so the
next scan reads it again. A folder with unchanged times has the same names, so they are not listed again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha1, sha256
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Final, TypeAlias

import msgspec

from reenact.canonical import digest_of_bytes, is_unicode
from reenact.errors import StoreError
from reenact.formats.workspace import MODE_BITS, TreeEntry, Why, join_entries, write_entry
from reenact.redaction import Redactor
from reenact.store.paths import OPEN_FILE, OPEN_FOLDER
from reenact.workspace.ignore import IGNORE_FILE, IgnoreRules, is_secret_name

LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Larger files are left out by default."""
_RACY_NS: Final = 50_000_000
"""After this time the clock of any file system has moved on."""
_TRIES: Final = 3
_MAX_DEPTH: Final = 200
_READ_BYTES: Final = 1 << 20
_CAPTURE_FILES: Final = frozenset({"manifest.json", "manifest.open.json", "recording.lock"})
# Bound here because seams replace the functions of `os` and `time` while the agent is recorded.
_lstat, _fstat, _open, _close, _scandir, _read = os.lstat, os.fstat, os.open, os.close, os.scandir, os.read
_readlink, _now_ns = os.readlink, time.time_ns

Key: TypeAlias = tuple[int, int, int]
"""The change time of the inode, the modification time and the size; equal keys mean an unchanged file.

Any other change, of the mode or by a rename, changes the time of the inode.
"""


class IndexedFile(msgspec.Struct, array_like=True):
    """A file, a link, or a left-out entry at the last scan."""

    key: Key
    is_racy: bool
    text: bytes
    """The encoded tree entry."""
    left_out: str = ""
    """Why it is left out; empty if it is in the tree."""


class IndexedFolder(msgspec.Struct, array_like=True):
    """A folder at the last scan."""

    key: Key
    is_racy: bool
    files: dict[str, IndexedFile]
    folders: dict[str, IndexedFolder]
    mode: int = 0
    rules_text: str = ""
    """The text of its ignore file."""
    digest: str = ""
    text: bytes = b""
    """Its encoded entry in the parent folder."""
    settled: list[tuple[bytes, int, int, int]] = []
    """Names and keys of the files that are not racy, in a form that is fast to iterate."""
    unsettled: list[str] = []
    """The racy files."""
    hidden: dict[str, str] = {}
    """Names that contain a secret, and their redacted form."""


_NO_KEY: Final[Key] = (0, 0, 0)
_GIT: Final = re.compile(rb'"git":"([0-9a-f]+)"')
"""In the entry of a file that git stores; in names quotes are escaped."""
_BY_NAME: Final = frozenset({"ignored", "secret", "git", "capture"})
"""The reasons that depend on the name only."""


class Index(msgspec.Struct):
    """What is remembered of a folder between two scans, in this process or for another."""

    root: IndexedFolder = msgspec.field(default_factory=lambda: IndexedFolder(_NO_KEY, True, {}, {}))

    def save(self, file: Path, redactor: Redactor | None = None) -> None:
        """Save it without entries that contain secrets or are not UTF-8: the next scan reads those again."""
        file.write_bytes(msgspec.msgpack.encode(Index(_copy_to_save(self.root, redactor))))

    @classmethod
    def load(cls, file: Path) -> Index:
        """Load a saved index; an empty one, so that all is scanned again, if it cannot be read."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.msgpack.decode(file.read_bytes(), type=cls)
        return cls()


class LeftOut(msgspec.Struct, frozen=True):
    """A path that is not in the tree."""

    path: str
    why: Why


class Scanner:
    """Scans the folder *root* repeatedly; a lock lets one thread scan at a time."""

    def __init__(
        self,
        root: Path,
        put: Callable[[bytes], str],
        *,
        redactor: Redactor | None = None,
        limit_bytes: int = LIMIT_BYTES,
        leave_out: Collection[Path] = (),
        rules: IgnoreRules | None = None,
        index: Index | None = None,
        in_git: Mapping[str, str] | None = None,
    ) -> None:
        """*put* stores a blob; *redactor* redacts contents, and finds names that contain a secret.

        *leave_out* are reenact's own folders below *root*. *rules* apply in addition to ignore files in the
        folder. *in_git* is as in :meth:`take`.
        """
        self.root = Path(os.path.realpath(root))
        self._put = put
        self._redactor = redactor
        self._redact: Callable[[bytes], bytes] = bytes if redactor is None else redactor.redact_bytes
        self._limit_bytes = limit_bytes
        self._ours = {os.path.realpath(place) for place in leave_out}
        self._in_git: Mapping[str, str] = in_git or {}
        self.index = index or Index()
        self._rules = rules or IgnoreRules("")
        self._git = ""
        """The git object that may equal the file that is being read."""
        self._root_prefix = os.fsencode(self.root) + b"/"
        self._lock = RLock()

    def take(self, *, in_git: Mapping[str, str] | None = None) -> str:
        """Scan and return the digest of the tree; all its blobs are stored.

        *in_git* has git objects by path: a file that equals its object refers to it and is not stored. It
        applies to this scan; later ones keep the references.
        """
        with self._lock:
            self._in_git = in_git or self._in_git
            digest = self._take()
            self._in_git = {}
            return digest

    def _take(self) -> str:
        try:
            fd = _open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._update(self.index.root, fd, "", self._rules, 0)
            finally:
                _close(fd)
        except BaseException as error:
            self.index = Index()  # it may mix this scan and the one before
            if isinstance(error, _IsCapture):
                raise StoreError(f"{self.root}: is a capture; name the folder of the run") from None
            if isinstance(error, OSError):
                reason = error.strerror or error
                raise StoreError(f"{self.root}: the workspace cannot be read: {reason}") from error
            raise
        return self.index.root.digest

    def left_out(self) -> list[LeftOut]:
        """The left-out paths with the reasons."""
        return list(_left_out(self.index.root, ""))

    def _update(self, folder: IndexedFolder, fd: int, path: str, rules: IgnoreRules, depth: int) -> bool:
        """Update *folder*; returns whether its tree has changed."""
        found = _fstat(fd)
        key = _key(found)
        is_changed = not folder.digest
        if folder.is_racy or key != folder.key or self._is_ignore_file_changed(folder, fd):
            folder.is_racy = _is_racy(found, _now_ns())
            rules_text = self._read_rules(fd)
            names = self._list(fd)
            if rules_text != folder.rules_text:
                folder.rules_text = rules_text
                folder.files, folder.folders = {}, {}
            rules = IgnoreRules(rules_text, rules) if rules_text else rules
            is_changed |= self._relist(folder, fd, names, path, rules, depth)
        else:
            rules = IgnoreRules(folder.rules_text, rules) if folder.rules_text else rules
            is_changed |= self._update_files(folder, fd, path)
        folder.key, folder.mode = key, found.st_mode & MODE_BITS
        is_changed |= self._update_folders(folder, fd, path, rules, depth)
        if is_changed:
            self._write(folder)
        return is_changed

    def _update_files(self, folder: IndexedFolder, fd: int, path: str) -> bool:
        """Update the files of a folder with the same names as before.

        This loop is the cost of an unchanged tree: 1.5 µs per file, 1.4 of it in the system call.
        """
        again = folder.unsettled
        for name, changed_ns, modified_ns, size_bytes in folder.settled:
            try:
                found = _lstat(name, dir_fd=fd)
            except OSError:
                again = [*again, os.fsdecode(name)]
                continue
            if (
                found.st_ctime_ns != changed_ns
                or found.st_mtime_ns != modified_ns
                or found.st_size != size_bytes
            ):
                again = [*again, os.fsdecode(name)]
        if not again:
            return False
        is_changed = False
        for changed in again:
            try:
                is_changed |= self._update_file(folder, fd, changed, path, _lstat(changed, dir_fd=fd))
            except OSError:
                del folder.files[changed]
                folder.is_racy = is_changed = True
        _note_unchanged(folder)
        return is_changed

    def _update_file(
        self, folder: IndexedFolder, fd: int, name: str, path: str, found: os.stat_result
    ) -> bool:
        """Read one file again; returns whether its entry has changed."""
        before = folder.files.get(name)
        if stat.S_ISDIR(found.st_mode):
            folder.files.pop(name, None)
            folder.is_racy = True
            folder.folders.setdefault(name, IndexedFolder(_NO_KEY, True, {}, {}))
            return True
        was_git = _GIT.search(before.text) if before is not None else None
        self._git = was_git[1].decode() if was_git is not None else self._in_git.get(path + name, "")
        file = self._read_file(fd, name, found)
        folder.files[name] = file
        return before is None or before.text != file.text

    def _relist(
        self, folder: IndexedFolder, fd: int, names: list[str], path: str, rules: IgnoreRules, depth: int
    ) -> bool:
        """Update the files of a folder whose names may have changed; subfolders are only noted."""
        before = (folder.files.keys() | folder.folders.keys()) - set(names)
        for name in before:
            folder.files.pop(name, None)
            folder.folders.pop(name, None)
        is_changed = bool(before) | self._hide_names(folder, names)
        for name in names:
            if name in folder.hidden:
                continue
            try:
                found = _lstat(name, dir_fd=fd)
            except OSError:  # it was removed meanwhile
                is_changed |= folder.files.pop(name, folder.folders.pop(name, None)) is not None
                folder.is_racy = True
                continue
            is_folder = stat.S_ISDIR(found.st_mode)
            why = self._why_left_out(name, path, rules, is_folder, depth)
            if why is not None:
                folder.folders.pop(name, None)
                file = _left_out_file(name, why, found)
                is_changed |= name not in folder.files or folder.files[name].text != file.text
                folder.files[name] = file
            elif is_folder:
                is_changed |= folder.files.pop(name, None) is not None or name not in folder.folders
                folder.folders.setdefault(name, IndexedFolder(_NO_KEY, True, {}, {}))
            else:
                is_changed |= folder.folders.pop(name, None) is not None
                known = folder.files.get(name)
                if known is None or known.is_racy or known.key != _key(found):
                    is_changed |= self._update_file(folder, fd, name, path, found)
        _note_unchanged(folder)
        return is_changed

    def _hide_names(self, folder: IndexedFolder, names: list[str]) -> bool:
        """Find secrets in the new names, with one check for all of them: nearly always there are none."""
        if self._redactor is None:
            return False
        new = set(names).difference(folder.files, folder.folders, folder.hidden)
        before = folder.hidden
        if before:
            folder.hidden = {name: before[name] for name in names if name in before}
        redactor = self._redactor.of_names
        if new and redactor.is_suspect(os.fsencode("\n".join(new))):
            shown = {name: os.fsdecode(redactor.redact_bytes(os.fsencode(name))) for name in new}
            folder.hidden = folder.hidden | {name: text for name, text in shown.items() if text != name}
        return folder.hidden != before

    def _update_folders(
        self, folder: IndexedFolder, fd: int, path: str, rules: IgnoreRules, depth: int
    ) -> bool:
        is_changed = False
        for name, below in list(folder.folders.items()):
            try:
                below_fd = _open(name, OPEN_FOLDER, dir_fd=fd)
            except FileNotFoundError:
                del folder.folders[name]
                folder.is_racy = is_changed = True
                continue
            except OSError as error:
                del folder.folders[name]
                found = _lstat(name, dir_fd=fd)
                folder.files[name] = _left_out_file(name, "unreadable", found)
                folder.is_racy = is_changed = True
                if isinstance(error, NotADirectoryError):
                    self._update_file(folder, fd, name, path, found)
                _note_unchanged(folder)
                continue
            try:
                is_changed |= self._enter(below, name, below_fd, path, rules, depth)
            finally:
                _close(below_fd)
            if not below.digest:  # it turned out to be left out
                del folder.folders[name]
                why: Why = "capture" if below.text else "unreadable"
                folder.files[name] = _left_out_file(name, why, _fstat_or(fd, name))
                _note_unchanged(folder)
        return is_changed

    def _enter(
        self, below: IndexedFolder, name: str, fd: int, path: str, rules: IgnoreRules, depth: int
    ) -> bool:
        old_mode, old_digest = below.mode, below.digest
        try:
            self._update(below, fd, f"{path}{name}/", rules.for_subfolder(name), depth + 1)
        except _IsCapture:
            below.digest, below.text = "", b"capture"
            return True
        except PermissionError:
            below.digest, below.text = "", b""
            return True
        if old_digest == below.digest and old_mode == below.mode:
            return False
        entry = TreeEntry(os.fsencode(name), "folder", mode=below.mode, digest=below.digest)
        below.text = write_entry(entry)
        return True

    def _list(self, fd: int) -> list[str]:
        with _scandir(fd) as entries:
            names = [entry.name for entry in entries]
        if "events.jsonl" in names and not _CAPTURE_FILES.isdisjoint(names):
            raise _IsCapture
        return names

    def _why_left_out(
        self, name: str, path: str, rules: IgnoreRules, is_folder: bool, depth: int
    ) -> Why | None:
        if name == ".git":
            return "git"
        if is_secret_name(name, is_folder=is_folder):
            return "secret"
        if rules.ignores(name, is_folder=is_folder):
            return "ignored"
        if is_folder and depth >= _MAX_DEPTH:
            return "too-deep"
        if is_folder and self._ours and os.path.join(self.root, path, name) in self._ours:
            return "capture"
        return None

    def _read_file(self, fd: int, name: str, found: os.stat_result) -> IndexedFile:
        for _ in range(_TRIES):
            began_ns = _now_ns()
            try:
                if stat.S_ISLNK(found.st_mode):
                    return self._read_link(fd, name, found, began_ns)
                if not stat.S_ISREG(found.st_mode):
                    return _left_out_file(name, "special", found)
                if found.st_size > self._limit_bytes:
                    return _left_out_file(name, "too-large", found)
                content, found = _read_whole(fd, name, self._limit_bytes)
                if content is not None:
                    return self._store(name, content, found, began_ns)
            except FileNotFoundError:
                break
            except PermissionError:
                return _left_out_file(name, "unreadable", found)
            except OSError:
                with suppress(OSError):
                    found = _lstat(name, dir_fd=fd)
        return _left_out_file(name, "changing", found, is_racy=True)

    def _read_link(self, fd: int, name: str, found: os.stat_result, began_ns: int) -> IndexedFile:
        target = os.fsencode(_readlink(name, dir_fd=fd))
        if self._redactor is not None and self._redactor.of_names.redact_bytes(target) != target:
            return _left_out_file(name, "secret", found)
        is_inside = target.startswith(self._root_prefix)
        if is_inside:
            target = target.removeprefix(self._root_prefix).lstrip(b"/") or b"."
            is_inside = b".." not in target.split(b"/")
        entry = TreeEntry(os.fsencode(name), "link", target=target, is_inside=is_inside)
        return IndexedFile(_key(found), _is_racy(found, began_ns), write_entry(entry))

    def _store(self, name: str, content: bytes, found: os.stat_result, began_ns: int) -> IndexedFile:
        git = self._git
        if git and git == _git_name(content, len(git)):
            kept, digest = content, digest_of_bytes(content)
        else:
            git, kept = "", self._redact(content)
            digest = self._put(kept)
        entry = TreeEntry(
            os.fsencode(name),
            "file",
            mode=found.st_mode & MODE_BITS,
            digest=digest,
            size_bytes=len(kept),
            is_hidden=kept != content,
            git=git,
        )
        return IndexedFile(_key(found), _is_racy(found, began_ns), write_entry(entry))

    def _write(self, folder: IndexedFolder) -> None:
        texts = [(os.fsencode(name), file.text) for name, file in folder.files.items()]
        texts += [(os.fsencode(name), below.text) for name, below in folder.folders.items()]
        if folder.hidden:
            texts += _hidden_texts(folder.hidden, {name for name, _ in texts})
        texts.sort()
        folder.digest = self._put(join_entries([text for _, text in texts]))

    def _is_ignore_file_changed(self, folder: IndexedFolder, fd: int) -> bool:
        """Whether the ignore rules changed, although the names are the same."""
        known = folder.files.get(IGNORE_FILE)
        if known is None:
            return False
        try:
            found = _lstat(IGNORE_FILE, dir_fd=fd)
        except OSError:
            return True
        return (known.is_racy or known.key != _key(found)) and self._read_rules(fd) != folder.rules_text

    def _read_rules(self, fd: int) -> str:
        try:
            file = _open(IGNORE_FILE, OPEN_FILE, dir_fd=fd)
        except OSError:
            return ""
        try:
            is_file = stat.S_ISREG(_fstat(file).st_mode)
            return os.fsdecode(_read(file, _READ_BYTES)) if is_file else ""
        except OSError:
            return ""
        finally:
            _close(file)


class _IsCapture(Exception):
    """The folder is a capture."""


def _read_whole(fd: int, name: str, limit_bytes: int) -> tuple[bytes | None, os.stat_result]:
    """The content of a file; ``None`` if it changed while it was read."""
    file = _open(name, OPEN_FILE, dir_fd=fd)
    try:
        before = _fstat(file)
        pieces: list[bytes] = []
        size_bytes = 0
        while stat.S_ISREG(before.st_mode) and size_bytes <= before.st_size <= limit_bytes:
            piece = _read(file, _READ_BYTES)
            if not piece:
                break
            pieces.append(piece)
            size_bytes += len(piece)
        after = _fstat(file)
    finally:
        _close(file)
    is_whole = _key(before) == _key(after) and size_bytes == after.st_size and stat.S_ISREG(after.st_mode)
    return b"".join(pieces) if is_whole else None, after


def _left_out_file(name: str, why: Why, found: os.stat_result, *, is_racy: bool = False) -> IndexedFile:
    size_bytes = found.st_size if why == "too-large" else 0
    entry = TreeEntry(os.fsencode(name), "left-out", size_bytes=size_bytes, why=why)
    return IndexedFile(_key(found), is_racy, write_entry(entry), why)


def _hidden_texts(hidden: Mapping[str, str], taken: set[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The entries for *hidden* names; names that are equal after redaction get a number."""
    for _, shown in sorted(hidden.items()):
        names = (os.fsencode(shown if number == 1 else f"{shown} ({number})") for number in count(1))
        name = next(each for each in names if each not in taken)
        taken.add(name)
        yield name, write_entry(TreeEntry(name, "left-out", why="secret"))


def _copy_to_save(folder: IndexedFolder, redactor: Redactor | None) -> IndexedFolder:
    """Copy *folder* without secrets and names that are not UTF-8, which the next scan finds again."""
    rules = folder.rules_text.encode("utf-8", "surrogateescape")
    if not is_unicode(folder.rules_text) or (redactor is not None and redactor.redact_bytes(rules) != rules):
        return IndexedFolder(_NO_KEY, True, {}, {})
    below = {name: _copy_to_save(each, redactor) for name, each in folder.folders.items() if is_unicode(name)}
    files = {name: file for name, file in folder.files.items() if is_unicode(name)}
    is_whole = not folder.hidden and len(below) == len(folder.folders) and len(files) == len(folder.files)
    if is_whole and not below:
        return folder
    unsettled = [name for name in folder.unsettled if name in files]
    return msgspec.structs.replace(
        folder,
        files=files,
        folders=below,
        hidden={},
        unsettled=unsettled,
        is_racy=folder.is_racy or not is_whole,
    )


def _fstat_or(fd: int, name: str) -> os.stat_result:
    try:
        return _lstat(name, dir_fd=fd)
    except OSError:
        return _fstat(fd)


def _key(found: os.stat_result) -> Key:
    return found.st_ctime_ns, found.st_mtime_ns, found.st_size


def _note_unchanged(folder: IndexedFolder) -> None:
    """Note which files the next scan may skip if unchanged; files left out by name are in neither list."""
    seen = [(name, file) for name, file in folder.files.items() if file.left_out not in _BY_NAME]
    folder.settled = [(os.fsencode(name), *file.key) for name, file in seen if not file.is_racy]
    folder.unsettled = [name for name, file in seen if file.is_racy]


def _is_racy(found: os.stat_result, at_ns: int) -> bool:
    return max(found.st_mtime_ns, found.st_ctime_ns) > at_ns - _RACY_NS


def _git_name(content: bytes, digits: int) -> str:
    head = b"blob %d\0" % len(content)
    return (sha1 if digits == 40 else sha256)(head + content, usedforsecurity=False).hexdigest()


def _left_out(folder: IndexedFolder, path: str) -> Iterator[LeftOut]:
    for shown in sorted(folder.hidden.values()):
        yield LeftOut(path + shown, "secret")
    for name, file in sorted(folder.files.items()):
        if file.left_out:
            yield LeftOut(path + name, file.left_out)  # type: ignore[arg-type]  # written by us
    for name, below in sorted(folder.folders.items()):
        yield from _left_out(below, f"{path}{name}/")
