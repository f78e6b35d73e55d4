"""What became of the marked tests, counted over all processes and told at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest


class Deed(NamedTuple):
    """What a test's run came to; travels from xdist's workers as plain JSON."""

    what: str
    place: str = ""
    remarks: Sequence[str] = ()
    """Differences that a lenient replay went over."""
    not_entered: str = ""
    """Which code of the project ran in the recording and not in the replay."""
    rules: Sequence[str] = ()
    """By which parts of requests were let differ."""


_ORDER: Final = (
    *("replayed", "forked", "diverged", "recorded", "not recorded", "updated", "unchanged", "not updated"),
    *("not started", "ran live"),
)
_MOST_SHOWN: Final = 20
_ATTRIBUTES: Final = ("captures/** -text", "captures/**/*.json* linguist-generated")
"""Git leaves the line ends alone, and hosts fold the events; the transcripts are there to be read."""
_ATTRIBUTE: Final = "reenact"
_DEED: Final = pytest.StashKey[Deed]()


def leave_deed(item: pytest.Item, deed: Deed) -> None:
    """Keep *deed* until the test's last report."""
    item.stash[_DEED] = deed


def pass_on_deed(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the deed into *report*, the only thing that reaches xdist's controller."""
    if _DEED in item.stash:
        deed: Deed = item.stash[_DEED]
        vars(report)[_ATTRIBUTE] = tuple(deed)
        del item.stash[_DEED]


class Tally:
    """Counts deeds where reports arrive, and tells them where there is a terminal."""

    def __init__(self) -> None:
        self._deeds: list[Deed] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = vars(report).get(_ATTRIBUTE)
        if parts is not None:
            self._deeds.append(Deed(*parts))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._deeds:
            return
        counts = Counter(deed.what for deed in self._deeds)
        told = ", ".join(f"{counts[what]} {what}" for what in _ORDER if counts[what])
        terminalreporter.ensure_newline()
        terminalreporter.write_line(f"reenact: {told}")
        made = ("recorded", "updated")
        lines = [f"  {deed.what:<8}  {deed.place}" for deed in self._deeds if deed.what in made]
        lines += [f"  lenient   {deed.place}: {remark}" for deed in self._deeds for remark in deed.remarks]
        lines += [f"  not run   {deed.place}: {deed.not_entered}" for deed in self._deeds if deed.not_entered]
        rules = Counter(rule for deed in self._deeds for rule in deed.rules)
        lines += [f"  rule      {rule} (in force in {count})" for rule, count in rules.items()]
        for line in lines[:_MOST_SHOWN]:
            terminalreporter.write_line(line)
        if len(lines) > _MOST_SHOWN:
            terminalreporter.write_line(f"  … and {len(lines) - _MOST_SHOWN} more")
        if counts["recorded"] and _is_unprepared(terminalreporter.config.rootpath):
            terminalreporter.write_line("  to commit captures, add to .gitattributes:")
            for line in _ATTRIBUTES:
                terminalreporter.write_line(f"    {line}")


def _is_unprepared(folder: Path) -> bool:
    """Whether *folder* is in a git repository that says nothing yet of how captures are to be kept."""
    repository = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if repository is None:
        return False
    files = {folder / ".gitattributes", repository / ".gitattributes"}
    return not any("captures/" in file.read_text("utf-8", "replace") for file in files if file.is_file())
