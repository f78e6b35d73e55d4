"""Exports runs as documents of other tools, one per run, or as rows of one dataset.

The report lists what a format cannot hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from math import isnan
from os.path import realpath
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from reenact.corpus.parts import is_corpus
from reenact.corpus.runs import require_runs
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
    RunContinuations,
    RunRows,
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
    write_manifest,
)
from reenact.formats.capture import RedactionProfile, RunStatus
from reenact.formats.dialects.losses import Loss
from reenact.formats.testcase import read_test_case
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.outfile import write_output
from reenact.store.paths import folder_name
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, list_remote, local_path, local_run, remote_name
from reenact.store.rundir import RunDir
from reenact.suite.runner import project_settings
from reenact.trace.to_rows import Reasoning, RowOptions, redactor_of
from reenact.workers import map_batches, worker_count

R = TypeVar("R")

DocumentFormat: TypeAlias = Literal["atif", "har", "otlp"]
ExportFormat: TypeAlias = Literal["atif", "har", "otlp", "parquet", "preference", "sft"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_DATASETS: Final[tuple[DatasetFormat, ...]] = get_args(DatasetFormat)
_Exporter: TypeAlias = Callable[[CaptureReader, Callable[[Loss], None]], dict[str, object]]
_EXPORTERS: Final[dict[DocumentFormat, _Exporter]] = {
    "atif": atif.document_of,
    "har": har.document_of,
    "otlp": otlp.document_of,
}
_SUFFIXES: Final[dict[DocumentFormat, str]] = {"atif": ".json", "har": ".har", "otlp": ".json"}
_UNREADABLE: Final = (
    ReenactError, OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
    RecursionError,
)  # fmt: skip
"""The exceptions of reading a run: even with correct digests, its events may have unexpected content."""
_BATCH: Final = 16
"""The number of runs in a batch for a worker."""
_ENDPOINTS: Final = ("http://", "https://")


class ExportedRun(msgspec.Struct, frozen=True):
    """A run that was written as a file, or as rows of a dataset."""

    path: str
    """The path of the run."""
    out: str
    losses: list[Loss]
    rows: int = 0
    """Rows in a dataset, without duplicates; a pair counts for both runs."""


class FailedExport(msgspec.Struct, frozen=True):
    path: str
    reason: str


class ExportReport(msgspec.Struct, frozen=True):
    """The result of an export."""

    to: ExportFormat
    runs: list[ExportedRun]
    failed: list[FailedExport]
    """Runs that could not be read, or whose document could not be written or sent."""
    left_out: dict[str, int] = {}
    """Runs that were not selected, by reason."""
    dataset: ExportedDataset | None = None
    """Only for ``sft``, ``preference`` and ``parquet``."""


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
    jobs: int = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> ExportReport:
    """Export captures, and the captures in folders and indexes, in the format *to*.

    ``atif``, ``har`` and ``otlp`` are documents: one capture is written to the file *out*, several to files
    below the folder *out*, with the names of the captures, and numbers where two have the same name. With
    ``/`` at its end *out* is a folder for one, too. For ``otlp``, *out* may be the address of a collector.
    ``sft``, ``preference`` and ``parquet`` are datasets: all rows go to the file *out*, or with
    *split* to one file per split in the folder *out*. Redacted values of a capture stay redacted; *redact*
    hides more. A run is exported only if it has one of the *status*, passes the *test*, and its steps and
    verifications reach the minimum; for pairs, the test ranks the runs instead. Runs of an index with another
    status are not opened. *jobs* processes (0: one per core) read the runs, or the tasks of ray if *on* is
    ``ray``; the output is the same, byte for byte.
    """
    if to not in EXPORT_FORMATS:
        raise UsageError(f"{to!r} is not an export format; use one of {', '.join(EXPORT_FORMATS)}")
    if odd := sorted(set(status) - set(get_args(RunStatus))):
        raise UsageError(f"runs do not end with {odd[0]!r}; select by: {', '.join(get_args(RunStatus))}")
    if min_utility is not None and isnan(min_utility):
        raise UsageError("the minimum step utility is not a number; give one, such as 0.5")
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    # A run that is named twice, directly and by its folder, is exported once.
    named = (run for path in given for run in _captures_in(path, status))
    found = [*{path if is_remote(path) else realpath(path): (path, name) for path, name in named}.values()]
    if not found:
        raise UsageError(
            f"{given[0] if given else out}: holds no capture; name captures or folders of captures"
        )
    if test is not None:
        _check_test(Path(test), allow_code=allow_code)
    workers = _Workers(worker_count(jobs, is_much=True), on)
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
        return _export_dataset(runs, Path(out), plan, splits, dedupe, workers, progress_bar)
    if split is not None or reasoning != "drop":
        raise UsageError(f"splits and reasoning are options for {', '.join(_DATASETS)}, not for {to}")
    is_one = len(given) == 1 and found[0][0] == remote_name(given[0]) and not str(out).endswith("/")
    documents = _DocumentPlan(to, selection, redact)
    found = _with_own_names(found)
    return _export_documents(found, documents, str(out), workers, progress_bar, is_one=is_one)


class _Workers(NamedTuple):
    """The processes that read the runs."""

    jobs: int
    on: str | None

    def map(self, work: Callable[[list[str]], list[R]], runs: Sequence[str]) -> Iterator[R]:
        """The result of *work* for each of *runs*, in order."""
        size = max(1, min(_BATCH, len(runs) // (self.jobs * 4)))
        batches = [list(runs[start : start + size]) for start in range(0, len(runs), size)]
        for made in map_batches(work, batches, jobs=min(self.jobs, len(batches)), on=self.on):
            yield from made


def _check_test(file: Path, *, allow_code: bool) -> None:
    """Raise errors in the test before the first run is read."""
    if not file.is_file():
        raise StoreError(f"{file}: No such file; name a test.yaml")
    read_test_case(file.read_bytes(), str(file))
    project_settings(allow_code=allow_code)


class _DocumentPlan(msgspec.Struct, frozen=True):
    """How to convert runs to documents; it is sent to worker processes."""

    to: DocumentFormat
    selection: Selection
    redact: RedactionProfile


class RunDocument(NamedTuple):
    """The result for one run."""

    text: bytes
    losses: list[Loss]
    left_out: str | None = None
    """Why the run was not selected."""
    failed: str | None = None
    """Why it could not be read."""


def document_batch(paths: Sequence[str], plan: _DocumentPlan) -> list[RunDocument]:
    """The document of each of *paths*."""
    return [_document_of(path, plan) for path in paths]


def _document_of(path: str, plan: _DocumentPlan) -> RunDocument:
    losses = DistinctLosses()
    try:
        with local_run(path) as folder:
            reader = CaptureReader(folder)
            left_out = reason_against(judge(reader, plan.selection), plan.selection)
            if left_out is not None:
                return RunDocument(b"", [], left_out)
            document = msgspec.json.encode(_EXPORTERS[plan.to](reader, losses.add))
            if plan.redact != "none":
                document = redactor_of(reader, plan.redact).redact_ordered_json(document)
    except _UNREADABLE as error:
        return RunDocument(b"", [], None, _describe_error(path, error))
    return RunDocument(document, losses.found())


def _describe_error(path: str, error: Exception) -> str:
    if isinstance(error, ReenactError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or path}: {error.strerror or error}"
    reason = f"{type(error).__name__}: {error}"
    return (
        f"{path}: an event has content that events of its type do not have ({reason}); "
        "look at it with: reenact verify"
    )


def _export_documents(
    found: list[tuple[str, str]],
    plan: _DocumentPlan,
    out: str,
    workers: _Workers,
    progress_bar: ProgressBar,
    *,
    is_one: bool,
) -> ExportReport:
    runs: list[ExportedRun] = []
    failed: list[FailedExport] = []
    left_out: Counter[str] = Counter()
    is_sent = out.startswith(_ENDPOINTS)
    unreachable: str | None = None
    if is_sent and plan.to != "otlp":
        raise UsageError(f"{out}: only otlp is sent to an address; name a file")
    documents = workers.map(partial(document_batch, plan=plan), [path for path, _ in found])
    with progress_bar(len(found), "exporting") as progress:
        # This process writes and sends, because the batch of a killed worker is repeated.
        for (path, name), made in zip(found, documents, strict=True):
            target = out if is_one or is_sent else str(Path(out) / f"{name}{_SUFFIXES[plan.to]}")
            if made.left_out is not None:
                left_out[made.left_out] += 1
            elif made.failed is not None:
                failed.append(FailedExport(path, made.failed))
            elif unreachable is not None:
                failed.append(FailedExport(path, f"was not sent: {unreachable}"))
            else:
                try:
                    _write_document(made.text, plan.to, target)
                    runs.append(ExportedRun(path, target, made.losses))
                except ReenactError as error:
                    failed.append(FailedExport(path, str(error)))
                    unreachable = str(error) if isinstance(error, otlp.Unreachable) else None
            progress(1)
    return ExportReport(plan.to, runs, failed, dict(left_out))


def _write_document(document: bytes, to: DocumentFormat, target: str) -> None:
    if target.startswith(_ENDPOINTS):
        otlp.send(target, document)
        return
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    # OTLP files have one request per line, so that they can be concatenated.
    text = document if to == "otlp" else msgspec.json.format(document, indent=1)
    write_output(Path(target), text + b"\n")


def _export_dataset(
    paths: list[str],
    out: Path,
    plan: DatasetPlan,
    splits: Splits | None,
    dedupe: Dedupe,
    workers: _Workers,
    progress_bar: ProgressBar,
) -> ExportReport:
    exported = _DatasetCollector(out, plan)
    with open_rows(out, plan.to, splits, dedupe) as writer:
        with progress_bar(len(paths), "exporting") as progress:
            for path, made in zip(paths, workers.map(partial(row_batch, plan=plan), paths), strict=True):
                exported.take(path, made, writer)
                progress(1)
        exported.write_pairs(writer)
        if splits is not None and plan.to != "parquet":
            card = dataset_card(plan, writer.counts, dedupe, writer.duplicates, exported.left_out)
            write_output(out / "README.md", card.encode())
    write_manifest(out, plan, splits, writer)
    files = {str(split_file(out, name, plan.to)): rows for name, rows in writer.counts.items()}
    dataset = ExportedDataset(files, writer.duplicates, plan.options.redact)
    return ExportReport(plan.to, exported.runs(), exported.failed, dict(exported.left_out), dataset)


def row_batch(paths: Sequence[str], plan: DatasetPlan) -> list[RunRows | RunContinuations | str]:
    """The rows or continuations of each of *paths*; a text with the reason if a run cannot be read."""
    made: list[RunRows | RunContinuations | str] = []
    read = continuations_of_run if plan.to == "preference" else rows_of_run
    for path in paths:
        try:
            made.append(read(path, plan))
        except _UNREADABLE as error:
            made.append(_describe_error(path, error))
    return made


class _DatasetCollector:
    """Collects the results of all runs."""

    def __init__(self, out: Path, plan: DatasetPlan) -> None:
        self._out = out
        self._plan = plan
        self._losses: dict[str, list[Loss]] = {}
        self._rows: Counter[str] = Counter()
        self._continuations: list[Continuation] = []
        self.failed: list[FailedExport] = []
        self.left_out: Counter[str] = Counter()

    def take(self, path: str, made: RunRows | RunContinuations | str, writer: RowWriter) -> None:
        """Write the rows of a run, or keep its continuations; *made* is a text if it could not be read."""
        if isinstance(made, str):
            self.failed.append(FailedExport(path, made))
            return
        self._note(path, made.losses, made.left_out)
        if isinstance(made, RunContinuations):
            self._continuations += made.found
        else:
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


def _captures_in(given: str | Path, status: Sequence[str]) -> list[tuple[str, str]]:
    """Captures at or below *given*, or of the index there, each with a name for its file."""
    if is_corpus(given):
        runs = [run for run in require_runs(given, "capture") if run.state != "open"]
        wanted = [run for run in runs if not status or run.status in status]
        # Without a wanted one, the report says what was left out.
        return [named for run in wanted or runs for named in _captures_in(run.path, ())]
    if is_remote(given):
        return [(run.path, _file_name(run.name or run.path.rpartition("/")[2])) for run in list_remote(given)]
    path = Path(local_path(given))
    if path.is_dir() and RunDir(path).is_capture:
        return [(str(path), folder_name(path.name))]
    if not path.is_dir():
        if not path.exists():
            raise StoreError(f"{path}: No such file or directory; name a run or a folder of runs")
        raise StoreError(f"{path}: is neither a capture nor a folder of captures")
    folders = (file.parent for file in sorted(path.rglob("manifest.json")))
    captures = [each for each in folders if RunDir(each).is_capture and (each / "events.jsonl").exists()]
    return [(str(each), _file_name(each.relative_to(path).as_posix())) for each in captures]


def _with_own_names(runs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """*runs* with a number behind each name that another run has already: no file replaces another one."""
    taken: set[str] = set()
    named = []
    for path, name in runs:
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        own = next(each for each in names if each.lower() not in taken)
        taken.add(own.lower())
        named.append((path, own))
    return named


def _file_name(name: str) -> str:
    return "/".join(map(folder_name, name.split("/")))
