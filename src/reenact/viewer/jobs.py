"""Long jobs of the page: comparing two runs, verifying one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import Final

import msgspec

from reenact.analysis.artifact import open_artifact
from reenact.analysis.compare import Comparison
from reenact.check.artifact import check_artifact
from reenact.check.findings import VerifyReport
from reenact.errors import FormatError, ReenactError

_KEPT: Final = 3


class ComparisonJob:
    """One comparison, running or done."""

    def __init__(self, left: Path, right: Path) -> None:
        self._paths = left, right
        self._total = 0
        self._done = 0
        self._files = ExitStack()
        self.users = 0
        self.comparison: Comparison | None = None
        self.problem: str | None = None

    @property
    def share(self) -> float:
        """The share of the two runs that has been read."""
        return min(1.0, self._done / self._total) if self._total else 0.0

    def run(self) -> None:
        try:
            left, right = (self._files.enter_context(open_artifact(path)) for path in self._paths)
            for artifact in (left, right):
                artifact.index()
                self._total += len(artifact)
            self.comparison = Comparison(left, right, watch=self._watch)
        except (ReenactError, OSError) as error:
            self.problem = str(error)

    def close(self) -> None:
        self._files.close()

    @property
    def is_idle(self) -> bool:
        return not self.users and (self.comparison is not None or self.problem is not None)

    def _watch(self, steps: int) -> None:
        self._done += steps


class Comparisons:
    """The comparisons in use."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[Path, Path], ComparisonJob] = {}
        self._lock = Lock()

    @contextmanager
    def open(self, left: Path, right: Path) -> Iterator[ComparisonJob]:
        """The comparison of two runs, started if needed; :class:`FormatError` if it failed."""
        with self._lock:
            job = self._jobs.pop((left, right), None) or self._start_comparison(left, right)
            self._jobs[left, right] = job
            job.users += 1
        try:
            if job.problem is not None:
                raise FormatError(job.problem)
            yield job
        finally:
            with self._lock:
                job.users -= 1
                self._close_old()

    def _start_comparison(self, left: Path, right: Path) -> ComparisonJob:
        job = ComparisonJob(left, right)
        Thread(target=job.run, daemon=True).start()
        return job

    def _close_old(self) -> None:
        idle = [key for key, job in self._jobs.items() if job.is_idle]
        for key in idle[: max(0, len(self._jobs) - _KEPT)]:
            self._jobs.pop(key).close()


def can_verify(kind: str) -> bool:
    """Whether an artifact of this kind can be verified."""
    return kind != "events"


class VerificationJob(msgspec.Struct, kw_only=True):
    """One check, running or done."""

    total_bytes: int
    done_bytes: int = 0
    report: VerifyReport | None = None
    problem: str | None = None

    @property
    def is_done(self) -> bool:
        return self.report is not None or self.problem is not None

    def run(self, path: Path) -> None:
        try:
            self.report = check_artifact(path, progress=self._progress)
        except (ReenactError, OSError) as error:
            self.problem = str(error)

    def to_json(self) -> dict[str, object]:
        """``report`` when it is done, ``problem`` if it failed, and the ``share`` that is done."""
        share = min(1.0, self.done_bytes / max(1, self.total_bytes))
        report = None if self.report is None else self.report.to_json()
        return {"share": share, "report": report, "problem": self.problem}

    def _progress(self, read_bytes: int) -> None:
        self.done_bytes += read_bytes


class VerificationJobs:
    """At most one check per run at a time; a request after its end starts a new one."""

    def __init__(self) -> None:
        self._checks: dict[Path, VerificationJob] = {}
        self._lock = Lock()

    def ask(self, path: Path, total_bytes: int) -> VerificationJob:
        """The state of the check of *path*, which is started if needed."""
        with self._lock:
            check = self._checks.get(path)
            if check is None:
                check = self._checks[path] = VerificationJob(total_bytes=total_bytes)
                Thread(target=check.run, args=(path,), daemon=True).start()
            elif check.is_done:
                del self._checks[path]
            return check
