"""``reenact files``: list the files of a run, or compare them."""

from __future__ import annotations

import json

import click
import msgspec

from reenact.cli.options import (
    repository_option,
)
from reenact.cli.terminal import printable
from reenact.workspace.files import FilesReport, RecordedFile, files


@click.command("files")
@click.argument("directory", metavar="DIR")
@click.option(
    "--at", metavar="SEQ", type=click.IntRange(min=1), help="The event; by default the end of the run."
)
@click.option(
    "--diff", metavar="A..B", help="Print the changes from event A (or the start) to B (or the end)."
)
@repository_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(directory: str, at: int | None, diff: str | None, repository: str | None, as_json: bool) -> int:
    """List the files of a run at one of its steps, or what a step changed.

    DIR is a capture that was recorded with --workspace. The files are those at the end of the run, or
    with --at those after an event. Files that the recording left out are listed with the reason. --diff
    A..B prints the changes between two events as a unified diff.
    """
    report = files(directory, at=at, diff=diff, repository=repository)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))
        return 0
    for line in _lines(report):
        click.echo(printable(line))
    return 0


def _lines(report: FilesReport) -> list[str]:
    if report.changes is None:
        return [_describe(file) for file in report.files] or ["no files"]
    lines: list[str] = []
    for change in report.changes:
        came_from = f" (was {change.came_from})" if change.came_from else ""
        lines += [f"{change.how:<8}{change.path}{came_from}", *(f"  {line}" for line in change.diff)]
    return lines or ["nothing changed"]


def _describe(file: RecordedFile) -> str:
    if file.kind == "left-out":
        return f"{'—':>3} {'':>12}  {file.path}  (left out: {file.why})"
    target = f" → {file.target}" if file.kind == "link" else ""
    size = f"{file.size_bytes:,}" if file.kind == "file" else ""
    hidden = "  (secrets hidden)" if file.hidden else ""
    return f"{file.mode:>3} {size:>12}  {file.path}{target}{hidden}"
