"""The pytest plugin: marked tests are recorded once and then replayed, and ``test.yaml`` files are tests too.

This module has only hooks; everything else is imported for the first such test, so that other suites stay
fast. The run of a test opens before its first function-scoped fixture. It closes after the body, or, if
fixtures request ``reenact_run``, after their teardown.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

from reenact.pytest_plugin.marker import MARKER, MODES, is_used_by, with_run_first
from reenact.pytest_plugin.places import find_shared_places
from reenact.pytest_plugin.tally import Tally, TestRunResult, attach_result, store_result

if TYPE_CHECKING:
    from pathlib import Path

    from reenact.pytest_plugin.lifetime import ItemRun
    from reenact.run import Run
    from reenact.suite.files import LiveFiles

_TEST_FILE_NAME: Final = "test.yaml"
"""A copy, because the module that defines it is slow to import."""
_RUN: Final[pytest.StashKey[ItemRun]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("reenact", "recorded agent runs")
    group.addoption(
        "--reenact",
        choices=MODES,
        default="replay",
        help="what marked tests do: replay their capture (the default), record a new one, record once "
        "if there is none, update it by recording only new calls, or run live without recording",
    )
    group.addoption(
        "--reenact-policy",
        choices=("strict", "lenient"),
        help="replay all marked tests with this policy instead of that of their marks",
    )
    group.addoption(
        "--reenact-allow-commands",
        action="store_true",
        help="run the commands of assertions in test.yaml files, in copies of the recorded files",
    )
    group.addoption(
        "--reenact-captures",
        metavar="ADDRESS",
        help="the address of the captures, such as s3://BUCKET/FOLDER; by default they are beside the tests",
    )
    group.addoption(
        "--reenact-orphans", action="store_true", help="list the captures that no collected test uses"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(policy, redact, sources, modules, environ, passthrough, path, allow, workspace, fork): "
        "replay the test's recorded run; --reenact=record records it",
    )
    config.pluginmanager.register(Tally(), "reenact-tally")
    if config.getoption("reenact_captures"):
        from reenact.pytest_plugin.stored import open_stored

        open_stored(config)
    if config.getoption("reenact_orphans"):
        from reenact.pytest_plugin.orphans import Orphans

        config.pluginmanager.register(Orphans(config), "reenact-orphans")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name != _TEST_FILE_NAME:
        return None
    from reenact.pytest_plugin.cases import CaseFile, is_test_case

    return CaseFile.from_parent(parent, path=file_path) if is_test_case(file_path) else None


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("reenact") in ("record", "once", "update"):
        find_shared_places(session)


def pytest_report_header(config: pytest.Config) -> str | None:
    mode: str = config.getoption("reenact")
    return None if mode == "replay" else f"reenact: {mode}"


@pytest.fixture
def reenact_run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """The run that records or replays this test; with ``--reenact=off``, one that does neither."""
    from reenact.errors import ReenactError
    from reenact.pytest_plugin.lifetime import open_run

    item = request.node
    store_result(item, TestRunResult("not started"))
    try:
        item_run = item.stash[_RUN] = open_run(request)
    except ReenactError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    yield item_run.run
    item_run.close()


@pytest.fixture
def reenact_workspace(request: pytest.FixtureRequest) -> LiveFiles:
    """The files of a test with a workspace: its ``folder``, and assertions."""
    item_run: ItemRun | None = request.node.stash.get(_RUN, None)
    if item_run is None or item_run.files is None:
        reason = f"the test has no workspace; mark it with @pytest.mark.{MARKER}(workspace=True)"
        raise pytest.fail.Exception(reason, pytrace=False)
    return item_run.files


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and is_used_by(item):
        # A new list: tests of one function share theirs, and their marks may differ.
        item.fixturenames = with_run_first(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    try:
        result = yield
    except BaseException as error:
        _end_body(item, error)
        raise
    _end_body(item, None)
    return result


def _end_body(item: pytest.Item, error: BaseException | None) -> None:
    # Only now, because the body itself may have requested the run.
    if item_run := item.stash.get(_RUN, None):
        item_run.end_body(error)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    item_run = item.stash.get(_RUN, None)
    try:
        result = yield
    except BaseException:
        if item_run:
            item_run.finish(is_good=False)
        raise
    if item_run:
        item_run.finish(is_good=not item_run.has_failed)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item_run := item.stash.get(_RUN, None):
        from reenact.pytest_plugin.failure import explain

        explain(report, call, item_run)
        item_run.end_phase(report, call)
    if report.when == "teardown":
        attach_result(item, report)
        # The same item may be run again, by plugins that repeat tests.
        if item_run:
            del item.stash[_RUN]
    return report
