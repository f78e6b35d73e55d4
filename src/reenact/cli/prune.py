"""``reenact prune``: delete captures that are no longer needed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from reenact.analysis.brief import plural, size
from reenact.canonical import JsonValue
from reenact.cli.terminal import A_PATH, DIFFERS, INVALID, printable, say
from reenact.store.pruning import STATUSES, FoundRun, PruneReport, Status, prune


@click.command("prune")
@click.argument("folders", metavar="PATH...", nargs=-1, required=True, type=A_PATH)
@click.option("--older-than", metavar="AGE", help="Delete runs that ended longer ago: 30d, 12h, 2w.")
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Delete all but the newest N runs.")
@click.option("--max-size", metavar="SIZE", help="Delete the oldest runs beyond this total: 500MB, 2GB.")
@click.option("--status", type=click.Choice(STATUSES), multiple=True, help="Only runs with this status.")
@click.option("--payloads", is_flag=True, help="Delete large payloads only; keep the events.")
@click.option("--sealed", is_flag=True, help="Also delete sealed runs.")
@click.option("--yes", is_flag=True, help="Really delete.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    folders: tuple[Path, ...],
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    status: tuple[Status, ...],
    payloads: bool,
    sealed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete captures that are no longer needed.

    PATH is a capture, or a folder with captures at any depth, such as runs/ or the captures/ of pytest.
    Without --yes, reenact only lists what it would delete.

    A run is deleted if it is older than AGE, or not among the newest N, or beyond SIZE counted from the
    newest. --status considers only runs with that status; alone, it deletes all of them. Without any of
    these options the table [prune] of reenact.toml decides. Runs that are being recorded, sealed or
    unreadable are kept.

    Exit status: 0; 1 when a run changed meanwhile and was kept; 2 when something could not be read or
    deleted.
    """
    report = prune(
        *folders,
        older_than=older_than,
        keep=keep,
        max_size=max_size,
        status=status,
        payloads=payloads,
        sealed=sealed,
        remove=yes,
    )
    if as_json:
        click.echo(json.dumps(_as_json(report), indent=2))
    else:
        _print_report(report)
    for bad in report.failed:
        say(f"{bad.path}: {bad.reason}" if str(bad.path) not in bad.reason else bad.reason)
    if report.failed:
        return INVALID
    return DIFFERS if report.changed else 0


def _print_report(report: PruneReport) -> None:
    word = "deleted" if report.done else "would delete"
    for run in report.going:
        click.echo(printable(f"{word}   {_describe(run)}"))
    for run in report.sealed:
        click.echo(printable(f"kept   {_describe(run)}, sealed; --sealed deletes it too"))
    for path in report.recording:
        click.echo(printable(f"kept   {path}: is being recorded"))
    for path in report.changed:
        click.echo(printable(f"kept   {path}: has changed meanwhile"))
    what = "the payloads of " if report.payloads_only else ""
    size_bytes = sum(run.size_bytes for run in report.going)
    total = f"{what}{plural(len(report.going), 'run')}, {size(size_bytes)}"
    count = len(report.staying) + (len(report.going) + len(report.changed) if report.payloads_only else 0)
    rest = f"{plural(count, 'run')} kept"
    if report.done:
        click.echo(f"deleted {total}; {rest}")
    elif report.going:
        click.echo(f"{total} would be deleted, {rest}; nothing was changed; delete with --yes")
    else:
        click.echo(f"nothing to prune, {rest}")


def _describe(run: FoundRun) -> str:
    ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended_ms / 1000))
    return f"{run.path}: {run.status}, {ended}, {size(run.size_bytes)}"


def _as_json(report: PruneReport) -> dict[str, JsonValue]:
    def rows(runs: list[FoundRun]) -> list[JsonValue]:
        return [
            {
                "path": str(run.path),
                "status": run.status,
                "endedAt": run.ended_ms,
                "bytes": run.size_bytes,
                "sealed": run.is_sealed,
            }
            for run in runs
        ]

    return {
        "done": report.done,
        "payloads": report.payloads_only,
        "going": rows(report.going),
        "staying": rows(report.staying),
        "sealed": rows(report.sealed),
        "recording": [str(path) for path in report.recording],
        "changed": [str(path) for path in report.changed],
        "errors": [{"path": str(bad.path), "reason": bad.reason} for bad in report.failed],
    }
