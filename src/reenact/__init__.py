"""Record an AI agent's run once; replay it offline, exactly, for ever."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reenact._version import __version__

if TYPE_CHECKING:
    from reenact.errors import (
        CheckFailed,
        DigestMismatch,
        Diverged,
        FormatError,
        LiveCallBlocked,
        ReenactError,
        StoreError,
        UnknownVersion,
        UsageError,
    )
    from reenact.formats.replay_log import ReplayReader, ReplayWriter
    from reenact.recorder.sink import CaptureSink, FileCaptureSink
    from reenact.run import Run, capture, replay, run  # type: ignore[no-redef]  # it is a room too
    from reenact.seams.tool import tool

# Name → module. Resolved on first use, so that `import reenact` costs next to nothing.
_HOMES = {
    "CaptureSink": "recorder.sink",
    "CheckFailed": "errors",
    "DigestMismatch": "errors",
    "Diverged": "errors",
    "FileCaptureSink": "recorder.sink",
    "FormatError": "errors",
    "LiveCallBlocked": "errors",
    "ReenactError": "errors",
    "ReplayReader": "formats.replay_log",
    "ReplayWriter": "formats.replay_log",
    "Run": "run",
    "StoreError": "errors",
    "UnknownVersion": "errors",
    "UsageError": "errors",
    "capture": "run",
    "replay": "run",
    "run": "run",
    "tool": "seams.tool",
}

__all__ = [
    "CaptureSink",
    "CheckFailed",
    "DigestMismatch",
    "Diverged",
    "FileCaptureSink",
    "FormatError",
    "LiveCallBlocked",
    "ReenactError",
    "ReplayReader",
    "ReplayWriter",
    "Run",
    "StoreError",
    "UnknownVersion",
    "UsageError",
    "__version__",
    "capture",
    "replay",
    "run",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reenact' has no attribute {name!r}")
    return getattr(import_module(f"reenact.{_HOMES[name]}"), name)
