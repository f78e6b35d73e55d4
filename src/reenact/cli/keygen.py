"""``reenact keygen``: make a pair of keys for seals."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec

from reenact.check.seals.keys import keygen
from reenact.cli.terminal import A_PATH, printable


@click.command("keygen")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="Where to write the private key.",
)
@click.option("--force", is_flag=True, help="Replace the files if they exist.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def command(output: Path, force: bool, as_json: bool) -> None:
    """Make a pair of keys for seals.

    FILE is the private key (Ed25519), readable by you only; keep it. FILE.pub is the public key, for
    those who verify.
    """
    report = keygen(output, replace=force)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))
        return
    click.echo(printable(f"{report.private}: a new private key; give {report.public} to those who verify"))
    click.echo(f"key {report.key}")
