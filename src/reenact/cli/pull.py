"""``reenact pull``: captures out of object storage or out of a pack."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import msgspec

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import A_PATH, INVALID, MANY, printable, progress_bar, safe_json, say
from reenact.corpus.transfer import pull


@click.command("pull")
@click.argument("address", metavar="ADDRESS")
@click.argument("folder", metavar="FOLDER", type=A_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(address: str, folder: Path, as_json: bool) -> int:
    """Bring runs out of object storage or out of a pack.

    A run, or all runs below an address such as s3://BUCKET/FOLDER, into a folder; or all runs of a pack, or
    one of them: FILE.pack#RUN. A run is verified before it appears in FOLDER, whole
    or not at all; what is there already is left alone. The exit status is 2 where a run could not be
    brought.
    """
    report = pull(address, folder, progress_bar=partial(progress_bar, least=MANY // 100))
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        here = f", {len(report.already_here):,} here already" if report.already_here else ""
        done = f"{plural(len(report.pulled), 'run')} pulled, {size(report.size_bytes)}{here}"
        click.echo(printable(f"{folder}: {done}"))
    for problem in report.problems:
        say(problem)
    return INVALID if report.problems else 0
