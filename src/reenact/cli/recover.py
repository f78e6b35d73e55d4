"""``reenact recover``: complete captures that were interrupted."""

from __future__ import annotations

import json

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli.terminal import DIFFERS, message_of, printable, report
from reenact.errors import FormatError, StoreError
from reenact.recovery import RecoverReport, recover


@click.command("recover")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with an object per directory.")
def command(directories: tuple[str, ...], as_json: bool) -> int:
    """Complete captures that were interrupted.

    Every recorded event is kept; an incomplete line at the end is cut. A capture that is complete
    already is left as it is.

    Exit status: 0 when all are complete, 1 when a run is still being recorded, 2 when a directory is
    damaged or not a capture. The others are recovered in any case.
    """
    status = 0
    rows: list[dict[str, object]] = []
    for directory in directories:
        try:
            found = recover(directory)
        except (FormatError, StoreError, OSError) as error:
            status = max(status, report(error))
            rows.append({"path": directory, "error": message_of(error)})
            continue
        if found.is_open:
            status = max(status, DIFFERS)
        rows.append(_row(found))
        if not as_json:
            click.echo(printable(_line(found)))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    return status


def _row(found: RecoverReport) -> dict[str, object]:
    row: dict[str, object] = msgspec.to_builtins(found)
    row.pop("completed", None)
    return row


def _line(found: RecoverReport) -> str:
    if found.is_open:
        return f"{found.path}: is still being recorded; recover it when that has ended"
    doubles = found.removed_doubles
    mended = f", {plural(doubles, 'event')} that stood there twice removed" if doubles else ""
    if found.events is None:
        done = mended or (", completed" if found.completed else ", nothing to do")
        return f"{found.path}: {found.state}{done}"
    cut = plural(found.removed_bytes or 0, "byte")
    return f"{found.path}: recovered, {plural(found.events, 'event')} kept, {cut} cut{mended}"
