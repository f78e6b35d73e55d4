"""Any artifact, checked by what it is, and a log or a capture held against what goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from reenact.check.documents import check_document
from reenact.check.findings import Finding, Report
from reenact.check.integrity.capture import check_capture
from reenact.check.integrity.replay_log import check_replay_log
from reenact.check.integrity.segments import Progress
from reenact.check.kinds import kind_of
from reenact.check.receipts import check_against, check_receipt
from reenact.errors import UsageError
from reenact.formats.dialects import Event
from reenact.formats.hashes import trajectory_hash
from reenact.formats.lines import Line
from reenact.formats.receipt import read_receipt
from reenact.formats.replay_log import read_replay_log
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt


def check_artifact(
    path: Path,
    *,
    lenient: bool = False,
    published: bool = False,
    processes: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Everything that can be told from *path* alone, whichever artifact it holds."""
    kind = kind_of(path)
    if kind == "capture":
        return check_capture(path, processes=processes, progress=progress)
    if kind == "replay log":
        return check_replay_log(
            lambda: path.open("rb"),
            file=str(path),
            lenient=lenient,
            published=published,
            processes=processes,
            progress=progress,
        )
    return check_document(kind, path)


def with_receipt(report: Report, receipt_path: Path) -> Report:
    """*report*, on a log or a capture, with what does not agree with the receipt of it."""
    kind = kind_of(receipt_path)
    if (report.what, kind) == ("capture", "replay receipt"):
        receipt = read_replay_receipt(receipt_path.read_bytes(), file=str(receipt_path))
        return _with(report, _of_replay(report, receipt, receipt_path))
    if (report.what, kind) != ("replay log", "receipt"):
        raise UsageError(
            f"{receipt_path}: a {kind} is not the receipt of a {report.what}; "
            "a log has a RECEIPT.json, a capture a replay receipt"
        )
    log = Path(report.path)
    with log.open("rb") as stream:
        hashed = trajectory_hash(stream, file=log.name)
    findings = check_receipt(
        read_receipt(receipt_path.read_bytes(), str(receipt_path)),
        _lines(log),
        trajectory_hash=hashed,
        file=receipt_path.name,
        log_file=log.name,
    )
    return _with(report, findings)


def with_other_log(report: Report, other: Path) -> Report:
    """*report*, on a log, with where its tool calls and outputs differ from those of the log *other*."""
    for path, kind in ((report.path, report.what), (str(other), kind_of(other))):
        if kind != "replay log":
            remedy = f"make one with: reenact convert {path} --to replay-log"
            raise UsageError(f"{path}: a {kind} is no log to compare; {remedy}")
    log = Path(report.path)
    findings = check_against(_lines(log), _lines(other), file=log.name, other_file=str(other))
    return _with(report, findings)


def _with(report: Report, findings: list[Finding]) -> Report:
    return msgspec.structs.replace(report, findings=[*report.findings, *findings])


def _lines(path: Path) -> Iterator[tuple[Line, Event]]:
    """What can be read of a log; the lines that cannot are findings of its own check."""
    with path.open("rb") as stream:
        yield from read_replay_log(stream, file=path.name, on_error=lambda _: None)


def _of_replay(report: Report, receipt: ReplayReceipt, path: Path) -> list[Finding]:
    found = {"eventsHash": report.facts.get("eventsHash"), "eventCount": report.facts.get("events")}
    return [
        Finding("receipt_differs", f"{name} is {stated}, the capture has {found[name]}", path.name)
        for name in found
        if (stated := getattr(receipt.capture, name)) != found[name]
    ]
