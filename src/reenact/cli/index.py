"""``reenact index``: keep tables of many runs up to date."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import msgspec

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import A_PATH, INVALID, MANY, ON, progress_bar, safe_json, say
from reenact.corpus.index import IndexReport, index


@click.command("index")
@click.argument("runs", metavar="[PATH]...", nargs=-1, type=A_PATH)
@click.option(
    "-o", "--out", metavar="CORPUS", required=True, type=A_PATH, help="The folder or address of the index."
)
@click.option("--full", is_flag=True, help="Read every run again, changed or not.")
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(0),
    help="Number of processes; 0 for all cores [all for many runs].",
)
@ON
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    runs: tuple[Path, ...], out: Path, full: bool, jobs: int | None, on: str | None, as_json: bool
) -> int:
    """Make tables of many runs, and keep them up to date.

    The tables are the index that query, stats and view use. PATH is a run or a folder of runs; without
    PATH, those of the last call are read again. Only new and changed runs are read, and runs that no
    longer exist are removed. Replay receipts and test results in the folders are indexed too. The new
    index replaces the old one in one step.

    Exit status: 0, or 2 when a run could not be read; it is in the index with the reason.
    """
    report = index(
        *runs, out=out, full=full, jobs=jobs, on=on, progress_bar=partial(progress_bar, least=MANY)
    )
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        click.echo(_describe(report))
    for problem in report.problems:
        say(problem)
    return INVALID if report.problems else 0


def _describe(report: IndexReport) -> str:
    documents = [plural(report.receipts, "receipt"), plural(report.results, "test result")]
    counts = [plural(report.runs, "run"), *(text for text in documents if not text.startswith("0 "))]
    done = [
        f"{count:,} {what}"
        for what in ("added", "changed", "removed", "unchanged")
        if (count := getattr(report, what))
    ]
    return f"{report.path}: {', '.join(counts)}, {size(report.size_bytes)} ({', '.join(done)})"
