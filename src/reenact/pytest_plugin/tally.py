"""What became of the marked tests, counted over all processes and told at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from reenact.pytest_plugin.marker import is_used_by


@dataclass(frozen=True, slots=True)
class Deed:
    """What a test's run came to; travels from xdist's workers as plain JSON."""

    what: str
    place: str = ""
    remarks: Sequence[str] = ()
    """Differences that a lenient replay went over."""


_ORDER: Final = ("replayed", "diverged", "recorded", "not recorded", "not started", "ran live")
_MOST_SHOWN: Final = 20
_ATTRIBUTE: Final = "reenact"
_DEED: Final = pytest.StashKey[Deed]()
_SHARED: Final = pytest.StashKey[frozenset[str]]()


def leave_deed(item: pytest.Item, deed: Deed) -> None:
    """Keep *deed* until the test's last report."""
    item.stash[_DEED] = deed


def pass_on_deed(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the deed into *report*, the only thing that reaches xdist's controller."""
    if _DEED in item.stash:
        vars(report)[_ATTRIBUTE] = astuple(item.stash[_DEED])
        del item.stash[_DEED]


def is_shared(place: Path, config: pytest.Config) -> bool:
    """Whether several of the collected tests have their capture at *place*."""
    return str(place).casefold() in config.stash.get(_SHARED, frozenset())


class Tally:
    """Counts deeds where reports arrive, and tells them where there is a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._deeds: list[Deed] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._config.getoption("reenact") not in ("record", "once"):
            return
        from reenact.pytest_plugin.places import place_of

        used = Counter(str(place_of(item)).casefold() for item in session.items if is_used_by(item))
        self._config.stash[_SHARED] = frozenset(place for place, count in used.items() if count > 1)

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
        lines = [f"  recorded  {deed.place}" for deed in self._deeds if deed.what == "recorded"]
        lines += [f"  lenient   {deed.place}: {remark}" for deed in self._deeds for remark in deed.remarks]
        for line in lines[:_MOST_SHOWN]:
            terminalreporter.write_line(line)
        if len(lines) > _MOST_SHOWN:
            terminalreporter.write_line(f"  … and {len(lines) - _MOST_SHOWN} more")
