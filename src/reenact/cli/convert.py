"""``reenact convert``: one artifact as another."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from reenact.analysis.brief import plural
from reenact.analysis.convert import TARGETS, UNREADABLE, Target, convert_artifact, convert_to_capture
from reenact.cli.command import A_PATH
from reenact.cli.failure import printable, say
from reenact.cli.terminal import progress_bar
from reenact.errors import UsageError
from reenact.formats.dialects.common import DialectName
from reenact.formats.dialects.turn import Loss
from reenact.store.outfile import open_output
from reenact.store.rundir import EVENTS

STDOUT: Final = "-"


@click.command("convert")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option("--to", "target", type=click.Choice(TARGETS), required=True, help="What to make of it.")
@click.option("--dialect", type=click.Choice(["current", "legacy"]), help="The shape of a receipt [current].")
@click.option("-o", "--out", metavar="OUT", default=STDOUT, help="Where to write it [stdout].")
@click.option("--force", is_flag=True, help="Replace OUT if it is there; never a capture.")
@click.option("--lenient", is_flag=True, help="Go on behind lines that cannot be read; each is listed.")
@click.option("--json", "as_json", is_flag=True, help="Print what was lost as one JSON object; needs -o.")
def command(
    path: Path,
    target: Target,
    dialect: DialectName | None,
    out: str,
    force: bool,
    lenient: bool,
    as_json: bool,
) -> int:
    """Write one artifact as another.

    PATH is a capture, a REPLAY.jsonl of either dialect, a bundle or a trace. What the target cannot
    hold is listed on stderr, one line per kind of loss, with how often and where first.
    """
    if out == STDOUT and as_json:
        raise UsageError("--json and the output would both go to stdout; add -o OUT")
    if out == STDOUT and target == "capture":
        raise UsageError("a capture is a directory; add -o DIR")
    if dialect is not None and target != "receipt":
        raise UsageError(
            "--dialect is for receipts; the dialects of logs are replay-log and replay-log-legacy"
        )
    losses = Losses()
    if target == "capture":
        convert_to_capture(path, Path(out), on_loss=losses.add, lenient=lenient)
    else:
        pieces = convert_artifact(path, target, on_loss=losses.add, lenient=lenient, dialect=dialect)
        with progress_bar(0 if out == STDOUT else _size_bytes(path), "converting") as advance:
            _write(pieces, out, force, advance)
    if as_json:
        done: dict[str, Any] = {"path": str(path), "to": target, "out": out, "skipped": losses.skipped}
        report = done | {"losses": losses.to_json()}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        losses.say(target)
    return 0


def _size_bytes(path: Path) -> int:
    """About as large as what is made of it."""
    return (path / EVENTS if path.is_dir() else path).stat().st_size


def _write(pieces: Iterable[bytes], out: str, force: bool, advance: Callable[[int], None]) -> None:
    if out == STDOUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    with open_output(Path(out), replace=force) as stream:
        for piece in pieces:
            stream.write(piece)
            advance(len(piece))


class Losses:
    """Losses counted by what was lost, the first of each kind kept; unreadable lines are kept one by one."""

    def __init__(self) -> None:
        self._firsts: dict[tuple[Any, ...], Loss] = {}
        self._counts: Counter[tuple[Any, ...]] = Counter()

    def add(self, loss: Loss) -> None:
        """Count one more."""
        kind = loss if loss.event == UNREADABLE else (loss.event, loss.field)
        self._firsts.setdefault(kind, loss)
        self._counts[kind] += 1

    @property
    def skipped(self) -> int:
        """How many lines could not be read."""
        return sum(count for kind, count in self._counts.items() if kind[1] == UNREADABLE)

    def to_json(self) -> list[dict[str, Any]]:
        """One object per kind of loss."""
        return [loss._asdict() | {"count": self._counts[kind]} for kind, loss in self._firsts.items()]

    def say(self, target: str) -> None:
        """One line on stderr per kind of loss."""
        if self.skipped:
            say(f"skipped what could not be read: {plural(self.skipped, 'line')}")
        if self._firsts:
            say(f"not in the {target}, or filled in:")
        for kind, loss in self._firsts.items():
            what = loss.event if loss.field is None else f"{loss.event}.{loss.field}"
            click.echo(
                f"  {printable(what)}{_where(loss, self._counts[kind])}: {printable(loss.reason)}", err=True
            )


def _where(loss: Loss, count: int) -> str:
    if loss.line is None:
        return f" ({count} times)" if count > 1 else ""
    return f" ({count} times, first at line {loss.line})" if count > 1 else f" (line {loss.line})"
