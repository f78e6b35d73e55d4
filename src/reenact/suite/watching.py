"""Noticing that a file has changed, by looking."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Snapshot: TypeAlias = dict[str, tuple[int, int]]
"""Time of change and size, by path."""


def snapshot(paths: Iterable[Path]) -> Snapshot:
    """All files in and below *paths*, hidden ones left out."""
    found: Snapshot = {}
    for path in paths:
        if path.is_file():
            _note(found, str(path))
        for parent, names, files in os.walk(path):
            names[:] = [name for name in names if not name.startswith((".", "__pycache__"))]
            for name in files:
                _note(found, os.path.join(parent, name))
    return found


def _note(found: Snapshot, file: str) -> None:
    try:
        state = os.stat(file)
    except FileNotFoundError:
        return  # gone since it was listed
    found[file] = (state.st_mtime_ns, state.st_size)
