"""``reenact query``: SQL over runs."""

from __future__ import annotations

import csv
import itertools
import math
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from reenact.analysis.brief import plural
from reenact.canonical import JsonValue
from reenact.cli.terminal import (
    A_PATH,
    INVALID,
    MANY,
    Cell,
    TextLine,
    progress_bar,
    safe_json,
    say,
    spreadsheet_cell,
    write_line,
)
from reenact.corpus.query import QueryResult, open_query
from reenact.errors import UsageError

_MAX_ROWS: Final = 1000
_MAX_CELL: Final = 60


@click.command("query")
@click.argument("sql", metavar="SQL")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=A_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--parquet", metavar="FILE", type=A_PATH, help="Write the rows to FILE.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(
    sql: str, paths: tuple[Path, ...], as_json: bool, as_csv: bool, parquet: Path | None, force: bool
) -> int:
    """Query runs with SQL.

    PATH is a corpus made by `reenact index`, or any number of runs and folders of runs, which are read
    for this query. The tables are runs, calls, messages, events, divergences and assertions; `describe
    calls` lists the columns of one. SQL is one SELECT, in DuckDB's dialect.

    Exit status: 0, or 2 when a run could not be read; the others are queried in any case.
    """
    if as_json + as_csv + (parquet is not None) > 1:
        raise UsageError("--json, --csv and --parquet are ways to write the same rows; choose one")
    with open_query(sql, paths, progress_bar=partial(progress_bar, least=MANY)) as result:
        if as_json:
            _print_json(result)
        elif as_csv:
            _print_csv(result)
        elif parquet is not None:
            result.write_parquet(parquet, replace=force)
        else:
            _print_table(result)
        for problem in result.problems:
            say(problem)
        return INVALID if result.problems else 0


def _print_json(result: QueryResult) -> None:
    names = [column.name for column in result.columns]
    for row in result.rows():
        click.echo(safe_json(dict(zip(names, map(_as_json, row), strict=True)), indent=None))


def _as_json(value: object) -> Any:
    """Convert a value to JSON: times to ISO 8601, bytes to hexadecimal, NaN and infinities to ``null``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(key): _as_json(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(child) for child in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _print_csv(result: QueryResult) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([spreadsheet_cell(column.name) for column in result.columns])
    for row in result.rows():
        writer.writerow([spreadsheet_cell(_cell(value)) for value in row])


def _cell(value: JsonValue) -> JsonValue:
    plain = _as_json(value)
    return safe_json(plain, indent=None) if isinstance(plain, dict | list | bool) else plain


def _print_table(result: QueryResult) -> None:
    rows = result.rows()
    shown = [[_text(value) for value in row] for row in itertools.islice(rows, _MAX_ROWS)]
    for line in _table_lines(result, shown):
        write_line(line)
    left = sum(1 for _ in rows)
    if left:
        write_line(
            (Cell(f"… and {plural(left, 'row')} more; --json, --csv and --parquet have them all", "dim"),)
        )


def _table_lines(result: QueryResult, rows: list[list[str]]) -> Iterator[TextLine]:
    names = [column.name for column in result.columns]
    columns = list(zip(names, *rows, strict=True))
    widths = [min(max(map(len, column)), _MAX_CELL) for column in columns]
    signs = [-1 if _is_number(column.type) else 1 for column in result.columns]
    layout = [sign * width for sign, width in zip(signs, widths, strict=True)]
    yield _line(names, layout, "dim")
    yield from (_line(row, layout, "") for row in rows)


def _line(texts: list[str], layout: list[int], style: str) -> TextLine:
    cells = [Cell(text, style, width) for text, width in zip(texts, layout, strict=True)]
    return tuple(piece for cell in cells for piece in (cell, Cell("  ")))


def _is_number(kind: str) -> bool:
    return (
        kind.partition("(")[0] in ("DOUBLE", "FLOAT", "DECIMAL") or kind.endswith("INT") or kind == "INTEGER"
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "milliseconds")
    return str(_cell(value))
