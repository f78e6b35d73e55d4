"""``reenact hash``: the canonical digest of JSON files."""

from __future__ import annotations

import json

import click

from reenact.canonical import Profile
from reenact.check.hashes import hash_files
from reenact.cli.terminal import INVALID, message_of, printable, report


@click.command("hash")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--profile", type=click.Choice(["replay", "jcs"]), default="replay", show_default=True)
@click.option("--canonical", "as_text", is_flag=True, help="Print the canonical text instead of its digest.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with an object per file.")
def command(files: tuple[str, ...], profile: Profile, as_text: bool, as_json: bool) -> int:
    """Print the canonical digest of JSON files.

    FILE is a JSON file, or - for standard input. For one file only the digest is printed, for several a
    line each, as sha256sum does.

    Exit status: 0, or 2 when a file cannot be read; the others are hashed in any case.
    """
    if as_text and as_json:
        raise click.UsageError(
            "--canonical and --json cannot be combined; choose one", click.get_current_context()
        )
    rows: list[dict[str, str]] = []
    for found in hash_files(*files, profile=profile):
        if found.error is not None:
            report(found.error)
            rows.append({"file": found.file, "error": message_of(found.error)})
            continue
        rows.append({"file": found.file, "profile": profile, "digest": found.digest})
        if as_text:
            click.echo(found.text)
        elif not as_json:
            click.echo(found.digest if len(files) == 1 else f"{found.digest}  {printable(found.file)}")
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    return INVALID if any("error" in row for row in rows) else 0
