"""``reenact hash``: the canonical digest of JSON files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from reenact import canonical
from reenact.canonical import read_json
from reenact.cli.terminal import INVALID, message_of, printable, report
from reenact.errors import FormatError


@click.command("hash")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--profile", type=click.Choice(["replay", "jcs"]), default="replay", show_default=True)
@click.option("--canonical", "as_text", is_flag=True, help="Print the canonical text instead of its digest.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with an object per file.")
def command(files: tuple[str, ...], profile: canonical.Profile, as_text: bool, as_json: bool) -> int:
    """Print the canonical digest of JSON files.

    FILE is a JSON file, or - for standard input. For one file only the digest is printed, for several a
    line each, as sha256sum does.

    Exit status: 0, or 2 when a file cannot be read; the others are hashed in any case.
    """
    if as_text and as_json:
        raise click.UsageError(
            "--canonical and --json cannot be combined; choose one", click.get_current_context()
        )
    rows: list[dict[str, object]] = []
    for file, text in _canonical_texts(files, profile):
        if isinstance(text, Exception):
            report(text)
            rows.append({"file": file, "error": message_of(text)})
            continue
        digest = canonical.digest_of_bytes(text, profile)
        rows.append({"file": file, "profile": profile, "digest": digest})
        if as_text:
            click.echo(text)
        elif not as_json:
            click.echo(digest if len(files) == 1 else f"{digest}  {printable(file)}")
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    return INVALID if any("error" in row for row in rows) else 0


def _canonical_texts(
    files: Iterable[str], profile: canonical.Profile
) -> Iterator[tuple[str, bytes | FormatError | OSError]]:
    for file in files:
        try:
            yield file, canonical.encode(read_json(_read(file), profile), profile)
        except FormatError as error:
            yield file, error.at(file=file)
        except OSError as error:
            yield file, error


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
