"""The working folder: where the agent goes is told relative to where its run began.

In replay it really goes there, and must go to the same places. A change that fails is none.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from functools import update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.stdlib.chosen import lane_for, start_of, value_of


def chdir(path: Any) -> None:
    """``os.chdir``, which tells of it."""
    os.chdir(path)
    _tell()


def fchdir(fd: Any) -> None:
    """``os.fchdir`` likewise."""
    os.fchdir(fd)
    _tell()


class ContextChdir(contextlib.chdir[Any]):
    """``contextlib.chdir``, which tells of going there and of coming back."""

    def __enter__(self) -> None:
        super().__enter__()
        _tell()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _tell()


def _tell() -> None:
    lane = lane_for("cwd")
    if lane is not None:
        fields = {"type": "cwd_change", "path": tell_folder(Path.cwd(), Path(start_of(lane)))}
        value_of("cwd", Instant("state_mutation", fields), lambda: None)


def tell_folder(folder: Path, start: Path) -> str:
    """*folder* as seen from *start*, so that it is the same wherever the project lies.

    Below the temporary folder only its last name counts, as for files. Far away it is absolute, but never
    tells where a home folder is.
    """
    temporary = Path(tempfile.gettempdir()).resolve()
    is_near = folder.is_relative_to(start) or start.is_relative_to(folder)
    if not is_near and folder.is_relative_to(temporary):
        inner = folder.relative_to(temporary).parts
        return f"{{tmp}}/{inner[-1]}" if len(inner) > 1 else "{tmp}"
    if is_near or Path(os.path.commonpath([folder, start])) != Path(folder.anchor):
        return os.path.relpath(folder, start)
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    os: {"chdir": update_wrapper(chdir, os.chdir)},
    contextlib: {"chdir": ContextChdir},
}
if hasattr(os, "fchdir"):  # not on Windows
    STAND_INS[os]["fchdir"] = update_wrapper(fchdir, os.fchdir)
