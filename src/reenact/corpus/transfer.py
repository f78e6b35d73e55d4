"""Moves runs to object storage and back, and into packs; each run atomically."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import msgspec

from reenact.check.artifact import verify
from reenact.check.kinds import find_runs
from reenact.errors import DigestMismatch, FormatError, StoreError, UsageError
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.durable import open_temp, sync_folder, unwritable
from reenact.store.forked import MAX_GENERATIONS
from reenact.store.objects import ObjectStore, address_in, files_of
from reenact.store.pack import PackWriter
from reenact.store.place import build_folder
from reenact.store.remote import PACK_SUFFIX, RemoteRun, is_remote, list_remote, local_path, local_run
from reenact.store.rundir import MANIFEST, RunDir, RunState

_REMEDY: Final = "name a pack, or an address such as s3://BUCKET/FOLDER"
_FOLDER_REMEDY: Final = "reenact show lists the runs in a folder"


class StoredRun(msgspec.Struct, frozen=True, rename="camel"):
    """A run in object storage or in a pack."""

    name: str
    """Its path below the address; empty if the address is the run itself."""
    path: str
    """The address that verbs accept."""
    size_bytes: int


class PushReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`push`."""

    address: str
    pushed: list[str]
    already_there: list[str]
    problems: list[str]
    """Runs that were not stored, with the reasons."""
    size_bytes: int


class PullReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`pull`."""

    folder: str
    pulled: list[str]
    already_here: list[str]
    problems: list[str]
    size_bytes: int


class PackingReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`pack`."""

    path: str
    runs: int
    size_bytes: int
    """The size of the pack."""
    unpacked_bytes: int
    """The size of the files in it."""


def push(*runs: str | Path, to: str, progress_bar: ProgressBar = no_progress_bar) -> PushReport:
    """Upload captures, and the captures in folders, to the address *to*; each run appears atomically.

    A run that is stored already is skipped. Another run of the same name is reported as a problem: nothing is
    ever replaced.
    """
    if to.endswith(PACK_SUFFIX):
        raise UsageError(f"{to}: is the name of a pack; write one with reenact pack, or choose another")
    with _captures_at(runs) as found:
        store = ObjectStore(to, is_written=True)
        store.check()
        return _push(found, store, to, progress_bar)


def _push(
    found: list[tuple[str, Path]], store: ObjectStore, to: str, progress_bar: ProgressBar
) -> PushReport:
    # A fork comes after its parent, without which it cannot be read.
    found.sort(key=lambda each: len(_parents_of(each[1])))
    report = PushReport(to, [], [], [], 0)
    sent_bytes = 0
    with progress_bar(len(found), "pushing") as progress:
        for name, path in found:
            try:
                _refuse_orphan(name, path, "there", lambda parent: _is_stored(store, parent))
                sent = store.push(name, path)
                (report.already_there if sent is None else report.pushed).append(name)
                sent_bytes += sent or 0
            except (FormatError, StoreError) as error:
                report.problems.append(str(error))
            progress(1)
    return msgspec.structs.replace(report, size_bytes=sent_bytes)


def _parents_of(path: Path) -> list[tuple[str, Path]]:
    """The captures that a fork is read through, each with its path relative to its child, and its path."""
    found: list[tuple[str, Path]] = []
    while len(found) < MAX_GENERATIONS and RunDir(path).state in (RunState.COMPLETE, RunState.RECOVERED):
        fork = RunDir(path).event_log().fork
        if fork is None or not fork.is_part:
            break
        path = Path(os.path.normpath(path / fork.parent.path))
        found.append((fork.parent.path, path))
        if not RunDir(path).is_capture:
            break
    return found


def _refuse_orphan(name: str, path: Path, where: str, is_there: Callable[[str], bool]) -> None:
    """Raise :class:`StoreError` if the run in *path* would be stored as *name* without its parent."""
    for place, parent in _parents_of(path)[:1]:
        looked_for = posixpath.normpath(posixpath.join(name, place))
        if looked_for.startswith(("..", "/")) or not is_there(looked_for):
            raise StoreError(
                f"{path}: is a fork of {parent}, which is not {where}; name the folder that holds both, "
                "or make the fork with --standalone"
            )


def _is_stored(store: ObjectStore, name: str) -> bool:
    return store.size_of(f"{name}/{MANIFEST}") is not None


@contextmanager
def _captures_at(roots: Iterable[str | Path]) -> Iterator[list[tuple[str, Path]]]:
    """The captures in *roots* with their names; those at addresses and in packs are copied for the time."""
    with ExitStack() as copies:
        found: list[tuple[str, Path]] = []
        for root in roots:
            if is_remote(root):
                for run in _list(root) or _refuse_nothing(root):
                    found.append((_name_of(run), copies.enter_context(local_run(run.path))))
            else:
                found += _captures(Path(local_path(root)))
        yield found


def _name_of(run: RemoteRun) -> str:
    return run.name or PurePosixPath(run.path).name


def _refuse_nothing(source: str | Path) -> NoReturn:
    raise StoreError(f"{source}: holds no run; reenact ls lists what is stored")


def _captures(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the captures in *root* with their names below the address; *root* may be a capture itself."""
    for path in find_runs([str(root)]):
        if not path.is_dir() or not RunDir(path).is_capture:
            raise StoreError(f"{path}: is not a capture; convert it with: reenact import")
        yield path.absolute().name if path == root else path.relative_to(root).as_posix(), path


def pull(source: str | Path, into: str | Path, *, progress_bar: ProgressBar = no_progress_bar) -> PullReport:
    """Download the run at *source*, or all runs below it, to the folder *into*; each run appears atomically.

    *source* is an address, a pack, or a run in a pack. A run is verified before it appears. One that exists
    already is skipped, and another run of the same name is reported as a problem.
    """
    found = _list(source) or _refuse_nothing(source)
    report = PullReport(str(into), [], [], [], 0)
    pulled_bytes = 0
    with progress_bar(len(found), "pulling") as progress:
        for run in found:
            target = Path(into) / _name_of(run)
            try:
                new = _pull_run(run.path, target, Path(into))
                report.pulled.extend(map(str, new))
                pulled_bytes += run.size_bytes if new else 0
                if not new:
                    report.already_here.append(str(target))
            except (FormatError, StoreError) as error:
                report.problems.append(str(error))
            progress(1)
    return msgspec.structs.replace(report, size_bytes=pulled_bytes)


def _pull_run(run: str, target: Path, into: Path) -> list[Path]:
    """Download a run, and with a fork its parents; returns the new runs, none if all exist already."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with local_run(run) as copy:
        if _is_here(copy, target):
            return []
        report = verify(copy)
        if not report.is_good:
            bad = next(finding for finding in report.findings if finding.severity == "error")
            raise DigestMismatch(f"the stored run is damaged: {bad.describe()}", file=run)
        wanted = [(copy, target)]
        for place, parent in _parents_of(copy):
            beside = Path(os.path.normpath(wanted[-1][1] / place))
            if not beside.absolute().is_relative_to(into.absolute()):
                raise StoreError(f"{run}: is a fork of {place}; pull the folder that holds both")
            wanted.append((parent, beside))
        new = [pair for pair in reversed(wanted) if not _is_here(*pair)]
        for pair in new:
            _copy_run(*pair)
    return [brought for _, brought in new]


def _is_here(copy: Path, target: Path) -> bool:
    if not target.exists() or not RunDir(target).is_capture:
        return False
    return RunDir(target).read_manifest() == RunDir(copy).read_manifest()


def _copy_run(copy: Path, target: Path) -> None:
    with build_folder(target) as folder:
        for file in files_of(copy):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes((copy / file).read_bytes())


def list_runs(source: str | Path) -> list[StoredRun]:
    """The runs at and below an address or in a pack, by name, without incomplete ones."""
    return [StoredRun(run.name, run.path, run.size_bytes) for run in _list(source)]


def pack(*runs: str | Path, out: str | Path, progress_bar: ProgressBar = no_progress_bar) -> PackingReport:
    """Pack captures, and the captures in folders, into one file *out*, or into one object at an address.

    They are read in place: every verb that takes a run takes ``OUT#RUN``. The pack appears atomically and
    never replaces an existing one.
    """
    address = address_in(out)
    target = None if address else Path(local_path(out))
    if address and address.startswith("file:"):
        address, target = None, Path(local_path(out))
    if target is not None and os.path.lexists(target):
        raise StoreError(f"{target}: exists already; name another file")
    with _captures_at(runs) as captures:
        return _pack(sorted(captures), out, target, address, progress_bar)


def _pack(
    found: list[tuple[str, Path]],
    out: str | Path,
    target: Path | None,
    address: str | None,
    progress_bar: ProgressBar,
) -> PackingReport:
    for _, path in found:
        state = RunDir(path).state
        if state not in (RunState.COMPLETE, RunState.RECOVERED):
            raise StoreError(f"{path}: is {state.value}; only finished runs are packed")
    names = {name for name, _ in found}
    for name, path in found:
        _refuse_orphan(name, path, "packed with it", names.__contains__)
    if target is not None:
        return _pack_into(target, found, str(out), progress_bar)
    assert address is not None
    folder, _, name = address.rpartition("/")
    store = ObjectStore(folder, is_written=True)
    if store.size_of(name) is not None:
        raise StoreError(f"{address}: exists already; name another object")
    with TemporaryDirectory(prefix="reenact-pack-") as temp:
        report = _pack_into(Path(temp) / "pack", found, address, progress_bar)
        if not store.put_new_file(name, Path(temp) / "pack"):
            raise StoreError(f"{address}: came there meanwhile; name another object")
    return report


def _pack_into(
    target: Path, found: list[tuple[str, Path]], name: str, progress_bar: ProgressBar
) -> PackingReport:
    unpacked_bytes = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fd, temp = open_temp(target.parent)
        try:
            with os.fdopen(fd, "wb") as stream, progress_bar(len(found), "packing") as progress:
                writer = PackWriter(stream)
                for run, path in found:
                    with _name_unreadable():
                        unpacked_bytes += writer.add(run, path, files_of(path))
                    progress(1)
                writer.close()
                stream.flush()
                os.fsync(stream.fileno())
            os.link(temp, target)  # unlike a rename, it never replaces a file
        finally:
            temp.unlink(missing_ok=True)
        sync_folder(target.parent)
    except FileExistsError:
        raise StoreError(f"{target}: came there meanwhile; name another file") from None
    except OSError as error:
        raise unwritable(target, error) from error
    return PackingReport(name, len(found), target.stat().st_size, unpacked_bytes)


@contextmanager
def _name_unreadable() -> Iterator[None]:
    """Report the file of the run that cannot be read, instead of the pack that is written."""
    try:
        yield
    except PermissionError as error:
        if error.filename is None:
            raise
        raise StoreError(f"{error.filename}: {error.strerror}") from error


def _list(source: str | Path) -> list[RemoteRun]:
    if is_remote(source) or address_in(source) is not None:
        return list_remote(source)
    if "://" in str(source):
        ObjectStore(str(source))  # raises for an unknown kind of address
    path = Path(source)
    if not path.exists():
        raise StoreError(f"{path}: No such file or directory; {_REMEDY}")
    with os.scandir(path) if path.is_dir() else path.open("rb"):
        pass  # raises if it may not be read
    raise StoreError(f"{path}: is not an address or a pack; {_FOLDER_REMEDY if path.is_dir() else _REMEDY}")
