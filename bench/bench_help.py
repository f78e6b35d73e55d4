"""``reenact --help`` beside an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, TimesAsLong, best_in_turns

SCRIPT = Path(sys.executable).with_name("reenact")


def figures() -> Iterator[Figure]:
    """The installed command where there is one, else the module."""
    ours = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "reenact"]
    ours_s, beside_s = best_in_turns(
        lambda: _start([*ours, "--help"]), lambda: _start([sys.executable, "-c", "pass"]), rounds=30
    )
    yield Figure("reenact --help", ours_s, "python -c pass", beside_s, TimesAsLong(3))


def _start(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
