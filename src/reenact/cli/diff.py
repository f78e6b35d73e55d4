"""``reenact diff``: compare two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

import click
import msgspec

from reenact.analysis.brief import brief, duration, plural
from reenact.analysis.compare import Change, DiffReport, DiffRow, Totals, diff
from reenact.analysis.steps import RunStep
from reenact.cli.table import call_text
from reenact.cli.terminal import (
    DIFFERS,
    LARGE_BYTES,
    MANY,
    Cell,
    TextLine,
    progress_bar,
    safe_json,
    width,
    write_line,
)
from reenact.comparing.json_changes import JsonChange, Piece
from reenact.suite.settings import project_prices

_SIGNS: Final = {
    "changed": ("~", "yellow"),
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "same": (" ", ""),
}
_INDENT: Final = 18


@click.command("diff")
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option("--strict", is_flag=True, help="Also compare times and random values.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(left: str, right: str, strict: bool, as_json: bool) -> int:
    """Compare two runs, aligned by what they did.

    A and B are captures, events.jsonl files, REPLAY.jsonl files, replay.json or trace.json, in any
    combination. Steps are aligned by their requests and by the call or task they belong to, not by
    position: one additional step is one difference. For a fork, the report says where it leaves its
    parent and what was changed there.

    Exit status: 0 when the runs did the same with the same result, 1 when not, 2 when one cannot be
    read.
    """
    report = diff(left, right, strict=strict, prices=project_prices(), progress_bar=_progress_bar)
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        _write_text(report)
    return 0 if report.equal else DIFFERS


def _progress_bar(total: int, what: str) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar; the total is a number of steps for comparing, and of bytes for reading."""
    return progress_bar(total, what, least=MANY if what == "comparing" else LARGE_BYTES)


def _write_text(report: DiffReport) -> None:
    if report.equal:
        write_line((Cell("the same: ", "green"), Cell(f"{report.left}, {report.right}")))
    else:
        write_line((Cell("- ", "red"), Cell(report.left, "bold")))
        write_line((Cell("+ ", "green"), Cell(report.right, "bold")))
    for link in report.forks:
        write_line((Cell(f"  {link}", "dim"),))
    if report.changes:
        write_line(())
        write_line(_first_line(report.changes[0]))
        write_line(())
    for change in report.changes:
        for line in _change_lines(change):
            write_line(line)
    for line in _end_lines(report):
        write_line(line)
    for line in _totals_lines(report):
        write_line(line)


def _first_line(change: Change) -> TextLine:
    row = change.row
    step = row.right or row.left
    assert step is not None
    where = f": {change.changes[0].path}" if change.changes else ""
    text = f"{step.kind} {step.name} is {row.mark}{where}"
    return (Cell("first difference  ", "bold"), Cell(f"{_places(row)}  {text}"))


def _places(row: DiffRow) -> str:
    """``event 4``, or ``event 4 and 6`` if the numbers differ."""
    seqs = [step.seq for step in (row.left, row.right) if step is not None]
    return f"event {' and '.join(map(str, dict.fromkeys(seqs)))}"


def _change_lines(change: Change) -> Iterator[TextLine]:
    row = change.row
    sign, style = _SIGNS[row.mark]
    step = row.right or row.left
    assert step is not None
    numbers = (_seq(row.left), Cell("  "), _seq(row.right), Cell("  "))
    room = width() - _INDENT
    yield (Cell(f"{sign} ", style), *numbers, Cell(call_text(step), style, room))
    for each in change.changes:
        yield from _json_lines(each, room)


def _seq(step: RunStep | None) -> Cell:
    return Cell("" if step is None else str(step.seq), "dim", -6)


def _json_lines(change: JsonChange, room: int) -> Iterator[TextLine]:
    gap = Cell(" " * _INDENT)
    lines = change.text_diff()
    if lines and all(len(line) < room for line in lines):
        yield (gap, Cell(change.path, "bold"))
        for line in lines:
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            yield (gap, Cell(f"  {line}", style, room))
        return
    limit = max(20, (room - len(change.path)) // 2)
    words = change.word_diff()
    if words and max(len(str(change.left)), len(str(change.right))) > limit:
        yield (gap, Cell(change.path, "bold"))
        yield (gap, Cell("  "), *(_word(piece) for piece in words))
        return
    yield (gap, Cell(f"{change.path}: "), *_values(change, limit))


def _word(piece: Piece) -> Cell:
    """Mark a word as ``git diff --word-diff`` does, because output to a pipe has no colours."""
    if piece.mark == "-":
        return Cell(f"[-{piece.text}-]", "red")
    return Cell(f"{{+{piece.text}+}}", "green") if piece.mark == "+" else Cell(piece.text, "dim")


def _values(change: JsonChange, limit: int) -> Iterator[Cell]:
    if change.left is not msgspec.UNSET:
        yield Cell(brief(change.left, limit), "red")
    yield Cell(" → " if msgspec.UNSET not in (change.left, change.right) else "", "dim")
    if change.right is not msgspec.UNSET:
        yield Cell(brief(change.right, limit), "green")
    if change.left is msgspec.UNSET:
        yield Cell(" added", "dim")
    if change.right is msgspec.UNSET:
        yield Cell(" removed", "dim")


def _end_lines(report: DiffReport) -> Iterator[TextLine]:
    """The final outputs of the runs, and the files that they left."""
    if report.outcome:
        yield ()
        yield (Cell("the runs ended differently", "bold"),)
    for change in report.outcome:
        yield from _json_lines(change, width() - _INDENT)
    if report.files:
        yield ()
        yield (Cell("the files at the end differ", "bold"),)
    for file in report.files:
        came_from = f" (was {file.came_from})" if file.came_from else ""
        yield (Cell(f"  {file.how:<8}{file.path}{came_from}"),)
        for line in file.diff:
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            yield (Cell(f"    {line}", style, width() - 4),)


def _totals_lines(report: DiffReport) -> Iterator[TextLine]:
    left, right = report.totals.left, report.totals.right
    yield ()
    yield (Cell("", width=12), Cell("A", "dim", -14), Cell("B", "dim", -14))
    for name, show in _TOTALS.items():
        ours, theirs = show(left), show(right)
        if ours or theirs:
            yield (Cell(name, "dim", 12), Cell(ours, "", -14), Cell(theirs, "", -14))
    counts = report.counts
    words = [f"{counts[mark]:,} {mark}" for mark in ("changed", "added", "removed")]
    yield ()
    yield (Cell(f"{', '.join(words)}, {counts['same']:,} the same"),)
    for name, left_out in zip("AB", report.left_out, strict=True):
        if left_out:
            other = "B" if name == "A" else "A"
            yield (
                Cell(f"{plural(left_out, 'step')} of {name} left out: {other} has no words for them", "dim"),
            )


_TOTALS: Final[dict[str, Callable[[Totals], str]]] = {
    "steps": lambda totals: f"{totals.steps:,}",
    "errors": lambda totals: f"{totals.errors:,}" if totals.errors else "",
    "time": lambda totals: duration(totals.duration_ms),
    "tokens in": lambda totals: f"{totals.input_tokens:,}" if totals.input_tokens else "",
    "tokens out": lambda totals: f"{totals.output_tokens:,}" if totals.output_tokens else "",
    "cost": lambda totals: "" if totals.cost is None else f"{totals.cost:.6g}",
}
