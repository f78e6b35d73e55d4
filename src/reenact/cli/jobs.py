"""How many processes a verb uses."""

from __future__ import annotations

import os


def processes(jobs: int | None, *, is_much: bool) -> int:
    """As many as asked for, 0 for all cores; where nothing was said, all cores if there is much to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        return cores if is_much else 1
    return jobs or cores
