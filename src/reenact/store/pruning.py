"""Retention: which captures of a folder are removed, and removing them safely.

A run is first renamed to a hidden folder in one step and deleted there, so that a killed prune leaves the run
as it was, or a hidden folder that the next prune deletes. If only payloads are removed, a mark in the run is
written first.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.capture import read_manifest, read_seed
from reenact.formats.record import ABSENT
from reenact.formats.seal import payload_of, read_envelope, read_seal
from reenact.store.blobs import PRUNED
from reenact.store.durable import sync_folder, unwritable
from reenact.store.paths import inside
from reenact.store.project import find_project_file, read_project
from reenact.store.remote import path_here
from reenact.store.rundir import BLOBS, MANIFEST, RunDir, RunState
from reenact.store.transcript import TRANSCRIPT

Status: TypeAlias = Literal["ok", "error", "interrupted"]
STATUSES: Final = get_args(Status)
_ASIDE: Final = ".pruned-"
_ASIDE_NAME: Final = re.compile(r"\..+\.pruned-[0-9]+")
_SEAL_SUFFIX: Final = ".seal.json"
_MAX_SEAL_BYTES: Final = 1_000_000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are removed: those that exceed any of the limits."""

    older_than_s: float | None = None
    keep: int | None = None
    """The number of newest runs that stay."""
    max_bytes: int | None = None
    """The total size of the newest runs that stay."""
    statuses: Collection[Status] = ()
    """Only runs with these are considered; empty for those that ended: ok and error."""
    payloads_only: bool = False
    sealed: bool = False
    """Whether sealed runs are removed too."""

    def check(self) -> None:
        """Raise :class:`UsageError` if there is no limit, or an invalid one."""
        limits = (self.older_than_s, self.keep, self.max_bytes)
        if all(limit is None for limit in limits) and not self.statuses:
            raise UsageError("say what is to go: an age, a count, a size or a status")
        if any(limit is not None and limit < 0 for limit in limits):
            raise UsageError("a limit below zero means nothing; choose 0 or more")
        unknown = sorted(set(self.statuses) - set(STATUSES))
        if unknown:
            raise UsageError(f"status {unknown[0]!r} is unknown; choose from {', '.join(STATUSES)}")


class FoundRun(msgspec.Struct, frozen=True):
    """A capture in a searched folder."""

    path: Path
    status: Status
    ended_ms: float
    size_bytes: int
    """The size of what would be removed: the whole directory, or its payloads."""
    is_sealed: bool
    mark: str
    """Changes when another run replaces the one at *path*."""
    parent: Path | None = None
    """The parent of a fork, which is needed to read it."""


class Unreadable(msgspec.Struct, frozen=True):
    """Something that looks like a capture and cannot be read; it is not changed."""

    path: Path
    reason: str


class PrunePlan(msgspec.Struct, frozen=True):
    """The runs to remove, oldest first, and what is left alone."""

    retention: Retention
    going: list[FoundRun]
    staying: list[FoundRun]
    sealed: list[FoundRun]
    """Runs that would go, but for their seal."""
    recording: list[Path]
    unreadable: list[Unreadable]
    leftovers: list[Path]
    """Hidden folders of earlier prunes that were killed."""


class PruneReport(msgspec.Struct, frozen=True):
    """What was removed, or would be."""

    done: bool
    """Whether anything was changed at all."""
    payloads_only: bool
    going: list[FoundRun]
    """The runs that were or would be removed, oldest first."""
    staying: list[FoundRun]
    sealed: list[FoundRun]
    """Runs that would go, but for their seal."""
    recording: list[Path]
    changed: list[Path]
    """Runs that were recorded again, or are in use, since the plan was made; they are kept."""
    failed: list[Unreadable]
    """What could not be read, or not removed."""


_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(B|[kKMGT]B?|)")
_BYTES: Final = {"": 1, "B": 1, "K": 1000, "M": 10**6, "G": 10**9, "T": 10**12}


def prune(
    *folders: str | Path,
    older_than: str | None = None,
    keep: int | None = None,
    max_size: str | None = None,
    status: Collection[Status] = (),
    payloads: bool = False,
    sealed: bool = False,
    remove: bool = False,
) -> PruneReport:
    """Remove the captures in *folders* that need not be kept; without *remove*, only list them.

    A run is removed if it ended longer ago than *older_than* (``30d``), is not among the newest *keep*, or
    exceeds *max_size* (``500MB``) counted from the newest; with *status*, only runs with these are
    considered. Without any of these, the table ``[prune]`` of the nearest ``reenact.toml`` decides. With
    *payloads*, large payloads are removed and the events stay. Sealed runs stay unless *sealed* is true.
    """
    if older_than is None and keep is None and max_size is None and not status:
        settings = _project_settings(Path.cwd())
        older_than, keep, max_size = settings.older_than, settings.keep, settings.max_size
        status, payloads = settings.status, payloads or settings.payloads
    retention = Retention(
        older_than_s=None if older_than is None else _seconds(older_than),
        keep=keep,
        max_bytes=None if max_size is None else _bytes(max_size),
        statuses=status,
        payloads_only=payloads,
        sealed=sealed,
    )
    now_ms = time.time() * 1000
    plan = plan_prune(map(path_here, folders), retention, now_ms=now_ms)
    report = PruneReport(
        done=remove,
        payloads_only=payloads,
        going=[] if remove else plan.going,
        staying=plan.staying,
        sealed=plan.sealed,
        recording=plan.recording,
        changed=[],
        failed=[*plan.unreadable],
    )
    if remove:
        carry_out(plan, report, now_ms=now_ms)
    return report


def _seconds(age: str) -> float:
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"{age!r} is not an age; write a number and s, m, h, d or w, as 30d")
    return float(found[1]) * _SECONDS[found[2]]


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a size; write a number and B, kB, MB, GB or TB, as 500MB")
    return int(float(found[1]) * _BYTES[found[2].removesuffix("B").upper() or "B"])


class _Settings(msgspec.Struct, frozen=True):
    """The table ``[prune]`` of ``reenact.toml``."""

    older_than: str | None = None
    keep: int | None = None
    max_size: str | None = None
    status: tuple[Status, ...] = ()
    payloads: bool = False


_EXPECTED: Final = {
    "older_than": 'an age such as "30d"',
    "keep": "a count",
    "max_size": 'a size such as "500MB"',
    "status": f"a list of {', '.join(STATUSES)}",
    "payloads": "true or false",
}


def _project_settings(start: Path) -> _Settings:
    """The settings in the nearest ``reenact.toml``; errors name the place in it."""
    file = find_project_file(start)
    table = {} if file is None else read_project(file).get("prune", {})
    if not isinstance(table, dict):
        raise FormatError("expected a table", file=str(file), json_path="$.prune")
    for name, value in table.items():
        try:
            if name not in _EXPECTED:
                reason = f"is unknown; the table has {', '.join(_EXPECTED)}"
                raise FormatError(reason, file=str(file), json_path=f"$.prune.{name}")
            msgspec.convert({name: value}, _Settings)
        except msgspec.ValidationError:
            reason = f"expected {_EXPECTED[name]}"
            raise FormatError(reason, file=str(file), json_path=f"$.prune.{name}") from None
    return msgspec.convert(table, _Settings)


def plan_prune(folders: Iterable[Path], retention: Retention, *, now_ms: float) -> PrunePlan:
    """Search *folders* for captures and decide which to remove; nothing is changed."""
    retention.check()
    found = _Search(retention)
    for folder in folders:
        if not folder.exists():
            raise StoreError(f"{folder}: No such file or directory; name a run or a folder of runs")
        if not folder.is_dir():
            raise StoreError(f"{folder}: is a file; name a run or a folder of runs")
        found.look_into(folder.resolve() if folder.is_symlink() else folder)
    wanted = retention.statuses or ("ok", "error")
    runs = [run for run in found.runs.values() if run.status in wanted]
    if retention.payloads_only:
        runs = [run for run in runs if run.size_bytes]
    protected = [] if retention.sealed else [run for run in runs if run.is_sealed]
    removable = runs if retention.sealed else [run for run in runs if not run.is_sealed]
    going = _without_parents(_over_limits(removable, retention, now_ms), found.runs.values())
    return PrunePlan(
        retention,
        going,
        _without(found.runs.values(), going),
        sorted(_over_limits(protected, retention, now_ms), key=lambda run: run.path),
        found.recording,
        found.unreadable,
        found.leftovers,
    )


def _over_limits(runs: list[FoundRun], retention: Retention, now_ms: float) -> list[FoundRun]:
    """The runs that exceed a limit, oldest first."""
    newest_first = sorted(runs, key=lambda run: (run.ended_ms, str(run.path)), reverse=True)
    limits = (retention.older_than_s, retention.keep, retention.max_bytes)
    is_by_status_alone = all(limit is None for limit in limits)
    going: list[FoundRun] = []
    kept, kept_bytes = 0, 0
    for run in newest_first:
        age_s = (now_ms - run.ended_ms) / 1000
        is_over = (
            is_by_status_alone
            or (retention.older_than_s is not None and age_s > retention.older_than_s)
            or (retention.keep is not None and kept >= retention.keep)
            or (retention.max_bytes is not None and kept_bytes + run.size_bytes > retention.max_bytes)
        )
        if is_over:
            going.append(run)
        else:
            kept, kept_bytes = kept + 1, kept_bytes + run.size_bytes
    return going[::-1]


def _without_parents(going: list[FoundRun], runs: Iterable[FoundRun]) -> list[FoundRun]:
    """*going* without the parents of forks that stay."""
    while True:
        needed = {run.parent for run in _without(runs, going) if run.parent is not None}
        fewer = [run for run in going if run.path.resolve() not in needed] if needed else going
        if len(fewer) == len(going):
            return going
        going = fewer


def _without(runs: Iterable[FoundRun], others: Iterable[FoundRun]) -> list[FoundRun]:
    paths = {run.path for run in others}
    return [run for run in runs if run.path not in paths]


class _Search:
    """Searches folders for captures; links are not followed and hidden folders are skipped."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._seals: dict[Path, set[str]] = {}
        """By folder: the ids of the captures whose seals are in it."""
        self.runs: dict[Path, FoundRun] = {}
        self.recording: list[Path] = []
        self.unreadable: list[Unreadable] = []
        self.leftovers: list[Path] = []

    def look_into(self, folder: Path) -> None:
        if RunDir(folder).is_capture:
            self._look_at(folder)
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.unreadable.append(Unreadable(folder, error.strerror or str(error)))
            return
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            if _ASIDE_NAME.fullmatch(entry.name):
                self.leftovers.append(Path(entry.path))
            elif not entry.name.startswith("."):
                self.look_into(Path(entry.path))

    def _look_at(self, path: Path) -> None:
        try:
            state = RunDir(path).state
            if state is RunState.OPEN:
                self.recording.append(path)
            else:
                self.runs[path] = self._describe_run(path, state)
        except (FormatError, StoreError, OSError) as error:
            self.unreadable.append(Unreadable(path, str(error)))

    def _describe_run(self, path: Path, state: RunState) -> FoundRun:
        text = RunDir(path).read_manifest()
        status: Status = "interrupted"
        parent: Path | None = None
        if state is RunState.INTERRUPTED:
            seed = read_seed(text, file=str(path / MANIFEST))
            capture_id, ended_ms = seed.captureId, seed.createdAt
        else:
            manifest = read_manifest(text, file=str(path / MANIFEST))
            capture_id = manifest.captureId
            ended_ms = manifest.updatedAt or manifest.completedAt or manifest.createdAt
            status = manifest.status
            if manifest.fork is not ABSENT and manifest.fork.stored == "suffix":
                parent = (path / manifest.fork.parent.path).resolve()
        is_sealed = (path.parent / f"{path.name}{_SEAL_SUFFIX}").exists() or any(
            capture_id in self._sealed_in(folder) for folder in (path, path.parent)
        )
        size_bytes = (
            sum(file.stat().st_size for file in _payload_files(path))
            if self._retention.payloads_only
            else _size_of(path)
        )
        return FoundRun(path, status, ended_ms, size_bytes, is_sealed, _mark_of(text), parent)

    def _sealed_in(self, folder: Path) -> set[str]:
        if folder not in self._seals:
            self._seals[folder] = set(_captures_sealed_in(folder))
        return self._seals[folder]


def _captures_sealed_in(folder: Path) -> Iterator[str]:
    """The ids of the captures whose seals are in *folder*, under any file name."""
    for entry in os.scandir(folder):
        is_file = entry.name.endswith(".json") and entry.is_file()
        if is_file and entry.name != MANIFEST and entry.stat().st_size <= _MAX_SEAL_BYTES:
            with suppress(FormatError, OSError):
                envelope = read_envelope(Path(entry.path).read_bytes(), file=entry.name)
                seal = read_seal(payload_of(envelope), file=entry.name)
                if seal.capture is not ABSENT:
                    yield seal.capture.captureId


def _mark_of(manifest: bytes) -> str:
    return sha256(manifest).hexdigest()


def _payload_files(path: Path) -> list[Path]:
    """The blob files of a run."""
    blobs = inside(path, BLOBS)
    below = [Path(folder, name) for folder, _, names in os.walk(blobs) for name in names]
    return [file for file in below if not file.is_symlink()]


def _size_of(path: Path) -> int:
    files = (os.lstat(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)
    return sum(found.st_size for found in files if stat.S_ISREG(found.st_mode))


def carry_out(plan: PrunePlan, report: PruneReport, *, now_ms: float) -> None:
    """Remove the runs of *plan* that did not change since; the results are added to *report*."""
    for left in plan.leftovers:
        rmtree(left, ignore_errors=True)
    for run in plan.going:
        try:
            is_gone = _prune_payloads(run, now_ms) if plan.retention.payloads_only else _remove(run)
            if is_gone:
                report.going.append(run)
            else:
                report.changed.append(run.path)
        except (StoreError, OSError) as error:
            reason = str(error) if isinstance(error, StoreError) else error.strerror or str(error)
            report.failed.append(Unreadable(run.path, reason))


def _remove(run: FoundRun) -> bool:
    aside = _hidden_path(run.path)
    with RunDir(run.path).lock():
        if not _is_unchanged(run.path, run):
            return False
        os.rename(run.path, aside)
        # Another process put another run there in the meantime; move it back.
        if not _is_unchanged(aside, run):
            os.rename(aside, run.path)
            return False
    _remove_folder(aside)
    return True


def _prune_payloads(run: FoundRun, now_ms: float) -> bool:
    folder = RunDir(run.path)
    aside = _hidden_path(run.path)
    with folder.lock():
        if not _is_unchanged(run.path, run):
            return False
        blobs = sorted(folder.blobs)
        marked = {"version": 1, "prunedAt": int(now_ms), "blobs": sorted({*blobs, *pruned_blobs(run.path)})}
        folder.write_file(PRUNED, msgspec.json.encode(marked) + b"\n")
        sync_folder(run.path)
        inside(run.path, TRANSCRIPT).unlink(missing_ok=True)  # it repeats the payloads
        os.rename(inside(run.path, BLOBS), aside)
    _remove_folder(aside)
    return True


def pruned_blobs(path: Path) -> list[str]:
    """The digests of the payloads that were removed from the run at *path*, according to its mark."""
    try:
        value: JsonValue = read_json(inside(path, PRUNED).read_bytes())
    except FileNotFoundError:
        return []
    except FormatError as error:
        raise error.at(file=PRUNED) from None
    blobs = value.get("blobs") if isinstance(value, dict) and value.get("version") == 1 else None
    if not isinstance(blobs, list):
        raise FormatError("expected version 1 and a list of blobs", file=PRUNED, json_path="$")
    return [digest for digest in blobs if isinstance(digest, str)]


def _is_unchanged(path: Path, run: FoundRun) -> bool:
    with suppress(StoreError):
        folder = RunDir(path)
        return folder.state is not RunState.OPEN and _mark_of(folder.read_manifest()) == run.mark
    return False


def _hidden_path(path: Path) -> Path:
    return path.with_name(f".{path.name}{_ASIDE}{os.getpid()}")


def _remove_folder(folder: Path) -> None:
    try:
        rmtree(folder)  # removes links without following them
    except OSError as error:
        raise unwritable(folder, error) from error
