"""The runs that may be looked at: those in the given paths, each under a name; nothing else has one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.opened import open_artifact
from reenact.analysis.runs import find_runs
from reenact.analysis.sources.source import Header
from reenact.errors import ReenactError, UsageError
from reenact.formats.capture import NO_MODEL
from reenact.store.rundir import EVENTS
from reenact.suite.prices import Price
from reenact.viewer.receipts import Receipts, is_receipt, receipts_in

_OPENED: Final = 8
"""So many runs are kept open; the one that was not asked for the longest is closed."""


class RunLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A run on one line."""

    id: str
    name: str
    kind: str
    status: str
    """The run's own, else the state of its capture; ``unreadable`` where it cannot be opened."""
    model: str | None = None
    started_ms: int | float | None = None
    took_ms: int | float | None = None
    size_bytes: int | None = None
    problem: str | None = None


class _Loan:
    """A run that is open, and by how many it is being read."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.users = 0


class Shelf:
    """Finds the runs in *paths*, and the replay receipts beside them; *prices* turns tokens into money."""

    def __init__(self, paths: Sequence[Path], prices: Mapping[str, Price] | None = None) -> None:
        self._given = paths
        self._prices = prices
        self._paths: dict[str, Path] = {}
        self._open: dict[tuple[str, int], _Loan] = {}
        self._lock = Lock()
        self.receipts = Receipts(())
        self.refresh()

    def refresh(self) -> None:
        """Look again what there is."""
        receipts = [path for path in self._given if is_receipt(path)]
        found = find_runs(str(path) for path in self._given if path not in receipts)
        places = [path.absolute() for path in self._given]
        each_once = dict.fromkeys(run.absolute() for run in found)
        # A link may lead out of what was given.
        runs = [run for run in each_once if run in places or not run.is_symlink()]
        folders = {*places, *(run.parent for run in runs if run not in places)}.difference(runs)
        with self._lock:
            self._paths = dict(zip(_names(runs, places), runs, strict=True))
            self.receipts = Receipts([*receipts, *receipts_in(sorted(folders))])

    @property
    def ids(self) -> list[str]:
        return list(self._paths)

    def path(self, run_id: str) -> Path:
        """Where the run is; :class:`UsageError` for a name that was not given out."""
        if run_id not in self._paths:
            raise UsageError(f"there is no run {run_id!r} here; the list of runs has all")
        return self._paths[run_id]

    @contextmanager
    def open(self, run_id: str) -> Iterator[Artifact]:
        """The run, opened; it stays open for whoever asks next, as long as the file is the same."""
        path = self.path(run_id)
        key = run_id, _inode(path)
        with self._lock:
            loan = self._open.pop(key, None) or _Loan(open_artifact(path, self._prices))
            self._open[key] = loan
            loan.users += 1
        try:
            yield loan.artifact
        finally:
            with self._lock:
                loan.users -= 1
                self._close_old()

    def close(self) -> None:
        """Close every run that nobody is reading."""
        with self._lock:
            self._close_old(kept=0)

    def _close_old(self, kept: int = _OPENED) -> None:
        idle = [key for key, loan in self._open.items() if not loan.users]
        for key in idle[: max(0, len(self._open) - kept)]:
            self._open.pop(key).artifact.close()

    def line(self, run_id: str) -> RunLine:
        """The run on one line, whether or not it can be read."""
        try:
            with open_artifact(self.path(run_id)) as artifact:
                return _line(run_id, artifact)
        except (ReenactError, OSError) as error:
            return RunLine(id=run_id, name=run_id, kind="unknown", status="unreadable", problem=str(error))


def _inode(path: Path) -> int:
    """A run that was recorded again in the same place is another one."""
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
        took_ms=_took_ms(header),
        size_bytes=artifact.size_bytes,
        problem=header.error,
    )


def _took_ms(header: Header) -> int | float | None:
    if header.created_at_ms is None or header.completed_at_ms is None:
        return None
    return max(0, header.completed_at_ms - header.created_at_ms)


def _names(found: Sequence[Path], given: Sequence[Path]) -> list[str]:
    """For each its place below what was given, longer where that is not enough to tell it from the others."""
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
