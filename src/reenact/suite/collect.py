"""Finding test files, and noticing that a file has changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from reenact.errors import StoreError

TEST_FILE_NAME: Final = "test.yaml"


def find_tests(paths: Iterable[Path]) -> list[Path]:
    """Each file as it is, and every ``test.yaml`` below each directory in path order; each once.

    Hidden directories are passed over.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(_below(path), key=lambda file: file.parts)))
        elif path.exists():
            found[path] = None
        else:
            raise StoreError(f"{path}: No such file or directory; name a test.yaml or a directory of tests")
    return list(found)


def _raise(error: OSError) -> None:
    raise error


def _below(directory: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(directory, onerror=_raise):
        names[:] = [name for name in names if not name.startswith(".")]
        if TEST_FILE_NAME in files:
            yield Path(parent, TEST_FILE_NAME)


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
