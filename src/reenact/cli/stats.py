"""``reenact stats``: count over runs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import click
import msgspec

from reenact.analysis.brief import duration, plural
from reenact.analysis.stats import CallStats, ModelStats, Spread, Stats, histogram
from reenact.canonical import JsonValue
from reenact.cli.table import field_line
from reenact.cli.terminal import (
    INVALID,
    JOBS,
    MANY,
    ON,
    Cell,
    TextLine,
    progress_bar,
    safe_json,
    say,
    spreadsheet_cell,
    width,
    write_line,
)
from reenact.corpus.batches import stats
from reenact.errors import UsageError
from reenact.suite.settings import project_prices

_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_BINS: Final = 12
_BAR: Final = 40
_MAX_ROWS: Final = 30


def stats_lines(counted: Stats, latencies: Iterable[float]) -> Iterator[TextLine]:
    """The report for people."""
    yield from _summary(counted)
    yield from _call_table(counted.calls)
    if counted.models:
        yield from _model_table(counted.models)
    yield from _latency_chart(latencies)


def _summary(counted: Stats) -> Iterator[TextLine]:
    each = ", ".join(f"{count:,} {status}" for status, count in counted.statuses.items())
    yield (Cell(plural(counted.runs, "run"), "bold"), Cell(f": {each}"))
    yield field_line("steps", f"{counted.steps:,}")
    if counted.errors:
        yield field_line("errors", f"{counted.errors:,}, {counted.errors / counted.steps:.1%}", "red")
    if counted.retries:
        yield field_line("retries", f"{counted.retries:,}", "yellow")
    for name, spread in (("run time", counted.duration_ms), ("latency", counted.latency_ms)):
        if spread is not None:
            yield field_line(name, _describe_spread(spread))
    if counted.utility is not None:
        used = counted.utility
        yield field_line("utility", f"mean {used.mean:.2f}, from {used.min:.2f} to {used.max:.2f}")
    if counted.tokens.total:
        yield field_line("tokens", f"{counted.tokens.input:,} in, {counted.tokens.output:,} out")
    if counted.cost is not None:
        yield field_line("cost", f"{counted.cost:.6g}")


def _describe_spread(spread: Spread) -> str:
    if spread.count == 1:
        return duration(spread.max)
    ranks = (("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99), ("max", spread.max))
    return ", ".join(f"{name} {duration(number)}" for name, number in ranks)


def _call_table(calls: list[CallStats]) -> Iterator[TextLine]:
    if not calls:
        return
    room = max(20, width() - 84)
    titles = ("calls", "errors", "retries", "p50", "p90", "p99", "utility")
    yield ()
    yield (Cell("call", "dim", room), *(Cell(title, "dim", -9) for title in titles), Cell("  "))
    most = calls[0].calls
    for call in calls[:_MAX_ROWS]:
        latency = call.latency_ms
        times = [duration(getattr(latency, rank)) if latency else "" for rank in ("p50", "p90", "p99")]
        yield (
            Cell(f"{call.kind} {call.name}", "", room),
            Cell(f"{call.calls:,}", "", -9),
            Cell(f"{call.errors:,}" if call.errors else "", "red", -9),
            Cell(f"{call.retries:,}" if call.retries else "", "yellow", -9),
            *(Cell(time, "", -9) for time in times),
            Cell(f"{call.utility.mean:.2f}" if call.utility else "", "", -9),
            Cell(f"  {_bar(call.calls / most, 16)}", "cyan"),
        )
    if len(calls) > _MAX_ROWS:
        yield (Cell(f"… and {len(calls) - _MAX_ROWS:,} more; --json and --csv have them all", "dim"),)


def _model_table(models: list[ModelStats]) -> Iterator[TextLine]:
    yield ()
    titles = ("calls", "tokens in", "cached", "tokens out", "cost")
    yield (Cell("model", "dim", 32), *(Cell(title, "dim", -14) for title in titles))
    for model in models:
        tokens = model.tokens
        numbers = (model.calls, tokens.input, tokens.cached_input, tokens.output)
        cost = "" if model.cost is None else f"{model.cost:.6g}"
        yield (
            Cell(model.model, "magenta", 32),
            *(Cell(f"{number:,}", "", -14) for number in numbers),
            Cell(cost, "", -14),
        )


def _latency_chart(latencies: Iterable[float]) -> Iterator[TextLine]:
    bins = histogram(latencies, _BINS)
    if sum(count for _, _, count in bins) < 2:
        return
    most = max(count for _, _, count in bins)
    yield ()
    yield (Cell("latency of calls", "dim"),)
    for low, high, count in bins:
        span = Cell(f"{duration(low)} to {duration(high)}", "", -22)
        yield (span, Cell("  "), Cell(_bar(count / most, _BAR), "cyan", _BAR), Cell(f" {count:,}", "dim"))


def _bar(share: float, columns: int) -> str:
    """A bar over *share* of *columns*, drawn in eighths of a column."""
    eighths = max(round(share * columns * 8), 1 if share else 0)
    return "█" * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


_TABLES: Final = {"call": "calls", "model": "models", "run": "each"}


@click.command("stats")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one table as CSV.")
@click.option(
    "--by", type=click.Choice(list(_TABLES)), default="call", show_default=True, help="The table for --csv."
)
@click.option("--plot", metavar="FILE", help="Write the charts to FILE, a .png or .svg.")
@JOBS
@ON
def command(
    paths: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    by: str,
    plot: str | None,
    jobs: int,
    on: str | None,
) -> int:
    """Count over one run, or all runs in folders.

    PATH is a run, a folder of runs, or a corpus made by `reenact index`. Counted are calls, durations,
    errors, retries, tokens, cost at the prices in reenact.toml, and the usefulness of steps if it was
    recorded.

    Exit status: 0, or 2 when a run could not be read; the others are counted in any case.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv are two ways to print; choose one")
    report = stats(
        *paths,
        prices=project_prices(),
        plot=plot,
        jobs=jobs,
        on=on,
        progress_bar=partial(progress_bar, least=MANY),
    )
    for problem in report.unreadable:
        say(problem)
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report.stats)))
    elif as_csv:
        _write_csv(report.stats, by)
    elif report.stats.runs or not report.unreadable:
        for line in stats_lines(report.stats, report.latencies_ms):
            write_line(line)
    return INVALID if report.unreadable else 0


def _write_csv(counted: Stats, by: str) -> None:
    rows = [dict(_flatten(row)) for row in msgspec.to_builtins(getattr(counted, _TABLES[by]))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _flatten(row: dict[str, JsonValue], before: str = "") -> Iterator[tuple[str, JsonValue]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", spreadsheet_cell(value)
