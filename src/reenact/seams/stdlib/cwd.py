"""The working folder: each change is recorded, relative to the folder in which the run began.

Replay really changes the folder, and the changes must be the same. A change that fails is not recorded.
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
from reenact.seams.stdlib.sources import as_it_was, lane_for, starting_folder, value_of

_chdir: Final = as_it_was(os, "chdir")
_fchdir: Any = as_it_was(os, "fchdir") if hasattr(os, "fchdir") else None


def chdir(path: object) -> None:
    """``os.chdir``, but recorded."""
    _chdir(path)
    _record_change()


def fchdir(fd: object) -> None:
    """``os.fchdir``, but recorded."""
    _fchdir(fd)
    _record_change()


class ContextChdir(contextlib.chdir[Any]):
    """``contextlib.chdir``, but both changes are recorded."""

    def __enter__(self) -> None:
        super().__enter__()
        _record_change()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _record_change()


def _record_change() -> None:
    lane = lane_for("cwd")
    if lane is not None:
        fields = {"type": "cwd_change", "path": tell_folder(Path.cwd(), Path(starting_folder(lane)))}
        value_of("cwd", Instant("state_mutation", fields), lambda: None)


def tell_folder(folder: Path, start: Path) -> str:
    """*folder* relative to *start*, so that it is the same on every machine.

    Below the temporary folder only its last part counts, as for files. A folder with no common parent is
    absolute, but a home folder is written as ``~``.
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
