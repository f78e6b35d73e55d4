"""Packs: many runs in one file; reading one run reads its bytes and a few kilobytes of the directory.

``REPACK01``          the first bytes of a pack, and the last ones
run, run, …           each compressed by itself, sorted by name, without gaps
page, page, …         the directory: a tree of pages, the leaves first, the root last
footer                the place of the root, the number of runs, and the digest of the root

A page has the place, length and SHA-256 of each run or page that it refers to, so the footer covers every
byte: a change is found when the changed part is read. A run is the length of a list, the list of its files
with their sizes, and the files, all compressed together with zlib.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import msgspec

from reenact.errors import DigestMismatch, FormatError, StoreError, UnknownVersion
from reenact.store.objects import ObjectStore, safe_name

MAGIC: Final = b"REPACK01"
_FAMILY: Final = b"REPACK"
_FOOTER: Final = struct.Struct("<QQQII32s32s8s")
"""Runs, end of the runs, start of the root, its length, levels, its digest, digest of the footer, magic."""
_PAGE_BYTES: Final = 8 * 1024
"""The size at which a page ends; reading one run reads one page of each level."""
_TAIL_BYTES: Final = 16 * 1024
"""Enough for footer and root, which are read in one request."""
_MAX_PAGE_BYTES: Final = 64 * 1024
_MAX_LEVELS: Final = 12
_MAX_NAME_BYTES: Final = 1024
_MAX_LIST_BYTES: Final = 16 * 1024 * 1024
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_MAX_RATIO: Final = 1100
"""Above the highest compression ratio of zlib."""


class PackedRun(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A run in the directory of a pack; in an inner page, a page of the next level and its first name."""

    name: str
    start: int
    length: int
    """Of the compressed bytes."""
    size_bytes: int
    """Of its files; for a page, the number of runs below it."""
    digest: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_read_page: Final = msgspec.msgpack.Decoder(list[PackedRun]).decode
_read_list: Final = msgspec.msgpack.Decoder(list[tuple[str, int]]).decode


class RangedFile(Protocol):
    """A file of which parts can be read."""

    name: str

    def begin(self, length: int) -> tuple[int, bytes]:
        """Its size and its first *length* bytes, in one request."""
        ...

    def read(self, start: int, length: int) -> bytes: ...


class LocalFile:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    def begin(self, length: int) -> tuple[int, bytes]:
        with self._path.open("rb") as stream:
            return os.fstat(stream.fileno()).st_size, stream.read(length)

    def read(self, start: int, length: int) -> bytes:
        with self._path.open("rb") as stream:
            stream.seek(start)
            return stream.read(length)


class ObjectFile:
    """An object in object storage."""

    def __init__(self, address: str) -> None:
        folder, _, self._path = address.rpartition("/")
        self.name = address
        self._store = ObjectStore(folder)

    def begin(self, length: int) -> tuple[int, bytes]:
        return self._store.begin(self._path, length)

    def read(self, start: int, length: int) -> bytes:
        return self._store.get_range(self._path, start, length)


def is_pack(path: Path) -> bool:
    """Whether *path* is a file that begins or ends like a pack of any version."""
    if not os.path.isfile(path):
        return False
    try:
        with path.open("rb") as stream:
            if stream.read(len(_FAMILY)) == _FAMILY:
                return True
            stream.seek(-len(MAGIC), os.SEEK_END)  # with a damaged start it is still a pack
            return stream.read(len(_FAMILY)) == _FAMILY
    except OSError:
        return False


class PackWriter:
    """Writes a pack into *stream*, run by run, in the order of their names."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._at = 0
        self._write(MAGIC)
        self._runs: list[PackedRun] = []

    def add(self, name: str, folder: Path, files: Iterable[str]) -> int:
        """Add the run in *folder*; returns the size of its files.

        Raises :class:`StoreError` if a file changes while it is read.
        """
        if len(name.encode()) > _MAX_NAME_BYTES:
            raise StoreError(
                f"{folder}: its name is longer than {_MAX_NAME_BYTES} bytes; give it a shorter one"
            )
        if self._runs and name <= self._runs[-1].name:
            raise StoreError(f"{folder}: there is another run {name!r} in the pack; give it another name")
        start, size_bytes, digest = self._at, 0, sha256()
        shrink = zlib.compressobj(6)

        def write(data: bytes) -> None:
            digest.update(data)
            self._write(data)

        sizes = [(file, os.stat(folder / file).st_size) for file in files]
        head = _encode(sizes)
        write(shrink.compress(struct.pack("<I", len(head)) + head))
        for file, expected in sizes:
            found = 0
            with (folder / file).open("rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    found += len(chunk)
                    write(shrink.compress(chunk))
            if found != expected:
                raise StoreError(f"{folder / file}: was changed meanwhile; pack it again")
            size_bytes += found
        write(shrink.flush())
        self._runs.append(PackedRun(name, start, self._at - start, size_bytes, digest.digest()))
        return size_bytes

    def close(self) -> None:
        """Write directory and footer."""
        end, levels = self._at, 1
        pages = self._write_pages(self._runs, lambda page: len(page))
        while len(pages) > 1:
            pages = self._write_pages(pages, lambda page: sum(entry.size_bytes for entry in page))
            levels += 1
        root = pages[0]
        facts = (len(self._runs), end, root.start, root.length, levels, root.digest)
        mark = sha256(_FOOTER.pack(*facts, b"", MAGIC)).digest()
        self._write(_FOOTER.pack(*facts, mark, MAGIC))

    def _write_pages(
        self, entries: Iterable[PackedRun], count: Callable[[list[PackedRun]], int]
    ) -> list[PackedRun]:
        pages: list[PackedRun] = []
        for page in _split_into_pages(entries):
            text = _encode(page)
            first = page[0].name if page else ""
            pages.append(PackedRun(first, self._at, len(text), count(page), sha256(text).digest()))
            self._write(text)
        return pages

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._at += len(data)


def _split_into_pages(entries: Iterable[PackedRun]) -> Iterator[list[PackedRun]]:
    page: list[PackedRun] = []
    page_bytes = 0
    for entry in entries:
        entry_bytes = len(_encode(entry))
        if len(page) > 1 and page_bytes + entry_bytes > _PAGE_BYTES:
            yield page
            page, page_bytes = [], 0
        page.append(entry)
        page_bytes += entry_bytes
    yield page


class Pack:
    """A pack to read from; :class:`FormatError` if it is not a pack, incomplete or changed."""

    def __init__(self, file: RangedFile) -> None:
        self._file = file
        self.name = file.name
        size_bytes, head = file.begin(len(MAGIC))
        if size_bytes < len(MAGIC) + _FOOTER.size:
            raise self._broken_pack("it is too short")
        tail_at = max(0, size_bytes - _TAIL_BYTES)
        tail = self._read(tail_at, size_bytes - tail_at)
        *facts, mark, magic = _FOOTER.unpack(tail[-_FOOTER.size :])
        if magic != MAGIC:
            if magic[: len(_FAMILY)] == _FAMILY:
                raise UnknownVersion("the pack has another version; install a newer reenact", file=self.name)
            raise self._broken_pack("it does not end as packs do")
        if head != MAGIC:
            raise self._broken_pack("it does not begin as packs do")
        if sha256(_FOOTER.pack(*facts, b"", MAGIC)).digest() != mark:
            raise self._broken_pack("its footer was changed")
        self.runs, self._end, start, length, self._levels, digest = facts
        """The number of runs."""
        self._root = PackedRun("", start, length, self.runs, digest)
        self._directory_end = size_bytes - _FOOTER.size
        if not (
            len(MAGIC) <= self._end <= start
            and start + length == self._directory_end
            and 1 <= self._levels <= _MAX_LEVELS
        ):
            raise self._broken_pack("its footer leads nowhere")
        self._latest: dict[int, tuple[int, list[PackedRun]]] = {}
        """By level: the start and content of the page that was read last; the next read often needs it."""
        self._root_text = tail[start - tail_at : start - tail_at + length] if start >= tail_at else None

    def find(self, name: str) -> PackedRun | None:
        page = self._root
        for level in range(self._levels, 0, -1):
            at, entries = self._latest.get(level, (-1, []))
            if at != page.start:
                entries = self._page(page, is_leaf=level == 1)
                self._latest[level] = page.start, entries
            if level == 1:
                return next((entry for entry in entries if entry.name == name), None)
            before = [entry for entry in entries if entry.name <= name]
            if not before:
                return None
            page = before[-1]
        return None

    def __iter__(self) -> Iterator[PackedRun]:
        """Every run, sorted by name; raises unless each begins where the one before it ends."""
        at, count, name = len(MAGIC), 0, ""
        for entry in self._leaves(self._root, self._levels):
            if entry.start != at or (count and entry.name <= name):
                raise self._broken_pack(f"its directory does not fit together at {entry.name!r}")
            at, count, name = at + entry.length, count + 1, entry.name
            yield entry
        if (at, count) != (self._end, self.runs):
            raise self._broken_pack("its directory does not name all that is in it")

    def unpack(self, run: PackedRun, into: Path) -> None:
        """Write the files of *run* to the folder *into*; raises if they are not what was packed."""
        digest, grow = sha256(), zlib.decompressobj()
        files = _FileWriter(into, run, self.name)
        try:
            for at in range(run.start, run.start + run.length, _CHUNK_BYTES):
                chunk = self._read(at, min(_CHUNK_BYTES, run.start + run.length - at))
                digest.update(chunk)
                while chunk:
                    files.write(grow.decompress(chunk, _CHUNK_BYTES))
                    chunk = grow.unconsumed_tail
            files.write(grow.flush())
            is_whole = grow.eof and not grow.unused_data
        except zlib.error:
            is_whole = False
        finally:
            files.close()
        if digest.digest() != run.digest:
            raise DigestMismatch("is not what was packed; get the pack again", file=self.label(run.name))
        if not is_whole or not files.is_done:
            raise self._broken_pack(f"the run {run.name!r} does not have the size that the directory says")

    def label(self, name: str) -> str:
        """The name of a run as users write it."""
        return f"{self.name}#{name}"

    def _leaves(self, page: PackedRun, level: int) -> Iterator[PackedRun]:
        entries = self._page(page, is_leaf=level == 1)
        if level == 1:
            yield from entries
            return
        if sum(entry.size_bytes for entry in entries) != page.size_bytes:
            raise self._broken_pack("its directory and its footer disagree on the count")
        for entry in entries:
            yield from self._leaves(entry, level - 1)

    def _page(self, page: PackedRun, *, is_leaf: bool) -> list[PackedRun]:
        is_inside = self._end <= page.start and page.start + page.length <= self._directory_end
        if not is_inside or not 0 < page.length <= _MAX_PAGE_BYTES:
            raise self._broken_pack("its directory leads out of it")
        known = self._root_text if page is self._root else None
        text = self._read(page.start, page.length) if known is None else known
        if sha256(text).digest() != page.digest:
            raise DigestMismatch("its directory was changed; get the pack again", file=self.name)
        try:
            entries = _read_page(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken_pack(f"its directory cannot be read ({error})") from None
        if len(entries) != page.size_bytes and is_leaf:
            raise self._broken_pack("its directory and its footer disagree on the count")
        for entry in entries:
            self._check_entry(entry, is_leaf=is_leaf)
        return entries

    def _check_entry(self, entry: PackedRun, *, is_leaf: bool) -> None:
        safe_name(entry.name, self.name)
        low, high = (len(MAGIC), self._end) if is_leaf else (self._end, self._directory_end)
        if entry.length <= 0 or entry.size_bytes < 0 or not low <= entry.start <= high - entry.length:
            raise self._broken_pack(f"its directory leads out of it at {entry.name!r}")
        if is_leaf and entry.size_bytes > entry.length * _MAX_RATIO:
            raise self._broken_pack(f"the run {entry.name!r} cannot have {entry.size_bytes} bytes")

    def _read(self, start: int, length: int) -> bytes:
        found = self._file.read(start, length)
        if len(found) != length:
            raise self._broken_pack(f"it has {len(found)} of {length} bytes at {start}")
        return found

    def _broken_pack(self, reason: str) -> FormatError:
        return FormatError(f"is not a complete pack: {reason}; get or make it again", file=self.name)


class _FileWriter:
    """Splits the unpacked bytes of one run into its files; refuses more bytes than the directory says."""

    def __init__(self, folder: Path, run: PackedRun, pack: str) -> None:
        self._folder = folder
        self._where = f"{pack}#{run.name}"
        self._size_bytes = run.size_bytes
        self._head = b""
        self._files: Iterator[tuple[str, int]] | None = None
        self._stream: BinaryIO | None = None
        self._left = 0
        self.is_done = False

    def write(self, data: bytes) -> None:
        if self._files is None:
            rest = self._read_list(data)
            if rest is None:
                return
            data = rest
            self._open_next()
        while data:
            if self.is_done or self._stream is None:
                raise self._broken_run("it has more than its list says")
            part = data[: self._left]
            self._stream.write(part)
            data, self._left = data[len(part) :], self._left - len(part)
            self._open_next()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _read_list(self, data: bytes) -> bytes | None:
        """The bytes after the list of files; ``None`` until the list is complete."""
        self._head += data
        if len(self._head) < 4:
            return None
        [length] = struct.unpack_from("<I", self._head)
        if length > _MAX_LIST_BYTES:
            raise self._broken_run("its list of files is too long")
        if len(self._head) < 4 + length:
            return None
        try:
            files = _read_list(self._head[4 : 4 + length])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._broken_run("its list of files cannot be read") from None
        sizes = [size for _, size in files]
        if min(sizes, default=0) < 0 or sum(sizes) != self._size_bytes:
            raise self._broken_run("its files have another size than the directory says")
        if len({name for name, _ in files}) != len(files):
            raise self._broken_run("it has two files of one name")
        self._files = iter(files)
        return self._head[4 + length :]

    def _open_next(self) -> None:
        """If the current file is complete, go on to the next one that is not empty."""
        while not self._left and not self.is_done and self._files is not None:
            self.close()
            found = next(self._files, None)
            if found is None:
                self.is_done = True
                return
            name, self._left = found
            file = self._folder / safe_name(name, self._where)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                self._stream = file.open("xb")
            except OSError as error:
                reason = f"{name!r} cannot be written: {error.strerror}"
                raise StoreError(f"{self._where}: {reason}") from error

    def _broken_run(self, reason: str) -> FormatError:
        return FormatError(f"is not a complete run: {reason}; get or make the pack again", file=self._where)
