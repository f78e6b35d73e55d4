"""A bar for what takes long, on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, TypeVar

LARGE_BYTES: Final = 16 * 1024 * 1024
"""From here on work may take a second; smaller files get no bar."""

_STEP: Final = 1000
T = TypeVar("T")


@contextmanager
def progress_bar(size_bytes: int, what: str) -> Iterator[Callable[[int], None]]:
    """A function that is told how many bytes are done more; quiet where nobody looks or it is over soon."""
    if size_bytes < LARGE_BYTES or not (sys.stdout.isatty() or sys.stderr.isatty()):
        yield lambda _: None
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
        yield lambda done_bytes: progress.update(task, advance=done_bytes)


def with_progress(items: Iterator[T], stream: BinaryIO, what: str) -> Iterator[T]:
    """The same *items*, which are made by reading *stream*, with a bar."""
    with progress_bar(_size_bytes(stream), what) as advance:
        done_bytes = 0
        for number, item in enumerate(items):
            if number % _STEP == 0 and stream.seekable():
                advance(stream.tell() - done_bytes)
                done_bytes = stream.tell()
            yield item


def _size_bytes(stream: BinaryIO) -> int:
    """0 where it is not known beforehand."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0
