"""Importing: detects the format of each file, reads it with the matching importer and reports the result.

An importer is a value :class:`Importer` called ``IMPORTER`` in a module of its own, here or in another
package that lists it under the entry point ``reenact.importers``. It recognises its format by content and
reads a :class:`ForeignSource` into runs that it opens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property, lru_cache, partial
from glob import escape
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Final, Literal, NamedTuple

import msgspec

from reenact.errors import FormatError, ReenactError, StoreError, UsageError
from reenact.formats.capture import Fidelity
from reenact.importers.building import ImportedRun, RunBuilder
from reenact.importers.source import HEAD_BYTES, LONG_HEAD_BYTES, UNFIT, reason_of
from reenact.importers.source import ForeignSource as ForeignSource
from reenact.progress import Progress, ProgressBar, no_progress_bar
from reenact.redaction import Redactor, default_profile, environment_secrets
from reenact.run.capturing import Identity
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.store.durable import unwritable
from reenact.store.paths import folder_name
from reenact.store.remote import is_remote, local_files, relabel, remote_name
from reenact.store.rundir import make_empty_folder
from reenact.workers import map_batches, worker_count

PLUGINS: Final = "reenact.importers"
"""The entry point group for importers of other packages."""
_BUILT_IN: Final = (
    "vcr", "har", "codex-trace", "claude-code", "codex", "pi", "gemini-cli", "opencode", "atif", "swe-agent",
    "inspect", "otlp", "jaeger", "otel-console", "langsmith", "langfuse",
)  # fmt: skip
"""In the order in which they are tried; each has a module of the same name."""
_SUFFIXES: Final = frozenset({
    ".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".har", ".traj", ".eval", ".pb", ".bin", ".otlp",
    ".csv", ".parquet",
})  # fmt: skip
"""File suffixes of sources that are removed from the names of their runs."""
_BATCH: Final = 16
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""A worker gets a batch of at most this many sources, or about this many bytes."""
_MOST_OPEN: Final = 100
"""A source may hold more runs than a process may have open files."""
_STAGE: Final = ".reenact-import-"
_SKIPPED_FOLDERS: Final = frozenset({".git", ".venv", "node_modules", "__pycache__"})


class Runs:
    """Opens the captures that an importer makes from one source."""

    def __init__(self, importer: Importer, source: ForeignSource, out: Path, redact: Redact) -> None:
        self._importer = importer
        self._source = source
        self._out = out
        self._redact = redact
        self._opened: list[RunBuilder] = []
        self._finished: list[ImportedRun] = []
        self._names: set[str] = set()

    def open(
        self,
        name: str = "",
        *,
        started_ms: float | None = None,
        fidelity: Fidelity | None = None,
        upstreams: Mapping[str, str] | None = None,
    ) -> RunBuilder:
        """Open a new capture; if the source holds many runs, each gets a *name*, and a folder of that name.

        *upstreams* are for agents in other languages: a replay answers them through the gateway.
        """
        if len(self._opened) >= _MOST_OPEN and self._source.is_read:
            self._finished.append(self._opened.pop(0).finish())
        run = RunBuilder(
            self._place(name),
            self._source,
            format=self._importer.name,
            importer=self._importer.label,
            fidelity=fidelity or self._importer.fidelity,
            started_ms=started_ms,
            identity=self._identity(),
            upstreams=upstreams,
            redact=self._redact,
        )
        self._opened.append(run)
        return run

    def _identity(self) -> Identity:
        number = len(self._finished) + len(self._opened)
        label = f"{self._importer.label}\0{number}".encode()
        seed = blake2b(label, key=self._source.seed, digest_size=32).digest()
        return Identity(f"cap_{seed[:8].hex()}", f"run_{seed[8:16].hex()}", seed[16:])

    @cached_property
    def _names_redactor(self) -> Redactor:
        """A redactor for folder names that come from the source."""
        named, values = profile_and_secrets(self._redact)
        return make_redactor(named or default_profile(os.environ), values, self._source.seed).of_names

    def _place(self, name: str) -> Path:
        if not self._importer.holds_many and not name:
            return self._out
        plain = folder_name(self._names_redactor.redact_text(name) or "run")
        unique, number = plain, 1
        while unique.casefold() in self._names:
            number += 1
            unique = f"{plain}-{number}"
        self._names.add(unique.casefold())
        return self._out / unique

    def finish(self) -> list[ImportedRun]:
        """Complete all opened captures."""
        self._finished += [run.finish() for run in self._opened]
        self._opened = []
        return self._finished

    def discard(self) -> None:
        """Delete all captures: the source cannot be read."""
        for run in self._opened:
            run.discard()
        for made in self._finished:
            rmtree(made.path, ignore_errors=True)
        self._opened, self._finished = [], []

    def note_loss(self, reason: str, line: int | None = None) -> None:
        """Add a loss to the latest run; raises :class:`FormatError` if no run is open."""
        if not self._opened:
            raise FormatError(reason, file=self._source.name, line=line)
        self._opened[-1].note_loss(reason, line)


class Importer(msgspec.Struct, frozen=True, kw_only=True):
    """Recognises and reads one format."""

    name: str
    """The name for ``--from``."""
    title: str
    """The name for messages and documentation."""
    version: int
    fidelity: Fidelity
    """The best fidelity that this format allows; a run may have a lower one."""
    recognises: Callable[[ForeignSource], bool]
    """Decides by content; also called for folders if the importer *reads_folders*."""
    read: Callable[[ForeignSource, Runs], None]
    """Opens runs and fills them; raises :class:`FormatError` if nothing can be read."""
    holds_many: bool = False
    """Whether one source may hold several runs; each gets its own folder."""
    reads_folders: bool = False
    package: str = "reenact"

    @property
    def label(self) -> str:
        """The name and version of the importer in manifests."""
        return f"{self.package}.{self.name} {self.version}"


class SkippedSource(msgspec.Struct, frozen=True):
    """A file that was not imported."""

    source: str
    reason: str


class ImportReport(msgspec.Struct, frozen=True):
    """The result of an import."""

    out: str
    runs: list[ImportedRun]
    failed: list[SkippedSource]
    """Sources from which nothing could be read."""
    skipped: list[str]
    """Files in folders that no importer recognises."""

    @property
    def verdict(self) -> Literal["whole", "partly", "nothing"]:
        if not self.runs:
            return "nothing"
        return "whole" if not self.failed and all(run.is_whole for run in self.runs) else "partly"


@lru_cache(maxsize=4)
def _plugins(find: Callable[..., EntryPoints], path: tuple[str, ...]) -> EntryPoints:  # noqa: ARG001 — its key
    """The entry points of installed packages, cached: a search takes as long as importing a small file."""
    return find(group=PLUGINS)


def importers() -> dict[str, Importer]:
    """All importers by name, in the order in which they are tried: those of other packages come first."""
    found: dict[str, Importer] = {}
    for point in _plugins(entry_points, tuple(sys.path)):
        try:
            made = point.load()
        except Exception as error:
            raise UsageError(f"{point.value}: this importer cannot be loaded: {error}") from error
        if not isinstance(made, Importer):
            raise UsageError(f"{point.value}: is not a reenact.importers.importing.Importer; ask its authors")
        package = point.dist.name if point.dist is not None else point.module.partition(".")[0]
        found[made.name] = msgspec.structs.replace(made, package=package)
    for name in _BUILT_IN:
        importer: Importer = import_module(f"reenact.importers.{name.replace('-', '_')}").IMPORTER
        found.setdefault(importer.name, importer)
    return found


def import_runs(
    paths: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    format: str | None = None,  # noqa: A002 — the usual name
    redact: Redact = None,
    jobs: int = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> ImportReport:
    """Make captures from foreign recordings, in folders below *out*.

    One file whose format holds one run becomes *out* itself; everything else gets folders below it, named
    like the sources relative to the given folders. *paths* may be remote addresses. Without a *format*, it is
    detected by content. *jobs* processes (0: one per core), or the tasks of ray if *on* is ``ray``, share the
    sources; the captures are the same, byte for byte. The report lists what could not be read; only wrong
    usage raises.
    """
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    if not named:
        raise UsageError("nothing to import; name files or folders")
    known = importers()
    if format is not None and format not in known:
        raise UsageError(
            f"{format!r} is not a format that can be imported; known: {', '.join(sorted(known))}"
        )
    chosen = list(known.values()) if format is None else [known[format]]
    job = _Job(Path(out), chosen, redact, is_named=format is not None)
    with ExitStack() as copies:
        labels: dict[str, str] = {}
        for path in named:
            local = copies.enter_context(local_files(path))
            if is_remote(path):
                labels[str(local)] = remote_name(path)
            job.find(local, is_alone=len(named) == 1)
        with progress_bar(job.size_bytes, "importing") as progress:
            if on is None and worker_count(jobs, is_much=True) == 1:
                job.run(progress)
            else:
                job.run_in_workers(worker_count(jobs, is_much=True), on, progress)
    report = ImportReport(str(out), job.runs, job.failed, job.skipped)
    for copy, label in labels.items():
        report = relabel(report, copy, label)
    return report


class _Recognised(NamedTuple):
    """The importer of a source, and how much of the source had to be read to know it."""

    importer: Importer
    head_bytes: int


class _Found(msgspec.Struct, frozen=True):
    """A source and its importer."""

    path: Path
    name: str
    importer: str
    out: Path
    size_bytes: int
    head_bytes: int


class _Imported(msgspec.Struct, frozen=True):
    """The result for one source."""

    runs: list[ImportedRun]
    failed: str | None
    """Why no run was imported."""
    files_read: list[Path]
    """The other files that belong to the source."""


def import_source(found: _Found, importer: Importer, redact: Redact, progress: Progress) -> _Imported:
    """Import one source into its folder; if that fails, nothing is left there."""
    source = ForeignSource(found.path, found.name, progress, head_bytes=found.head_bytes)
    runs = Runs(importer, source, found.out, redact)
    try:
        _read_source(importer, source, runs)
        made = runs.finish()
    except OSError as error:
        runs.discard()
        return _Imported([], f"cannot be read: {error.strerror or error}", [])
    except ReenactError as error:
        runs.discard()
        return _Imported([], source.damage or str(error).removeprefix(f"{found.name}: "), [])
    return _Imported(made, None if made else "it holds no run", source.files_read())


class _Staged(NamedTuple):
    """The result of a worker for one source, and its temporary folder."""

    place: Path
    imported: _Imported


def import_batch(sources: list[_Found], stage: Path, redact: Redact) -> list[_Staged]:
    """The work of one worker; each attempt has its own folder, so that a killed one disturbs no other."""
    known = importers()
    work = stage / token_hex(8)
    done = []
    for number, found in enumerate(sources):
        staged = msgspec.structs.replace(found, out=work / str(number) / found.out.name)
        imported = import_source(staged, known[found.importer], redact, lambda _: None)
        done.append(_Staged(staged.out, imported))
    return done


class _Job:
    """One import of any number of sources."""

    def __init__(self, out: Path, chosen: list[Importer], redact: Redact, *, is_named: bool) -> None:
        self._out = out
        self._chosen = chosen
        self._redact = redact
        self._is_named = is_named
        self._found: list[_Found] = []
        self._places: set[str] = set()
        self._redacted: dict[str, str] = {}
        """Names of files and folders, without the secrets in them."""
        self.size_bytes = 0
        self.runs: list[ImportedRun] = []
        self.failed: list[SkippedSource] = []
        self._unrecognised: dict[Path, str] = {}
        """Files of unknown formats, with their names."""

    @property
    def skipped(self) -> list[str]:
        return sorted(self._unrecognised.values())

    def find(self, path: Path, *, is_alone: bool) -> None:
        """Collect the sources at *path*."""
        if not path.exists():
            raise FormatError("No such file or directory", file=str(path))
        recognised = self._recognise(path, path.name)
        if recognised is not None:
            self._add(path, path.name, recognised, self._out if is_alone else self._place(path, path.name))
        elif path.is_dir():
            self._find_below(path, self._out if is_alone else self._place(path, path.name))
        elif not self._has_failed(path):
            self.failed.append(SkippedSource(str(path), _why_unrecognised(path)))

    def _find_below(self, folder: Path, out: Path) -> None:
        before = len(self._found)
        for parent, folders, files in os.walk(folder, onerror=self._note_unreadable):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
            for name in list(folders):
                path = Path(parent, name)
                below = str(path.relative_to(folder))
                if (recognised := self._recognise(path, below)) is not None:
                    folders.remove(name)
                    self._add(path, below, recognised, self._place(path, below, out))
            for name in sorted(files):
                path = Path(parent, name)
                below = str(path.relative_to(folder))
                recognised = self._recognise(path, below)
                if recognised is None:
                    self._unrecognised[path] = below
                else:
                    self._add(path, below, recognised, self._place(path, below, out))
        if len(self._found) == before and not self.failed:
            self.failed.append(SkippedSource(str(folder), "it holds nothing that can be imported"))

    def _recognise(self, path: Path, name: str) -> _Recognised | None:
        is_folder = path.is_dir()
        if not is_folder and not path.is_file():
            return None
        asked = [each for each in self._chosen if each.reads_folders or not is_folder]
        try:
            for head_bytes in (HEAD_BYTES, LONG_HEAD_BYTES):
                source = ForeignSource(path, name, head_bytes=head_bytes)
                if not is_folder and not source.head.strip():
                    return None
                for importer in asked:
                    if _is_recognised(importer, source):
                        return _Recognised(importer, head_bytes)
                if len(source.head) < head_bytes:
                    break
            return _Recognised(self._chosen[0], head_bytes) if self._is_named and not is_folder else None
        except OSError as error:
            self._note_unreadable(OSError(error.errno, error.strerror, str(path)))
            return None

    def _has_failed(self, source: Path) -> bool:
        return any(each.source == str(source) for each in self.failed)

    def _note_unreadable(self, error: OSError) -> None:
        if not self._has_failed(Path(error.filename)):
            self.failed.append(SkippedSource(str(error.filename), str(error.strerror)))

    def _place(self, path: Path, below: str, out: Path | None = None) -> Path:
        """A unique folder for the source in *path*, which is named *below*."""
        plain = Path(below)
        named = plain.with_suffix("") if plain.suffix.lower() in (".gz", ".zst") else plain
        stem = named.stem if named.suffix.lower() in _SUFFIXES else named.name
        parts = [folder_name(self._redact_name(part, path)) for part in (*plain.parent.parts, stem)]
        base = (out or self._out).joinpath(*parts)
        place, number = base, 1
        while str(place).casefold() in self._places:
            number += 1
            place = base.with_name(f"{base.name}-{number}")
        self._places.add(str(place).casefold())
        return place

    def _redact_name(self, part: str, path: Path) -> str:
        """A part of the path of a source, the same for all sources below it."""
        if part not in self._redacted:
            named, values = profile_and_secrets(self._redact)
            profile = named or default_profile(os.environ)
            redacted = make_redactor(profile, values, b"").of_names.redact_text(part)
            if redacted != part:  # only now is the source read for a key that nobody else can have
                salt = ForeignSource(path, part).seed
                redacted = make_redactor(profile, values, salt).of_names.redact_text(part)
            self._redacted[part] = redacted
        return self._redacted[part]

    def _add(self, path: Path, name: str, recognised: _Recognised, out: Path) -> None:
        size_bytes = 0 if path.is_dir() else path.stat().st_size
        self.size_bytes += size_bytes
        self._found.append(
            _Found(path, name, recognised.importer.name, out, size_bytes, recognised.head_bytes)
        )

    def run(self, progress: Progress) -> None:
        """Import the collected sources."""
        known = {importer.name: importer for importer in self._chosen}
        for found in self._found:
            self._note(found, import_source(found, known[found.importer], self._redact, progress))

    def run_in_workers(self, jobs: int, on: str | None, progress: Progress) -> None:
        """Import the sources in worker processes; this process moves the results to their final folders."""
        stage = _staging_folder(self._out)
        work = partial(import_batch, stage=stage.absolute(), redact=_redact_for_workers(self._redact))
        batches = list(_in_batches(self._found, max(1, min(_BATCH, len(self._found) // (jobs * 4)))))
        try:
            with closing(map_batches(work, batches, jobs=min(jobs, max(len(batches), 1)), on=on)) as made:
                for sources, done in zip(batches, made, strict=True):
                    for found, staged in zip(sources, done, strict=True):
                        self._note(found, _move_staged(found, staged))
                        progress(found.size_bytes)
        finally:
            rmtree(stage, ignore_errors=True)

    def _note(self, found: _Found, done: _Imported) -> None:
        self.runs += done.runs
        for path in done.files_read:
            self._unrecognised.pop(path, None)
        if done.failed is not None:
            self.failed.append(SkippedSource(found.name, done.failed))


def _staging_folder(out: Path) -> Path:
    """The workers' folder, on the same disk as *out*; folders left by killed imports are removed."""
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        for left in out.absolute().parent.glob(f"{_STAGE}*-{escape(out.name)}"):
            owner = left.name.removeprefix(_STAGE).partition("-")[0]
            if owner.isdecimal() and not _is_alive(int(owner)):
                rmtree(left, ignore_errors=True)
        stage = out.absolute().with_name(f"{_STAGE}{os.getpid()}-{token_hex(4)}-{out.name}")
        stage.mkdir()
    except OSError as error:
        raise unwritable(out, error) from error
    return stage


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # owned by another user
    return True


def _redact_for_workers(redact: Redact) -> Redact:
    """*redact* with the secrets of this environment, because the workers' environment may differ."""
    named, values = profile_and_secrets(redact)
    profile = named or default_profile(os.environ)
    known = environment_secrets(os.environ) if profile != "none" else []
    return profile, (*values, *known)


def _in_batches(found: Sequence[_Found], most: int) -> Iterator[list[_Found]]:
    batch: list[_Found] = []
    for each in found:
        if batch and (len(batch) >= most or sum(one.size_bytes for one in batch) >= _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def _move_staged(found: _Found, done: _Staged) -> _Imported:
    """Move the captures that a worker made of *found* to their final folders: all of them or none."""
    moved: list[ImportedRun] = []
    try:
        for run in done.imported.runs:
            target = found.out / Path(run.path).relative_to(done.place)
            make_empty_folder(target.absolute())
            os.replace(run.path, target)
            moved.append(msgspec.structs.replace(run, path=str(target)))
    except (OSError, StoreError) as error:
        for run in moved:
            rmtree(run.path, ignore_errors=True)
        if isinstance(error, FileNotFoundError):
            reason = "was imported on another machine; choose an output folder that all machines share"
            return _Imported([], reason, [])
        return _Imported([], str(error), [])
    failed = done.imported.failed and done.imported.failed.replace(str(done.place), str(found.out))
    return msgspec.structs.replace(done.imported, runs=moved, failed=failed)


def _is_recognised(importer: Importer, source: ForeignSource) -> bool:
    try:
        return importer.recognises(source)
    except UNFIT:
        return False


def _read_source(importer: Importer, source: ForeignSource, runs: Runs) -> None:
    """Let *importer* read the source; an unexpected value ends the reading, and earlier parts are kept."""
    try:
        importer.read(source, runs)
    except UNFIT as error:
        runs.note_loss(f"cannot be read further: {reason_of(error)}")
    if source.damage is not None:
        runs.note_loss(source.damage)


_CODED: Final = {
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"BZh": "is compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
    b"\xff\xfe": "is text in UTF-16; write it as UTF-8 first",
    b"\xfe\xff": "is text in UTF-16; write it as UTF-8 first",
}
"""By the first bytes of a file."""


def _why_unrecognised(path: Path) -> str:
    if not path.is_file():
        return "is no file; write what it gives to one first"
    if path.stat().st_size == 0:
        return "is empty"
    source = ForeignSource(path, path.name)
    head = source.head
    if source.damage is not None:
        return source.damage
    for mark, reason in _CODED.items():
        if head.startswith(mark):
            return reason
    return "is of no format that can be imported; name it with --from if it is"
