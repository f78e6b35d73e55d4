"""One file per library or source of chance; each only attaches and detaches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reenact.seams import http, mcp, pools, spawn, telemetry
from reenact.seams.imports import watched
from reenact.seams.patches import attach, detach


@contextmanager
def attached() -> Iterator[None]:
    """All seams that serve every run alike, for as long as a run is open."""
    patches = spawn.patches()
    attach(patches)
    try:
        with watched({**http.LIBRARIES, **mcp.LIBRARIES, **pools.LIBRARIES, **telemetry.LIBRARIES}):
            yield
    finally:
        detach(patches)
