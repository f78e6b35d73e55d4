"""The run of one test: opened with its first fixture, closed after its body, settled after its teardown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from reenact.errors import Diverged, UsageError
from reenact.pytest_plugin import staging
from reenact.pytest_plugin.fixtures import is_requested_by_fixture
from reenact.pytest_plugin.marker import Mode, Options, allowed, options_of
from reenact.pytest_plugin.places import command, is_vacant, place_of, shown
from reenact.pytest_plugin.tally import Deed, is_shared, leave_deed
from reenact.replayer.guard import Guard
from reenact.run import Run, capture, replay

_EMPTY_EVENTS = 2
"""A run that made no call still has a start and an end."""


class ReenactWarning(pytest.PytestWarning):
    """Something about a test's recording that its author should look at."""


class BodyNotReached(Exception):
    """What ends a run whose test failed, or was only planned, in its setup."""


class ItemRun:
    """A test's run that is neither recorded nor replayed; the other kinds build on it."""

    def __init__(self, item: pytest.Function, place: Path, run: Run) -> None:
        self.item = item
        self.place = place
        self.run = run
        self.outlives_body = is_requested_by_fixture(item)
        self.has_failed = False
        """Some phase of the test did not pass."""
        self.found: Diverged | None = None
        """What closing the run brought up."""
        self._error: BaseException | None = BodyNotReached("the test's body was not reached")
        self._is_open = True
        run.__enter__()

    def end_setup(self, error: BaseException) -> None:
        """The setup raised *error*; there will be no body."""
        self._error = error

    def end_body(self, error: BaseException | None) -> None:
        """The body returned, or raised *error*; raises what the body swallowed."""
        self._error = error
        if not self.outlives_body:
            self.leave()

    def close(self) -> None:
        """Every function-scoped fixture is torn down."""
        self.leave()

    def leave(self) -> None:
        """Leave the run, once."""
        if not self._is_open:
            return
        self._is_open = False
        error = self._error
        try:
            self.run.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Diverged as found:
            self.found = found
            if not isinstance(error, KeyboardInterrupt | pytest.exit.Exception):
                raise

    def settle(self, *, is_good: bool) -> None:  # noqa: ARG002
        """The test is over; *is_good* if all of it passed."""
        self.leave_deed("ran live")

    def leave_deed(self, what: str, remarks: Sequence[str] = ()) -> None:
        leave_deed(self.item, Deed(what, shown(self.place, self.item.config), remarks))


class ReplayedItem(ItemRun):
    """A test answered from its capture; what is torn down after its run is still guarded."""

    def __init__(self, item: pytest.Function, place: Path, options: Options) -> None:
        if is_vacant(place):
            raise UsageError(
                f"{shown(place, item.config)}: there is no capture of this test; "
                f"record it with: {command(item, 'record')}"
            )
        allow = allowed(options.allow)
        self._is_lenient = options.policy == "lenient"
        self._guard = Guard(allow)
        self._afterwards = ExitStack()
        run = replay(
            place,
            policy=options.policy,
            redact=options.redact,
            allow=allow,
            allow_passthrough_tools=options.passthrough,
        )
        super().__init__(item, place, run)

    def leave(self) -> None:
        if self._is_open:
            self._afterwards.enter_context(self._guard)
        super().leave()

    def close(self) -> None:
        with self._afterwards:
            super().close()
        if self._guard.blocked:
            self.found = self._guard.blocked[0].error()
            raise self.found

    def settle(self, *, is_good: bool) -> None:  # noqa: ARG002
        run = self.run
        has_diverged = self.found or run.divergences or run.blocked or self._guard.blocked
        remarks = [divergence.headline for divergence in run.divergences] if self._is_lenient else []
        self.leave_deed("diverged" if has_diverged else "replayed", remarks)


class RecordedItem(ItemRun):
    """A test whose new capture replaces the old one if all goes well."""

    def __init__(self, item: pytest.Function, place: Path, options: Options) -> None:
        if is_shared(place, item.config):
            raise UsageError(
                f"{shown(place, item.config)}: several tests would record into it; give each its own path"
            )
        self._new = staging.folder_for(place)
        super().__init__(item, place, capture(self._new, mode="capture", redact=options.redact))

    def leave(self) -> None:
        was_open = self._is_open
        super().leave()
        if was_open and self._error is None:
            self._check()

    def _check(self) -> None:
        manifest = self.run.manifest
        if manifest is None or manifest.status != "ok":
            reason = self.run.warnings[-1] if self.run.warnings else "the recording could not be finished"
            pytest.fail(f"{shown(self.place, self.item.config)}: {reason}", pytrace=False)
        if manifest.eventCount <= _EMPTY_EVENTS:
            self.item.warn(
                ReenactWarning("the test made no call that is recorded; remove its mark, or mark its tools")
            )

    def settle(self, *, is_good: bool) -> None:
        if is_good:
            staging.put_in_place(self._new, self.place)
            self.leave_deed("recorded")
        else:
            staging.discard(self._new)
            self.leave_deed("not recorded")


def opened(item: pytest.Function) -> ItemRun:
    """Open the run of *item* as its marker and the command line say.

    Raises :class:`~reenact.errors.ReenactError` where that is impossible: there is no capture, or a damaged
    one, or the marker makes no sense.
    """
    options = options_of(item)
    place = place_of(item)
    mode: Mode = item.config.getoption("reenact")
    if mode == "off":
        return ItemRun(item, place, Run())
    if mode == "record" or (mode == "once" and is_vacant(place)):
        return RecordedItem(item, place, options)
    return ReplayedItem(item, place, options)
