"""``reenact verify``: check that an artifact is valid."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import click

from reenact.analysis.brief import plural
from reenact.canonical import JsonValue
from reenact.check.artifact import verify
from reenact.check.findings import Finding, FindingSeverity, VerifyReport, severity_of
from reenact.check.kinds import holds_many_runs
from reenact.cli.terminal import (
    A_PATH,
    DIFFERS,
    INVALID,
    MANY,
    ON,
    Cell,
    TextLine,
    progress_bar,
    say,
    write_line,
)
from reenact.corpus.batches import VerifyRunsReport, verify_runs
from reenact.errors import UsageError
from reenact.store.remote import remote_name
from reenact.store.rundir import RunDir

_SHOWN: Final = 10
"""Findings per code, and items per fact, that are printed; --json has all."""
_STYLES: Final[dict[FindingSeverity, str]] = {"error": "red", "warning": "yellow"}
_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def verdict_lines(report: VerifyReport, held_against: Iterable[str]) -> Iterator[TextLine]:
    """*report* for people; *held_against* are the other files of the check."""
    severities = Counter(sorted(map(severity_of, report.findings)))
    counts = " and ".join(map(plural, severities.values(), severities))
    artifact = f"the {report.what} {report.path}"
    if report.is_good:
        others = " and ".join(held_against)
        agrees = f", and agrees with {others}" if others else ""
        warned = f", with {counts}" if counts else ""
        yield Cell("good", "bold green"), Cell(f"{warned}: {artifact} is valid{agrees}")
    else:
        yield Cell("bad", "bold red"), Cell(f": {artifact} has {counts}")
    facts = [*_facts(report.facts)]
    width = max(map(len, dict(facts)), default=0)
    for name, value in facts:
        yield Cell("  "), Cell(name, "dim", width + 2), Cell(value)
    if report.findings:
        yield ()
        yield from _finding_lines(report.findings)


def _facts(facts: dict[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Each fact with its name in words; ``position`` and ``of`` become one fact."""
    for name, value in facts.items():
        words = _CAPITAL.sub(" ", name).lower()
        match value:
            case _ if name == "position" and "of" in facts:
                yield name, f"{value:,} of {facts['of']:,}"
            case _ if name == "of":
                pass
            case _ if name.endswith("Ms"):
                yield words.removesuffix(" ms"), f"{value:,} ms"
            case dict():
                items = [f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in value.items()]
                yield from ((name, item) for item in items or ["nothing"])
            case list():
                shown = ", ".join(map(str, value[:_SHOWN])) or "none"
                more = f" and {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else ""
                yield words, shown + more
            case int() | float():
                yield words, f"{value:,}"
            case _:
                yield words, "none" if value is None else str(value)


def _finding_lines(findings: list[Finding]) -> Iterator[TextLine]:
    """The first findings of each code, errors first."""
    groups: dict[tuple[FindingSeverity, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    for (severity, code), group in sorted(groups.items(), key=lambda item: item[0][0]):
        for finding in islice(group, _SHOWN):
            yield Cell(severity, _STYLES[severity], 9), Cell(finding.describe())
        if len(group) > _SHOWN:
            more = f"… and {len(group) - _SHOWN:,} more [{code}]; --json lists them all"
            yield Cell("", width=9), Cell(more, "dim")


@click.command("verify")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "--receipt",
    metavar="FILE",
    type=A_PATH,
    help="Check it against its receipt.",
)
@click.option("--seal", metavar="FILE", type=A_PATH, help="Check it against a seal.")
@click.option("--key", metavar="FILE", type=A_PATH, help="The signer's public key.")
@click.option(
    "--against",
    metavar="LOG",
    type=A_PATH,
    help="Compare with another log.",
)
@click.option(
    "--runs", metavar="DIR", type=A_PATH, help="Where the runs of a dataset are now, if they moved."
)
@click.option("--lenient", is_flag=True, help="Go on after lines that cannot be read.")
@click.option("--published", is_flag=True, help="The log is published: its calls need no params.")
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(0),
    help="Number of processes; 0 for all cores [all for large files].",
)
@ON
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    path: Path,
    receipt: Path | None,
    seal: Path | None,
    key: Path | None,
    against: Path | None,
    runs: Path | None,
    lenient: bool,
    published: bool,
    jobs: int | None,
    on: str | None,
    as_json: bool,
) -> int:
    """Check that an artifact is valid and consistent.

    PATH is a capture, a REPLAY.jsonl, a receipt of either form, a replay receipt, a bundle, a trace, an
    action, a record, a pack of records, a seal, a disclosure, a test case, a test result, a suite
    summary, a policy, or an exported dataset, whose rows are traced back to their runs. In a folder of
    runs, each run is checked. Every problem is printed with its place.

    Exit status: 0 when there are no problems (warnings are allowed), 1 when something does not agree, 2
    when PATH, or a run in it, cannot be read at all.
    """
    if not RunDir(path).is_capture and holds_many_runs(path):
        if receipt or seal or key or against:
            raise UsageError(f"{path}: is a folder of runs; receipts, seals and logs belong to one run")
        return _verify_folder(path, jobs, on, as_json)
    if on is not None:
        raise UsageError(f"{path}: --on is for a folder of runs; one run is verified with --jobs")
    report = verify(
        path,
        receipt=receipt,
        seal=seal,
        key=key,
        against=against,
        runs=runs,
        lenient=lenient,
        published=published,
        jobs=jobs,
        progress_bar=progress_bar,
    )
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        for line in verdict_lines(report, map(remote_name, filter(None, (receipt, seal, against)))):
            write_line(line)
    return 0 if report.is_good else DIFFERS


def _verify_folder(path: Path, jobs: int | None, on: str | None, as_json: bool) -> int:
    bar = partial(progress_bar, least=MANY)
    report = verify_runs(path, jobs=1 if jobs is None else jobs, on=on, progress_bar=bar)
    bad = [each for each in report.reports if not each.is_good]
    if as_json:
        runs = [each.to_json() for each in report.reports]
        click.echo(json.dumps({"runs": runs, "unreadable": report.unreadable}, indent=2, ensure_ascii=False))
    else:
        for each in bad:
            for line in verdict_lines(each, []):
                write_line(line)
            write_line(())
        write_line(_folder_verdict(report, len(bad)))
    for problem in report.unreadable:
        say(problem)
    return INVALID if report.unreadable else DIFFERS if bad else 0


def _folder_verdict(report: VerifyRunsReport, bad: int) -> TextLine:
    good = len(report.reports) - bad
    counts = [f"{good:,} good"] if good else []
    counts += [f"{bad:,} bad"] if bad else []
    counts += [f"{len(report.unreadable):,} unreadable"] if report.unreadable else []
    word = Cell("good", "bold green") if report.is_good else Cell("bad", "bold red")
    return word, Cell(f": {plural(len(report.reports) + len(report.unreadable), 'run')}: {', '.join(counts)}")
