"""Reporting a divergence as the failure of a test, instead of a traceback."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.errors import Diverged
from reenact.formats.divergence import ReplayDivergence
from reenact.pytest_plugin.lifetime import ForkedItem, ItemRun, RecordedItem, UpdatedItem
from reenact.pytest_plugin.places import command, display_path


def explain(report: pytest.TestReport, call: pytest.CallInfo[None], item_run: ItemRun) -> None:
    """Add what a user needs to know about the run to *report*, if it is a failure."""
    if not report.failed:
        return
    diverged = _find_divergence(call.excinfo, item_run)
    if diverged is not None and not item_run.item.config.getoption("fulltrace"):
        report.longrepr = _longrepr(_text(diverged, report, item_run), item_run.item)
    if isinstance(item_run, RecordedItem | UpdatedItem) and not item_run.has_failed:
        report.sections.append(("reenact", _explain_unrecorded(item_run)))


def _find_divergence(
    excinfo: pytest.ExceptionInfo[BaseException] | None, item_run: ItemRun
) -> Diverged | None:
    raised = excinfo.value if excinfo is not None else None
    if isinstance(raised, Diverged):
        return raised
    # unittest hides the errors of its tests, so the run was closed without this one.
    # A test that failed early has unused recorded calls; that is not worth a report.
    found = item_run.found
    is_news = found is not None and getattr(found.divergence, "code", None) != "event_missing"
    return found if is_news else None


def _text(diverged: Diverged, report: pytest.TestReport, item_run: ItemRun) -> str:
    divergence = diverged.divergence
    if isinstance(item_run, ForkedItem):
        lines = [str(diverged)]
        if isinstance(divergence, ReplayDivergence):
            lines = [str(diverged).replace(divergence.headline, divergence.summary), *divergence.details()]
        parent = display_path(item_run.place, item_run.item.config)
        return "\n".join([*lines, f"  fork of      {parent} at event {item_run.at}"])
    if isinstance(divergence, ReplayDivergence):
        # The summary shows only the first line, so the difference comes before its name.
        place = f"event {divergence.event_seq}, " if divergence.event_seq is not None else ""
        lines = [divergence.summary, f"  what         {place}{divergence.code}", *divergence.details()]
    else:
        lines = [str(diverged)]
    lines.append(f"  capture      {display_path(item_run.place, item_run.item.config)}")
    if report.when == "teardown" and not item_run.outlives_body:
        lines.append("  teardown     is recorded for fixtures that request reenact_run")
    lines.append(f"  accept it    {command(item_run.item, 'update')}")
    lines.append(f"  record anew  {command(item_run.item, 'record')}")
    return "\n".join(lines)


def _longrepr(text: str, item: pytest.Item) -> Any:
    """The text in the form that terminal, summary, JUnit report and xdist accept."""
    try:
        pytest.fail(text, pytrace=False)
    except pytest.fail.Exception:
        longrepr: Any = item.repr_failure(pytest.ExceptionInfo.from_current())
    if longrepr.reprcrash is not None:
        path, line_index, _ = item.reportinfo()
        longrepr.reprcrash.path = str(path)
        longrepr.reprcrash.lineno = (line_index or 0) + 1
    return longrepr


def _explain_unrecorded(item_run: RecordedItem | UpdatedItem) -> str:
    place = display_path(item_run.place, item_run.item.config)
    if item_run.place.exists():
        return f"{place}: the old capture was kept, because the test failed"
    return f"{place}: nothing was recorded, because the test failed"
