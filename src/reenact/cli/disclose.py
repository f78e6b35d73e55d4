"""``reenact disclose``: reveal chosen fields of a sealed event, with proof."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.check.seals.runs import disclose
from reenact.cli.prove import options, print_disclosure


@click.command("disclose")
@options
@click.option(
    "--field",
    "names",
    metavar="PATH",
    multiple=True,
    required=True,
    help="A field to reveal, such as $.data.args.city; repeatable.",
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
    """Reveal chosen fields of a sealed event, with proof.

    SEQ is the number of an event in the capture, or with --log (and for a sealed log) the number of a
    line in the log. A field includes everything below it. Whoever has the seal can check the result
    with `reenact verify FILE --seal SEAL --key PUB`; it reveals nothing about the other fields.
    """
    found = disclose(path, position, names, seal=seal_path, secret=secret_path, log=log)
    print_disclosure(found, output, force)
