"""``reenact recover``: captures that were interrupted, completed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from reenact.analysis.brief import plural
from reenact.cli.failure import DIFFERS, message_of, printable, report
from reenact.errors import FormatError, StoreError
from reenact.recorder.joining import join_parts, mend_doubled
from reenact.recorder.recovery import recover
from reenact.store.rundir import RunDir, RunState


@click.command("recover")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array with an object per directory.")
def command(directories: tuple[str, ...], as_json: bool) -> int:
    """Complete captures that were interrupted.

    Every event that was recorded stays; half a line at the end is cut. A capture that is complete is
    left as it is, and that is good. The exit status is 1 where a run is still being recorded, 2 where a
    directory is no capture or is damaged; the others are still recovered.
    """
    status = 0
    rows: list[dict[str, Any]] = []
    for directory in directories:
        try:
            row, line = _recovered(directory)
        except (FormatError, StoreError, OSError) as error:
            status = max(status, report(error))
            row, line = {"path": directory, "error": message_of(error)}, ""
        if row.get("state") == "open":
            status = max(status, DIFFERS)
        rows.append(row)
        if line and not as_json:
            click.echo(printable(line))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    return status


def _recovered(directory: str) -> tuple[dict[str, Any], str]:
    """What became of the directory, for machines and for people."""
    state = RunDir.open(Path(directory)).state
    if state is RunState.OPEN:
        line = f"{directory}: is still being recorded; recover it when that has ended"
        return {"path": directory, "state": "open"}, line
    path = Path(directory)
    found = recover(path) if state is RunState.INTERRUPTED else None
    is_changed = join_parts(path)
    doubled = mend_doubled(path)
    mended = f", {plural(doubled, 'event')} that stood there twice removed" if doubled else ""
    doubles = {"removedDoubles": doubled} if doubled else {}
    if found is None:
        RunDir(path).write_transcript()
        done = mended or (", completed" if is_changed else ", nothing to do")
        return {"path": directory, "state": state.value} | doubles, f"{directory}: {state.value}{done}"
    kept, cut = found.manifest.eventCount, found.removed_bytes
    line = f"{directory}: recovered, {plural(kept, 'event')} kept, {plural(cut, 'byte')} cut{mended}"
    row = {"path": directory, "state": "recovered", "events": kept, "removedBytes": cut}
    return row | doubles, line
