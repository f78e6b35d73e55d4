"""``reenact verify``: whether an artifact is what it says it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from reenact.check.capture import Progress, check_capture
from reenact.check.findings import Finding, Report
from reenact.check.kinds import kind_of
from reenact.check.receipt import ReceiptCheck
from reenact.check.replay_log import check_replay_log
from reenact.cli.failure import printable
from reenact.errors import FormatError, UsageError
from reenact.formats.hashes import trajectory_hash
from reenact.formats.receipt import LegacyReceipt, Receipt, read_receipt
from reenact.store.rundir import EVENTS

_SHOWN_FINDINGS = 100


@click.command("verify")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--receipt", "receipt_path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--seal", "seal_path", metavar="FILE", type=click.Path(path_type=Path), help="Hold it against a seal."
)
@click.option(
    "--key", "key_path", metavar="FILE", type=click.Path(path_type=Path), help="The signer's public key."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    path: Path, receipt_path: Path | None, seal_path: Path | None, key_path: Path | None, as_json: bool
) -> int:
    """Check that an artifact is what it says it is.

    PATH is a capture directory or a REPLAY.jsonl; a log can be held against its receipt. Every problem is
    printed with its line. The exit status is 0 when there is none but warnings, 1 when something does
    not agree, and 2 when PATH cannot be read at all.
    """
    if path.is_file() and kind_of(path) == "disclosure":
        report = Report("disclosure", str(path), [], {})
    elif path.is_dir():
        if receipt_path is not None:
            raise UsageError(f"{path}: a receipt belongs to a REPLAY.jsonl, not to a capture")
        report = _with_progress(path)
    else:
        report = _check_log(path, receipt_path)
        if not report.facts["events"]:
            first = report.findings[0]
            raise FormatError(f"is no REPLAY.jsonl: {first.message}", file=str(path), line=first.line)
    if seal_path or key_path or report.what == "disclosure":
        from reenact.check.against_seal import with_seal

        report = with_seal(report, seal_path, key_path)
    _print(report, as_json)
    return 0 if report.is_good else 1


def _with_progress(path: Path) -> Report:
    events = path / EVENTS
    if not sys.stderr.isatty() or not events.exists():
        return check_capture(path)
    with click.progressbar(length=events.stat().st_size, label="verifying", file=sys.stderr) as bar:
        update: Progress = bar.update
        return check_capture(path, progress=update)


def _check_log(path: Path, receipt_path: Path | None) -> Report:
    if receipt_path is None:
        return check_replay_log(lambda: path.open("rb"), file=str(path))
    receipt = read_receipt(receipt_path.read_bytes(), str(receipt_path))
    against = ReceiptCheck(receipt, file=str(receipt_path), log_file=path.name)
    report = check_replay_log(lambda: path.open("rb"), file=str(path), on_result=against.take)
    against.close()
    findings = [*report.findings, *against.findings, *_trajectory(path, receipt)]
    return Report(report.what, report.path, findings, report.facts)


def _trajectory(path: Path, receipt: Receipt | LegacyReceipt) -> list[Finding]:
    if not isinstance(receipt, Receipt):
        return []
    with path.open("rb") as stream:
        found = trajectory_hash(stream, file=path.name)
    if found == receipt.trajectory_hash:
        return []
    message = f"the receipt is for another log: it says {receipt.trajectory_hash}, this one has {found}"
    return [Finding("trajectory_hash", message, path.name)]


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
        return
    for finding in report.findings[:_SHOWN_FINDINGS]:
        mark = "warning" if finding.severity == "warning" else "error  "
        click.echo(f"{mark}  {printable(finding.describe())}")
    if len(report.findings) > _SHOWN_FINDINGS:
        click.echo(f"… and {len(report.findings) - _SHOWN_FINDINGS} more; --json lists all")
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    verdict = "is what it says it is" if report.is_good else "does not agree with itself"
    facts = ", ".join(f"{name} {_told(value)}" for name, value in report.facts.items())
    found = f"{errors} errors, {warnings} warnings"
    click.echo(f"{printable(report.path)}: the {report.what} {verdict}: {found} ({facts})")


def _told(value: object) -> str:
    return printable(json.dumps(value, ensure_ascii=False)) if isinstance(value, list | dict) else str(value)
