"""``reenact convert``: write an artifact in another format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.analysis.convert import TARGETS, ConvertReport, ConvertTarget, convert
from reenact.cli.terminal import A_PATH, printable, progress_bar, say
from reenact.errors import UsageError
from reenact.formats.dialects.common import DialectName

STDOUT: Final = "-"


@click.command("convert")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option("--to", "target", type=click.Choice(TARGETS), required=True, help="The format.")
@click.option("--dialect", type=click.Choice(["current", "legacy"]), help="The form of a receipt [current].")
@click.option("-o", "--out", metavar="OUT", default=STDOUT, help="Where to write it [stdout].")
@click.option("--force", is_flag=True, help="Replace OUT if it exists; a capture is never replaced.")
@click.option("--lenient", is_flag=True, help="Skip lines that cannot be read; each is listed.")
@click.option("--json", "as_json", is_flag=True, help="Print the losses as one JSON object; needs -o.")
def command(
    path: Path,
    target: ConvertTarget,
    dialect: DialectName | None,
    out: str,
    force: bool,
    lenient: bool,
    as_json: bool,
) -> int:
    """Write an artifact in another format.

    PATH is a capture, a REPLAY.jsonl of either dialect, a bundle or a trace. What the target format
    cannot hold is listed on stderr: one line per kind of loss, with its count and its first place.
    """
    if out == STDOUT and as_json:
        raise UsageError("--json and the output would both go to stdout; add -o OUT")
    if out == STDOUT and target == "capture":
        raise UsageError("a capture is a directory; add -o DIR")
    to_stdout = out == STDOUT
    report = convert(
        path,
        target,
        out=sys.stdout.buffer if to_stdout else out,
        dialect=dialect,
        lenient=lenient,
        replace=force,
        progress_bar=progress_bar,
    )
    if to_stdout:
        sys.stdout.buffer.flush()
    if as_json:
        value = msgspec.to_builtins(report)
        order = ("path", "to", "out", "skipped", "losses")
        click.echo(json.dumps({name: value[name] for name in order}, indent=2, ensure_ascii=False))
    else:
        _say_losses(report)
    return 0


def _say_losses(report: ConvertReport) -> None:
    """Print one line on stderr per kind of loss."""
    if report.skipped:
        say(f"skipped what could not be read: {plural(report.skipped, 'line')}")
    if report.losses:
        say(f"not in the {report.to}, or filled in:")
    for loss in report.losses:
        what = loss.event if loss.field is None else f"{loss.event}.{loss.field}"
        place = "" if loss.line is None else f" (line {loss.line})"
        if loss.count > 1:
            place = "" if loss.line is None else f", first at line {loss.line}"
            place = f" ({loss.count} times{place})"
        click.echo(f"  {printable(what)}{place}: {printable(loss.reason)}", err=True)
