"""What the run prints by ``sys.stdout``: which thread printed after which is part of the run."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from reenact.boundary import current_lane


@contextmanager
def print_in_turn() -> Iterator[None]:
    """Report to the run what the block prints; another ``sys.stdout`` that is set there is not watched."""
    output = sys.stdout
    if type(output) is not io.TextIOWrapper or "write" in vars(output):
        yield
        return
    original = output.write

    def write(text: str, /) -> int:
        lane = current_lane()
        if lane is None or type(text) is not str:
            return original(text)
        lane.context.print_piece(lane, lambda: original(text))
        return len(text)

    output.write = write  # type: ignore[method-assign]  # of this one only
    try:
        yield
    finally:
        if vars(output).get("write") is write:
            del output.write
