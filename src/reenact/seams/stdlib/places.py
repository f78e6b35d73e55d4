"""Paths as they are told in a recording: the same on another machine and in another temporary folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


def told(path: Any) -> str:
    """*path* below the working folder relative to it, below the temporary folder by its name alone.

    What lies in the temporary folder itself mostly has a name made of chance, so that is left out too.
    """
    absolute = Path(os.path.abspath(os.fsdecode(path)))
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        if absolute.is_relative_to(folder):
            inner = absolute.relative_to(folder)
            if folder == Path.cwd():
                return str(inner)
            return f"{{tmp}}/{inner.name}" if len(inner.parts) > 1 else "{tmp}"
    return str(absolute)
