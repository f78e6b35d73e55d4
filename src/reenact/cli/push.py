"""``reenact push``: put captures into object storage."""

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

    PATH is a capture or a folder of captures. ADDRESS is s3://BUCKET/FOLDER or the same with gs://,
    az:// or file://. Credentials are found where the service's own tools find them. A run appears there
    completely or not at all, and nothing is replaced.

    Exit status: 0, or 2 when a run could not be stored.
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
