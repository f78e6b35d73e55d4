"""``reenact stats``: many runs, counted."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from reenact.analysis.opened import open_artifact
from reenact.analysis.plot import plot_format, write_plot
from reenact.analysis.runs import find_runs
from reenact.analysis.stats import Counting, Stats
from reenact.cli.charts import stats_lines
from reenact.cli.failure import report
from reenact.cli.json_text import safe_json
from reenact.cli.progress import MANY, progress_bar
from reenact.cli.terminal import printer
from reenact.errors import FormatError, StoreError, UsageError
from reenact.suite.prices import project_prices

_TABLES: Final = {"call": "calls", "model": "models", "run": "each"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@click.command("stats")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one table as CSV.")
@click.option(
    "--by", type=click.Choice(list(_TABLES)), default="call", show_default=True, help="Which table for --csv."
)
@click.option("--plot", metavar="FILE", help="Write the charts to FILE, a .png or .svg.")
def command(paths: tuple[str, ...], as_json: bool, as_csv: bool, by: str, plot: str | None) -> int:
    """Count over one run, or all runs in folders.

    How often what was called, how long it took, what failed and was tried again, how many tokens were used,
    what they cost at the prices in reenact.toml, and how useful the steps were where that is recorded.
    The exit status is 2 where a run could not be read; the others are still counted.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv are two ways to print; choose one")
    if plot is not None:
        plot_format(Path(plot))
    counting = Counting(project_prices(Path.cwd()))
    status = _count(find_runs(paths), counting)
    stats = counting.stats()
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(stats)))
    elif as_csv:
        _write_csv(stats, by)
    else:
        write = printer()
        for line in stats_lines(stats, counting.latencies()):
            write(line)
    if plot is not None:
        write_plot(counting, Path(plot))
    return status


def _count(paths: list[Path], counting: Counting) -> int:
    """Take up all runs; the exit status for those that could not be."""
    status = 0
    with progress_bar(len(paths), "counting", least=MANY) as watch:
        for path in paths:
            try:
                with open_artifact(path, counting.prices) as artifact:
                    counting.add(artifact)
                    if artifact.problem is not None:
                        status = max(status, report(artifact.problem))
            except (FormatError, StoreError, OSError) as error:
                status = max(status, report(error))
            watch(1)
    return status


def _write_csv(stats: Stats, by: str) -> None:
    rows = [dict(_flat(row)) for row in msgspec.to_builtins(getattr(stats, _TABLES[by]))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _flat(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", _cell(value)


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula is quoted the way spreadsheets quote it."""
    if not isinstance(value, str):
        return value
    text = "".join(sign if sign.isprintable() else "�" for sign in value)
    return f"'{text}" if value.startswith(_FORMULA) else text
