"""Paths of files that an artifact names, which never lead out of it; and arguments that may be addresses."""

from __future__ import annotations

import inspect
import os
import re
import stat
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, TypeVar

from reenact.errors import StoreError

P = ParamSpec("P")
R = TypeVar("R")

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_ROOT: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a planted pipe would wait for ever.
OPEN_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST: Final = 100
_DIGEST_DIGITS: Final = 12

_PLAIN: Final = re.compile(r"\w[\w.-]*(\[[a-z0-9_.-]*\])?", re.ASCII)
"""Names that are their own folder's name. Parameters that differ in case alone must not meet on file
systems that ignore it, hence no capitals between the brackets."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.\[-]+")


def inside(root: Path, name: str) -> Path:
    """The path of *name* below *root*, whether or not it exists yet.

    Raises :class:`StoreError` for every name that is not a plain relative path with ``/``, and for every
    path with a symbolic link below *root*, even one that would stay inside.
    """
    path = os.fspath(root)  # half the time of Path, and every stored blob needs its path
    for part in _parts(root, name):
        path = f"{path}/{part}"
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be used: {error.strerror}; use a shorter or readable path"
            ) from error
        if is_link:
            raise StoreError(f"{root}: {name!r} leads through the link {part!r}; put a real file there")
    return root / name


def open_inside(root: Path, name: str) -> BinaryIO:
    """The regular file *name* below *root*, open for reading; :class:`StoreError` if it is missing."""
    fd = find_inside(root, name)
    if fd is None:
        raise StoreError(f"{root / name}: is missing; the capture is incomplete, copy it again")
    return os.fdopen(fd, "rb")


def find_inside(root: Path, name: str) -> int | None:
    """A descriptor of the regular file *name* below *root*, or ``None`` if there is nothing.

    Each part is opened relative to the one before, never following a link, so that nothing can be
    swapped in between check and use.
    """
    *folders, last = _parts(root, name)
    try:
        folder = os.open(root, _ROOT) if not folders else _open_folder(root, folders)
        try:
            file = os.open(last, OPEN_FILE, dir_fd=folder)
        finally:
            os.close(folder)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise OSError("not a regular file")
    except OSError as error:
        if isinstance(error, NotADirectoryError) and not root.is_dir():
            raise StoreError(f"{root}: {error.strerror}; name a capture directory") from error
        path = inside(root, name)  # raises an error that names the link, if there is one
        if isinstance(error, FileNotFoundError):
            return None
        if isinstance(error, PermissionError):
            raise StoreError(f"{path}: {error.strerror}") from error
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}; use a real file") from error


def open_folder_inside(root: Path, name: str) -> int:
    """A descriptor of the folder *name* below *root*, found as :func:`find_inside` finds files."""
    return _open_folder(root, _parts(root, name))


def _open_folder(root: Path, parts: list[str]) -> int:
    folder = os.open(root, _ROOT)
    for part in parts:
        try:
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _parts(root: Path, name: str) -> list[str]:
    parts = name.split("/")
    try:
        os.fsencode(name)
        is_plain = not _DRIVE.match(name) and "\\" not in name and "\0" not in name
    except UnicodeEncodeError:
        is_plain = False
    if not is_plain or not {"", ".", ".."}.isdisjoint(parts):
        raise StoreError(f"{root}: {name!r} is not a plain relative path; only files inside may be named")
    return parts


def folder_name(name: str) -> str:
    """*name* if every file system accepts it, else the readable part of it and a digest of the whole."""
    if _PLAIN.fullmatch(name) and len(name) <= _LONGEST:
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]
    readable = _UNSAFE.sub("_", name.removesuffix("]"))[: _LONGEST - _DIGEST_DIGITS - 2]
    return f"{readable}~{digest}" + "]" * ("[" in readable)


def takes_addresses(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the arguments *names* be runs at addresses or in packs; reports and errors name them as given."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            other: list[str] = []
            for name in names:
                given = bound.arguments.get(name)
                if isinstance(given, str | Path) and not os.path.isdir(given):
                    other.append(name)
            if not other:
                return function(*args, **kwargs)
            from reenact.store.remote import call_with_copies  # most paths are folders

            return call_with_copies(function, bound, other)

        return call

    return decorate
