"""Checks of whole runs, which may take long: begun when asked for, in the background."""

from __future__ import annotations

from pathlib import Path
from threading import Lock, Thread
from typing import Any

import msgspec

from reenact.check.artifact import check_artifact
from reenact.check.findings import VerifyReport
from reenact.errors import ReenactError


def can_verify(kind: str) -> bool:
    """Whether an artifact of this kind has anything it can be held against."""
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

    def to_json(self) -> dict[str, Any]:
        """``report`` once it is done, ``problem`` where it could not be, and the ``share`` that is done."""
        share = min(1.0, self.done_bytes / max(1, self.total_bytes))
        report = None if self.report is None else self.report.to_json()
        return {"share": share, "report": report, "problem": self.problem}

    def _progress(self, read_bytes: int) -> None:
        self.done_bytes += read_bytes


class VerificationJobs:
    """At most one check per run at a time; asking for a finished one again begins a new one."""

    def __init__(self) -> None:
        self._checks: dict[Path, VerificationJob] = {}
        self._lock = Lock()

    def ask(self, path: Path, total_bytes: int) -> VerificationJob:
        """The state of the check of *path*, which is begun where there is none."""
        with self._lock:
            check = self._checks.get(path)
            if check is None:
                check = self._checks[path] = VerificationJob(total_bytes=total_bytes)
                Thread(target=check.run, args=(path,), daemon=True).start()
            elif check.is_done:
                del self._checks[path]
            return check
