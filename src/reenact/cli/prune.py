"""``reenact prune``: captures that need not be kept, taken away."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Final

import click

from reenact.analysis.brief import plural, size
from reenact.cli.terminal import A_PATH, DIFFERS, INVALID, printable, say
from reenact.errors import FormatError, UsageError
from reenact.store.project import find_project_file, read_project
from reenact.store.pruning import STATUSES, FoundRun, PrunePlan, PruneReport, Retention, plan_prune, prune

_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(B|[kKMGT]B?|)")
_BYTES: Final = {"": 1, "B": 1, "K": 1000, "M": 10**6, "G": 10**9, "T": 10**12}


@click.command("prune")
@click.argument("folders", metavar="PATH...", nargs=-1, required=True, type=A_PATH)
@click.option("--older-than", metavar="AGE", help="Runs that ended longer ago: 30d, 12h, 2w.")
@click.option("--keep", metavar="N", type=click.IntRange(0), help="All but the newest N runs.")
@click.option("--max-size", metavar="SIZE", help="The oldest runs beyond that much: 500MB, 2GB.")
@click.option("--status", type=click.Choice(STATUSES), multiple=True, help="Only runs that ended so.")
@click.option("--payloads", is_flag=True, help="Take away large payloads only; the events stay.")
@click.option("--sealed", is_flag=True, help="Sealed runs too.")
@click.option("--yes", is_flag=True, help="Do it; without this it is only said what would go.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    folders: tuple[Path, ...],
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    status: tuple[Any, ...],
    payloads: bool,
    sealed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Take away captures that need not be kept.

    PATH is a capture, or a folder with captures at any depth, such as runs/ or the captures/ of pytest. A
    run goes if it is older than AGE, or not among the newest N, or beyond SIZE counted from the newest; with
    --status only runs of that status are looked at, and all of them go if nothing else is said. Without any
    of these, the table [prune] of reenact.toml decides. What is being recorded, what is sealed, and what
    cannot be read stays. The exit status is 1 where a run changed meanwhile and was left, 2 where something
    could not be read or removed.
    """
    if older_than is None and keep is None and max_size is None and not status:
        settings = _project_settings(Path.cwd())
        older_than, keep, max_size = (settings.get(name) for name in ("older_than", "keep", "max_size"))
        status, payloads = tuple(settings.get("status", ())), payloads or settings.get("payloads", False)
    retention = Retention(
        older_than_s=None if older_than is None else _seconds(older_than),
        keep=keep,
        max_bytes=None if max_size is None else _bytes(max_size),
        statuses=status,
        payloads_only=payloads,
        sealed=sealed,
    )
    plan = plan_prune(folders, retention, now_ms=time.time() * 1000)
    report = prune(plan, now_ms=time.time() * 1000) if yes else None
    if as_json:
        click.echo(json.dumps(_as_json(plan, report), indent=2))
    else:
        _tell(plan, report)
    for bad in [*plan.unreadable, *(report.failed if report is not None else ())]:
        say(f"{bad.path}: {bad.reason}" if str(bad.path) not in bad.reason else bad.reason)
    if plan.unreadable or (report is not None and report.failed):
        return INVALID
    return DIFFERS if report is not None and report.changed else 0


def _seconds(age: str) -> float:
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"{age!r} is no age; write a number and s, m, h, d or w, as 30d")
    return float(found[1]) * _SECONDS[found[2]]


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size; write a number and B, kB, MB, GB or TB, as 500MB")
    return int(float(found[1]) * _BYTES[found[2].removesuffix("B").upper() or "B"])


def _project_settings(start: Path) -> dict[str, Any]:
    """The table ``[prune]`` of the nearest ``reenact.toml``; what is wrong with it is said with its place."""
    file = find_project_file(start)
    table = {} if file is None else read_project(file).get("prune", {})
    kinds: dict[str, tuple[type, str]] = {
        "older_than": (str, 'an age such as "30d"'),
        "keep": (int, "a count"),
        "max_size": (str, 'a size such as "500MB"'),
        "status": (list, f"a list of {', '.join(STATUSES)}"),
        "payloads": (bool, "true or false"),
    }
    if not isinstance(table, dict):
        raise FormatError("expected a table", file=str(file), json_path="$.prune")
    for name, value in table.items():
        kind, expected = kinds.get(name, (object, ""))
        is_known = name in kinds
        is_of_kind = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if isinstance(value, list):
            is_of_kind = all(each in STATUSES for each in value)
        if not is_known or not is_of_kind:
            reason = f"expected {expected}" if is_known else f"is unknown; the table has {', '.join(kinds)}"
            raise FormatError(reason, file=str(file), json_path=f"$.prune.{name}")
    return table


def _tell(plan: PrunePlan, report: PruneReport | None) -> None:
    gone = plan.going if report is None else report.removed
    word = "would go" if report is None else "gone"
    for run in gone:
        click.echo(printable(f"{word}   {_described(run)}"))
    for run in plan.sealed:
        click.echo(printable(f"stays   {_described(run)}, sealed; --sealed lets it go"))
    for path in plan.recording:
        click.echo(printable(f"stays   {path}: is being recorded"))
    for path in report.changed if report is not None else ():
        click.echo(printable(f"stays   {path}: has changed meanwhile"))
    what = "the payloads of " if plan.retention.payloads_only else ""
    total = f"{what}{plural(len(gone), 'run')}, {size(sum(run.size_bytes for run in gone))}"
    count = len(plan.staying) + (len(plan.going) if plan.retention.payloads_only else 0)
    rest = f"{plural(count, 'run')} stay" + ("s" if count == 1 else "")
    if report is not None:
        click.echo(f"removed {total}; {rest}")
    elif gone:
        click.echo(f"{total} would go, {rest}; nothing was changed, --yes does it")
    else:
        click.echo(f"nothing to prune, {rest}")


def _described(run: FoundRun) -> str:
    ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended_ms / 1000))
    return f"{run.path}: {run.status}, {ended}, {size(run.size_bytes)}"


def _as_json(plan: PrunePlan, report: PruneReport | None) -> dict[str, Any]:
    def rows(runs: list[FoundRun]) -> list[dict[str, Any]]:
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

    unread = [*plan.unreadable, *(report.failed if report is not None else ())]
    return {
        "done": report is not None,
        "payloads": plan.retention.payloads_only,
        "going": rows(plan.going if report is None else report.removed),
        "staying": rows(plan.staying),
        "sealed": rows(plan.sealed),
        "recording": [str(path) for path in plan.recording],
        "changed": [] if report is None else [str(path) for path in report.changed],
        "errors": [{"path": str(bad.path), "reason": bad.reason} for bad in unread],
    }
