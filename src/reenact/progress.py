"""Types for showing the progress of a long job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of bytes or steps done since the last call."""
ProgressBar: TypeAlias = Callable[[int, str], AbstractContextManager[Progress]]
"""Takes the total and a title, and shows the progress while the context is open."""


@contextmanager
def no_progress_bar(_total: int, _what: str) -> Iterator[Progress]:
    """A progress bar that shows nothing."""
    yield lambda _: None
