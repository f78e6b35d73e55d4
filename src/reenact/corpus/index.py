"""An index of runs: Parquet tables in a folder, brought up to date, whole at every moment.

corpus.json           which files belong to the corpus; put in place in one step, so that a reader sees the
                      old corpus or the new one
TABLE/00000007.parquet    the rows of part 7; a file that the manifest does not name is not there for a reader
sources/00000007.parquet  what the rows of part 7 were made of, and how it looked then
index.lock            who writes holds a lock on it
readers.lock          who reads holds a shared lock on it: files that are no longer needed stay so long
"""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from reenact._version import __version__
from reenact.check.kinds import MANIFESTS, RUN_FILES, RUN_KINDS, find_kind, find_runs, is_run
from reenact.corpus.stored import MANIFEST, StoredCorpus, corpus_address
from reenact.corpus.tables import (
    KEYS,
    TABLES,
    CorpusSource,
    SourceKind,
    TableRows,
    arrow_schema,
    read_source,
)
from reenact.errors import FormatError, ReenactError, StoreError, UnknownVersion, UsageError, relabel_errors
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.durable import TEMP_PREFIX, unwritable, write_whole
from reenact.store.objects import address_in
from reenact.store.remote import is_remote, list_remote, local_path, remote_name
from reenact.workers import map_batches, worker_count

LOCK: Final = "index.lock"
READERS: Final = "readers.lock"
SOURCES: Final = "sources"
VERSION: Final = 1
FORMAT: Final = "reenact.corpus"

BATCH_SOURCES: Final = 1024
BATCH_BYTES: Final = 64 * 1024 * 1024
"""So much is read at once by one worker, and makes one part."""
PART_SOURCES: Final = 8 * BATCH_SOURCES
PART_BYTES: Final = 512 * 1024 * 1024
"""Parts are merged until they have so much: Parquet is read fastest in few, large files."""
SMALL_PARTS: Final = 16
"""So many parts may be smaller than half of that."""
_ROW_GROUP_BYTES: Final = 32 * 1024 * 1024


class CorpusPart(msgspec.Struct, frozen=True, rename="camel"):
    """Files that came about together."""

    id: int
    sources: int
    rows: dict[str, int]
    size_bytes: dict[str, int]
    """By table; a table without rows has no file."""


class CorpusRoot(msgspec.Struct, frozen=True, rename="camel"):
    """A run, or a folder of runs, that was named."""

    name: str
    path: str
    """The same, absolute."""


class CorpusManifest(msgspec.Struct, frozen=True, rename="camel"):
    """What ``corpus.json`` holds."""

    format: str
    version: int
    producer: str
    roots: list[CorpusRoot]
    next_part: int
    parts: list[CorpusPart]


class IndexReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What :func:`index` did."""

    path: str
    runs: int
    """How many the corpus has now; those that cannot be read included."""
    receipts: int
    results: int
    added: int
    changed: int
    removed: int
    unchanged: int
    """Of runs, receipts and results together."""
    rows: dict[str, int]
    size_bytes: int
    problems: list[str]
    """Runs that could not be read, or not to their end; what could be read of them is there."""


class _Known(NamedTuple):
    """A source as it was when it was indexed."""

    part: int
    kind: SourceKind
    stamp: str
    is_final: bool


def index(
    *runs: str | Path,
    out: str | Path,
    full: bool = False,
    jobs: int = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> IndexReport:
    """Make *out* the index of *runs*, runs and folders of runs; without any, of those it was made of before.

    Only what is new or has changed is read, or everything with *full*; by *jobs* processes (0: one per core)
    or *on* Ray (``ray``, ``ray=ADDRESS``), with the same files as result. The corpus is the old one until it
    is the new one. Raises :class:`StoreError` where another process is writing it. *out* may be an address.
    """
    require_arrow()
    address = corpus_address(out)
    work = _Work(worker_count(jobs, is_much=True), on, progress_bar)
    if address is not None:
        return _index_at(address, runs, work, full=full)
    folder = Path(local_path(out))
    with _only_writer(folder):
        before = _manifest_to_continue(folder, full=full)
        return _update(folder, before, runs, work, full=full)[0]


class _Work(NamedTuple):
    """Who does the work, and who is told of it."""

    jobs: int
    on: str | None
    progress_bar: ProgressBar


def _update(
    folder: Path,
    before: CorpusManifest | None,
    runs: Sequence[str | Path],
    work: _Work,
    *,
    full: bool,
    stored: StoredCorpus | None = None,
) -> tuple[IndexReport, CorpusManifest]:
    where = folder if stored is None else stored.address
    roots = [root_of(run) for run in runs] or (before.roots if before else [])
    if not roots:
        raise UsageError(f"{where}: is no corpus yet; name the runs to index")
    with without_garbage_collection():
        found = {source.name: source for source in find_sources(roots)}
        known = {} if before is None or full else _read_known(folder, before, stored)
    update = _Indexing(folder, before, known, found, stored)
    return update.run(roots, work.jobs, work.on, work.progress_bar)


def _index_at(address: str, runs: Sequence[str | Path], work: _Work, *, full: bool) -> IndexReport:
    """The same at an address: what was read of each run is copied here, new files go there."""
    stored = StoredCorpus(address, is_written=True)
    with TemporaryDirectory(prefix="reenact-index-") as temp, relabel_errors(temp, address):
        folder = Path(temp)
        if stored.is_there:
            stored.fetch_manifest(folder)
        elif others := sorted({name.partition("/")[0] for name in stored.files} - {SOURCES, *TABLES}):
            raise UsageError(f"{address}: holds something else ({others[0]}); name a new one for the corpus")
        before = _manifest_to_continue(folder, full=full)
        report, manifest = _update(folder, before, runs, work, full=full, stored=stored)
        was_there = set() if before is None else set(_files_of(before.parts))
        named = set(_files_of(manifest.parts))
        if manifest != before:
            stored.publish(folder, sorted(named - was_there), named | was_there)
    return msgspec.structs.replace(report, path=address)


def _files_of(parts: Iterable[CorpusPart], tables: Iterable[str] = (SOURCES, *TABLES)) -> dict[str, int]:
    """The files of *parts*, by their names below the corpus, with their sizes."""
    return {
        str(part_file(Path(), table, part.id)): part.size_bytes[table]
        for table in tables
        for part in parts
        if table in part.size_bytes
    }


@contextmanager
def local_corpus(path: str | Path, tables: Iterable[str]) -> Iterator[Path]:
    """The folder of a corpus; of one at an address, for the time of the block a copy of these *tables*."""
    address = corpus_address(path)
    if address is None:
        yield Path(local_path(path))
        return
    stored = StoredCorpus(address)
    with TemporaryDirectory(prefix="reenact-corpus-") as temp, relabel_errors(temp, address):
        stored.fetch_manifest(Path(temp))
        stored.fetch(Path(temp), _files_of(read_corpus(Path(temp)).parts, tables))
        yield Path(temp)


class _Indexing:
    """One update of a corpus."""

    def __init__(
        self,
        folder: Path,
        before: CorpusManifest | None,
        known: Mapping[str, _Known],
        found: Mapping[str, CorpusSource],
        stored: StoredCorpus | None,
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._before = before
        self._known = known
        self._found = found
        self._next_part = max(before.next_part if before else 1, _last_part(folder, stored) + 1)
        self.problems: list[str] = []

    def run(
        self, roots: list[CorpusRoot], jobs: int, on: str | None, progress_bar: ProgressBar
    ) -> tuple[IndexReport, CorpusManifest]:
        stale = [name for name, known in self._known.items() if not self._is_current(name, known)]
        fresh = [source for name, source in self._found.items() if name not in self._known]
        fresh += [self._found[name] for name in stale if name in self._found]
        parts = [*self._kept_parts(stale)]
        batches = list(make_batches(fresh))
        with progress_bar(len(fresh), "indexing") as progress:
            for made in map_batches(index_batch, batches, jobs=min(jobs, len(batches)), on=on):
                self.problems += made.problems
                parts.append(self._write_part(made))
                progress(made.sources)
        parts = self._merge_small(parts)
        manifest = CorpusManifest(FORMAT, VERSION, f"reenact {__version__}", roots, self._next_part, parts)
        if self._before is None or manifest != self._before:
            write_whole(
                self._folder / MANIFEST,
                msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n",
                temp_folder=self._folder,
                sync=True,
            )
        if self._stored is None:
            _remove_unnamed(self._folder, parts)
        return self._report(manifest, stale), manifest

    def _is_current(self, name: str, known: _Known) -> bool:
        source = self._found.get(name)
        return (
            source is not None and known.is_final and (source.stamp, source.kind) == (known.stamp, known.kind)
        )

    def _kept_parts(self, stale: Sequence[str]) -> Iterator[CorpusPart]:
        """The parts of before, without the rows of sources that are gone or will be read again."""
        gone: dict[int, list[str]] = {}
        for name in stale:
            gone.setdefault(self._known[name].part, []).append(name)
        for part in self._before.parts if self._before and self._known else ():
            if part.id not in gone:
                yield part
            elif len(gone[part.id]) < part.sources:
                yield self._rewrite([part], without=gone[part.id])

    def _write_part(self, made: IndexedBatch) -> CorpusPart:
        part, self._next_part = self._next_part, self._next_part + 1
        sizes: dict[str, int] = {}
        for table, content in made.files.items():
            file = part_file(self._folder, table, part)
            _make_folder(file.parent)
            write_whole(file, content, temp_folder=self._folder, sync=True)
            sizes[table] = len(content)
        return CorpusPart(part, made.sources, made.rows, sizes)

    def _merge_small(self, parts: list[CorpusPart]) -> list[CorpusPart]:
        small = [part for part in parts if _is_small(part)]
        if len(small) <= SMALL_PARTS:
            return parts
        rest = [part for part in parts if not _is_small(part)]
        merged: list[CorpusPart] = []
        group: list[CorpusPart] = []
        for part in small:
            if group and not _fit_together([*group, part]):
                merged.append(self._rewrite(group) if len(group) > 1 else group[0])
                group = []
            group.append(part)
        merged.append(self._rewrite(group) if len(group) > 1 else group[0])
        return [*rest, *merged]

    def _rewrite(self, parts: Sequence[CorpusPart], without: Sequence[str] = ()) -> CorpusPart:
        """One part with the rows of *parts*, but for those of the sources *without*."""
        files, rows = {}, {}
        if self._stored is not None:
            named = {} if self._before is None else _files_of(self._before.parts)
            self._stored.fetch(
                self._folder, {name: size for name, size in _files_of(parts).items() if name in named}
            )
        for table in (SOURCES, *TABLES):
            paths = [part_file(self._folder, table, part.id) for part in parts if table in part.size_bytes]
            files[table], rows[table] = _merge_files(table, paths, without)
        kept = {table: content for table, content in files.items() if rows[table]}
        made = IndexedBatch(
            rows[SOURCES], kept, {table: rows[table] for table in kept if table != SOURCES}, []
        )
        return self._write_part(made)

    def _report(self, manifest: CorpusManifest, stale: Sequence[str]) -> IndexReport:
        kinds = [source.kind for source in self._found.values()]
        removed = sum(name not in self._found for name in stale)
        return IndexReport(
            path=str(self._folder),
            runs=kinds.count("run"),
            receipts=kinds.count("receipt"),
            results=kinds.count("result"),
            added=sum(name not in self._known for name in self._found),
            changed=len(stale) - removed,
            removed=removed,
            unchanged=len(self._known) - len(stale),
            rows={table: sum(part.rows.get(table, 0) for part in manifest.parts) for table in TABLES},
            size_bytes=sum(sum(part.size_bytes.values()) for part in manifest.parts),
            problems=self.problems,
        )


def _is_small(part: CorpusPart) -> bool:
    return part.sources < PART_SOURCES / 2 and sum(part.size_bytes.values()) < PART_BYTES / 2


def _fit_together(parts: Sequence[CorpusPart]) -> bool:
    size_bytes = sum(sum(part.size_bytes.values()) for part in parts)
    return sum(part.sources for part in parts) <= PART_SOURCES and size_bytes <= PART_BYTES


# What there is to index


def find_sources(roots: Iterable[CorpusRoot]) -> Iterator[CorpusSource]:
    """Every run, replay receipt and test result in *roots*, each under the name that the user knows it by."""
    seen: set[str] = set()
    for root in roots:
        with relabel_errors(root.path, root.name):
            found = list(_sources_in(root))
        for source in found:
            if source.path not in seen:
                seen.add(source.path)
                yield source


def root_of(path: str | Path) -> CorpusRoot:
    """*path* as the corpus keeps it; an address is where it is."""
    name = remote_name(path)
    return CorpusRoot(name, os.path.abspath(name) if address_in(name) is None else name)


def _sources_in(root: CorpusRoot) -> Iterator[CorpusSource]:
    if is_remote(root.path):
        found = list_remote(root.path)
        if not found:
            raise StoreError(f"{root.name}: holds no run; name a capture, or a folder with some")
        for run in found:
            name = root.name + run.path[len(root.path) :]
            yield CorpusSource(name, run.path, "run", run.stamp, run.size_bytes)
        return
    if not os.path.isdir(root.path):
        kind = _kind_of_file(root.path) or "run"
        if kind == "run":
            find_runs([root.path])  # says what is wrong with it
        yield _stamp(root, root.path, kind, [_stat(root.path)])
        return
    has_run = False
    for source in _walk(root, root.path):
        has_run |= source.kind == "run"
        yield source
    if not has_run:
        find_runs([root.path])  # likewise


_FILES_OF_RUN: Final = (
    *("manifest.json", "manifest.open.json", "recovered.json", "events.jsonl"),
    *("REPLAY.jsonl", "replay.json", "trace.json"),
)


_RUN_NAMES: Final = (*MANIFESTS, *RUN_FILES)


def _walk(root: CorpusRoot, folder: str, *, is_in_run: bool = False) -> Iterator[CorpusSource]:
    """What is in *folder* and below it, as :func:`find_runs` finds runs; each folder is listed once."""
    with os.scandir(folder) as found:
        entries = {entry.name: entry for entry in found}
    files = [name for name in _RUN_NAMES if name in entries and entries[name].is_file()]
    if files and not is_in_run:
        there = [entries.get(name) for name in _FILES_OF_RUN]
        yield _stamp(root, folder, "run", [None if entry is None else _stat(entry) for entry in there])
        is_in_run = True
    if (files and files[0] in MANIFESTS) or (is_in_run and folder == root.path):
        return
    for name, entry in sorted(entries.items()):
        if entry.is_dir(follow_symlinks=False):
            if not name.startswith("."):
                yield from _walk(root, entry.path, is_in_run=is_in_run)
        elif entry.is_dir():  # a link is followed to a run, and not through folders
            if not name.startswith(".") and not is_in_run and is_run(Path(entry.path)):
                yield from _walk(root, entry.path)
        elif name.endswith((".json", ".jsonl")):
            kind = _kind_of_file(entry.path)
            if kind is not None and not (kind == "run" and is_in_run):
                yield _stamp(root, entry.path, kind, [_stat(entry)])


def _kind_of_file(file: str) -> SourceKind | None:
    try:
        kind = find_kind(Path(file))
    except (ReenactError, OSError):
        return None
    kinds: dict[str | None, SourceKind] = {"replay receipt": "receipt", "test result": "result"}
    return "run" if kind in RUN_KINDS else kinds.get(kind)


def _stamp(
    root: CorpusRoot, path: str, kind: SourceKind, stats: Sequence[os.stat_result | None]
) -> CorpusSource:
    name = root.name if path == root.path else os.path.join(root.name, path[len(root.path) :].lstrip("/"))
    marks: list[str] = []
    size_bytes = 0
    for each in stats:
        if each is None:
            marks.append("")
            continue
        # The time of change of the inode too: that of the content can be set, and a clock can be off.
        marks.append("%x.%x.%x" % (each.st_size, each.st_mtime_ns, each.st_ctime_ns))  # noqa: UP031 — faster
        size_bytes += each.st_size
    return CorpusSource(name, path, kind, ",".join(marks), size_bytes)


def _stat(path: str | os.DirEntry[str]) -> os.stat_result | None:
    try:
        return os.stat(path) if isinstance(path, str) else path.stat()
    except OSError:
        return None


# Reading sources into files


class IndexedBatch(NamedTuple):
    """The Parquet files of some sources; pure data, so that any process can make it."""

    sources: int
    files: dict[str, bytes]
    """By table; ``sources`` is one of them."""
    rows: dict[str, int]
    problems: list[str]


def make_batches(sources: Iterable[CorpusSource]) -> Iterator[list[CorpusSource]]:
    """*sources* in pieces of work; those that were written at about the same time are together.

    So the rows of a part are of a few days, and a query for some days passes over most of the files.
    """
    batch: list[CorpusSource] = []
    batch_bytes = 0
    for source in sorted(sources, key=_written_at):
        if batch and (len(batch) >= BATCH_SOURCES or batch_bytes + source.size_bytes > BATCH_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(source)
        batch_bytes += source.size_bytes
    if batch:
        yield batch


def _written_at(source: CorpusSource) -> tuple[int, str]:
    if "," not in source.stamp and "." not in source.stamp:
        return 0, source.name  # of elsewhere, where nothing says so
    first = next((mark for mark in source.stamp.split(",") if mark), "0.0.0")
    return int(first.split(".")[1], 16), source.name


def index_batch(sources: Sequence[CorpusSource]) -> IndexedBatch:
    """Read *sources*; the same sources make the same bytes, whoever reads them."""
    with without_garbage_collection():
        return _index_batch(sources)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """What is read makes no cycles, and looking for some in it would take a third of the time."""
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
    listed: list[tuple[Any, ...]] = []
    for source in sources:
        reading = read_source(source, rows)
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
    """A Parquet file in memory for each table that gets rows."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, Any]] = {}
        self.rows: dict[str, int] = {}

    def write(self, tables: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for table, rows in tables.items():
            if table not in self._open:
                sink = pa.BufferOutputStream()
                self._open[table] = sink, pq.ParquetWriter(sink, rows.schema, compression="zstd")
            self._open[table][1].write_table(rows)
            self.rows[table] = self.rows.get(table, 0) + rows.num_rows

    def close(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for table, (sink, writer) in self._open.items():
            writer.close()
            files[table] = sink.getvalue().to_pybytes()
        return files


def _sources_table(listed: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    schema = _sources_schema()
    columns = zip(*listed, strict=True)
    arrays = [pa.array(list(column), type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _sources_schema() -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("name", "kind", "stamp")]
    return pa.schema([*texts, ("is_final", pa.bool_()), ("problem", pa.string())])


def _merge_files(table: str, files: Sequence[Path], without: Sequence[str]) -> tuple[bytes, int]:
    """The rows of all *files*, but for those of the sources *without*, and how many they are."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = _sources_schema() if table == SOURCES else arrow_schema(table)
    key = "name" if table == SOURCES else KEYS[table]
    gone = pa.array(without, type=pa.string())
    sink, count = pa.BufferOutputStream(), 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for file in files:
            source = pq.ParquetFile(file)
            for group in range(source.num_row_groups):
                rows = source.read_row_group(group)
                if without:
                    rows = rows.filter(pc.invert(pc.is_in(rows[key], value_set=gone)))
                if rows.num_rows:
                    writer.write_table(rows)
                    count += rows.num_rows
    return sink.getvalue().to_pybytes(), count


# The folder


def require_arrow() -> None:
    """Raise :class:`UsageError` where the libraries for tables are missing."""
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        what = f"{error.name or 'a library'} is not installed"
        raise UsageError(f"{what}; tables take: pip install 'reenact[query]'") from None


def is_corpus(path: str | Path) -> bool:
    """Whether *path* is the folder or the address of an index, whatever its version."""
    address = corpus_address(path)
    if address is not None:
        return StoredCorpus(address).is_there
    return (Path(local_path(path)) / MANIFEST).is_file()


def part_file(folder: Path, table: str, part: int) -> Path:
    """The file with the rows that *part* has of *table*."""
    return folder / table / f"{part:08d}.parquet"


class _Version(msgspec.Struct, frozen=True):
    format: str = ""
    version: Any = None


def read_corpus(folder: Path) -> CorpusManifest:
    """The manifest of the corpus in *folder*; :class:`FormatError` where it is not one that we can read."""
    file = folder / MANIFEST
    if not file.is_file():  # reading a pipe would wait for ever
        raise StoreError(f"{folder}: is no corpus; make one with: reenact index RUNS -o {folder}")
    text = file.read_bytes()
    remedy = "make it anew with: reenact index --full"
    try:
        found = msgspec.json.decode(text, type=_Version)
        if found.format != FORMAT:
            raise FormatError(f"is no manifest of a corpus; {remedy}", file=str(file))
        if found.version != VERSION:
            reason = (
                f"the corpus has version {found.version!r}, this reenact reads version {VERSION}; {remedy}"
            )
            raise UnknownVersion(reason, file=str(file))
        return msgspec.json.decode(text, type=CorpusManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{error}; {remedy}", file=str(file)) from None


def check_files(folder: Path, manifest: CorpusManifest, tables: Iterable[str]) -> dict[str, list[str]]:
    """By table, the files of a corpus; :class:`StoreError` where one is missing or not whole."""
    files: dict[str, list[str]] = {}
    for table in tables:
        files[table] = []
        for part in manifest.parts:
            if table not in part.size_bytes:
                continue
            file = part_file(folder, table, part.id)
            found, expected = _stat(str(file)), part.size_bytes[table]
            if found is None or found.st_size != expected:
                what = "is missing" if found is None else f"has {found.st_size} of {expected} bytes"
                raise StoreError(f"{file}: {what}; make the corpus anew with: reenact index --full")
            files[table].append(str(file))
    return files


def _manifest_to_continue(folder: Path, *, full: bool) -> CorpusManifest | None:
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


def _read_known(folder: Path, manifest: CorpusManifest, stored: StoredCorpus | None) -> dict[str, _Known]:
    import pyarrow.parquet as pq

    if stored is None:
        check_files(folder, manifest, [SOURCES, *TABLES])
    else:
        named = _files_of(manifest.parts)
        bad = next((name for name, size in named.items() if stored.files.get(name) != size), None)
        if bad is not None:
            remedy = "make the corpus anew with: reenact index --full"
            raise StoreError(f"{stored.address}/{bad}: is missing or not whole; {remedy}")
        stored.fetch(folder, _files_of(manifest.parts, [SOURCES]))
    known: dict[str, _Known] = {}
    for part in manifest.parts:
        names = ["name", "kind", "stamp", "is_final"]
        table = pq.ParquetFile(part_file(folder, SOURCES, part.id)).read(names, use_threads=False)
        columns = (table[name].to_pylist() for name in names)
        for name, kind, stamp, is_final in zip(*columns, strict=True):
            known[name] = _Known(part.id, kind, stamp, is_final)
    return known


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    _make_folder(folder)
    fd = _open_lock(folder / LOCK)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            raise StoreError(f"{folder}: is being indexed by process {owner}; wait until it ends") from None
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
    """No file of a corpus in *folder* is removed in the block, even if the corpus is brought up to date."""
    try:
        fd = os.open(folder / READERS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield  # no corpus, or one that nobody has written here
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def _last_part(folder: Path, stored: StoredCorpus | None) -> int:
    """The highest number that a file has, named by the manifest or not: none is written over."""
    files: Iterable[Path] = map(Path, stored.files) if stored is not None else folder.glob("*/*.parquet")
    return max((int(file.stem) for file in files if file.stem.isdecimal()), default=0)


def _remove_unnamed(folder: Path, parts: Sequence[CorpusPart]) -> None:
    """Remove files of earlier versions of the corpus and of killed writers, unless somebody reads."""
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
