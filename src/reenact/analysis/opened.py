"""Opening whatever a run was kept in: the path decides, and where it does not, the first line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from reenact.analysis.artifact import Artifact
from reenact.analysis.sources.capture import CaptureSource, EventsSource
from reenact.analysis.sources.replay_log import ReplayLogSource
from reenact.analysis.sources.source import Source
from reenact.analysis.sources.trace import TraceSource
from reenact.check.kinds import Kind, kind_or_events
from reenact.errors import FormatError, StoreError
from reenact.suite.prices import Price

_MANIFESTS: Final = ("manifest.json", "manifest.open.json")
_IN_DIRECTORY: Final = ("REPLAY.jsonl", "replay.json", "trace.json", "events.jsonl")
"""What a directory without a manifest is looked through for, in this order."""
_RUNS: Final = ("events", "replay log", "bundle", "trace")
_READABLE: Final = "name a capture directory, an events.jsonl, a REPLAY.jsonl, a replay.json or a trace.json"


def open_artifact(path: str | Path, prices: Mapping[str, Price] | None = None) -> Artifact:
    """The run in *path*; :class:`FormatError` or :class:`StoreError` where there is none that can be read."""
    return Artifact(_source(Path(path)), prices)


def is_run(path: Path) -> bool:
    """Whether *path* is a run by its name, or by its first line; damage may still be found."""
    if path.is_dir():
        return any((path / name).is_file() for name in (*_MANIFESTS, *_IN_DIRECTORY))
    return path.is_file() and _kind_of(path) in _RUNS


def _source(path: Path) -> Source:
    if path.is_dir():
        return _in_directory(path)
    if path.name in ("events.jsonl", *_MANIFESTS) and _is_capture(path.parent):
        return CaptureSource(path.parent)
    return _of_file(path)


def _in_directory(path: Path) -> Source:
    if _is_capture(path):
        return CaptureSource(path)
    for name in _IN_DIRECTORY:
        if (path / name).is_file():
            return _of_file(path / name)
    raise StoreError(f"{path}: holds no run; {_READABLE}")


def _is_capture(directory: Path) -> bool:
    return any((directory / name).exists() for name in _MANIFESTS)


def _of_file(file: Path) -> Source:
    if str(file) == os.devnull:  # how git names the side of a file that is new or gone
        return EventsSource(file)
    kind = _kind_of(file)
    if kind == "events":
        return EventsSource(file)
    if kind == "replay log":
        return ReplayLogSource(file)
    if kind == "bundle" or kind == "trace":
        return TraceSource(file, kind)
    raise FormatError(f"not a run; {_READABLE}", file=str(file))


def _kind_of(file: Path) -> Kind | Literal["events"] | None:
    """``None`` where it cannot be told."""
    try:
        return kind_or_events(file)
    except FormatError:
        return None
