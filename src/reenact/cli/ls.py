"""``reenact ls``: list the runs in object storage or in a pack."""

from __future__ import annotations

import click
import msgspec

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import Cell, safe_json, write_line
from reenact.corpus.transfer import list_runs


@click.command("ls")
@click.argument("address", metavar="ADDRESS")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run.")
def command(address: str, as_json: bool) -> int:
    """List the runs in object storage or in a pack.

    ADDRESS is an address such as s3://BUCKET/FOLDER, or a pack, here or at an address that ends in
    .pack. Incomplete uploads are not listed.
    """
    runs = list_runs(address)
    if as_json:
        for run in runs:
            click.echo(safe_json(msgspec.to_builtins(run), indent=None))
        return 0
    for run in runs:
        write_line((Cell(size(run.size_bytes), "", -9), Cell(f"  {run.name or address}")))
    write_line((Cell(plural(len(runs), "run"), "dim"),))
    return 0
