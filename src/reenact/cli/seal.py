"""``reenact seal``: sign a run."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.check.seals.runs import seal
from reenact.cli.terminal import A_PATH, printable, progress_bar


@click.command("seal")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "--key",
    "key_path",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="Your private key.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    help="Where to write the seal.",
)
@click.option("--force", is_flag=True, help="Replace seal and secret if they exist.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def command(path: Path, key_path: Path, output: Path | None, force: bool, as_json: bool) -> None:
    """Sign a run.

    Parts of a sealed run can be published and proved later. PATH is a capture directory or a
    REPLAY.jsonl. The seal goes to PATH.seal.json, for everybody. Its secret goes to PATH.seal.secret,
    readable by you only: publish and disclose need it.
    """
    report = seal(path, key_path, out=output, replace=force, progress_bar=progress_bar)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))
        return
    counted = "" if report.events is None else f"{plural(report.events, 'event')}, "
    click.echo(printable(f"{report.seal}: {counted}{plural(report.lines, 'line')} of log sealed"))
    click.echo(printable(f"{report.secret}: the secret; keep it, and never publish it"))
    click.echo(f"key {report.key}")
