"""Finding runs in folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from reenact.analysis.opened import is_run
from reenact.errors import StoreError


def find_runs(paths: Iterable[str]) -> list[Path]:
    """Each path that is a run, and every run below each other directory, in path order; each once.

    Hidden directories are passed over, and so are files that hold no run.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise StoreError(f"{path}: No such file or directory; name a run or a folder of runs")
        below = sorted(_below(path)) if path.is_dir() and not is_run(path) else [path]
        if not below:
            raise StoreError(f"{path}: holds no run; name a capture, a REPLAY.jsonl, or a folder with some")
        found.update(dict.fromkeys(below))
    return list(found)


def _raise(error: OSError) -> None:
    """For ``os.walk``, which passes over what it may not enter."""
    raise error


def _below(directory: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(directory, onerror=_raise):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in list(names):
            if is_run(Path(parent, name)):
                names.remove(name)
                yield Path(parent, name)
        yield from (
            path
            for name in files
            if (path := Path(parent, name)).suffix in (".jsonl", ".json") and is_run(path)
        )
