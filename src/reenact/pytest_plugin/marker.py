"""The tests that use reenact, and what is needed of them before they run.

Fixtures of wider scope belong to several tests, so they cannot be part of a run. Those of function scope are,
and the run opens before all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import pytest

Mode: TypeAlias = Literal["replay", "record", "once", "update", "off"]

MARKER: Final = "reenact"
FIXTURE: Final = "reenact_run"
MODES: Final[tuple[Mode, ...]] = ("replay", "record", "once", "update", "off")


def is_used_by(item: pytest.Item) -> bool:
    """Whether *item* is marked, or requests the fixture ``reenact_run``."""
    return item.get_closest_marker(MARKER) is not None or FIXTURE in getattr(item, "fixturenames", ())


def path_of(item: pytest.Item) -> str | None:
    """The option ``path``, which is needed before the test runs."""
    paths = (mark.kwargs["path"] for mark in item.iter_markers(MARKER) if "path" in mark.kwargs)
    return next(paths, None)


def with_run_first(item: pytest.Function) -> list[str]:
    """The names of *item*'s fixtures in order of setup, with the run before all of function scope."""
    wider: list[str] = []
    own: list[str] = []
    for name in item.fixturenames:
        definitions = _definitions(item).get(name)
        (wider if definitions and definitions[-1].scope != "function" else own).append(name)
    return [*wider, FIXTURE, *(name for name in own if name != FIXTURE)]


def is_requested_by_fixture(item: pytest.Function) -> bool:
    """Whether a fixture of *item* needs the run to be open in its teardown."""
    chains = _definitions(item).values()
    return any(FIXTURE in definition.argnames for chain in chains for definition in chain)


def _definitions(item: pytest.Function) -> Mapping[str, Sequence[pytest.FixtureDef[object]]]:
    # pytest has no public API for the scope of a fixture before its setup.
    return item._fixtureinfo.name2fixturedefs  # noqa: SLF001
