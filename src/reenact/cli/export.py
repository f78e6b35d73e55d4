"""``reenact export``: runs as what other tools read."""

from __future__ import annotations

import json

import click
import msgspec

from reenact.cli.terminal import INVALID, printable, progress_bar, say
from reenact.exporters.exporting import EXPORT_FORMATS, ExportFormat, export_runs


@click.command("export")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--to", type=click.Choice(EXPORT_FORMATS), required=True, help="What to write.")
@click.option("-o", "--out", metavar="OUT", required=True, help="A file for one run, a folder for several.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(paths: tuple[str, ...], to: ExportFormat, out: str, as_json: bool) -> int:
    """Write runs as what other tools read.

    PATH is a capture, or a folder with captures at any depth. Each file names the capture that it was made
    of. What the format cannot hold is told on stderr. The exit status is 2 where a run could not be read.
    """
    report = export_runs(paths, to, out, progress_bar=lambda total, what: progress_bar(total, what, least=20))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False))
    else:
        for run in report.runs:
            click.echo(printable(f"{run.out}  from {run.path}"))
            for loss in run.losses:
                what = loss.event if loss.field is None else f"{loss.event}.{loss.field}"
                say(f"{run.path}: not in the {to}: {what} (first at event {loss.line}): {loss.reason}")
    for failed in report.failed:
        say(f"{failed.path}: {failed.reason}" if failed.path not in failed.reason else failed.reason)
    return INVALID if report.failed else 0
