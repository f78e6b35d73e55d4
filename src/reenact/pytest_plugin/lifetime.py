"""The run of one test, and its options.

It is opened with the first fixture, closed after the body, and finished after the teardown.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from reenact.errors import Diverged, StoreError, UsageError
from reenact.forks.run import InProcessFork, fork
from reenact.pytest_plugin.aftermath import Aftermath
from reenact.pytest_plugin.marker import MARKER, Mode, is_requested_by_fixture
from reenact.pytest_plugin.places import (
    command,
    display_path,
    is_shared,
    is_vacant,
    parent_of,
    place_of,
    stored_captures,
)
from reenact.pytest_plugin.tally import TestRunResult, store_result
from reenact.replayer.allow import Allow, AllowLike, read_allow
from reenact.replayer.engine import Policy
from reenact.replayer.volatile import beyond_defaults
from reenact.run import CaptureRun, ReplayRun, Run, UpdateRun, capture, replay, update
from reenact.run.redact import Redact, profile_and_secrets
from reenact.seams.stdlib.sources import Source
from reenact.store.place import discard, put_in_place, staging_folder
from reenact.store.reader import CaptureReader
from reenact.volatile.places import TEST_FOLDER_VARIABLE
from reenact.workspace.history import WorkspaceHistory

_KNOWN: Final = (
    "policy",
    "redact",
    "sources",
    "modules",
    "environ",
    "passthrough",
    "path",
    "allow",
    "workspace",
    "fork",
)
_FORK: Final = ("of", "at", "change", "on_miss")
_LISTS: Final = ("sources", "modules", "environ", "passthrough")
if TYPE_CHECKING:
    from reenact.pytest_plugin.stored import StoredCaptures
    from reenact.suite.files import LiveFiles

_SHOWN: Final = f"@pytest.mark.{MARKER}"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one test, from its markers; the nearest marker takes precedence."""

    policy: Policy | None = None
    """``None`` for the default of :func:`reenact.replay`."""
    redact: Redact = None
    """The nearest profile counts; lists of secrets are combined, so that a marker never hides less."""
    sources: Collection[Source] | None = None
    """Recorded parts of the standard library; ``None`` for the default of :func:`reenact.capture`."""
    modules: Sequence[str] = ()
    """The modules of the agent; empty for all that do not belong to a library."""
    environ: Sequence[str] = ()
    """Names of environment variables to record."""
    passthrough: Sequence[str] = ()
    """Tools that really run in a replay."""
    path: str | None = None
    """The capture, relative to the folder of the test; ``None`` for the place by its name."""
    allow: AllowLike = ()
    """What a replay may reach; see :func:`read_allow_option`."""
    workspace: str | bool = False
    """Whether the files of the test are recorded; a text is the folder that they are copied from."""
    fork: Mapping[str, Any] | None = None
    """The capture that the test forks (``of``), and ``at``, ``change`` and ``on_miss`` of
    :func:`reenact.fork`."""

    @property
    def is_fork_without_capture(self) -> bool:
        """Whether the test is forked each time without a capture, because nothing in it goes live."""
        return self.fork is not None and self.fork.get("on_miss", "fail") != "live"


def options_of(item: pytest.Item) -> Options:
    """The options of *item*; :class:`~reenact.errors.UsageError` for wrong ones."""
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        _refuse_unknown(mark)
        redact = _redact(merged.get("redact"), mark.kwargs.get("redact"))
        merged |= {**mark.kwargs, "redact": redact}
    for name in _LISTS:
        if isinstance(merged.get(name), str):
            raise UsageError(f"{_SHOWN}: {name}={merged[name]!r} is one text; give a list")
    _check_fork(merged)
    if policy := item.config.getoption("reenact_policy"):
        merged["policy"] = policy
    return Options(**merged)


def _check_fork(merged: Mapping[str, object]) -> None:
    given = merged.get("fork")
    if given is None:
        return
    if not isinstance(given, Mapping) or not {"of", "at"} <= given.keys() <= set(_FORK):
        raise UsageError(f"{_SHOWN}: fork={given!r}: name the capture and the event: {{'of': …, 'at': …}}")
    if not isinstance(given["of"], str) or not isinstance(given["at"], int):
        raise UsageError(f"{_SHOWN}: fork={given!r}: 'of' is a test or a path, 'at' the number of an event")
    if merged.get("workspace"):
        raise UsageError(f"{_SHOWN}: a test with a workspace is not forked; leave one of them out")


def _refuse_unknown(mark: pytest.Mark) -> None:
    unknown = [*map(repr, mark.args), *(name for name in mark.kwargs if name not in _KNOWN)]
    if unknown:
        raise UsageError(f"{_SHOWN}: {unknown[0]} is unknown; the options are {', '.join(_KNOWN)}")


def _redact(outer: Redact, nearer: Redact) -> Redact:
    outer_profile, outer_secrets = profile_and_secrets(outer)
    profile, secrets = profile_and_secrets(nearer)
    # Secrets often come from environment variables, which may be unset.
    return profile or outer_profile, (*outer_secrets, *filter(None, secrets))


def read_allow_option(allow: AllowLike) -> Allow:
    """See :func:`~reenact.replayer.allow.read_allow`."""
    return read_allow(allow, f"{_SHOWN}: allow")


_EMPTY_EVENTS = 2
"""The start and the end of a run without calls."""


class ReenactWarning(pytest.PytestWarning):
    """A remark on the recording of a test for its author."""


class BodyNotReached(Exception):
    """Ends a run whose test failed in its setup, or was only planned."""


class ItemRun:
    """A test that is neither recorded nor replayed; the base class of the others."""

    def __init__(self, item: pytest.Function, place: Path, run: Run) -> None:
        self.item = item
        self.place = place
        self.run = run
        self.outlives_body = is_requested_by_fixture(item)
        self.files: LiveFiles | None = None
        """The files of a test with a workspace."""
        self.has_failed = False
        """Whether a phase of the test did not pass."""
        self.found: Diverged | None = None
        """The divergence that closing the run has found."""
        self._error: BaseException | None = BodyNotReached("the test's body was not reached")
        self._is_open = True
        run.is_test = True
        run.__enter__()

    def end_body(self, error: BaseException | None) -> None:
        """Close the run after the body, which may have raised *error*; raises a swallowed divergence."""
        self._error = error
        if not self.outlives_body:
            self._leave()

    def end_phase(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Note the *report* of setup, body or teardown."""
        self.has_failed |= not report.passed
        if report.when == "setup" and call.excinfo is not None:
            self._error = call.excinfo.value

    def close(self) -> None:
        """Close the run after the teardown of the fixtures."""
        self._leave()

    def _leave(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        error = self._error
        try:
            self.run.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Diverged as found:
            if error is None and _is_about_the_end(found):
                return
            self.found = found
            if not isinstance(error, KeyboardInterrupt | pytest.exit.Exception):
                raise
        self._check(error)

    def _check(self, error: BaseException | None) -> None:
        """Check the run after its body, which may have raised *error*."""

    def finish(self, *, is_good: bool) -> None:  # noqa: ARG002
        """Finish after the test; *is_good* if all phases passed."""
        self.store_result("ran live")

    def store_result(
        self, what: str, remarks: Sequence[str] = (), not_entered: str = "", rules: Sequence[str] = ()
    ) -> None:
        store_result(
            self.item,
            TestRunResult(what, display_path(self.place, self.item.config), remarks, not_entered, rules),
        )


class GuardedItem(ItemRun):
    """A test in which nothing goes live, also in its teardown."""

    def __init__(self, item: pytest.Function, place: Path, run: Run, allow: Allow) -> None:
        self._aftermath = Aftermath(allow)
        super().__init__(item, place, run)

    def end_body(self, error: BaseException | None) -> None:
        try:
            super().end_body(error)
        finally:
            if not self.outlives_body:
                self._aftermath.begin()

    def close(self) -> None:
        super().close()
        self._aftermath.end()
        if self._aftermath.refused:
            self.found = self._aftermath.refused
            raise self.found


class ReplayedItem(GuardedItem):
    """A test answered from its capture."""

    run: ReplayRun

    def __init__(self, item: pytest.Function, place: Path, options: Options, folder: Path | None) -> None:
        if is_vacant(place):
            raise UsageError(
                f"{display_path(place, item.config)}: there is no capture of this test; "
                f"record it with: {command(item, 'record')}"
            )
        allow = read_allow_option(options.allow)
        run = replay(
            place,
            policy=options.policy,
            redact=options.redact,
            allow=allow,
            passthrough=options.passthrough,
            workspace=folder,
        )
        self._is_lenient = run.context.policy == "lenient"
        super().__init__(item, place, run, allow)

    def finish(self, *, is_good: bool) -> None:  # noqa: ARG002
        # Only some divergences count: a body that raised has unused recorded calls.
        remarks = [one.headline for one in self.run.divergences] if self._is_lenient else []
        has_diverged = self.found or isinstance(self._error, Diverged) or remarks
        rules = beyond_defaults(self.run.context.volatile)
        self.store_result("diverged" if has_diverged else "replayed", remarks, self.run.not_entered, rules)


def _fork(item: pytest.Function, options: Options, output: Path) -> InProcessFork:
    """The run of a test that forks another capture into *output*."""
    assert options.fork is not None
    parent = parent_of(item, options.fork["of"])
    if is_vacant(parent):
        raise UsageError(
            f"{display_path(parent, item.config)}: there is no capture to fork; record its test first"
        )
    forked = fork(
        parent,
        at=options.fork["at"],
        change=options.fork.get("change"),
        on_miss=options.fork.get("on_miss", "fail"),
        output=output,
        redact=options.redact,
        allow=read_allow_option(options.allow),
    )
    assert isinstance(forked, InProcessFork)  # no test is imported from a transcript
    return forked


class ForkedItem(GuardedItem):
    """A test that forks the capture of another one; the fork is not kept."""

    def __init__(self, item: pytest.Function, options: Options, folder: Path) -> None:
        assert options.fork is not None
        self.at: int = options.fork["at"]
        run = _fork(item, options, folder / "fork")
        super().__init__(item, parent_of(item, options.fork["of"]), run, read_allow_option(options.allow))

    def finish(self, *, is_good: bool) -> None:  # noqa: ARG002
        has_diverged = self.found or isinstance(self._error, Diverged)
        self.store_result("diverged" if has_diverged else "forked")


def _capture(path: Path, options: Options, folder: Path | None) -> Run:
    run = capture(
        path,
        mode="capture",
        redact=options.redact,
        sources=options.sources,
        modules=options.modules,
        environ=options.environ,
        allow=read_allow_option(options.allow),
        workspace=folder,
    )
    if isinstance(run, CaptureRun):
        run.tells_command = False  # the command line of pytest is no part of the test
    return run


class RecordedItem(ItemRun):
    """A test that is recorded; the new capture replaces the old one if the test passes."""

    def __init__(self, item: pytest.Function, place: Path, options: Options, folder: Path | None) -> None:
        _refuse_shared(item, place)
        self._new = staging_folder(place)
        is_fork = options.fork is not None
        run = _fork(item, options, self._new) if is_fork else _capture(self._new, options, folder)
        super().__init__(item, place, run)

    def _check(self, error: BaseException | None) -> None:
        if error is not None:
            discard(self._new)
            return
        manifest = self.run.manifest
        if manifest is None or manifest.status != "ok":
            reason = self.run.warnings[-1] if self.run.warnings else "the recording could not be finished"
            pytest.fail(f"{display_path(self.place, self.item.config)}: {reason}", pytrace=False)
        for warning in self.run.warnings:
            self.item.warn(ReenactWarning(warning))
        if manifest.eventCount <= _EMPTY_EVENTS:
            self.item.warn(
                ReenactWarning("the test made no call that is recorded; remove its mark, or mark its tools")
            )

    def finish(self, *, is_good: bool) -> None:
        self.store_result("not recorded")
        if not is_good:
            discard(self._new)
            return
        try:
            put_in_place(self._new, self.place)
            if (stored := stored_captures(self.item.config)) is not None:
                stored.push(self.place)
        except StoreError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self.store_result("recorded")


class UpdatedItem(ItemRun):
    """A test that updates its capture: recorded calls are answered, new ones are made and recorded."""

    run: UpdateRun

    def __init__(self, item: pytest.Function, place: Path, options: Options, folder: Path | None) -> None:
        _refuse_shared(item, place)
        super().__init__(item, place, update(place, redact=options.redact, workspace=folder))

    def finish(self, *, is_good: bool) -> None:
        self.store_result("not updated")
        manifest = self.run.manifest
        if not is_good or manifest is None or manifest.status != "ok":
            self.run.discard()
            return
        try:
            self.run.accept()
        except StoreError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self.store_result("updated" if self.run.is_changed else "unchanged")


def _refuse_shared(item: pytest.Function, place: Path) -> None:
    if is_shared(place, item.config):
        raise UsageError(
            f"{display_path(place, item.config)}: several tests would record into it; give each its own path"
        )


def _is_about_the_end(found: Diverged) -> bool:
    """Whether only the end differs: the test itself judges how it ends."""
    observed = getattr(found.divergence, "observed", None)
    return observed is not None and (observed.type, observed.data) == ("run_end", {"status": "ok"})


def open_run(request: pytest.FixtureRequest) -> ItemRun:
    """Open the run of the requesting test as its marker and the command line say.

    Raises :class:`~reenact.errors.ReenactError` if that is impossible: the capture is missing or damaged, or
    the marker is wrong.
    """
    item: pytest.Function = request.node
    options = options_of(item)
    place = place_of(item)
    if item.config.pluginmanager.hasplugin("tmpdir"):
        os.environ[TEST_FOLDER_VARIABLE] = str(request.getfixturevalue("tmp_path_factory").getbasetemp())
    mode: Mode = item.config.getoption("reenact")
    stored = stored_captures(item.config)
    if stored is not None and mode != "off":
        _prepare_stored(item, stored, place, mode)
        if options.fork is not None:
            stored.fetch(parent_of(item, options.fork["of"]))
    if options.is_fork_without_capture and mode != "off":
        return ForkedItem(item, options, request.getfixturevalue("tmp_path_factory").mktemp("fork"))
    if options.fork is not None and mode == "update":
        mode = "record"
    is_recorded = mode == "record" or (mode in ("once", "update") and is_vacant(place))
    folder = None
    if options.workspace:
        folder = _make_folder(request, options.workspace, None if is_recorded or mode == "off" else place)
    files = _files_in(folder, item) if folder is not None else None
    item_run = _open_run(item, place, options, mode if not is_recorded else "record", folder)
    item_run.files = files
    return item_run


def _prepare_stored(item: pytest.Function, stored: StoredCaptures, place: Path, mode: Mode) -> None:
    """Fetch the capture from its address; refuse to replace one there before the test runs."""
    if not place.is_relative_to(stored.folder):
        raise UsageError(f"{_SHOWN}: path: leads out of what --reenact-captures names; give one below it")
    if mode not in ("record", "update"):
        stored.fetch(place)
    elif mode == "update" or stored.is_there(place):
        raise UsageError(
            f"{display_path(place, item.config)}: nothing is replaced at an address; "
            "record to another one with --reenact-captures"
        )


def _open_run(
    item: pytest.Function, place: Path, options: Options, mode: Mode, folder: Path | None
) -> ItemRun:
    if mode == "off":
        return ItemRun(item, place, Run())
    if mode == "record":
        return RecordedItem(item, place, options, folder)
    if mode != "update":
        return ReplayedItem(item, place, options, folder)
    return UpdatedItem(item, place, options, folder)


def _make_folder(request: pytest.FixtureRequest, workspace: str | bool, capture: Path | None) -> Path:
    """A new folder with the files of the start: from *capture*, or from the folder that the test names."""
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    folder = Path(os.path.realpath(factory.mktemp("workspace")))
    if capture is not None:
        if not is_vacant(capture):
            history = WorkspaceHistory(CaptureReader(capture), repository=request.path.parent)
            history.restore(history.start.tree, folder, refuse_links_out=True)
    elif isinstance(workspace, str):
        template = request.path.parent / workspace
        if not template.is_dir():
            raise UsageError(f"workspace={workspace!r}: {template} is not a folder; name one beside the test")
        shutil.copytree(template, folder, symlinks=True, dirs_exist_ok=True)
    return folder


def _files_in(folder: Path, item: pytest.Function) -> LiveFiles:
    from reenact.rerun import run_in_folder
    from reenact.suite.files import LiveFiles

    may_run = item.config.getoption("reenact_allow_commands")
    return LiveFiles(folder, run_in_folder if may_run else None)
