"""``reenact checkout``: put the files of a run into a folder."""

from __future__ import annotations

import json

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli.options import (
    repository_option,
)
from reenact.cli.terminal import printable, say
from reenact.workspace.files import checkout


@click.command("checkout")
@click.argument("directory", metavar="DIR")
@click.option("-o", "--output", metavar="FOLDER", required=True, help="A new or empty folder.")
@click.option(
    "--at", metavar="SEQ", type=click.IntRange(min=1), help="The event; by default the end of the run."
)
@repository_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(directory: str, output: str, at: int | None, repository: str | None, as_json: bool) -> int:
    """Put the files of a run at one of its steps into a folder.

    DIR is a capture that was recorded with --workspace. FOLDER gets all files as they were after event
    SEQ, or nothing on failure. Files in which placeholders replace secrets are named on stderr.
    """
    report = checkout(directory, output, at=at, repository=repository)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))
        return 0
    moment = "at the end" if at is None else f"at event {at}"
    click.echo(printable(f"{output}: {plural(report.files, 'file')} of {directory} {moment}"))
    for path in report.hidden:
        say(f"{output}/{path}: placeholders replace secrets in it")
    return 0
