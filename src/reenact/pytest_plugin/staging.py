"""A new capture is made beside its place and put there in one step, whole or not at all.

Each process records into a folder of its own, so no two ever write one capture; whoever comes last wins.
"""

from __future__ import annotations

import os
from glob import escape
from pathlib import Path
from shutil import rmtree

from reenact.errors import StoreError
from reenact.store.rundir import RunDir, RunState


def folder_for(place: Path) -> Path:
    """Where this process records what will be *place*; what a killed one left there is removed."""
    for left in place.parent.glob(f".{escape(place.name)}.recording-*"):
        if _is_dead(left):
            discard(left)
    return place.with_name(f".{place.name}.recording-{os.getpid()}")


def _is_dead(folder: Path) -> bool:
    try:
        return RunDir(folder).state is RunState.INTERRUPTED
    except StoreError:
        return False


def discard(folder: Path) -> None:
    """Remove a capture that is not wanted."""
    rmtree(folder, ignore_errors=True)
