"""``test.yaml`` files as pytest tests, judged as by ``reenact test``."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reenact.errors import FormatError
from reenact.formats.testcase import TestCase, read_test_case
from reenact.rerun import replay_for_test, run_in_files
from reenact.suite.reports import evidence
from reenact.suite.runner import Outcome, Plan, run_test
from reenact.suite.settings import find_settings

_OURS: Final = (b"schema_version", b"adapter")
"""Keys of a test case that other files of that name rarely have."""
_COLLECTED: Final = pytest.StashKey[int]()
_RUN_ID: Final = pytest.StashKey[str]()


def is_test_case(file: Path) -> bool:
    """Whether *file* is one of our tests; other programs use the name ``test.yaml`` too."""
    try:
        data = file.read_bytes()
    except OSError:
        return False
    return all(word in data for word in _OURS)


class CaseFailed(Exception):
    """A test case failed, or could not be run."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class CaseFile(pytest.File):
    """A ``test.yaml``: one test, named by its id."""

    def collect(self) -> Iterator[pytest.Item]:
        try:
            case = read_test_case(self.path.read_bytes(), str(self.path))
        except FormatError:
            case = None  # reported when the test is run
        yield CaseItem.from_parent(self, name=case.id if case else self.path.name, case=case)


class CaseItem(pytest.Item):
    """One test case; its title and its tags are keywords for ``-k``."""

    def __init__(self, *, case: TestCase | None, **options: Any) -> None:
        super().__init__(**options)
        stash = self.session.stash
        self._number = stash[_COLLECTED] = stash.get(_COLLECTED, 0) + 1
        if case is not None:
            self.extra_keyword_matches.update([case.name, *(case.tags or ())])

    def runtest(self) -> None:
        run_id = self.session.stash.setdefault(_RUN_ID, f"run-{secrets.token_hex(4)}")
        may_run = self.config.getoption("reenact_allow_commands")
        plan = Plan(
            run_id,
            find_settings(self.path.parent),
            replay=replay_for_test,
            run_in_files=run_in_files if may_run else None,
        )
        outcome = run_test(self.path, plan, index=self._number)
        assert outcome is not None, "a plan that names nothing leaves nothing out"
        if outcome.result.status != "pass":
            raise CaseFailed(outcome)
        if warnings := _explain(outcome):
            self.add_report_section("call", "reenact", warnings)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure as ``reenact test`` prints it."""
        if isinstance(excinfo.value, CaseFailed):
            return _explain(excinfo.value.outcome)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def _explain(outcome: Outcome) -> str:
    return "\n".join(line.text for line in evidence(outcome))
