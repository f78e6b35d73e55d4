"""Converts one artifact to another; everything that the target cannot hold is reported as a loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias, get_args

import msgspec

from reenact import canonical
from reenact.check.actions.action import action_from_exchange
from reenact.check.kinds import ArtifactKind, kind_of, size_bytes
from reenact.errors import FormatError, UsageError
from reenact.formats.bundle import STEP_TYPES, read_bundle, write_bundle
from reenact.formats.dialects import DIALECTS, Event
from reenact.formats.dialects.common import DialectName
from reenact.formats.dialects.conversion import Converter
from reenact.formats.dialects.losses import Loss
from reenact.formats.hashes import trajectory_hash
from reenact.formats.lines import Line, OnError
from reenact.formats.receipt import write_receipt
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import read_replay_log
from reenact.formats.trace import Trace, read_trace, write_trace
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.outfile import open_output
from reenact.store.paths import takes_addresses
from reenact.store.reader import CaptureReader
from reenact.trace.from_run import trace_of_run
from reenact.trace.model_calls import exchanges
from reenact.trace.normalize import normalize
from reenact.trace.sources.capture import read_capture
from reenact.trace.sources.replay_log import read_log
from reenact.trace.to_bundle import bundle_of_trace
from reenact.trace.to_capture import write_capture
from reenact.trace.to_receipt import receipt_of_log
from reenact.trace.to_replay_log import replay_log_of_capture
from reenact.trace.to_summary import summary_of_log

UNREADABLE: Final = "unreadable line"
"""The name of the loss of an unreadable line."""

OnLoss: TypeAlias = Callable[[Loss], None]


class ConversionInput:
    """The artifact to convert, which can be read several times."""

    def __init__(
        self, path: Path, *, on_loss: OnLoss, lenient: bool = False, dialect: DialectName | None = None
    ) -> None:
        """*dialect* is the form of the target, if it has several."""
        self.path = path
        self.dialect = dialect
        self.kind: ArtifactKind = kind_of(path)
        self.on_loss = on_loss
        self._lenient = lenient

    def log(self) -> Iterator[tuple[Line, Event]]:
        """The lines of a log; with *lenient*, an unreadable one is a loss."""
        on_error: OnError | None = self._lose_line if self._lenient else None
        with self.path.open("rb") as stream:
            yield from read_replay_log(stream, file=str(self.path), on_error=on_error)

    def _lose_line(self, error: FormatError) -> None:
        self.on_loss(Loss(error.line, UNREADABLE, None, error.reason))


def to_actions(source: ConversionInput) -> Iterator[bytes]:
    """One line per exchange; its context has the capture and the event of the request."""
    reader = CaptureReader(source.path)
    manifest = reader.manifest
    for exchange in exchanges(reader, source.on_loss):
        action = action_from_exchange(
            exchange.request,
            exchange.response,
            agent_id=manifest.runId,
            action_id=f"{manifest.captureId}.{exchange.call_id}",
            occurred_at_unix_ms=round(exchange.asked_at_ms),
            context={"captureId": manifest.captureId, "seq": exchange.seq},
        )
        if action is None:
            reason = "an action needs a question and an answer of text or tool calls"
            source.on_loss(Loss(exchange.seq, "llm_request", None, reason))
        else:
            yield canonical.encode(action) + b"\n"


def to_log(source: ConversionInput, dialect: DialectName) -> Iterator[bytes]:
    """The lines of the log in *dialect*."""
    to_bytes = DIALECTS[dialect].to_bytes
    for _, event in _events(source, dialect):
        yield to_bytes(event) + b"\n"


to_current = partial(to_log, dialect="current")
to_legacy = partial(to_log, dialect="legacy")


def to_receipt(source: ConversionInput) -> Iterator[bytes]:
    """The receipt of a log; for a capture, of its log in the current dialect."""
    receipt = receipt_of_log(
        ((Line(line, 0, b""), event) for line, event in _numbered_events(source)),
        shape=source.dialect or "current",
        trajectory_hash=_trajectory_hash(source),
        file=str(source.path),
        on_loss=source.on_loss,
    )
    yield write_receipt(receipt)


def to_summary(source: ConversionInput) -> Iterator[bytes]:
    """The summary of the run for reviewers."""
    reader = CaptureReader(source.path) if source.kind == "capture" else None
    file = "events.jsonl" if reader is not None else source.path.name
    lines = ((Line(line, 0, b""), event) for line, event in _numbered_events(source, quiet=True))
    for text in summary_of_log(lines, file=file, reader=reader):
        yield text.encode("utf-8", "replace") + b"\n"


def to_capture(source: ConversionInput, out: Path) -> None:
    """Write the skeleton of a log into *out*, which must be new or empty."""
    write_capture(
        out,
        _events(source, "current"),
        trajectory_hash=_trajectory_hash(source),
        file=str(source.path),
        on_loss=source.on_loss,
    )


def _events(source: ConversionInput, dialect: DialectName) -> Iterator[tuple[int, Event]]:
    """The events in *dialect*, each with its line; losses are reported on the way."""
    converter = Converter(dialect)
    for line, event in _numbered_events(source):
        conversion = converter.convert(event, line)
        for loss in conversion.losses:
            source.on_loss(loss)
        for converted in conversion.events:
            yield line, converted


def _numbered_events(source: ConversionInput, *, quiet: bool = False) -> Iterator[tuple[int, Event]]:
    if source.kind != "capture":
        for line, event in source.log():
            yield line.number, event
        return
    for seq, conversion in enumerate(replay_log_of_capture(CaptureReader(source.path)), 1):
        for loss in () if quiet else conversion.losses:
            source.on_loss(loss)
        for event in conversion.events:
            yield seq, event


def _trajectory_hash(source: ConversionInput) -> str:
    if source.kind != "capture":
        with source.path.open("rb") as stream:
            return trajectory_hash(stream, file=str(source.path))
    quiet = ConversionInput(source.path, on_loss=lambda _: None)
    return _hash_of(to_log(quiet, "current"))


def _hash_of(lines: Iterable[bytes]) -> str:
    running = sha256()
    for line in lines:
        running.update(line)
    return f"sha256:{running.hexdigest()}"


_TEST_RUN_ID: Final = "convert"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def to_trace(source: ConversionInput) -> Iterator[bytes]:
    yield write_trace(_trace(source))


def to_bundle(source: ConversionInput) -> Iterator[bytes]:
    trace = _trace(source)
    for event in trace.events:
        if event.type not in STEP_TYPES:
            source.on_loss(Loss(_line_of(event.event_id), event.type, None, "a bundle has no step for it"))
    yield write_bundle(bundle_of_trace(trace).bundle)


def _trace(source: ConversionInput) -> Trace:
    if source.kind == "trace":
        return read_trace(source.path.read_bytes(), str(source.path))
    if source.kind == "bundle":
        return _normalize(source)
    return _trace_of_capture(source) if source.kind == "capture" else _trace_of_log(source)


def _trace_of_capture(source: ConversionInput) -> Trace:
    reader = CaptureReader(source.path)
    trace = trace_of_run(read_capture(reader), trace_id=reader.manifest.captureId, test_run_id=_TEST_RUN_ID)
    names = ((event.seq, str(type(event).__struct_config__.tag)) for event in reader.events())
    _report_missing_events(source, trace, names)
    return trace


def _trace_of_log(source: ConversionInput) -> Trace:
    read: list[tuple[Line, Event]] = [*source.log()]
    trace = trace_of_run(read_log(read), trace_id=source.path.stem, test_run_id=_TEST_RUN_ID)
    _report_missing_events(source, trace, ((line.number, type(event).__name__) for line, event in read))
    return trace


def _normalize(source: ConversionInput) -> Trace:
    bundle = read_bundle(source.path.read_bytes(), str(source.path))
    for step in bundle.script:
        if step.ts is ABSENT or step.ts is None:
            name = str(type(step).__struct_config__.tag)
            source.on_loss(Loss(None, name, "ts", "missing, but required: counted from 1970 on"))
    return normalize(bundle, trace_id=source.path.stem, test_run_id=_TEST_RUN_ID, started_at=_EPOCH)


def _report_missing_events(source: ConversionInput, trace: Trace, events: Iterable[tuple[int, str]]) -> None:
    """Report the events without a trace event, whose id would name the line."""
    held = {_line_of(event.event_id) for event in trace.events}
    for line, name in events:
        if line not in held:
            source.on_loss(Loss(line, name, None, "a trace has no such event"))


def _line_of(event_id: str) -> int | None:
    number = event_id.removeprefix("evt-").partition(".")[0]
    return int(number) if number.isdecimal() else None


ConvertTarget: TypeAlias = Literal[
    "replay-log", "replay-log-legacy", "receipt", "summary", "bundle", "trace", "actions", "capture"
]
TARGETS: Final[tuple[ConvertTarget, ...]] = get_args(ConvertTarget)

_Way: TypeAlias = Callable[[ConversionInput], Iterator[bytes]]
_LOGS: Final[Mapping[ConvertTarget, _Way]] = {
    "replay-log": to_current,
    "replay-log-legacy": to_legacy,
    "receipt": to_receipt,
    "summary": to_summary,
    "bundle": to_bundle,
    "trace": to_trace,
}
_WAYS: Final[Mapping[ArtifactKind, Mapping[ConvertTarget, _Way]]] = {
    "capture": {**_LOGS, "actions": to_actions},
    "replay log": _LOGS,
    "bundle": {"trace": to_trace},
    "trace": {"bundle": to_bundle},
}


class CountedLoss(msgspec.Struct, frozen=True):
    """One kind of loss: its first place, and its count."""

    line: int | None
    event: str
    field: str | None
    reason: str
    count: int


class ConvertReport(msgspec.Struct, frozen=True):
    """The result of `convert`, and its losses."""

    path: str
    to: ConvertTarget
    out: str | None
    """``None`` if the result is in *data*, or was written to a stream."""
    skipped: int
    """The number of unreadable lines, in a lenient conversion."""
    losses: list[CountedLoss]
    data: bytes | None = None
    """The result, if it was not written anywhere."""


@takes_addresses("path")
def convert(
    path: str | Path,
    to: ConvertTarget,
    *,
    out: str | Path | BinaryIO | None = None,
    dialect: DialectName | None = None,
    lenient: bool = False,
    replace: bool = False,
    progress_bar: ProgressBar = no_progress_bar,
) -> ConvertReport:
    """Convert the artifact in *path*, a capture, a REPLAY.jsonl, a bundle or a trace, to the format *to*.

    The result is written to *out*, a path or a binary stream, or else is in the report. Losses are in the
    report, counted by kind. With *lenient*, unreadable lines are skipped and counted. *dialect* chooses the
    form of a receipt.
    """
    if dialect is not None and to != "receipt":
        raise UsageError(
            "a dialect is for receipts; the dialects of logs are replay-log and replay-log-legacy"
        )
    losses = _LossCounter()
    if to == "capture":
        if not isinstance(out, str | Path):
            raise UsageError("a capture is a directory; say where it goes")
        convert_to_capture(Path(path), Path(out), on_loss=losses.add, lenient=lenient)
        return losses.report(path, to, str(out))
    pieces = convert_artifact(path, to, on_loss=losses.add, lenient=lenient, dialect=dialect)
    if out is None:
        data = b"".join(pieces)
        return losses.report(path, to, None, data)
    if not isinstance(out, str | Path):
        out.writelines(pieces)
        return losses.report(path, to, None)
    with (
        progress_bar(size_bytes(Path(path)), "converting") as progress,
        open_output(Path(out), replace=replace) as stream,
    ):
        for piece in pieces:
            stream.write(piece)
            progress(len(piece))
    return losses.report(path, to, str(out))


class _LossCounter:
    """Counts losses by kind and keeps the first of each; keeps every unreadable line."""

    def __init__(self) -> None:
        self._firsts: dict[tuple[object, ...], Loss] = {}
        self._counts: Counter[tuple[object, ...]] = Counter()

    def add(self, loss: Loss) -> None:
        kind = loss if loss.event == UNREADABLE else (loss.event, loss.field)
        self._firsts.setdefault(kind, loss)
        self._counts[kind] += 1

    def report(
        self, path: str | Path, to: ConvertTarget, out: str | None, data: bytes | None = None
    ) -> ConvertReport:
        losses = [CountedLoss(*loss, self._counts[kind]) for kind, loss in self._firsts.items()]
        skipped = sum(loss.count for loss in losses if loss.event == UNREADABLE)
        return ConvertReport(str(path), to, out, skipped, losses, data)


def convert_artifact(
    path: str | Path,
    to: ConvertTarget,
    *,
    on_loss: OnLoss,
    lenient: bool = False,
    dialect: DialectName | None = None,
) -> Iterator[bytes]:
    """The artifact in *path* in the format *to*, in pieces; logs and actions take constant memory.

    *dialect* chooses the form of a receipt. :class:`UsageError` if there is no such conversion. With
    *lenient*, an unreadable line of a log is a loss.
    """
    source = ConversionInput(Path(path), on_loss=on_loss, lenient=lenient, dialect=dialect)
    way = _WAYS.get(source.kind, {}).get(to)
    if way is None:
        raise _unsupported_conversion(source, to)
    return way(source)


def convert_to_capture(path: Path, out: Path, *, on_loss: OnLoss, lenient: bool = False) -> None:
    """Write the skeleton of the log in *path* as a capture to *out*, which must be new or empty."""
    source = ConversionInput(path, on_loss=on_loss, lenient=lenient)
    if source.kind != "replay log":
        raise _unsupported_conversion(source, "capture")
    to_capture(source, out)


def _unsupported_conversion(source: ConversionInput, to: ConvertTarget) -> UsageError:
    known: list[str] = [*_WAYS.get(source.kind, ())]
    if source.kind == "replay log":
        known.append("capture")
    remedy = f"it can become {', '.join(known)}" if known else "nothing else can be made of it"
    if (source.kind, to) == ("replay log", "actions"):
        remedy = "it names neither the model nor what was asked; convert the capture it came from"
    return UsageError(f"{source.path}: a {source.kind} cannot become {to}; {remedy}")
