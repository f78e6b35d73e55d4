"""``reenact export``: write runs in the formats of other tools and trainers."""

from __future__ import annotations

import json
from typing import get_args

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli.options import allow_code_option
from reenact.cli.terminal import INVALID, JOBS, ON, printable, progress_bar, say
from reenact.errors import UsageError
from reenact.exporters.datasets import Dedupe
from reenact.exporters.exporting import (
    EXPORT_FORMATS,
    ExportFormat,
    ExportReport,
    export_runs,
)
from reenact.formats.capture import RedactionProfile
from reenact.redaction import PROFILES
from reenact.trace.to_rows import Reasoning


@click.command("export")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--to", type=click.Choice(EXPORT_FORMATS), required=True, help="The format.")
@click.option(
    "-o", "--out", metavar="OUT", required=True, help="A file or a folder; for otlp also an http address."
)
@click.option(
    "--status", type=click.Choice(("ok", "error")), multiple=True, help="Only runs with this status."
)
@click.option("--test", metavar="FILE", help="Only runs that pass this test.yaml; pairs are ranked by it.")
@click.option("--min-utility", metavar="N", type=float, help="Only runs whose steps are rated N or more.")
@click.option(
    "--min-delta", metavar="N", type=int, help="Only runs whose verifications fixed N tests or more."
)
@click.option(
    "--redact",
    type=click.Choice(PROFILES),
    default="none",
    help="Hide secrets again, by this profile [none].",
)
@click.option(
    "--reasoning",
    type=click.Choice(get_args(Reasoning)),
    default="drop",
    help="Keep or drop the models' reasoning in rows [drop].",
)
@click.option("--split", metavar="SHARES", help="Write one file per part into OUT: train=0.9,test=0.1.")
@click.option(
    "--dedupe",
    type=click.Choice(get_args(Dedupe)),
    default="exact",
    help="Which duplicate rows to leave out [exact].",
)
@allow_code_option
@JOBS
@ON
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    paths: tuple[str, ...],
    to: ExportFormat,
    out: str,
    status: tuple[str, ...],
    test: str | None,
    min_utility: float | None,
    min_delta: int | None,
    redact: RedactionProfile,
    reasoning: Reasoning,
    split: str | None,
    dedupe: Dedupe,
    allow_code: bool,
    jobs: int,
    on: str | None,
    as_json: bool,
) -> int:
    """Write runs in the formats of other tools and trainers.

    PATH is a capture, or a folder with captures at any depth. atif, har and otlp give one file per run.
    sft, preference and parquet give rows; each row names its run and events, and `reenact verify`
    traces it back. PATH may also be a corpus made by `reenact index`; runs with another status than
    --status are then not opened. What cannot be written is listed on stderr.

    Exit status: 0, or 2 when a run could not be read.
    """
    report = export_runs(
        paths,
        to,
        out,
        status=status,
        test=test,
        min_utility=min_utility,
        min_verification_delta=min_delta,
        redact=redact,
        reasoning=reasoning,
        split=None if split is None else _read_splits(split),
        dedupe=dedupe,
        allow_code=allow_code,
        jobs=jobs,
        on=on,
        progress_bar=lambda total, what: progress_bar(total, what, least=20),
    )
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False))
    else:
        _print_report(report)
    for failed in report.failed:
        say(f"{failed.path}: {failed.reason}" if failed.path not in failed.reason else failed.reason)
    return INVALID if report.failed else 0


def _read_splits(text: str) -> dict[str, float]:
    """Parse ``train=0.9,test=0.1``."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, mark, share = part.strip().partition("=")
        try:
            number = float(share)
        except ValueError:
            mark = ""
        if not mark or not name or name in found:
            raise UsageError(f"{text!r} is not a split; write names and shares, such as train=0.9,test=0.1")
        found[name] = number
    return found


def _print_report(report: ExportReport) -> None:
    if report.dataset is None:
        for run in report.runs:
            click.echo(printable(f"{run.out}  from {run.path}"))
    else:
        for file, rows in report.dataset.files.items():
            click.echo(printable(f"{file}  {plural(rows, 'row')}"))
        if report.dataset.duplicates:
            click.echo(f"left out: {plural(report.dataset.duplicates, 'duplicate')}")
    for reason, count in report.left_out.items():
        click.echo(printable(f"left out: {plural(count, 'run')}, {reason}"))
    for run in report.runs:
        for loss in run.losses:
            what = loss.event if loss.field is None else f"{loss.event}.{loss.field}"
            place = "" if loss.line is None else f" (first at event {loss.line})"
            say(f"{run.path}: not in the {report.to}: {what}{place}: {loss.reason}")
