"""Traces and bundles, which are read whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from reenact.analysis.convert.source import Source
from reenact.formats.bundle import STEP_TYPES, read_bundle, write_bundle
from reenact.formats.dialects import Event
from reenact.formats.dialects.turn import Loss
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT
from reenact.formats.trace import Trace, read_trace, write_trace
from reenact.trace.from_capture import trace_of_capture
from reenact.trace.from_replay_log import trace_of_replay_log
from reenact.trace.normalize import normalize
from reenact.trace.to_bundle import bundle_of_trace

_TEST_RUN_ID: Final = "convert"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def to_trace(source: Source) -> Iterator[bytes]:
    yield write_trace(_trace(source))


def to_bundle(source: Source) -> Iterator[bytes]:
    trace = _trace(source)
    for event in trace.events:
        if event.type not in STEP_TYPES:
            source.on_loss(Loss(_line_of(event.event_id), event.type, None, "a bundle has no step for it"))
    yield write_bundle(bundle_of_trace(trace).bundle)


def _trace(source: Source) -> Trace:
    if source.kind == "trace":
        return read_trace(source.text(), str(source.path))
    if source.kind == "bundle":
        return _normalized(source)
    return _of_capture(source) if source.kind == "capture" else _of_log(source)


def _of_capture(source: Source) -> Trace:
    reader = source.capture()
    trace = trace_of_capture(reader, trace_id=reader.manifest.captureId, test_run_id=_TEST_RUN_ID)
    names = ((event.seq, str(type(event).__struct_config__.tag)) for event in reader.events())
    _lose_missing(source, trace, names)
    return trace


def _of_log(source: Source) -> Trace:
    read: list[tuple[Line, Event]] = [*source.log()]
    trace = trace_of_replay_log(read, trace_id=source.path.stem, test_run_id=_TEST_RUN_ID)
    _lose_missing(source, trace, ((line.number, type(event).__name__) for line, event in read))
    return trace


def _normalized(source: Source) -> Trace:
    bundle = read_bundle(source.text(), str(source.path))
    for step in bundle.script:
        if step.ts is ABSENT or step.ts is None:
            name = str(type(step).__struct_config__.tag)
            source.on_loss(Loss(None, name, "ts", "missing, but required: counted from 1970 on"))
    return normalize(bundle, trace_id=source.path.stem, test_run_id=_TEST_RUN_ID, started_at=_EPOCH)


def _lose_missing(source: Source, trace: Trace, events: Iterable[tuple[int, str]]) -> None:
    """Name the events that gave none: an event of a trace is called after the line it comes from."""
    held = {_line_of(event.event_id) for event in trace.events}
    for line, name in events:
        if line not in held:
            source.on_loss(Loss(line, name, None, "a trace has no such event"))


def _line_of(event_id: str) -> int | None:
    number = event_id.removeprefix("evt-").partition(".")[0]
    return int(number) if number.isdecimal() else None
