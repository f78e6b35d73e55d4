"""Finds the runs, replay receipts and test results to index in folders, with stamps to detect changes."""

from __future__ import annotations

import marshal
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, NamedTuple

import msgspec

from reenact.check.kinds import MANIFESTS, RUN_FILES, RUN_KINDS, find_kind, find_runs, is_run
from reenact.corpus.tables import CorpusSource, SourceKind
from reenact.errors import ReenactError, StoreError, relabel_errors
from reenact.store.claims import OPEN_MANIFEST, RECORDING_LOCK
from reenact.store.objects import address_in
from reenact.store.remote import is_remote, list_remote, remote_name
from reenact.store.rundir import EVENTS, MANIFEST, RECOVERED

BATCH_SOURCES: Final = 1024
BATCH_BYTES: Final = 64 * 1024 * 1024
"""A batch of this size is read by one worker and becomes one part."""
MANY_BATCHES: Final = 32
"""From here on several processes pay: each takes half a second of CPU to start, and a batch a fifth."""
LONGER_BATCH: Final = 4
"""Then a batch may have this many times more sources, so that most parts need not be merged afterwards."""

_LAST_NS: Final = 2**63 - 1
_RUN_NAMES: Final = (*MANIFESTS, *RUN_FILES)
_FILES_OF_RUN: Final = (
    *("manifest.json", "manifest.open.json", "recovered.json", "events.jsonl"),
    *("REPLAY.jsonl", "replay.json", "trace.json"),
)
"""The stamp of a run has one item for each of these files."""
_UNFINISHED: Final = frozenset({OPEN_MANIFEST, RECORDING_LOCK, RECOVERED})


class CorpusRoot(msgspec.Struct, frozen=True, rename="camel"):
    """A run, or a folder of runs, that the user named."""

    name: str
    path: str
    """The absolute path of *name*."""


class KnownSource(NamedTuple):
    """A source at the time of indexing."""

    part: int
    kind: SourceKind
    stamp: str
    is_final: bool

    def is_unchanged(self, now: CorpusSource) -> bool:
        """Whether *now*, the source of the same name, needs not be read again."""
        return self.is_final and (self.kind, self.stamp) == (now.kind, now.stamp)


class UnchangedRuns(NamedTuple):
    """Known captures in one folder that need not be read again."""

    folder: str
    entries: list[str]
    """Their names in the folder."""
    names: list[str]
    """The names of the sources."""

    def paths(self) -> list[str]:
        return [os.path.join(self.folder, entry) for entry in self.entries]

    def without(self, paths: AbstractSet[str]) -> UnchangedRuns:
        new = [place for place, path in enumerate(self.paths()) if path not in paths]
        return UnchangedRuns(
            self.folder, [self.entries[place] for place in new], [self.names[place] for place in new]
        )


def find_sources(roots: Iterable[CorpusRoot], *, has_stamps: bool = False) -> Iterator[CorpusSource]:
    """Yield every run, replay receipt and test result in *roots*, named relative to the given paths.

    Without *has_stamps*, local sources get neither stamp nor size.
    """
    for found in _find(roots, {}, has_stamps=has_stamps):
        assert isinstance(found, CorpusSource)
        yield found


def find_changes(
    roots: Iterable[CorpusRoot], known: Mapping[str, KnownSource]
) -> Iterator[CorpusSource | UnchangedRuns]:
    """Like :func:`find_sources`, but *known* captures are not listed again unless their stamps changed."""
    return _find(roots, known, has_stamps=True)


def _find(
    roots: Iterable[CorpusRoot], known: Mapping[str, KnownSource], *, has_stamps: bool
) -> Iterator[CorpusSource | UnchangedRuns]:
    roots = list(roots)
    if len(roots) == 1:
        with relabel_errors(roots[0].path, roots[0].name):
            yield from _sources_in(roots[0], known, has_stamps=has_stamps)
        return
    seen: set[str] = set()  # a later root may contain what an earlier one contains
    for root in roots:
        with relabel_errors(root.path, root.name):
            for found in _sources_in(root, known, has_stamps=has_stamps):
                if isinstance(found, UnchangedRuns):
                    yield found.without(seen)
                    seen.update(found.paths())
                elif found.path not in seen:
                    seen.add(found.path)
                    yield found


def root_of(path: str | Path) -> CorpusRoot:
    """*path* as the corpus stores it; an address is not changed."""
    name = remote_name(path)
    path = os.path.abspath(name) if address_in(name) is None else name
    return CorpusRoot(_as_text(name), path)


def _sources_in(
    root: CorpusRoot, known: Mapping[str, KnownSource], *, has_stamps: bool
) -> Iterator[CorpusSource | UnchangedRuns]:
    if is_remote(root.path):
        found = list_remote(root.path)
        if not found:
            raise StoreError(f"{root.name}: holds no run; name a capture, or a folder of captures")
        for run in found:
            name = root.name + run.path[len(root.path) :]
            yield CorpusSource(name, run.path, "run", run.stamp, run.size_bytes)
        return
    if not os.path.isdir(root.path):
        kind = _kind_of_file(root.path) or "run"
        if kind == "run":
            find_runs([root.path])  # raises an error that explains the problem
        yield _stamp(root, root.path, kind, [_stat(root.path)])
        return
    walk = _Walk(root, known, has_stamps=has_stamps)
    yield from walk.below(root.path)
    if not walk.has_run:
        find_runs([root.path])  # raises an error that explains the problem


class _Walk:
    """Walks through the folders of a root in the order of their names."""

    def __init__(self, root: CorpusRoot, known: Mapping[str, KnownSource], *, has_stamps: bool) -> None:
        self._root = root
        self._known = known
        self._has_stamps = has_stamps
        self.has_run = False

    def below(self, folder: str, *, is_in_run: bool = False) -> Iterator[CorpusSource | UnchangedRuns]:
        """Yield the sources in and below *folder*; finds the same runs as :func:`find_runs`."""
        with os.scandir(folder) as found:
            entries = {entry.name: entry for entry in found}
        first = next((name for name in _RUN_NAMES if name in entries and entries[name].is_file()), None)
        is_capture = first in MANIFESTS
        if first is not None and not is_in_run:
            is_finished = is_capture and _UNFINISHED.isdisjoint(entries)
            yield self._run_in(folder, entries, is_finished=is_finished)
            is_in_run = self.has_run = True
        if is_capture or (is_in_run and folder == self._root.path):
            return
        unchanged: list[str] = []
        if self._known and not is_in_run:
            prefix = f"{_name_below(self._root, folder).rstrip('/')}/"
            unchanged = self._unchanged_in(folder, prefix, entries)
            self.has_run |= bool(unchanged)
            yield UnchangedRuns(folder, unchanged, [prefix + name for name in unchanged])
        for name in sorted(entries.keys() - unchanged):
            yield from self._at_entry(entries[name], is_in_run=is_in_run)

    def _unchanged_in(self, folder: str, prefix: str, names: Iterable[str]) -> list[str]:
        """The known captures in *folder* with unchanged stamps: three times as fast as listing each."""
        # Names below an open folder are found faster than whole paths.
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return [
                name
                for name in names
                if (known := self._known.get(prefix + name)) is not None  # without names that are not UTF-8
                and known.is_final
                and known.stamp == _stamp_of_capture(name, fd)
            ]
        finally:
            os.close(fd)

    def _run_in(
        self, folder: str, entries: Mapping[str, os.DirEntry[str]], *, is_finished: bool
    ) -> CorpusSource:
        stats: list[os.stat_result | None] = []
        if self._has_stamps:
            there = [entries.get(name) for name in _FILES_OF_RUN]
            stats = [None if entry is None else _stat(entry) for entry in there]
        return _stamp(self._root, folder, "run", stats, is_finished=is_finished)

    def _at_entry(
        self, entry: os.DirEntry[str], *, is_in_run: bool
    ) -> Iterator[CorpusSource | UnchangedRuns]:
        if entry.is_dir():
            if entry.name.startswith("."):
                return
            if entry.is_symlink():  # a link to a run is followed, a link to a folder of runs is not
                if not is_in_run and is_run(Path(entry.path)):
                    yield from self.below(entry.path)
            else:
                yield from self.below(entry.path, is_in_run=is_in_run)
        elif entry.name.endswith((".json", ".jsonl")):
            kind = _kind_of_file(entry.path)
            if kind is not None and not (kind == "run" and is_in_run):
                self.has_run |= kind == "run"
                yield _stamp(self._root, entry.path, kind, [_stat(entry)])


def _stamp_of_capture(name: str, folder: int) -> str:
    """The stamp of a capture with the usual files, in an open folder; empty if it does not have them.

    What else there is does not count: a capture is changed by writing one of these files.
    """
    try:
        manifest = os.stat(f"{name}/{MANIFEST}", dir_fd=folder)
        events = os.stat(f"{name}/{EVENTS}", dir_fd=folder)
    except OSError:
        return ""
    return "%x.%x.%x,,,%x.%x.%x,,," % (  # noqa: UP031 — in one step, because an update does little else
        manifest.st_size,
        manifest.st_mtime_ns,
        manifest.st_ctime_ns,
        events.st_size,
        events.st_mtime_ns,
        events.st_ctime_ns,
    )


def size_on_disk(path: str) -> int:
    """The size of a run's files."""
    files = [f"{path}/{name}" for name in _FILES_OF_RUN] if os.path.isdir(path) else [path]
    return sum(found.st_size for found in map(_stat, files) if found is not None)


def _kind_of_file(file: str) -> SourceKind | None:
    try:
        kind = find_kind(Path(file))
    except (ReenactError, OSError):
        return None
    kinds: dict[str | None, SourceKind] = {"replay receipt": "receipt", "test result": "result"}
    return "run" if kind in RUN_KINDS else kinds.get(kind)


def _stamp(
    root: CorpusRoot,
    path: str,
    kind: SourceKind,
    stats: Sequence[os.stat_result | None],
    *,
    is_finished: bool = False,
) -> CorpusSource:
    stamp = ",".join(["" if each is None else _mark(each) for each in stats])
    size_bytes = sum([0 if each is None else each.st_size for each in stats])
    return CorpusSource(_name_below(root, path), path, kind, stamp, size_bytes, is_finished)


def _name_below(root: CorpusRoot, path: str) -> str:
    if path == root.path:
        return root.name
    below = _as_text(path[len(root.path) :].lstrip("/"))
    return f"{root.name}{below}" if root.name.endswith("/") else f"{root.name}/{below}"


def _as_text(name: str) -> str:
    """*name* as a table can hold it: a byte that is not UTF-8 becomes ``\\udcff``."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


def is_utf8(path: str) -> bool:
    """Whether a manifest can hold *path*."""
    return _as_text(path) == path


_ESCAPED_BYTE: Final = re.compile(r"\\udc([89a-f][0-9a-f])")


def path_of(name: str) -> str:
    """The path that :func:`_as_text` converted to *name*."""
    if os.path.lexists(name):
        return name
    return _ESCAPED_BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), name)


def _mark(found: os.stat_result) -> str:
    # With the change time of the inode, because programs can set the modification time.
    return "%x.%x.%x" % (found.st_size, found.st_mtime_ns, found.st_ctime_ns)  # noqa: UP031 — faster


def _stat(path: str | os.DirEntry[str]) -> os.stat_result | None:
    try:
        return os.stat(path) if isinstance(path, str) else path.stat()
    except OSError:
        return None


class SourceList:
    """Sources to read, kept in a temporary file to save memory."""

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="reenact-index-")  # noqa: SIM115 — open until it is closed
        self._starts = array("q", [0])
        self._written_ns = array("q")
        self._size_bytes = array("q")

    def __len__(self) -> int:
        return len(self._size_bytes)

    def append(self, source: CorpusSource) -> None:
        """Add *source*."""
        # Not MessagePack, because paths need not be UTF-8.
        length = self._file.write(marshal.dumps(msgspec.structs.astuple(source)))
        self._starts.append(self._starts[-1] + length)
        self._written_ns.append(_written_ns(source))
        self._size_bytes.append(source.size_bytes)

    @property
    def is_much(self) -> bool:
        """Whether the sources are enough for several processes."""
        return len(self) > MANY_BATCHES * BATCH_SOURCES or sum(self._size_bytes) > MANY_BATCHES * BATCH_BYTES

    def batches(self) -> list[list[int]]:
        """Group the positions of all sources into batches, ordered by the time of writing.

        That way the rows of a part cover a few days, and a query for certain days skips most files.
        """
        batches: list[list[int]] = []
        batch_bytes = 0
        most = BATCH_SOURCES * (LONGER_BATCH if self.is_much else 1)
        for place in sorted(range(len(self)), key=self._written_ns.__getitem__):
            size_bytes = self._size_bytes[place]
            is_full = bool(batches) and (len(batches[-1]) >= most or batch_bytes + size_bytes > BATCH_BYTES)
            if is_full or not batches:
                batches.append([])
                batch_bytes = 0
            batches[-1].append(place)
            batch_bytes += size_bytes
        return batches

    def read(self, places: Iterable[int]) -> list[CorpusSource]:
        """The sources at these positions."""
        self._file.flush()
        number = self._file.fileno()
        texts = (
            os.pread(number, self._starts[place + 1] - self._starts[place], self._starts[place])
            for place in places
        )
        return [CorpusSource(*marshal.loads(text)) for text in texts]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _written_ns(source: CorpusSource) -> int:
    if "," not in source.stamp and "." not in source.stamp:
        return 0  # a remote run, whose stamp has no time
    first = next((mark for mark in source.stamp.split(",") if mark), "0.0.0")
    return min(int(first.split(".")[1], 16), _LAST_NS)
