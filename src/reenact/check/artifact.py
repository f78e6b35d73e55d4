"""Verifying an artifact of any kind, and comparing it with its receipt, its seal or another log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from reenact.check.documents import check_document
from reenact.check.findings import Finding, VerifyReport, unknown_member_findings
from reenact.check.integrity.capture import check_capture
from reenact.check.integrity.replay_log import check_replay_log
from reenact.check.kinds import kind_of, size_bytes
from reenact.check.receipts import check_against, check_receipt
from reenact.errors import StoreError, UsageError
from reenact.formats.dialects import Event
from reenact.formats.hashes import trajectory_hash
from reenact.formats.lines import Line
from reenact.formats.receipt import read_receipt
from reenact.formats.replay_log import read_replay_log
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt
from reenact.progress import Progress, ProgressBar, no_progress_bar
from reenact.store.paths import takes_addresses
from reenact.store.rundir import RunDir, read_ids
from reenact.workers import worker_count

_MANY_BYTES: Final = 64 * 1024 * 1024
"""From this size on, starting more processes pays off."""


@takes_addresses("path", "receipt", "seal", "key", "against")
def verify(
    path: str | Path,
    *,
    receipt: str | Path | None = None,
    seal: str | Path | None = None,
    key: str | Path | None = None,
    against: str | Path | None = None,
    runs: str | Path | None = None,
    lenient: bool = False,
    published: bool = False,
    jobs: int | None = 1,
    progress_bar: ProgressBar = no_progress_bar,
) -> VerifyReport:
    """Check that the artifact in *path* is valid.

    Any artifact is checked by itself. A log or a capture is also compared with its *receipt*, with its *seal*
    under the signer's public *key*, or with another log (*against*). The rows of a dataset are derived again
    from their runs, which are at the paths in the rows or in the folder *runs*. Problems are findings of the
    report; an error is raised only if *path* cannot be read at all. *jobs* is the number of processes: 0 for
    one per core, ``None`` for that if the file is large.
    """
    path = Path(path)
    run = RunDir(path)
    is_capture = run.is_capture
    if not is_capture and kind_of(path) == "dataset":
        if receipt or seal or key or against:
            raise UsageError(
                f"{path}: is a dataset; receipts, seals and logs belong to the runs it is made of"
            )
        from reenact.check.datasets import check_dataset  # redaction is slow to import

        with progress_bar(size_bytes(path), "tracing rows") as progress:
            return check_dataset(path, runs=None if runs is None else Path(runs), progress=progress)
    if runs is not None:
        raise UsageError(f"{path}: is not a dataset; --runs is for datasets only")
    total_bytes = run.size_bytes if is_capture else size_bytes(path)
    is_small = total_bytes < _MANY_BYTES
    processes = 1 if jobs is None and is_small else worker_count(jobs, is_much=True)
    with progress_bar(total_bytes, "verifying") as progress:
        report = (
            check_capture(path, processes=processes, progress=progress)
            if is_capture
            else check_artifact(
                path, lenient=lenient, published=published, processes=processes, progress=progress
            )
        )
    if receipt is not None:
        report = with_receipt(report, Path(receipt))
    if seal or key or report.what == "disclosure":
        from reenact.check.seals.verify import with_seal  # cryptography is slow to import

        seal_path, key_path = seal and Path(seal), key and Path(key)
        with progress_bar(total_bytes, "comparing with the seal") as progress:
            report = with_seal(
                report, seal_path or None, key_path or None, processes=processes, progress=progress
            )
    return report if against is None else with_other_log(report, Path(against))


def check_artifact(
    path: Path,
    *,
    lenient: bool = False,
    published: bool = False,
    processes: int = 1,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check the artifact in *path* by itself, whatever its kind."""
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


def with_receipt(report: VerifyReport, receipt_path: Path) -> VerifyReport:
    """*report* on a log or a capture, with findings for each difference from its receipt."""
    kind = kind_of(receipt_path)
    if (report.what, kind) == ("capture", "replay receipt"):
        receipt = read_replay_receipt(receipt_path.read_bytes(), file=str(receipt_path))
        return _with_findings(report, _check_replay_receipt(report, receipt, receipt_path))
    if (report.what, kind) != ("replay log", "receipt"):
        raise UsageError(
            f"{receipt_path}: a {kind} is not the receipt of a {report.what}; "
            "a log has a RECEIPT.json, a capture a replay receipt"
        )
    log = Path(report.path)
    with log.open("rb") as stream:
        hashed = trajectory_hash(stream, file=log.name)
    unproven: list[str] = []
    claimed = read_receipt(receipt_path.read_bytes(), str(receipt_path))
    findings = check_receipt(
        claimed,
        _lines(log),
        trajectory_hash=hashed,
        file=receipt_path.name,
        log_file=log.name,
        on_unproven=unproven.append,
    )
    facts = report.facts | ({"claimedButNotInTheLog": unproven} if unproven else {})
    findings += unknown_member_findings(claimed, receipt_path.name)
    return msgspec.structs.replace(_with_findings(report, findings), facts=facts)


def with_other_log(report: VerifyReport, other: Path) -> VerifyReport:
    """*report* on a log, with findings for tool calls and outputs that differ from the log *other*."""
    for path, kind in ((report.path, report.what), (str(other), kind_of(other))):
        if kind != "replay log":
            remedy = f"make one with: reenact convert {path} --to replay-log"
            raise UsageError(f"{path}: a {kind} is not a log that can be compared; {remedy}")
    log = Path(report.path)
    findings = check_against(_lines(log), _lines(other), file=log.name, other_file=str(other))
    return _with_findings(report, findings)


def _with_findings(report: VerifyReport, findings: list[Finding]) -> VerifyReport:
    return msgspec.structs.replace(report, findings=[*report.findings, *findings])


def _lines(path: Path) -> Iterator[tuple[Line, Event]]:
    """The readable lines of a log; the others are findings of the check of the log itself."""
    with path.open("rb") as stream:
        yield from read_replay_log(stream, file=path.name, on_error=lambda _: None)


def _check_replay_receipt(report: VerifyReport, receipt: ReplayReceipt, path: Path) -> list[Finding]:
    found = {
        "captureId": _capture_id(Path(report.path)) or receipt.capture.captureId,
        "eventsHash": report.facts.get("eventsHash"),
        "eventCount": report.facts.get("events"),
    }
    differing = [
        Finding("receipt_differs", f"{name} is {stated}, the capture has {found[name]}", path.name)
        for name in found
        if (stated := getattr(receipt.capture, name)) != found[name]
    ]
    return [*differing, *unknown_member_findings(receipt, path.name)]


def _capture_id(capture: Path) -> str:
    try:
        return read_ids(RunDir(capture).read_manifest()).capture_id
    except StoreError:
        return ""
