"""``reenact pack``: put many runs into one file."""

from __future__ import annotations

from functools import partial

import click
import msgspec

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import MANY, printable, progress_bar, safe_json
from reenact.corpus.transfer import pack


@click.command("pack")
@click.argument("runs", metavar="PATH...", nargs=-1, required=True)
@click.option("-o", "--out", metavar="FILE", required=True, help="A new file, or an address of a new object.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(runs: tuple[str, ...], out: str, as_json: bool) -> int:
    """Put many runs into one file that is read in place.

    Captures, and all captures in folders, are compressed into FILE, by custom *.pack, or into one
    object at an address such as s3://BUCKET/MONDAY.pack. Verbs that read runs accept FILE, and FILE#RUN
    for one of its runs, without reading the others. `reenact pull FILE FOLDER` unpacks it. The pack
    appears completely or not at all, and nothing is replaced.
    """
    report = pack(*runs, out=out, progress_bar=partial(progress_bar, least=MANY // 100))
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        sizes = f"{size(report.unpacked_bytes)} in {size(report.size_bytes)}"
        click.echo(printable(f"{report.path}: {plural(report.runs, 'run')}, {sizes}"))
    return 0
