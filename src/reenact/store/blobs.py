"""Blobs: bytes stored once, under the name of their digest."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from os import listdir
from pathlib import Path
from typing import BinaryIO, Final

from reenact import canonical
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.store.durable import TEMP_PREFIX, Durability, sync_folder, unwritable, write_whole
from reenact.store.paths import OPEN_FILE, inside, open_folder_inside, open_inside

_PIECE_BYTES: Final = 1024 * 1024
_FOLDER_NAME: Final = re.compile("[0-9a-f]{2}")
PRUNED: Final = "pruned.json"
"""The mark in a run whose payloads were pruned: which blobs, and when."""


class BlobStore:
    """The blobs below *root*, as ``sha256/ab/cdef…``; safe for many threads and processes."""

    def __init__(
        self, root: Path, *, durability: Durability = "process", parent: BlobStore | None = None
    ) -> None:
        """*parent* is the store of a fork's parent; blobs that are missing here are read from there."""
        self.root = root
        self._parent = parent
        self._sync = durability == "disk"
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        """Store *data* and return its digest; cheap if it is stored already."""
        digest = canonical.digest_of_bytes(data)
        if digest not in self._known:
            path = self.path_of(digest)
            # A file of another length is the remains of a power loss.
            if _size_if_file(path) != len(data):
                self._make_folders(path.parent)
                write_whole(path, data, temp_folder=self.root, sync=self._sync)
            self._known.add(digest)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of *digest*, or :class:`DigestMismatch` if the file holds others."""
        with self._open(digest) as stream:
            data = stream.read()
        self._refuse_other(digest, canonical.digest_of_bytes(data))
        return data

    @contextmanager
    def open_reader(self) -> Iterator[Callable[[str], bytes]]:
        """A function like :meth:`get` that opens each folder once: half the time for small blobs."""
        held: dict[str, int] = {}

        def get(digest: str) -> bytes:
            data = self._read_from(held, digest)
            if data is None:
                return self.get(digest)
            self._refuse_other(digest, canonical.digest_of_bytes(data))
            return data

        try:
            yield get
        finally:
            for fd in held.values():
                os.close(fd)

    def _read_from(self, held: dict[str, int], digest: str) -> bytes | None:
        """The bytes, read through an open folder; ``None`` if anything is unusual."""
        name = _name_of(digest)
        try:
            folder = held.get(name[:9])
            if folder is None:
                folder = held[name[:9]] = open_folder_inside(self.root, name[:9])
            file = os.open(name[10:], OPEN_FILE, dir_fd=folder)
        except OSError:
            return None
        try:
            found = os.fstat(file)
            data = os.read(file, found.st_size + 1) if stat.S_ISREG(found.st_mode) else b""
            return data if len(data) == found.st_size else None
        finally:
            os.close(file)

    def check(self, digest: str) -> None:
        """Raise what :meth:`get` would, in constant memory."""
        found = sha256()
        with self._open(digest) as stream:
            while piece := stream.read(_PIECE_BYTES):
                found.update(piece)
        self._refuse_other(digest, f"sha256:{found.hexdigest()}")

    def _open(self, digest: str) -> BinaryIO:
        name = _name_of(digest)
        if self._parent is not None and not self.path_of(digest).exists():
            return self._parent._open(digest)  # noqa: SLF001 — of this class
        try:
            return open_inside(self.root, name)
        except StoreError:
            if not self.path_of(digest).exists() and (self.root.parent / PRUNED).exists():
                what = "was pruned; the payload is gone, record the run again"
                raise StoreError(f"{self.root / name}: {what}") from None
            raise

    def _refuse_other(self, digest: str, found: str) -> None:
        if found != digest:
            raise DigestMismatch(
                f"the bytes have the digest {found}; copy the blob again", file=str(self.path_of(digest))
            )

    def path_of(self, digest: str) -> Path:
        """The path of *digest*, whether or not it is stored."""
        return inside(self.root, _name_of(digest))

    def size_bytes(self, digest: str) -> int:
        path = self.path_of(digest)
        size_bytes = _size_if_file(path)
        if size_bytes is None and self._parent is not None:
            return self._parent.size_bytes(digest)
        if size_bytes is None:
            raise StoreError(f"{path}: is missing; the capture is incomplete, copy it again")
        return size_bytes

    def find_missing(self, digests: Iterable[str]) -> list[str]:
        """Those of *digests* that are not stored, each once, in order."""
        missing = [digest for digest in dict.fromkeys(digests) if _size_if_file(self.path_of(digest)) is None]
        return missing if self._parent is None else self._parent.find_missing(missing)

    def __iter__(self) -> Iterator[str]:
        """All digests stored here, sorted; files with other names are not blobs."""
        top = inside(self.root, "sha256")
        for name in filter(_FOLDER_NAME.fullmatch, sorted(listdir(top)) if top.is_dir() else ()):
            folder = inside(top, name)
            for rest in sorted(listdir(folder)) if folder.is_dir() else ():
                digest = f"sha256:{name}{rest}"
                if canonical.is_digest(digest):
                    yield digest

    def find_foreign_names(self) -> Iterator[str]:
        """The files below *root* that are neither blobs nor temporary files."""
        for place, folders, files in os.walk(self.root):
            folders.sort()
            for name in sorted(files):
                path = (Path(place) / name).relative_to(self.root).as_posix()
                if not canonical.is_digest(_digest_in(path)) and not name.startswith(TEMP_PREFIX):
                    yield path

    def _make_folders(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        try:
            folder.mkdir(exist_ok=True)
            if self._sync:
                sync_folder(folder.parent)
        except OSError as error:
            raise unwritable(folder, error) from error


def _name_of(digest: str) -> str:
    if not canonical.is_digest(digest):
        raise FormatError(f"{digest!r} is not a digest; one is written sha256:<64 lowercase hex digits>")
    return f"sha256/{digest[7:9]}/{digest[9:]}"


def _digest_in(path: str) -> str:
    """The digest that the path of a blob stands for."""
    return "sha256:" + path.removeprefix("sha256/").replace("/", "", 1)


def _size_if_file(path: Path) -> int | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
