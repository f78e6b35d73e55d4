"""Logs of either dialect, from captures and from each other; receipts of them; captures from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

from reenact.analysis.convert.source import Source
from reenact.formats.dialects import DIALECTS, Event
from reenact.formats.dialects.common import DialectName
from reenact.formats.dialects.conversion import Conversion, Converter
from reenact.formats.hashes import trajectory_hash
from reenact.formats.lines import Line
from reenact.formats.receipt import write_receipt
from reenact.trace.to_capture import write_capture
from reenact.trace.to_receipt import receipt_of_log
from reenact.trace.to_replay_log import replay_log_of_capture
from reenact.trace.to_summary import summary_of_log


def to_log(source: Source, dialect: DialectName) -> Iterator[bytes]:
    """The log's lines in *dialect*."""
    to_bytes = DIALECTS[dialect].to_bytes
    for _, event in _events(source, dialect):
        yield to_bytes(event) + b"\n"


to_current = partial(to_log, dialect="current")
to_legacy = partial(to_log, dialect="legacy")


def to_receipt(source: Source) -> Iterator[bytes]:
    """The receipt of a log; that of a capture is the receipt of its log in the current dialect."""
    receipt = receipt_of_log(
        ((Line(line, 0, b""), event) for line, event in _numbered(source)),
        shape=source.dialect or "current",
        trajectory_hash=_trajectory_hash(source),
        file=str(source.path),
        on_loss=source.on_loss,
    )
    yield write_receipt(receipt)


def to_summary(source: Source) -> Iterator[bytes]:
    """What was asked, done, changed and verified, for people."""
    reader = source.capture() if source.kind == "capture" else None
    file = "events.jsonl" if reader is not None else source.path.name
    lines = ((Line(line, 0, b""), event) for line, event in _numbered(source, quiet=True))
    for text in summary_of_log(lines, file=file, reader=reader):
        yield text.encode("utf-8", "replace") + b"\n"


def to_capture(source: Source, out: Path) -> None:
    """The skeleton of a log, written into *out*, which must be new or empty."""
    write_capture(
        out,
        _events(source, "current"),
        trajectory_hash=_trajectory_hash(source),
        file=str(source.path),
        on_loss=source.on_loss,
    )


def _events(source: Source, dialect: DialectName) -> Iterator[tuple[int, Event]]:
    """The events in *dialect*, each with the line it comes from; losses are handed over on the way."""
    converter = Converter(dialect)
    for line, event in _numbered(source):
        conversion = converter.convert(event, line)
        _lose(source, conversion)
        for converted in conversion.events:
            yield line, converted


def _numbered(source: Source, *, quiet: bool = False) -> Iterator[tuple[int, Event]]:
    if source.kind != "capture":
        for line, event in source.log():
            yield line.number, event
        return
    for seq, conversion in enumerate(replay_log_of_capture(source.capture()), 1):
        if not quiet:
            _lose(source, conversion)
        for event in conversion.events:
            yield seq, event


def _lose(source: Source, conversion: Conversion) -> None:
    for loss in conversion.losses:
        source.on_loss(loss)


def _trajectory_hash(source: Source) -> str:
    if source.kind != "capture":
        with source.path.open("rb") as stream:
            return trajectory_hash(stream, file=str(source.path))
    quiet = Source(source.path, on_loss=lambda _: None)
    return _hash_of(to_log(quiet, "current"))


def _hash_of(lines: Iterable[bytes]) -> str:
    running = sha256()
    for line in lines:
        running.update(line)
    return f"sha256:{running.hexdigest()}"
