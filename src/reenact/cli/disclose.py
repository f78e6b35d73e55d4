"""``reenact disclose``: what chosen fields of a sealed event say, with proof."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.check.seals.runs import disclose
from reenact.cli.prove import options, write


@click.command("disclose")
@options
@click.option(
    "--field", "names", metavar="PATH", multiple=True, required=True, help="Such as $.data.args.city."
)
def command(
    path: Path,
    position: int,
    seal_path: Path,
    secret_path: Path | None,
    log: bool,
    output: Path | None,
    force: bool,
    names: tuple[str, ...],
) -> None:
    """Tell what chosen fields of a sealed event say, with proof.

    SEQ is the number of an event of the capture, or with --log (and for a sealed log) of a line of the
    log. A field stands for all below it. Whoever has the seal can verify the result with
    reenact verify FILE --seal SEAL --key PUB; it tells nothing about the other fields.
    """
    found = disclose(path, position, names, seal=seal_path, secret=secret_path, log=log)
    write(found, output, force)
