"""Exporting: each run is written as one file of another tool's format, and what that cannot hold is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from reenact.errors import ReenactError, StoreError, UsageError
from reenact.exporters import atif, har
from reenact.formats.dialects.turn import Loss
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.outfile import write_output
from reenact.store.paths import folder_name
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, list_remote, local_path, local_run, remote_name
from reenact.store.rundir import RunDir

ExportFormat: TypeAlias = Literal["atif", "har"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_Exporter: TypeAlias = Callable[[CaptureReader, Callable[[Loss], None]], dict[str, Any]]
_EXPORTERS: Final[dict[ExportFormat, _Exporter]] = {"atif": atif.document_of, "har": har.document_of}
_SUFFIXES: Final[dict[ExportFormat, str]] = {"atif": ".json", "har": ".har"}


class ExportedRun(msgspec.Struct, frozen=True):
    """One file that was written."""

    path: str
    """The run."""
    out: str
    losses: list[Loss]


class FailedExport(msgspec.Struct, frozen=True):
    path: str
    reason: str


class ExportReport(msgspec.Struct, frozen=True):
    """What came of an export."""

    to: ExportFormat
    runs: list[ExportedRun]
    failed: list[FailedExport]
    """Runs that could not be read."""


def export_runs(
    paths: str | Path | Sequence[str | Path],
    to: ExportFormat,
    out: str | Path,
    *,
    progress_bar: ProgressBar = no_progress_bar,
) -> ExportReport:
    """Write captures, and the captures in folders, as *to*.

    One capture is written to the file *out*; several get files below the folder *out*, named as they are.
    What is hidden in a capture stays hidden.
    """
    if to not in EXPORT_FORMATS:
        raise UsageError(f"{to!r} is no format to export to; use one of {', '.join(EXPORT_FORMATS)}")
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [run for path in given for run in _captures_in(path)]
    if not found:
        raise UsageError(f"{given[0] if given else out}: there is no capture in it; name captures or folders")
    is_one = len(given) == 1 and found[0][0] == remote_name(given[0])
    runs, failed = [], []
    with progress_bar(len(found), "exporting") as progress:
        for path, name in found:
            target = Path(out) if is_one else Path(out) / f"{name}{_SUFFIXES[to]}"
            try:
                runs.append(_export(path, to, target))
            except ReenactError as error:
                failed.append(FailedExport(path, str(error)))
            progress(1)
    return ExportReport(to, runs, failed)


def _captures_in(given: str | Path) -> list[tuple[str, str]]:
    """Captures at or below *given*, each with the name of its file."""
    if is_remote(given):
        return [(run.path, _file_name(run.name or run.path.rpartition("/")[2])) for run in list_remote(given)]
    path = Path(local_path(given))
    if path.is_dir() and RunDir(path).is_capture:
        return [(str(path), folder_name(path.name))]
    if not path.is_dir():
        if not path.exists():
            raise StoreError(f"{path}: No such file or directory; name a run or a folder of runs")
        raise UsageError(f"{path}: is no capture and no folder of captures")
    manifests = sorted(path.rglob("manifest.json"))
    runs = [
        file.parent
        for file in manifests
        if RunDir(file.parent).is_capture and (file.parent / "events.jsonl").exists()
    ]
    return [(str(run), _file_name(run.relative_to(path).as_posix())) for run in runs]


def _file_name(name: str) -> str:
    return "/".join(map(folder_name, name.split("/")))


def _export(path: str, to: ExportFormat, target: Path) -> ExportedRun:
    losses: dict[tuple[str, str | None, str], Loss] = {}

    def lose(loss: Loss) -> None:
        losses.setdefault((loss.event, loss.field, loss.reason), loss)

    with local_run(path) as folder:
        document = _EXPORTERS[to](CaptureReader(folder), lose)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_output(target, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    return ExportedRun(path, str(target), list(losses.values()))
