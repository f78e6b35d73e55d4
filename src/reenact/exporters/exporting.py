"""Exporting: runs as documents of other tools, one a run, or as rows of one dataset.

What is not in them is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from reenact.errors import ReenactError, StoreError, UsageError
from reenact.exporters import atif, har, otlp
from reenact.exporters.datasets import (
    Continuation,
    DatasetFormat,
    DatasetPlan,
    Dedupe,
    DistinctLosses,
    ExportedDataset,
    RowWriter,
    Selection,
    Splits,
    continuations_of_run,
    dataset_card,
    find_pairs,
    judge,
    open_rows,
    pair_rows,
    reason_against,
    rows_of_run,
    split_file,
)
from reenact.formats.capture import RedactionProfile
from reenact.formats.dialects.turn import Loss
from reenact.formats.testcase import read_test_case
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.outfile import write_output
from reenact.store.paths import folder_name
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, list_remote, local_path, local_run, remote_name
from reenact.store.rundir import RunDir
from reenact.suite.runner import project_settings
from reenact.trace.to_rows import Reasoning, RowOptions, redactor_of

DocumentFormat: TypeAlias = Literal["atif", "har", "otlp"]
ExportFormat: TypeAlias = Literal["atif", "har", "otlp", "parquet", "preference", "sft"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_DATASETS: Final[tuple[DatasetFormat, ...]] = get_args(DatasetFormat)
_Exporter: TypeAlias = Callable[[CaptureReader, Callable[[Loss], None]], dict[str, Any]]
_EXPORTERS: Final[dict[DocumentFormat, _Exporter]] = {
    "atif": atif.document_of,
    "har": har.document_of,
    "otlp": otlp.document_of,
}
_SUFFIXES: Final[dict[DocumentFormat, str]] = {"atif": ".json", "har": ".har", "otlp": ".json"}
_ENDPOINTS: Final = ("http://", "https://")


class ExportedRun(msgspec.Struct, frozen=True):
    """A run that was written, as a file of its own or as rows."""

    path: str
    """The run."""
    out: str
    losses: list[Loss]
    rows: int = 0
    """In a dataset, without duplicates; a pair is one of both runs."""


class FailedExport(msgspec.Struct, frozen=True):
    path: str
    reason: str


class ExportReport(msgspec.Struct, frozen=True):
    """What came of an export."""

    to: ExportFormat
    runs: list[ExportedRun]
    failed: list[FailedExport]
    """Runs that could not be read."""
    left_out: dict[str, int] = {}
    """Runs that were not selected, by reason."""
    dataset: ExportedDataset | None = None
    """Of ``sft``, ``preference`` and ``parquet``."""


def export_runs(
    paths: str | Path | Sequence[str | Path],
    to: ExportFormat,
    out: str | Path,
    *,
    status: Sequence[str] = (),
    test: str | Path | None = None,
    min_utility: float | None = None,
    min_verification_delta: int | None = None,
    redact: RedactionProfile = "none",
    reasoning: Reasoning = "drop",
    split: Mapping[str, float] | None = None,
    dedupe: Dedupe = "exact",
    allow_code: bool = False,
    progress_bar: ProgressBar = no_progress_bar,
) -> ExportReport:
    """Write captures, and the captures in folders, as *to*.

    ``atif``, ``har`` and ``otlp`` are documents: one capture is written to the file *out*, several get files
    below the folder *out*, named as they are; ``otlp`` is also sent to a collector whose address *out* is.
    ``sft``, ``preference`` and ``parquet`` are datasets: all rows go to the file *out*, or with *split* to
    one file for each share in the folder *out*. What is hidden in a capture stays hidden; *redact* hides
    more. Only runs with one of the *status*, that pass the *test*, and whose steps and verifications were at
    least as good as asked for, are taken; pairs are ranked by the test instead.
    """
    if to not in EXPORT_FORMATS:
        raise UsageError(f"{to!r} is no format to export to; use one of {', '.join(EXPORT_FORMATS)}")
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [run for path in given for run in _captures_in(path)]
    if not found:
        raise UsageError(f"{given[0] if given else out}: there is no capture in it; name captures or folders")
    if test is not None:
        _check_test(Path(test), allow_code=allow_code)
    selection = Selection(
        status=tuple(status),
        test=None if test is None else str(test),
        min_utility=min_utility,
        min_verification_delta=min_verification_delta,
        allow_code=allow_code,
    )
    if to == "sft" or to == "preference" or to == "parquet":
        splits = None if split is None else Splits(split)
        folder = Path(out) if splits is not None else Path(out).parent
        plan = DatasetPlan(to, str(folder.absolute()), RowOptions(reasoning, redact), selection)
        runs = [path for path, _ in found]
        return _export_dataset(runs, Path(out), plan, splits, dedupe, progress_bar)
    if split is not None or reasoning != "drop":
        raise UsageError(f"splits and reasoning are chosen for {', '.join(_DATASETS)}, not for {to}")
    is_one = len(given) == 1 and found[0][0] == remote_name(given[0])
    return _export_documents(found, to, str(out), selection, redact, progress_bar, is_one=is_one)


def _check_test(file: Path, *, allow_code: bool) -> None:
    """What is wrong with the test is said before the first run is read."""
    if not file.is_file():
        raise StoreError(f"{file}: No such file; name a test.yaml")
    read_test_case(file.read_bytes(), str(file))
    project_settings(allow_code=allow_code)


def _export_documents(
    found: list[tuple[str, str]],
    to: DocumentFormat,
    out: str,
    selection: Selection,
    redact: RedactionProfile,
    progress_bar: ProgressBar,
    *,
    is_one: bool,
) -> ExportReport:
    runs: list[ExportedRun] = []
    failed: list[FailedExport] = []
    left_out: Counter[str] = Counter()
    is_sent = out.startswith(_ENDPOINTS)
    if is_sent and to != "otlp":
        raise UsageError(f"{out}: only otlp is sent to an address; name a file")
    with progress_bar(len(found), "exporting") as progress:
        for path, name in found:
            target = out if is_one or is_sent else str(Path(out) / f"{name}{_SUFFIXES[to]}")
            try:
                done = export_run(path, to, target, selection, redact)
                if isinstance(done, str):
                    left_out[done] += 1
                else:
                    runs.append(done)
            except ReenactError as error:
                failed.append(FailedExport(path, str(error)))
            progress(1)
    return ExportReport(to, runs, failed, dict(left_out))


def export_run(
    path: str, to: DocumentFormat, target: str, selection: Selection, redact: RedactionProfile
) -> ExportedRun | str:
    """Write one run to the file *target*, or send it there; why not, where it is not selected."""
    losses = DistinctLosses()
    with local_run(path) as folder:
        reader = CaptureReader(folder)
        left_out = reason_against(judge(reader, selection), selection)
        if left_out is not None:
            return left_out
        document = msgspec.json.encode(_EXPORTERS[to](reader, losses.add))
        if redact != "none":
            document = redactor_of(reader, redact).redact_ordered_json(document)
    if target.startswith(_ENDPOINTS):
        otlp.send(target, document)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        # OTLP has one request a line, so that files can be put together.
        text = document if to == "otlp" else msgspec.json.format(document, indent=1)
        write_output(Path(target), text + b"\n")
    return ExportedRun(path, target, losses.found())


def _export_dataset(
    paths: list[str],
    out: Path,
    plan: DatasetPlan,
    splits: Splits | None,
    dedupe: Dedupe,
    progress_bar: ProgressBar,
) -> ExportReport:
    exported = _ExportingRows(out, plan)
    with open_rows(out, plan.to, splits, dedupe) as writer:
        with progress_bar(len(paths), "exporting") as progress:
            for path in paths:
                exported.take(path, writer)
                progress(1)
        exported.write_pairs(writer)
        if splits is not None and plan.to != "parquet":
            card = dataset_card(plan, writer.counts, dedupe, writer.duplicates, exported.left_out)
            write_output(out / "README.md", card.encode())
    files = {str(split_file(out, name, plan.to)): rows for name, rows in writer.counts.items()}
    dataset = ExportedDataset(files, writer.duplicates, plan.options.redact)
    return ExportReport(plan.to, exported.runs(), exported.failed, dict(exported.left_out), dataset)


class _ExportingRows:
    """What was done for each run."""

    def __init__(self, out: Path, plan: DatasetPlan) -> None:
        self._out = out
        self._plan = plan
        self._losses: dict[str, list[Loss]] = {}
        self._rows: Counter[str] = Counter()
        self._continuations: list[Continuation] = []
        self.failed: list[FailedExport] = []
        self.left_out: Counter[str] = Counter()

    def take(self, path: str, writer: RowWriter) -> None:
        """Write the rows of a run, or keep what pairs are found by."""
        try:
            if self._plan.to == "preference":
                kept = continuations_of_run(path, self._plan)
                self._continuations += kept.found
                self._note(path, kept.losses, kept.left_out)
                return
            made = rows_of_run(path, self._plan)
        except ReenactError as error:
            self.failed.append(FailedExport(path, str(error)))
            return
        self._note(path, made.losses, made.left_out)
        self._rows[path] += sum(map(writer.add, made.rows))

    def _note(self, path: str, losses: list[Loss], left_out: str | None) -> None:
        if left_out is None:
            self._losses[path] = losses
        else:
            self.left_out[left_out] += 1

    def write_pairs(self, writer: RowWriter) -> None:
        pairs = list(find_pairs(self._continuations))
        for pair, row in zip(pairs, pair_rows(pairs, self._plan), strict=True):
            if writer.add(row):
                self._rows.update((pair.chosen.path, pair.rejected.path))

    def runs(self) -> list[ExportedRun]:
        return [
            ExportedRun(path, str(self._out), losses, self._rows[path])
            for path, losses in self._losses.items()
        ]


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
