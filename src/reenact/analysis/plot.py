"""Statistics as a PNG or SVG image; needs matplotlib, which the extra ``plot`` installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from reenact.analysis.stats import CallStats, RunCounter, Stats, histogram
from reenact.errors import UsageError

_FORMATS: Final = {".png": "png", ".svg": "svg"}
_ROWS: Final = 12
"""The number of names that fit beside an axis."""
_BINS: Final = 24
_NAME: Final = 28


def plot_format(file: Path) -> str:
    """The image format by the suffix of *file*; :class:`UsageError` for an unsupported one."""
    if file.suffix.lower() not in _FORMATS:
        raise UsageError(f"--plot {file}: ends in neither {' nor '.join(_FORMATS)}; choose one of them")
    return _FORMATS[file.suffix.lower()]


def write_plot(counting: RunCounter, file: Path) -> None:
    """Write four charts to *file*, a PNG or an SVG."""
    kind = plot_format(file)
    figure = _figure(counting, counting.stats())
    # Without a date, so that equal numbers make equal files.
    figure.savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else {})


def _figure(counting: RunCounter, stats: Stats) -> Any:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib; install it with: pip install 'reenact[plot]'") from None
    matplotlib.rcParams |= {"svg.hashsalt": "reenact", "svg.fonttype": "none", "text.parse_math": False}
    figure = Figure(figsize=(12, 8), layout="constrained")
    (calls, latency), (times, tokens) = figure.subplots(2, 2)
    figure.suptitle(f"{stats.runs:,} runs, {stats.steps:,} steps, {stats.errors:,} errors")
    _draw_calls(calls, stats.calls[:_ROWS])
    _draw_latency(latency, [call for call in stats.calls if call.latency_ms is not None][:_ROWS])
    _draw_times(times, counting)
    _draw_tokens(tokens, stats)
    return figure


def _draw_calls(axes: Any, calls: list[CallStats]) -> None:
    names = _labels([f"{call.kind} {call.name}" for call in calls])
    good = [call.calls - call.errors for call in calls]
    axes.barh(names, good, color="#4477aa", label="good")
    axes.barh(names, [call.errors for call in calls], left=good, color="#cc3311", label="errors")
    _stack(axes, "Calls", len(calls))


def _draw_latency(axes: Any, calls: list[CallStats]) -> None:
    names = _labels([f"{call.kind} {call.name}" for call in calls])
    for rank, colour in (("p99", "#bbccee"), ("p90", "#88aadd"), ("p50", "#4477aa")):
        axes.barh(names, [getattr(call.latency_ms, rank) for call in calls], color=colour, label=rank)
    axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    _stack(axes, "Latency, ms", len(calls))


def _draw_times(axes: Any, counting: RunCounter) -> None:
    bins = histogram(counting.latencies(), _BINS)
    for low, high, count in bins:
        axes.bar(low, count, width=high - low, align="edge", color="#4477aa", edgecolor="white")
    if bins and bins[-1][1] > bins[0][0]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    axes.set_title("Calls by latency, ms")


def _draw_tokens(axes: Any, stats: Stats) -> None:
    models = stats.models[:_ROWS]
    names = _labels([model.model for model in models])
    read = [model.tokens.input for model in models]
    axes.barh(names, read, color="#4477aa", label="in")
    axes.barh(names, [model.tokens.output for model in models], left=read, color="#ee7733", label="out")
    _stack(axes, "Tokens", len(models))


def _stack(axes: Any, title: str, rows: int) -> None:
    """Set up bars from the top, which are thin even if there are few."""
    axes.set_ylim(max(rows, _ROWS // 2) - 0.5, -0.5)
    axes.set_title(title)
    if rows:
        axes.legend(loc="lower right")


def _labels(names: list[str]) -> list[str]:
    """Short, printable, and each once: equal labels would share a bar."""
    labels: list[str] = []
    for name in names:
        text = "".join(sign if sign.isprintable() else "�" for sign in name)
        text = text if len(text) <= _NAME else text[: _NAME - 1] + "…"
        while text in labels:
            text += " "
        labels.append(text)
    return labels
