"""A bar for what takes long, on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

if TYPE_CHECKING:
    from reenact.analysis.artifact import Artifact

LARGE_BYTES: Final = 16 * 1024 * 1024
"""About a second's work; smaller files get no bar."""

_STEP: Final = 1000
_MANY: Final = 2000
"""Also about a second's work, where things are counted."""
T = TypeVar("T")


def with_progress(items: Iterator[T], stream: BinaryIO, what: str) -> Iterator[T]:
    """The same *items*, which are made by reading *stream*; quiet where nobody looks or it is over soon."""
    size_bytes = _size_bytes(stream)
    if size_bytes < LARGE_BYTES or not (sys.stdout.isatty() or sys.stderr.isatty()):
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    # What is printed meanwhile goes above the bar, but never from a file's stream to the terminal's.
    with Progress(
        console=Console(stderr=not sys.stdout.isatty()),
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=size_bytes)
        for number, item in enumerate(items):
            if number % _STEP == 0:
                progress.update(task, completed=stream.tell())
            yield item


def while_reading(artifact: Artifact) -> None:
    """Read *artifact* to its end."""
    if artifact.size_bytes < LARGE_BYTES or not sys.stderr.isatty():
        artifact.index()
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=artifact.size_bytes)
        while not artifact.index(seconds=0.1):
            progress.update(task, completed=artifact.read_bytes)


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar over *total* things, for whom it is told how many more are done."""
    if total < _MANY or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.advance(task, more)


def _size_bytes(stream: BinaryIO) -> int:
    """0 where it is not known beforehand."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0
