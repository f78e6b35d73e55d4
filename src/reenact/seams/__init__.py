"""One file per library or source of chance; each only attaches and detaches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reenact.boundary import Context
from reenact.formats.capture import StandIns
from reenact.seams import http, mcp, spawn, stdlib
from reenact.seams.imports import watched
from reenact.seams.patches import attach, detach


@contextmanager
def attached(stand_ins: StandIns, context: Context) -> Iterator[None]:
    """All seams, for as long as the run of *context* is open."""
    patches = spawn.patches()
    attach(patches)
    try:
        with stdlib.attached(stand_ins, context), watched({**http.LIBRARIES, **mcp.LIBRARIES}):
            yield
    finally:
        detach(patches)
