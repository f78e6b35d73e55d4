"""The files of a corpus: a manifest, and Parquet files in parts.

corpus.json               lists the files of the corpus; it is replaced atomically, so that a reader sees the
                          old corpus or the new one
TABLE/00000007.parquet    the rows of part 7; readers ignore a file that the manifest does not list
sources/00000007.parquet  the sources of part 7, each with a stamp by which changes are detected
index.lock                locked by the writer
readers.lock              locked by readers, shared: no file is removed meanwhile
"""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from reenact.corpus.rows import read_sources
from reenact.corpus.sources import CorpusRoot, KnownSource
from reenact.corpus.stored import StoredCorpus, corpus_address
from reenact.corpus.tables import KEYS, TABLES, CorpusSource, TableRows, arrow_schema
from reenact.errors import FormatError, StoreError, UnknownVersion, UsageError, relabel_errors
from reenact.store.durable import TEMP_PREFIX, unwritable
from reenact.store.remote import local_path
from reenact.store.rundir import INDEX_MANIFEST

LOCK: Final = "index.lock"
READERS: Final = "readers.lock"
SOURCES: Final = "sources"
VERSION: Final = 1
FORMAT: Final = "reenact.corpus"
_ROW_GROUP_BYTES: Final = 32 * 1024 * 1024


class CorpusPart(msgspec.Struct, frozen=True, rename="camel"):
    """The files that were written for one batch of sources."""

    id: int
    sources: int
    rows: dict[str, int]
    size_bytes: dict[str, int]
    """By table; there is no file for a table without rows."""


class CorpusManifest(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``corpus.json``."""

    format: str
    version: int
    producer: str
    roots: list[CorpusRoot]
    next_part: int
    parts: list[CorpusPart]


def files_of(parts: Iterable[CorpusPart], tables: Iterable[str] = (SOURCES, *TABLES)) -> dict[str, int]:
    """The sizes of the files of *parts*, by name relative to the corpus."""
    return {
        str(part_file(Path(), table, part.id)): part.size_bytes[table]
        for table in tables
        for part in parts
        if table in part.size_bytes
    }


@contextmanager
def local_corpus(path: str | Path, tables: Iterable[str]) -> Iterator[Path]:
    """Yield the folder of a corpus; for one at an address, a temporary copy of these *tables*."""
    address = corpus_address(path)
    if address is None:
        yield Path(local_path(path))
        return
    stored = StoredCorpus(address)
    with TemporaryDirectory(prefix="reenact-corpus-") as temp, relabel_errors(temp, address):
        stored.fetch_manifest(Path(temp))
        stored.fetch(Path(temp), files_of(read_corpus(Path(temp)).parts, tables))
        yield Path(temp)


# Reading sources into files


class IndexedBatch(NamedTuple):
    """The Parquet files of some sources, in memory: a worker process returns it."""

    sources: int
    files: dict[str, bytes]
    """By table, including ``sources``."""
    rows: dict[str, int]
    problems: list[str]


def index_batch(sources: Sequence[CorpusSource]) -> IndexedBatch:
    """Read *sources* into Parquet files; equal sources give equal bytes in any process."""
    with without_garbage_collection():
        return _index_batch(sources)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: rows have no reference cycles, and it would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _index_batch(sources: Sequence[CorpusSource]) -> IndexedBatch:
    writers = _Writers()
    rows, problems = TableRows(), []
    listed: list[tuple[object, ...]] = []
    for source, reading in zip(sources, read_sources(sources, rows), strict=True):
        if reading.problem is not None:
            problems.append(reading.problem)
        listed.append((source.name, source.kind, source.stamp, reading.is_final, reading.problem))
        if rows.text_bytes > _ROW_GROUP_BYTES:
            writers.write(rows.take())
    writers.write(rows.take())
    writers.write({SOURCES: _sources_table(listed)})
    files = writers.close()
    counts = {table: count for table, count in writers.rows.items() if table != SOURCES}
    return IndexedBatch(len(sources), files, counts, problems)


class _Writers:
    """Writes a Parquet file in memory for each table that has rows."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, Any]] = {}
        self.rows: dict[str, int] = {}

    def write(self, tables: Mapping[str, Any]) -> None:
        import pyarrow as pa

        for table, rows in tables.items():
            if table not in self._open:
                sink = pa.BufferOutputStream()
                self._open[table] = sink, _open_writer(sink, rows.schema)
            self._open[table][1].write_table(rows)
            self.rows[table] = self.rows.get(table, 0) + rows.num_rows

    def close(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for table, (sink, writer) in self._open.items():
            writer.close()
            files[table] = sink.getvalue().to_pybytes()
        return files


def _open_writer(sink: Any, schema: Any) -> Any:
    """A writer that states the ranges of numbers, times and the key: a range of other texts skips nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ranged = [field.name for field in schema if field.type != pa.string() or field.name == schema[0].name]
    return pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=ranged)


def _sources_table(listed: Sequence[tuple[object, ...]]) -> object:
    import pyarrow as pa

    schema = _sources_schema()
    columns = zip(*listed, strict=True)
    arrays = [pa.array(list(column), type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _sources_schema() -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("name", "kind", "stamp")]
    return pa.schema([*texts, ("is_final", pa.bool_()), ("problem", pa.string())])


def merge_files(table: str, files: Sequence[Path], without: Sequence[str]) -> tuple[bytes, int]:
    """Merge the rows of *files*, except those of the sources *without*; also returns the row count."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _sources_schema() if table == SOURCES else arrow_schema(table)
    key = "name" if table == SOURCES else KEYS[table]
    gone = pa.array(without, type=pa.string())
    sink, count = pa.BufferOutputStream(), 0
    with _open_writer(sink, schema) as writer:
        for file in files:
            source = pq.ParquetFile(file)
            for group in range(source.num_row_groups):
                rows = source.read_row_group(group, use_threads=False)
                if without:
                    import pyarrow.compute as pc  # takes a tenth of a second to import

                    rows = rows.filter(pc.invert(pc.is_in(rows[key], value_set=gone)))
                if rows.num_rows:
                    writer.write_table(rows)
                    count += rows.num_rows
                del rows
                pa.default_memory_pool().release_unused()  # else merging takes 100 MB more
    return sink.getvalue().to_pybytes(), count


# The folder


def require_arrow() -> None:
    """Raise :class:`UsageError` if the libraries for tables are not installed."""
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        what = f"{error.name or 'a library'} is not installed"
        raise UsageError(f"{what}; tables take: pip install 'reenact[query]'") from None


def is_corpus(path: str | Path) -> bool:
    """Whether *path* is the folder or the address of an index, of any version."""
    address = corpus_address(path)
    if address is not None:
        return StoredCorpus(address).is_there
    return (Path(local_path(path)) / INDEX_MANIFEST).is_file()


def part_file(folder: Path, table: str, part: int) -> Path:
    """The file with the rows of *table* in *part*."""
    return folder / table / f"{part:08d}.parquet"


class _Version(msgspec.Struct, frozen=True):
    format: str = ""
    version: Any = None


def read_corpus(folder: Path) -> CorpusManifest:
    """The manifest of the corpus in *folder*; raises :class:`FormatError` if we cannot read it."""
    file = folder / INDEX_MANIFEST
    if not file.is_file():  # reading a pipe would block forever
        raise StoreError(f"{folder}: is not an index; make one with: reenact index RUNS -o {folder}")
    text = file.read_bytes()
    remedy = "build it again with: reenact index --full"
    try:
        found = msgspec.json.decode(text, type=_Version)
        if found.format != FORMAT:
            raise FormatError(f"is not the manifest of an index; {remedy}", file=str(file))
        if found.version != VERSION:
            reason = (
                f"the corpus has version {found.version!r}, this reenact reads version {VERSION}; {remedy}"
            )
            raise UnknownVersion(reason, file=str(file))
        return msgspec.json.decode(text, type=CorpusManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{error}; {remedy}", file=str(file)) from None


def check_files(folder: Path, manifest: CorpusManifest, tables: Iterable[str]) -> dict[str, list[str]]:
    """The files of a corpus by table; raises :class:`StoreError` if one is missing or incomplete."""
    files: dict[str, list[str]] = {}
    for table in tables:
        files[table] = []
        for part in manifest.parts:
            if table not in part.size_bytes:
                continue
            file = part_file(folder, table, part.id)
            size_bytes, expected = _size_of(file), part.size_bytes[table]
            if size_bytes != expected:
                what = "is missing" if size_bytes is None else f"has {size_bytes} of {expected} bytes"
                raise StoreError(f"{file}: {what}; build the index again with: reenact index --full")
            files[table].append(str(file))
    return files


def _size_of(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def manifest_to_continue(folder: Path, *, full: bool) -> CorpusManifest | None:
    if not is_corpus(folder):
        others = sorted(set(os.listdir(folder)) - {LOCK, READERS, SOURCES, *TABLES})
        others = [name for name in others if not name.startswith(TEMP_PREFIX)]
        if others:
            raise UsageError(
                f"{folder}: holds something else ({others[0]}); name a new folder for the corpus"
            )
        return None
    try:
        return read_corpus(folder)
    except FormatError:
        if full:
            return None
        raise


def read_known(folder: Path, manifest: CorpusManifest, stored: StoredCorpus | None) -> dict[str, KnownSource]:
    import pyarrow.parquet as pq

    if stored is None:
        check_files(folder, manifest, [SOURCES, *TABLES])
    else:
        named = files_of(manifest.parts)
        bad = next((name for name, size in named.items() if stored.files.get(name) != size), None)
        if bad is not None:
            remedy = "build the index again with: reenact index --full"
            raise StoreError(f"{stored.address}/{bad}: is missing or incomplete; {remedy}")
        stored.fetch(folder, files_of(manifest.parts, [SOURCES]))
    known: dict[str, KnownSource] = {}
    for part in manifest.parts:
        columns = ["name", "kind", "stamp", "is_final"]
        table = pq.ParquetFile(part_file(folder, SOURCES, part.id)).read(columns, use_threads=False)
        names, kinds, stamps, finals = (table[column].to_pylist() for column in columns)
        # Older versions wrote the mark of the folder, too.
        stamps = [stamp.partition("\t")[0] for stamp in stamps]
        known.update(zip(names, map(KnownSource, repeat(part.id), kinds, stamps, finals), strict=True))
    return known


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    make_folder(folder)
    fd = _open_lock(folder / LOCK)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            who = f"process {owner}" if owner else "another process"
            raise StoreError(f"{folder}: is being indexed by {who}; wait until it ends") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(fd)


def _open_lock(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unwritable(file, error) from error


@contextmanager
def keeping_files(folder: Path) -> Iterator[None]:
    """Lock the corpus in *folder* for reading: an update removes no file during the block."""
    try:
        fd = os.open(folder / READERS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield  # no corpus, or a copy of one, which has no lock file
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def last_part(folder: Path, stored: StoredCorpus | None) -> int:
    """The highest part number of any file, listed or not: no file is ever overwritten."""
    files: Iterable[Path] = map(Path, stored.files) if stored is not None else folder.glob("*/*.parquet")
    return max((int(file.stem) for file in files if file.stem.isdecimal()), default=0)


def remove_unnamed(folder: Path, parts: Sequence[CorpusPart]) -> None:
    """Remove files of earlier versions and of killed writers, unless a reader holds the lock."""
    named = {str(part_file(folder, table, part.id)) for part in parts for table in part.size_bytes}
    left = [file for table in (SOURCES, *TABLES) for file in (folder / table).glob("*.parquet")]
    left += folder.glob(f"{TEMP_PREFIX}*")
    readers = _open_lock(folder / READERS)
    try:
        fcntl.flock(readers, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file in left:
            if str(file) not in named:
                file.unlink(missing_ok=True)
    except BlockingIOError:
        pass  # the next update removes them
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        os.close(readers)
