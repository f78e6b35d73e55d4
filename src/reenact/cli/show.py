"""``reenact show``: the calls of a capture, one line each."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from reenact.cli.failure import report
from reenact.cli.header import Header
from reenact.cli.listing import Entry, entries
from reenact.cli.table import footer, header_lines, table_lines
from reenact.cli.terminal import Line, printer
from reenact.errors import FormatError, UsageError
from reenact.store.reader import CaptureReader, EventLog
from reenact.store.rundir import RunDir

_SUSPECT: Final = re.compile(r"[^\n -~]")


@click.command("show")
@click.argument("directory", metavar="DIR")
@click.option("--at", "seq", metavar="SEQ", type=int, help="Print the event of this number, whole.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(directory: str, seq: int | None, as_json: bool) -> int:
    """List the calls of a capture.

    One line per call: its event, when it was made, how long it took, its lane, what was asked and what
    came. A run that is being recorded, or was interrupted, is listed as far as it got.
    """
    capture = _Capture(directory)
    if seq is not None:
        click.echo(_safe_json(capture.event(seq)))
    elif as_json:
        capture.write_json()
    else:
        capture.write_text(printer())
    return report(capture.problem) if capture.problem is not None else 0


class _Capture:
    """What is shown; a finished capture that is damaged is shown as well, and then complained about."""

    def __init__(self, directory: str) -> None:
        run = RunDir.open(Path(directory))
        self.problem: FormatError | None = None
        self._header = Header.read(run)
        self._log = self._opened(run)

    def _opened(self, run: RunDir) -> EventLog:
        if self._header.is_finished:
            try:
                return CaptureReader(run.path)
            except FormatError as error:
                self.problem = error
        return EventLog(run)

    def event(self, seq: int) -> Any:
        if not 1 <= seq <= len(self._log):
            last = len(self._log)
            raise UsageError(f"{self._log.events_file}: there is no event {seq}; choose 1 to {last}")
        event = msgspec.json.decode(self._log.line(seq))
        return event | {"data": self._log.resolved(event["data"])}

    def write_text(self, write: Callable[[Line], None]) -> None:
        for line in header_lines(self._header, self._log):
            write(line)
        kinds: Counter[str] = Counter()
        for line in table_lines(self._counted(kinds), events=len(self._log)):
            write(line)
        for line in footer(self._header, self._log, kinds):
            write(line)

    def write_json(self) -> None:
        """One object, written while it is read."""
        write = sys.stdout.write
        head = _safe_json(self._header.to_json())
        write(f'{head[:-2]},\n  "calls": [')
        kinds: Counter[str] = Counter()
        for position, entry in enumerate(self._counted(kinds)):
            row = _safe_json(msgspec.to_builtins(entry), indent=None)
            write(f"{',' if position else ''}\n    {row}")
        end = {"events": len(self._log), "tornBytes": self._log.torn_bytes, "kinds": dict(kinds)}
        if self.problem is not None:
            end["problem"] = str(self.problem)
        write(f"\n  ],{_safe_json(end)[1:]}\n")

    def _counted(self, kinds: Counter[str]) -> Iterator[Entry]:
        """The calls up to the first damaged event."""
        try:
            for entry in entries(self._log):
                kinds[entry.kind] += entry.late_for is None
                yield entry
        except FormatError as error:
            self.problem = self.problem or error


def _safe_json(value: Any, indent: int | None = 2) -> str:
    """JSON text in which nothing can steer the terminal: what is not printable is escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _SUSPECT.sub(lambda found: _safe(found[0]), text)


def _safe(mark: str) -> str:
    return mark if mark.isprintable() else json.dumps(mark)[1:-1]
