"""Statistics in the terminal: tables, and bars made of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reenact.analysis.brief import duration, plural
from reenact.analysis.spread import Spread, histogram
from reenact.analysis.stats import CallStats, ModelStats, Stats
from reenact.cli.terminal import Cell, Line, width

_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_BINS: Final = 12
_BAR: Final = 40
_MAX_ROWS: Final = 30


def stats_lines(stats: Stats, latencies: Iterable[float]) -> Iterator[Line]:
    """All of it."""
    yield from _summary(stats)
    yield from _call_table(stats.calls)
    if stats.models:
        yield from _model_table(stats.models)
    yield from _latency_chart(latencies)


def _summary(stats: Stats) -> Iterator[Line]:
    each = ", ".join(f"{count:,} {status}" for status, count in stats.statuses.items())
    yield (Cell(plural(stats.runs, "run"), "bold"), Cell(f": {each}"))
    yield _field("steps", f"{stats.steps:,}")
    if stats.errors:
        yield _field("errors", f"{stats.errors:,}, {stats.errors / stats.steps:.1%}", "red")
    if stats.retries:
        yield _field("retries", f"{stats.retries:,}", "yellow")
    for name, spread in (("run time", stats.duration_ms), ("latency", stats.latency_ms)):
        if spread is not None:
            yield _field(name, _spread(spread))
    if stats.utility is not None:
        used = stats.utility
        yield _field("utility", f"mean {used.mean:.2f}, from {used.min:.2f} to {used.max:.2f}")
    if stats.tokens.total:
        yield _field("tokens", f"{stats.tokens.input:,} in, {stats.tokens.output:,} out")
    if stats.cost is not None:
        yield _field("cost", f"{stats.cost:.6g}")


def _spread(spread: Spread) -> str:
    if spread.count == 1:
        return duration(spread.max)
    ranks = (("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99), ("max", spread.max))
    return ", ".join(f"{name} {duration(number)}" for name, number in ranks)


def _call_table(calls: list[CallStats]) -> Iterator[Line]:
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


def _model_table(models: list[ModelStats]) -> Iterator[Line]:
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


def _latency_chart(latencies: Iterable[float]) -> Iterator[Line]:
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
    """A bar as long as *share* of *columns*, to an eighth of one."""
    eighths = max(round(share * columns * 8), 1 if share else 0)
    return "█" * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def _field(name: str, value: str, style: str = "") -> Line:
    return (Cell(f"  {name}", "dim", 13), Cell(value, style))
