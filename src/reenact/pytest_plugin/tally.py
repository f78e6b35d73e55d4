"""The results of marked tests, counted over all processes and printed at the end."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest


class TestRunResult(NamedTuple):
    """The result of a test's run; plain JSON, because xdist's workers send it."""

    what: str
    place: str = ""
    remarks: Sequence[str] = ()
    """Differences that a lenient replay accepted."""
    not_entered: str = ""
    """Code of the project that ran in the recording but not in the replay."""
    rules: Sequence[str] = ()
    """The rules in force for values that may differ."""


_ORDER: Final = (
    *("replayed", "forked", "diverged", "recorded", "not recorded", "updated", "unchanged", "not updated"),
    *("not started", "ran live"),
)
_MOST_SHOWN: Final = 20
_ATTRIBUTES: Final = (
    "{}/** -text",
    "{}/**/*.jsonl linguist-generated diff=reenact",
    "{}/**/manifest.json linguist-generated",
)
"""Git keeps the line ends, and hosting sites collapse the events in reviews, but not the transcripts."""
_TEXTCONV: Final = 'git config diff.reenact.textconv "reenact show --transcript"'
_ATTRIBUTE: Final = "reenact"
_RESULT: Final = pytest.StashKey[TestRunResult]()


def store_result(item: pytest.Item, result: TestRunResult) -> None:
    """Keep *result* until the test's last report."""
    item.stash[_RESULT] = result


def attach_result(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the result into *report*, which xdist sends to its controller."""
    if _RESULT in item.stash:
        result: TestRunResult = item.stash[_RESULT]
        vars(report)[_ATTRIBUTE] = tuple(result)
        del item.stash[_RESULT]


class Tally:
    """Counts the results of reports, and prints the totals."""

    def __init__(self) -> None:
        self._results: list[TestRunResult] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = vars(report).get(_ATTRIBUTE)
        if parts is not None:
            self._results.append(TestRunResult(*parts))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._results:
            return
        counts = Counter(each.what for each in self._results)
        counted = ", ".join(f"{counts[what]} {what}" for what in _ORDER if counts[what])
        terminalreporter.ensure_newline()
        terminalreporter.write_line(f"reenact: {counted}")
        made = ("recorded", "updated")
        lines = [f"  {each.what:<8}  {each.place}" for each in self._results if each.what in made]
        lines += [f"  lenient   {each.place}: {remark}" for each in self._results for remark in each.remarks]
        lines += [
            f"  not run   {each.place}: {each.not_entered}" for each in self._results if each.not_entered
        ]
        rules = Counter(rule for each in self._results for rule in each.rules)
        lines += [f"  rule      {rule} (used in {count})" for rule, count in rules.items()]
        for line in lines[:_MOST_SHOWN]:
            terminalreporter.write_line(line)
        if len(lines) > _MOST_SHOWN:
            terminalreporter.write_line(f"  … and {len(lines) - _MOST_SHOWN} more")
        recorded = [each.place for each in self._results if each.what == "recorded"]
        patterns = _unprepared(recorded, terminalreporter.config.invocation_params.dir) if recorded else []
        if patterns:
            terminalreporter.write_line("  to commit captures, add to .gitattributes:")
            for line in (line.format(pattern) for pattern in patterns for line in _ATTRIBUTES):
                terminalreporter.write_line(f"    {line}")
            terminalreporter.write_line(f"  to read them in git diff: {_TEXTCONV}")


def _unprepared(places: Sequence[str], folder: Path) -> list[str]:
    """Patterns of those captures at *places*, seen from *folder*, whose line ends git may change."""
    try:
        repository = Path(_ask_git(folder, "rev-parse", "--show-toplevel").removesuffix("\n"))
        paths = [(folder / place).resolve() / "events.jsonl" for place in places]
        files = [Path(os.path.relpath(path, repository)) for path in paths]
        inside = [file.as_posix() for file in files if ".." not in file.parts]
        answers = _ask_git(repository, "check-attr", "-z", "text", "--", *inside).split("\0")
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository
        return []
    values = zip(answers[::3], answers[2::3], strict=False)  # after the last NUL there is an empty text
    return sorted({_pattern(file) for file, value in values if value != "unset"})


def _pattern(file: str) -> str:
    """A pattern of ``.gitattributes`` for the folder of *file*."""
    if "captures" in file.split("/"):
        return "**/captures"
    return re.sub(r"[\[\]*?\\ ]", "?", file.removesuffix("/events.jsonl"))


def _ask_git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout
