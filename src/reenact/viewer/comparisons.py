"""Comparisons of two runs, which may take long: begun when asked for, in the background, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from reenact.analysis.artifact import open_artifact
from reenact.analysis.compare import Comparison, compare
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
        """How much of the two runs has been read for it."""
        return min(1.0, self._done / self._total) if self._total else 0.0

    def run(self) -> None:
        try:
            left, right = (self._files.enter_context(open_artifact(path)) for path in self._paths)
            for artifact in (left, right):
                artifact.index()
                self._total += len(artifact)
            self.comparison = compare(left, right, watch=self._watch)
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
    """The comparisons that somebody looks at."""

    def __init__(self) -> None:
        self._asked: dict[tuple[Path, Path], ComparisonJob] = {}
        self._lock = Lock()

    @contextmanager
    def open(self, left: Path, right: Path) -> Iterator[ComparisonJob]:
        """The comparison of two runs, begun where there is none yet; :class:`FormatError` where it failed."""
        with self._lock:
            asked = self._asked.pop((left, right), None) or self._begun(left, right)
            self._asked[left, right] = asked
            asked.users += 1
        try:
            if asked.problem is not None:
                raise FormatError(asked.problem)
            yield asked
        finally:
            with self._lock:
                asked.users -= 1
                self._close_old()

    def _begun(self, left: Path, right: Path) -> ComparisonJob:
        asked = ComparisonJob(left, right)
        Thread(target=asked.run, daemon=True).start()
        return asked

    def _close_old(self) -> None:
        idle = [key for key, asked in self._asked.items() if asked.is_idle]
        for key in idle[: max(0, len(self._asked) - _KEPT)]:
            self._asked.pop(key).close()
