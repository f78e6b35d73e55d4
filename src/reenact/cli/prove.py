"""``reenact prove``: prove that an event is at its place in a sealed run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from reenact.check.seals.runs import prove
from reenact.cli.terminal import A_PATH, printable
from reenact.formats.seal import Disclosure, write_disclosure
from reenact.store.outfile import open_output

F = TypeVar("F", bound=Callable[..., object])


def options(command: F) -> F:
    """Add the options that ``prove`` and ``disclose`` share."""
    file = A_PATH
    for option in (
        click.option("--force", is_flag=True, help="Replace FILE if it exists."),
        click.option("-o", "--output", metavar="FILE", type=file, help="Where to write the proof [stdout]."),
        click.option("--log", is_flag=True, help="SEQ is the number of a line in the sealed log."),
        click.option("--secret", "secret_path", metavar="FILE", type=file, help="The seal's secret."),
        click.option("--seal", "seal_path", metavar="FILE", type=file, required=True, help="The run's seal."),
        click.argument("position", metavar="SEQ", type=click.IntRange(min=1)),
        click.argument("path", metavar="PATH", type=A_PATH),
    ):
        command = option(command)
    return command


@click.command("prove")
@options
def command(
    path: Path,
    position: int,
    seal_path: Path,
    secret_path: Path | None,
    log: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Prove that an event is at its place in a sealed run.

    The proof reveals nothing else about the event. SEQ is the number of an event in the capture, or
    with --log (and for a sealed log) the number of a line in the log. Whoever has the seal can check
    the proof with `reenact verify FILE --seal SEAL --key PUB`.
    """
    print_disclosure(prove(path, position, seal=seal_path, secret=secret_path, log=log), output, force)


def print_disclosure(disclosure: Disclosure, output: Path | None, force: bool) -> None:
    """Write *disclosure* to the output file, or to stdout."""
    text = write_disclosure(disclosure)
    if output is None:
        click.echo(text, nl=False)
        return
    with open_output(output, replace=force) as stream:
        stream.write(text)
    what = "line" if disclosure.tree == "log" else "event"
    click.echo(f"{printable(str(output))}: {what} {disclosure.position}")
