"""A file of lines in segments, each scanned by itself, on one core or on several."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import BinaryIO, Final, TypeAlias, TypeVar

from reenact.formats.blocks import TextBlock, read_text_blocks

SEGMENT_BYTES: Final = 512 * 1024
_IN_FLIGHT: Final = 4
"""Segments per process: one in work, the others ready."""

S = TypeVar("S")
Scan: TypeAlias = Callable[[TextBlock], S]
Progress: TypeAlias = Callable[[int], None]
"""Told how many bytes were checked since it was last told."""


def scan_segments(
    stream: BinaryIO, scan: Scan[S], *, processes: int = 1, segment_bytes: int = SEGMENT_BYTES
) -> Iterator[tuple[TextBlock, S]]:
    """Each segment with what *scan* says of it, in order; the same whatever the number of processes.

    With more than one, *scan* and what it returns must be picklable, and a script that calls this must
    be safe to import.
    """
    blocks = read_text_blocks(stream, block_bytes=segment_bytes)
    if processes <= 1:
        for block in blocks:
            yield block, scan(block)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from _in_order(pool, blocks, scan, processes * _IN_FLIGHT)


def _in_order(
    pool: ProcessPoolExecutor, blocks: Iterator[TextBlock], scan: Scan[S], in_flight: int
) -> Iterator[tuple[TextBlock, S]]:
    waiting: deque[tuple[TextBlock, Future[S]]] = deque()
    for block in blocks:
        waiting.append((block, pool.submit(scan, block)))
        if len(waiting) >= in_flight:
            first, future = waiting.popleft()
            yield first, future.result()
    for block, future in waiting:
        yield block, future.result()
