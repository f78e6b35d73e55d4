"""How a report of a check reads: the verdict, a few facts in plain words, what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from reenact.analysis.brief import plural
from reenact.check.findings import Finding, Report
from reenact.cli.terminal import Cell, Line

_SHOWN: Final = 10
"""Findings of one code, and items of one fact; --json has all."""
_STYLES: Final = {"error": "red", "warning": "yellow"}
_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def verdict_lines(report: Report, held_against: Iterable[str]) -> Iterator[Line]:
    """*report* for people; *held_against* names the other files that took part."""
    yield _verdict(report, held_against)
    facts = [*_facts(report.facts)]
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        yield Cell("  "), Cell(name, "dim", width + 2), Cell(value)
    if report.findings:
        yield ()
    for findings in _by_code(report.findings):
        yield from _finding_lines(findings)


def _verdict(report: Report, held_against: Iterable[str]) -> Line:
    counts = " and ".join(_counts(report.findings))
    artifact = f"the {report.what} {report.path}"
    if not report.is_good:
        return Cell("bad", "bold red"), Cell(f": {artifact} has {counts}")
    others = " and ".join(held_against)
    agrees = f", and agrees with {others}" if others else ""
    warned = f", with {counts}" if counts else ""
    return Cell("good", "bold green"), Cell(f"{warned}: {artifact} is what it says it is{agrees}")


def _counts(findings: list[Finding]) -> Iterator[str]:
    for severity in _STYLES:
        if count := sum(finding.severity == severity for finding in findings):
            yield plural(count, severity)


def _facts(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each with a name in words; a place and the number of places are one fact."""
    for name, value in facts.items():
        if name == "position" and "of" in facts:
            yield name, f"{value:,} of {facts['of']:,}"
        elif name.endswith("Ms"):
            yield _words(name.removesuffix("Ms")), f"{value:,} ms"
        elif isinstance(value, dict):
            told = [f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in value.items()]
            yield from ((name, item) for item in told or ["nothing"])
        elif name != "of":
            yield _words(name), _told(value)


def _words(name: str) -> str:
    return _CAPITAL.sub(" ", name).lower()


def _told(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:_SHOWN])) or "none"
        return f"{shown} and {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else shown
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _by_code(findings: list[Finding]) -> list[list[Finding]]:
    """Errors first, else in the order in which a code was first found."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return sorted(groups.values(), key=lambda group: group[0].severity)


def _finding_lines(findings: list[Finding]) -> Iterator[Line]:
    severity = findings[0].severity
    for finding in islice(findings, _SHOWN):
        yield Cell(severity, _STYLES[severity], 9), Cell(finding.describe())
    if len(findings) > _SHOWN:
        more = f"… and {len(findings) - _SHOWN:,} more [{findings[0].code}]; --json lists them all"
        yield Cell("", width=9), Cell(more, "dim")
