"""How far a long job is, for whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Told how many bytes, or steps, were done since it was last told."""
ProgressBar: TypeAlias = Callable[[int, str], AbstractContextManager[Progress]]
"""Given the size of the work and what it is; shows it while the context is open."""


@contextmanager
def no_progress_bar(_total: int, _what: str) -> Iterator[Progress]:
    """For callers who do not want to see how far the work is."""
    yield lambda _: None
