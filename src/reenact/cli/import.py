"""``reenact import``: make captures from recordings of other tools."""

from __future__ import annotations

import json
from typing import Final

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli.terminal import DIFFERS, INVALID, JOBS, ON, printable, progress_bar, say
from reenact.formats.capture import RedactionProfile
from reenact.formats.record import ABSENT
from reenact.importers.building import LEFT_OUT, ImportedRun
from reenact.importers.importing import ImportReport, import_runs
from reenact.redaction import PROFILES

_SHOWN: Final = 5
"""Losses that are printed per run; the manifest has them all."""


@click.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--from", "format_", metavar="FORMAT", help="The format of PATH; by default detected from its content."
)
@click.option("-o", "--out", metavar="DIR", required=True, help="Where to write the captures; new or empty.")
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide [default; strict if CI is set].")
@JOBS
@ON
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    paths: tuple[str, ...],
    format_: str | None,
    out: str,
    redact: RedactionProfile | None,
    jobs: int,
    on: str | None,
    as_json: bool,
) -> int:
    """Make captures from recordings of other tools.

    PATH is a file, a folder with such files at any depth, or an address of either. A single file with a
    single run becomes DIR itself; everything else gets folders below DIR, named after the sources. Each
    manifest says where the run comes from and how faithful it is: replayable, tools, judgeable or
    viewable.

    Exit status: 0; 1 when a part of a source could not be read; 2 when nothing could.
    """
    report = import_runs(
        paths, out, format=format_, redact=redact, jobs=jobs, on=on, progress_bar=progress_bar
    )
    if as_json:
        value = msgspec.to_builtins(report) | {"verdict": report.verdict}
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        _print_report(report)
    if report.verdict == "nothing":
        return INVALID
    return 0 if report.verdict == "whole" else DIFFERS


def _print_report(report: ImportReport) -> None:
    for run in report.runs:
        click.echo(
            printable(f"{run.path}  {run.fidelity}  {_describe_counts(run)}, from {run.format} {run.source}")
        )
        missing = [what for what in run.missing if not what.endswith(LEFT_OUT)]
        left_out = [what.removesuffix(LEFT_OUT) for what in run.missing if what.endswith(LEFT_OUT)]
        if missing:
            click.echo(printable(f"  not in the source: {', '.join(missing)}"))
        if left_out:
            click.echo(printable(f"  left out: {', '.join(left_out)}"))
        if run.unknown:
            names = ", ".join(f"{name} ({count})" for name, count in [*run.unknown.items()][:_SHOWN])
            more = f" and {len(run.unknown) - _SHOWN} others" if len(run.unknown) > _SHOWN else ""
            click.echo(printable(f"  unknown fields: {names}{more}"))
        _print_losses(run)
    for failed in report.failed:
        is_placed = failed.reason.startswith(f"{failed.source}:")
        say(failed.reason if is_placed else f"{failed.source}: {failed.reason}")
    if report.skipped:
        say(f"skipped, unknown format: {plural(len(report.skipped), 'file')}")


def _describe_counts(run: ImportedRun) -> str:
    counts = run.counts
    kinds = (
        (counts.model_calls, "model call"),
        (counts.tool_calls, "tool call"),
        (counts.requests, "request"),
        (counts.notes, "note"),
    )
    return ", ".join(plural(count, kind) for count, kind in kinds if count) or "no calls"


def _print_losses(run: ImportedRun) -> None:
    for loss in run.losses[:_SHOWN]:
        place = run.source if loss.line is ABSENT else f"{run.source}:{loss.line}"
        say(f"{place}: {loss.reason}")
    if run.loss_count > _SHOWN:
        say(f"{run.source}: {plural(run.loss_count - _SHOWN, 'further place')} could not be read; see --json")
