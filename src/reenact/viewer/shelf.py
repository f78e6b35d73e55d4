"""The runs that the viewer may show: those in the given paths, each with a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from reenact.analysis.artifact import Artifact, open_artifact
from reenact.canonical import JsonValue
from reenact.check.kinds import find_runs, is_run
from reenact.corpus.parts import is_corpus
from reenact.corpus.runs import IndexedRun, indexed_runs
from reenact.errors import ReenactError, UsageError
from reenact.formats.capture import NO_MODEL
from reenact.formats.replay_receipt import SCHEMA, ReplayReceipt, read_replay_receipt, receipt_codec
from reenact.store.remote import RemoteRun, is_remote, list_remote, local_path, local_run
from reenact.store.rundir import EVENTS
from reenact.suite.settings import Price
from reenact.trace.sources.source import Header
from reenact.viewer.what_if import ShadowReports, is_report_file, shadow_reports_in

_LOOKED_AT_BYTES: Final = 64 * 1024 * 1024


class Receipts:
    """The receipts in *files*; unreadable ones are skipped."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._found = [(file, receipt) for file in files if (receipt := _read(file)) is not None]

    def count(self, capture_id: str | None) -> int:
        """The number of divergences and refused calls in all receipts of one capture."""
        own = self._receipts_of(capture_id)
        return sum(len(receipt.divergences) + len(receipt.liveCallsRefused) for _, receipt in own)

    def diverged_events(self, capture_id: str | None) -> list[int]:
        """The recorded events at which replays diverged."""
        found = (each.get("eventSeq") for _, one in self._receipts_of(capture_id) for each in one.divergences)
        return sorted({seq for seq in found if isinstance(seq, int)})

    def of(self, capture_id: str | None) -> list[dict[str, JsonValue]]:
        """The receipts of one capture, each with the name of its file, the latest first."""
        own = sorted(self._receipts_of(capture_id), key=lambda pair: _time(pair[1]), reverse=True)
        return [{"file": file.name, "receipt": receipt_codec.to_json(receipt)} for file, receipt in own]

    def _receipts_of(self, capture_id: str | None) -> list[tuple[Path, ReplayReceipt]]:
        return [(file, one) for file, one in self._found if one.capture.captureId == capture_id]


def receipts_in(folders: Iterable[Path]) -> list[Path]:
    """The files in *folders*, not below them, that are replay receipts."""
    files = (file for folder in folders for file in sorted(folder.glob("*.json")))
    return [file for file in files if not file.is_symlink() and is_receipt(file)]


def is_receipt(file: Path) -> bool:
    """Whether *file* looks like a replay receipt, by its suffix and its bytes."""
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            text = stream.read(_LOOKED_AT_BYTES)
    except OSError:
        return False
    return SCHEMA.encode() in text


def _read(file: Path) -> ReplayReceipt | None:
    try:
        return read_replay_receipt(file.read_bytes(), file=str(file))
    except (ReenactError, OSError):
        return None


def _time(receipt: ReplayReceipt) -> int:
    return receipt.replayedAt if isinstance(receipt.replayedAt, int) else 0


_OPENED: Final = 8
"""The number of runs that are kept open; the least recently used one is closed."""


class RunLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    id: str
    name: str
    kind: str
    status: str
    """The status of the run, else the state of its capture; ``unreadable`` if it cannot be opened."""
    model: str | None = None
    started_ms: int | float | None = None
    took_ms: int | float | None = None
    size_bytes: int | None = None
    problem: str | None = None


class _OpenRun:
    """An open run, and the number of its readers."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.users = 0


class Shelf:
    """Finds the runs in *paths*, and replay receipts and shadow reports beside them.

    *prices* are for computing costs.
    """

    def __init__(self, paths: Sequence[Path], prices: Mapping[str, Price] | None = None) -> None:
        self._given = [Path(local_path(path)) for path in paths if not is_remote(path)]
        self._elsewhere = [path for path in paths if is_remote(path)]
        self._remote: dict[str, RemoteRun] = {}
        """Runs at addresses and in packs, which are fetched when they are opened."""
        self._copies = ExitStack()
        self._prices = prices
        self._paths: dict[str, Path] = {}
        self._indexed: dict[str, IndexedRun] = {}
        """The runs of a corpus by its tables; they are read only when they are opened."""
        self._open: dict[tuple[str, int], _OpenRun] = {}
        self._lock = Lock()
        self.receipts = Receipts(())
        self.shadow_reports = ShadowReports()
        self.refresh()
        for path in self._given:
            if path.is_file() and not any(known(path) for known in (is_run, is_receipt, is_report_file)):
                with open_artifact(path):  # raises if it is not one
                    pass

    def refresh(self) -> None:
        """Search the paths again."""
        receipts = [path for path in self._given if is_receipt(path)]
        reports = [path for path in self._given if is_report_file(path)]
        corpora = [path for path in (*self._given, *self._elsewhere) if is_corpus(path)]
        known = {*receipts, *reports, *corpora}
        others = [str(path) for path in self._given if path not in known]
        indexed = [line for corpus in corpora for line in indexed_runs(corpus)]
        found = [*(Path(run.path) for run in indexed if not is_remote(run.path)), *find_runs(others)]
        places = [path.absolute() for path in self._given]
        each_once = dict.fromkeys(run.absolute() for run in found)
        # A symbolic link may lead out of the given paths.
        runs = [run for run in each_once if run in places or not run.is_symlink()]
        folders = {*places, *(run.parent for run in runs if run not in places)}.difference(runs)
        remote = [run for path in self._elsewhere if path not in corpora for run in list_remote(path)]
        remote += [
            RemoteRun(run.path, run.path, "", run.size_bytes or 0) for run in indexed if is_remote(run.path)
        ]
        with self._lock:
            self._paths = dict(zip(_names(runs, places), runs, strict=True))
            self._remote = {run.path: run for run in remote}
            self._indexed = {run.path: run for run in indexed}
            self.receipts = Receipts([*receipts, *receipts_in(sorted(folders))])
            self.shadow_reports = ShadowReports([*reports, *shadow_reports_in(sorted(folders))])

    @property
    def ids(self) -> list[str]:
        return [*self._paths, *(run for run in self._remote if run not in self._paths)]

    @property
    def paths(self) -> dict[str, Path]:
        """The paths of the local runs."""
        with self._lock:
            return dict(self._paths)

    def path(self, run_id: str) -> Path:
        """The path of the run; :class:`UsageError` for an unknown name."""
        if run_id in self._remote and run_id not in self._paths:
            copy = self._copies.enter_context(local_run(run_id))
            with self._lock:
                self._paths[run_id] = copy
        if run_id not in self._paths:
            raise UsageError(f"there is no run {run_id!r} here; see the list of runs")
        return self._paths[run_id]

    @contextmanager
    def open(self, run_id: str) -> Iterator[Artifact]:
        """Open the run; it stays open for later requests, as long as the file is the same."""
        path = self.path(run_id)
        key = run_id, _inode(path)
        with self._lock:
            loan = self._open.pop(key, None) or _OpenRun(open_artifact(path, self._prices))
            self._open[key] = loan
            loan.users += 1
        try:
            yield loan.artifact
        finally:
            with self._lock:
                loan.users -= 1
                self._close_old()

    def close(self) -> None:
        """Close every run without a reader."""
        with self._lock:
            self._close_old(kept=0)
        self._copies.close()

    def _close_old(self, kept: int = _OPENED) -> None:
        idle = [key for key, loan in self._open.items() if not loan.users]
        for key in idle[: max(0, len(self._open) - kept)]:
            self._open.pop(key).artifact.close()

    def line(self, run_id: str) -> RunLine:
        """The run on one line, also if it cannot be read."""
        indexed = self._indexed.get(run_id if run_id in self._remote else str(self.path(run_id)))
        if indexed is not None:
            return _indexed_line(run_id, indexed)
        if run_id in self._remote:
            size_bytes = self._remote[run_id].size_bytes
            return RunLine(id=run_id, name=run_id, kind="capture", status="stored", size_bytes=size_bytes)
        try:
            with open_artifact(self.path(run_id)) as artifact:
                return _line(run_id, artifact)
        except (ReenactError, OSError) as error:
            return RunLine(id=run_id, name=run_id, kind="unknown", status="unreadable", problem=str(error))


def _inode(path: Path) -> int:
    """Identifies the file: a run that was recorded again in the same place has another one."""
    events = path / EVENTS
    return (events if events.exists() else path).stat().st_ino


def _line(run_id: str, artifact: Artifact) -> RunLine:
    header = artifact.header()
    return RunLine(
        id=run_id,
        name=run_id,
        kind=header.kind,
        status=header.status or header.state or "unknown",
        model=header.model if header.model != NO_MODEL.model else None,
        started_ms=header.created_at_ms,
        took_ms=_duration_ms(header),
        size_bytes=artifact.size_bytes,
        problem=header.error,
    )


def _indexed_line(run_id: str, run: IndexedRun) -> RunLine:
    return RunLine(
        id=run_id,
        name=run_id,
        kind=run.kind or "unknown",
        status=run.status or run.state or "unknown",
        model=run.model if run.model != NO_MODEL.model else None,
        started_ms=run.started_ms,
        took_ms=run.took_ms,
        size_bytes=run.size_bytes,
        problem=run.problem,
    )


def _duration_ms(header: Header) -> int | float | None:
    if header.created_at_ms is None or header.completed_at_ms is None:
        return None
    return max(0, header.completed_at_ms - header.created_at_ms)


def _names(found: Sequence[Path], given: Sequence[Path]) -> list[str]:
    """Unique names: the path below the given folder, longer if that is ambiguous."""
    lengths = [_length(path, given) for path in found]
    while True:
        names = ["/".join(path.parts[-length:]) for path, length in zip(found, lengths, strict=True)]
        counts = Counter(names)
        if len(counts) == len(names):
            return names
        lengths = [length + (counts[name] > 1) for name, length in zip(names, lengths, strict=True)]


def _length(path: Path, given: Sequence[Path]) -> int:
    around = [folder for folder in given if folder in path.parents]
    return min((len(path.parts) - len(folder.parts) for folder in around), default=1)
