"""Paths in recorded form: the same on another machine and in another temporary folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from reenact.formats.workspace import WORKSPACE_ROOT
from reenact.process_state import workspaces
from reenact.volatile.places import working_folder


@contextmanager
def workspace_known(root: str | Path | None) -> Iterator[None]:
    """In the block, record paths below the workspace *root* relative to it."""
    with workspaces.holding(Path(os.path.realpath(root))) if root is not None else nullcontext():
        yield


def recorded_path(path: Any) -> str:
    """*path* relative to the workspace or the working folder; below the temporary folder, only its name.

    Entries directly in the temporary folder mostly have random names, so their names are left out, too.
    """
    here = Path(working_folder())
    absolute = Path(os.path.normpath(here / os.fsdecode(path)))
    for root in reversed(workspaces.entries):
        is_below_cwd = absolute.is_relative_to(here) and here.is_relative_to(root)
        if absolute.is_relative_to(root) and not is_below_cwd:
            return str(WORKSPACE_ROOT / absolute.relative_to(root))
    for folder in (here, Path(tempfile.gettempdir())):
        if absolute.is_relative_to(folder):
            inner = absolute.relative_to(folder)
            if folder == here:
                return str(inner)
            return f"{{tmp}}/{inner.name}" if len(inner.parts) > 1 else "{tmp}"
    return str(absolute)
