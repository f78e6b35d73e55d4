"""``reenact push``: captures into object storage."""

from __future__ import annotations

from functools import partial

import click
import msgspec

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import INVALID, MANY, printable, progress_bar, safe_json, say
from reenact.corpus.transfer import push


@click.command("push")
@click.argument("runs", metavar="PATH...", nargs=-1, required=True)
@click.argument("address", metavar="ADDRESS")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(runs: tuple[str, ...], address: str, as_json: bool) -> int:
    """Put runs into object storage.

    Captures, and the captures in folders. ADDRESS is such as s3://BUCKET/FOLDER; gs://, az:// and file://
    are the same. A run appears there whole or not at all, and nothing is replaced. Credentials are found
    where the service's own tools find them. The exit status is 2 where a run could not be put there.
    """
    report = push(*runs, to=address, progress_bar=partial(progress_bar, least=MANY // 100))
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        there = f", {len(report.already_there):,} there already" if report.already_there else ""
        done = f"{plural(len(report.pushed), 'run')} pushed, {size(report.size_bytes)}{there}"
        click.echo(printable(f"{address}: {done}"))
    for problem in report.problems:
        say(problem)
    return INVALID if report.problems else 0
