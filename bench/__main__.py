"""``python -m bench [NAME]... [--json]``: run the figures and print one table.

A figure is a file ``bench/bench_NAME.py`` with a function ``figures()``. The exit status is 1 when
one of them is below its bar.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.figure import Figure, Unit

HEADINGS = ("what", "ours", "beside", "", "ratio", "bar", "")


def names() -> list[str]:
    """Every figure there is a file for."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def run(name: str) -> Iterator[Figure]:
    """The lines of one figure, measured now."""
    yield from import_module(f"bench.bench_{name}").figures()


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and say by the exit status whether every bar was reached."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Figures of speed beside their floor."
    )
    parser.add_argument("name", nargs="*", help=f"one of: {', '.join(names())}; all without any")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.name) - set(names()):
        parser.error(f"no figure is called {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    figures = [figure for name in arguments.name or names() for figure in run(name)]
    print(json.dumps([as_json(figure) for figure in figures], indent=2) if arguments.json else table(figures))
    return 0 if all(figure.is_ok for figure in figures) else 1


def as_json(figure: Figure) -> dict[str, Any]:
    """A figure for machines; durations in seconds, sizes in bytes."""
    unit = {"s": "s", "B": "bytes"}[figure.unit]
    return {
        "what": figure.what,
        f"ours_{unit}": figure.ours_s,
        "beside": figure.beside,
        f"beside_{unit}": figure.beside_s,
        "ratio": figure.ratio,
        "bar": str(figure.bar),
        "ok": figure.is_ok,
    }


def table(figures: list[Figure]) -> str:
    """The figures for people, in aligned columns."""
    rows = [HEADINGS, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.what,
        _amount(figure.ours_s, figure.unit),
        figure.beside,
        _amount(figure.beside_s, figure.unit),
        figure.bar.show(figure.ratio),
        str(figure.bar),
        "ok" if figure.is_ok else "below",
    )


def _amount(number: float, unit: Unit) -> str:
    if unit == "B":
        return f"{number / 1e3:.1f} kB"
    return f"{number * 1e3:.1f} ms" if number >= 1e-3 else f"{number * 1e6:.2f} µs"


if __name__ == "__main__":
    sys.exit(main())
