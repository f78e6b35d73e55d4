"""Creates and updates a corpus, the index of runs; the new version replaces the old one atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from reenact._version import __version__
from reenact.corpus.parts import (
    FORMAT,
    SOURCES,
    VERSION,
    CorpusManifest,
    CorpusPart,
    IndexedBatch,
    files_of,
    index_batch,
    last_part,
    make_folder,
    manifest_to_continue,
    merge_files,
    only_writer,
    part_file,
    read_known,
    remove_unnamed,
    require_arrow,
    without_garbage_collection,
)
from reenact.corpus.sources import (
    BATCH_SOURCES,
    CorpusRoot,
    KnownSource,
    SourceList,
    UnchangedRuns,
    find_changes,
    is_utf8,
    root_of,
)
from reenact.corpus.stored import StoredCorpus, corpus_address
from reenact.corpus.tables import TABLES, CorpusSource
from reenact.errors import UsageError, relabel_errors
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.durable import write_whole
from reenact.store.remote import local_path
from reenact.store.rundir import INDEX_MANIFEST
from reenact.workers import map_batches, worker_count

PART_SOURCES: Final = 8 * BATCH_SOURCES
PART_BYTES: Final = 512 * 1024 * 1024
"""Parts are merged up to this size: few large Parquet files are read fastest."""
SMALL_PARTS: Final = 16
"""At most this many parts may be smaller than half of that."""


class IndexReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The result of :func:`index`."""

    path: str
    runs: int
    """The number of runs in the corpus, including those that cannot be read."""
    receipts: int
    results: int
    added: int
    changed: int
    removed: int
    unchanged: int
    """Counts runs, receipts and results, like the three numbers before it."""
    rows: dict[str, int]
    size_bytes: int
    problems: list[str]
    """Runs that could not be read, or not completely; their readable part is in the corpus."""


def index(
    *runs: str | Path,
    out: str | Path,
    full: bool = False,
    jobs: int | None = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> IndexReport:
    """Create or update the index *out* of *runs*, runs and folders of runs; by default those of last time.

    Reads only new and changed runs, or all with *full*, in *jobs* processes (0: one per core; ``None``:
    likewise if there is much to read) or *on* Ray (``ray``, ``ray=ADDRESS``); the resulting files are the
    same. The new version replaces the old one
    atomically. Raises :class:`StoreError` if another process is writing it. *out* may be an address.
    """
    require_arrow()
    address = corpus_address(out)
    work = _WorkOptions(jobs, on, progress_bar)
    if address is not None:
        return _index_at(address, runs, work, full=full)
    folder = Path(local_path(out))
    with only_writer(folder):
        before = manifest_to_continue(folder, full=full)
        return _update(folder, before, runs, work, full=full)[0]


class _WorkOptions(NamedTuple):
    """Where the work is done, and how progress is shown."""

    jobs: int | None
    on: str | None
    progress_bar: ProgressBar


def _update(
    folder: Path,
    before: CorpusManifest | None,
    runs: Sequence[str | Path],
    work: _WorkOptions,
    *,
    full: bool,
    stored: StoredCorpus | None = None,
) -> tuple[IndexReport, CorpusManifest]:
    where = folder if stored is None else stored.address
    roots = [root_of(run) for run in runs] or (before.roots if before else [])
    if not roots:
        raise UsageError(f"{where}: is not an index yet; name the runs to index")
    for root in roots:
        if not is_utf8(root.path):
            raise UsageError(f"{root.name}: its path is not UTF-8; name a folder above it")
    with closing(SourceList()) as fresh:
        with without_garbage_collection():
            known = {} if before is None or full else read_known(folder, before, stored)
            changes = _compare(find_changes(roots, known), known, fresh)
        return _IndexUpdate(folder, before, known, stored).run(roots, changes, work)


def _index_at(address: str, runs: Sequence[str | Path], work: _WorkOptions, *, full: bool) -> IndexReport:
    """Update a corpus at an address: download the needed files, and upload the new ones."""
    stored = StoredCorpus(address, is_written=True)
    with TemporaryDirectory(prefix="reenact-index-") as temp, relabel_errors(temp, address):
        folder = Path(temp)
        if stored.is_there:
            stored.fetch_manifest(folder)
        elif others := sorted({name.partition("/")[0] for name in stored.files} - {SOURCES, *TABLES}):
            raise UsageError(f"{address}: holds something else ({others[0]}); name a new one for the corpus")
        before = manifest_to_continue(folder, full=full)
        report, manifest = _update(folder, before, runs, work, full=full, stored=stored)
        was_there = set() if before is None else set(files_of(before.parts))
        named = set(files_of(manifest.parts))
        if manifest != before:
            stored.publish(folder, sorted(named - was_there), named | was_there)
    return msgspec.structs.replace(report, path=address)


class _Changes(NamedTuple):
    """The difference between the sources found now and the known ones."""

    fresh: SourceList
    """New and changed sources."""
    kinds: Counter[str]
    """The number of sources by kind."""
    changed: list[str]
    removed: list[str]


def _compare(
    sources: Iterable[CorpusSource | UnchangedRuns], known: Mapping[str, KnownSource], fresh: SourceList
) -> _Changes:
    kinds: Counter[str] = Counter()
    changed: list[str] = []
    found: set[str] = set()
    for source in sources:
        if isinstance(source, UnchangedRuns):
            kinds["run"] += len(source.names)
            found.update(source.names)
            continue
        kinds[source.kind] += 1
        before = known.get(source.name)
        if before is None:
            fresh.append(source)
            continue
        found.add(source.name)
        if not before.is_unchanged(source):
            fresh.append(source)
            changed.append(source.name)
    removed = [name for name in known if name not in found] if len(found) < len(known) else []
    return _Changes(fresh, kinds, changed, removed)


class _IndexUpdate:
    """One update of a corpus."""

    def __init__(
        self,
        folder: Path,
        before: CorpusManifest | None,
        known: Mapping[str, KnownSource],
        stored: StoredCorpus | None,
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._before = before
        self._known = known
        self._next_part = max(before.next_part if before else 1, last_part(folder, stored) + 1)
        self.problems: list[str] = []

    def run(
        self, roots: list[CorpusRoot], changes: _Changes, work: _WorkOptions
    ) -> tuple[IndexReport, CorpusManifest]:
        fresh = changes.fresh
        parts = [*self._kept_parts([*changes.changed, *changes.removed])]
        batches = fresh.batches()
        jobs = min(worker_count(work.jobs, is_much=fresh.is_much), len(batches))
        with work.progress_bar(len(fresh), "indexing") as progress:
            for made in map_batches(index_batch, map(fresh.read, batches), jobs=jobs, on=work.on):
                self.problems += made.problems
                parts.append(self._write_part(made))
                progress(made.sources)
        parts = self._merge_small(parts)
        manifest = CorpusManifest(FORMAT, VERSION, f"reenact {__version__}", roots, self._next_part, parts)
        if self._before is None or manifest != self._before:
            write_whole(
                self._folder / INDEX_MANIFEST,
                msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n",
                temp_folder=self._folder,
                sync=True,
            )
        if self._stored is None:
            remove_unnamed(self._folder, parts)
        return self._report(manifest, changes), manifest

    def _kept_parts(self, stale: Sequence[str]) -> Iterator[CorpusPart]:
        """The existing parts without the rows of the *stale* sources, which are removed or read again."""
        gone: dict[int, list[str]] = {}
        for name in stale:
            gone.setdefault(self._known[name].part, []).append(name)
        for part in self._before.parts if self._before and self._known else ():
            if part.id not in gone:
                yield part
            elif len(gone[part.id]) < part.sources:
                yield self._rewrite([part], without=gone[part.id])

    def _write_part(self, made: IndexedBatch) -> CorpusPart:
        part = self._number_part()
        sizes = {table: self._write_file(part, table, content) for table, content in made.files.items()}
        return CorpusPart(part, made.sources, made.rows, sizes)

    def _number_part(self) -> int:
        part, self._next_part = self._next_part, self._next_part + 1
        return part

    def _write_file(self, part: int, table: str, content: bytes) -> int:
        file = part_file(self._folder, table, part)
        make_folder(file.parent)
        write_whole(file, content, temp_folder=self._folder, sync=True)
        return len(content)

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
        """Write one part with the rows of *parts*, except those of the sources *without*."""
        if self._stored is not None:
            named = {} if self._before is None else files_of(self._before.parts)
            self._stored.fetch(
                self._folder, {name: size for name, size in files_of(parts).items() if name in named}
            )
        new, sizes, rows = self._number_part(), {}, {}
        for table in (SOURCES, *TABLES):
            paths = [part_file(self._folder, table, part.id) for part in parts if table in part.size_bytes]
            content, count = merge_files(table, paths, without)
            if count:
                sizes[table], rows[table] = self._write_file(new, table, content), count
        return CorpusPart(new, rows.pop(SOURCES), rows, sizes)

    def _report(self, manifest: CorpusManifest, changes: _Changes) -> IndexReport:
        changed, removed = len(changes.changed), len(changes.removed)
        return IndexReport(
            path=str(self._folder),
            runs=changes.kinds["run"],
            receipts=changes.kinds["receipt"],
            results=changes.kinds["result"],
            added=len(changes.fresh) - changed,
            changed=changed,
            removed=removed,
            unchanged=len(self._known) - changed - removed,
            rows={table: sum(part.rows.get(table, 0) for part in manifest.parts) for table in TABLES},
            size_bytes=sum(sum(part.size_bytes.values()) for part in manifest.parts),
            problems=self.problems,
        )


def _is_small(part: CorpusPart) -> bool:
    return part.sources < PART_SOURCES / 2 and sum(part.size_bytes.values()) < PART_BYTES / 2


def _fit_together(parts: Sequence[CorpusPart]) -> bool:
    size_bytes = sum(sum(part.size_bytes.values()) for part in parts)
    return sum(part.sources for part in parts) <= PART_SOURCES and size_bytes <= PART_BYTES
