"""Whose code a file is: a library's (the standard one, an installed one, reenact) or else the agent's."""

from __future__ import annotations

import sysconfig
from functools import cache
from os import sep
from pathlib import Path
from typing import Final

_MARKS: Final = (f"{sep}site-packages{sep}", f"{sep}dist-packages{sep}")
_ROOTS: Final = (
    *(sysconfig.get_path(name) + sep for name in ("stdlib", "platstdlib")),
    str(Path(__file__).resolve().parent) + sep,
    "<frozen ",
)

_DEMO_AGENT: Final = str(Path(__file__).resolve().parent / "testing" / "support_agent.py")
"""Lives with us and is an agent all the same."""


@cache
def is_library(filename: str) -> bool:
    """Whether the code in *filename* is not the agent's own."""
    if filename == _DEMO_AGENT:
        return False
    return filename.startswith(_ROOTS) or any(mark in filename for mark in _MARKS)
