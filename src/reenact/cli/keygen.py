"""``reenact keygen``: a pair of keys for sealing."""

from __future__ import annotations

import json
from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reenact.check.seals.keys import key_id, private_pem, public_pem
from reenact.cli.command import A_PATH
from reenact.cli.failure import printable
from reenact.store.outfile import open_output, refuse_without_neighbour


@click.command("keygen")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="The private key's file.",
)
@click.option("--force", is_flag=True, help="Replace the files if they are there.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def command(output: Path, force: bool, as_json: bool) -> None:
    """Make a pair of keys to seal with.

    FILE is the private key, Ed25519, readable by you alone; keep it. FILE.pub is the public one, for those
    who verify.
    """
    refuse_without_neighbour(output, "the public key")
    key = Ed25519PrivateKey.generate()
    public = output.parent / f"{output.name}.pub"
    with open_output(output, replace=force, private=True) as private_file:
        private_file.write(private_pem(key))
        with open_output(public, replace=force) as public_file:
            public_file.write(public_pem(key.public_key()))
    keyid = key_id(key.public_key())
    if as_json:
        click.echo(json.dumps({"private": str(output), "public": str(public), "key": keyid}, indent=2))
        return
    click.echo(printable(f"{output}: a new private key; give {public} to those who verify"))
    click.echo(f"key {keyid}")
