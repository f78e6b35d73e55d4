"""``reenact pull``: get captures out of object storage or out of a pack."""

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
    """Get runs out of object storage or out of a pack.

    ADDRESS is a run, or an address such as s3://BUCKET/FOLDER with runs below it, or a pack, or one run
    of a pack: FILE.pack#RUN. Each run is verified before it appears in FOLDER, completely or not at
    all. Runs that are there already are left alone.

    Exit status: 0, or 2 when a run could not be fetched.
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
