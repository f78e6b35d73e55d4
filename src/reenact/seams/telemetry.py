"""What a library reports about the run to its maker: sent while the run is live, and no part of it.

Its times and ids are new in every run, and it goes out whenever a timer fires, so it could never be matched.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from reenact.boundary import current_lane, outside
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch


def _agents_patches(processors: ModuleType) -> list[Patch]:
    """Of the OpenAI Agents SDK, which collects traces and sends them from a thread of its own."""
    return [
        Patch(processors.BatchTraceProcessor, "on_trace_start", _reported),
        Patch(processors.BatchTraceProcessor, "on_span_end", _reported),
        Patch(processors.BackendSpanExporter, "_export_with_deadline", _reported),
    ]


def _reported(original: Callable[..., None]) -> Callable[..., None]:
    """A thread that it starts is no child of the run, whose later children would be counted from there."""

    def report(*args: Any, **options: Any) -> None:
        lane = current_lane()
        if lane is None or lane.context.time_passes(lane):
            with outside():
                original(*args, **options)

    return report


LIBRARIES: Final[Libraries] = {"agents.tracing.processors": _agents_patches}
