"""Seams: one file per library or source of chance, which patches it while a run is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from reenact.seams import (
    deadlines,
    grpc,
    http,
    mcp,
    native,
    pools,
    probes,
    serving,
    shared_locks,
    spawn,
    telemetry,
    trio,
    uvloop,
    worker_pools,
)
from reenact.seams.imports import Libraries, watch_imports
from reenact.seams.patches import attach, detach
from reenact.seams.stdlib import files, locks

_LIBRARIES: Final[Libraries] = {
    **files.LIBRARIES,
    **grpc.LIBRARIES,
    **http.LIBRARIES,
    **locks.LIBRARIES,
    **mcp.LIBRARIES,
    **native.LIBRARIES,
    **pools.LIBRARIES,
    **shared_locks.LIBRARIES,
    **spawn.LIBRARIES,
    **telemetry.LIBRARIES,
    **trio.LIBRARIES,
    **uvloop.LIBRARIES,
    **worker_pools.LIBRARIES,
}


@contextmanager
def attach_seams() -> Iterator[None]:
    """Attach the seams that every run needs, for the block."""
    patches = [*spawn.patches(), *deadlines.patches(), *probes.PATCHES, *serving.PATCHES]
    attach(patches)
    try:
        with watch_imports(_LIBRARIES):
            yield
    finally:
        detach(patches)
