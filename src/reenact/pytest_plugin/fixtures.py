"""Which of a test's fixtures its run surrounds.

Those of wider scope belong to several tests and are set up whenever the first of these comes, so they
can be part of no test's run. Those of function scope can, and the run opens before all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reenact.pytest_plugin.marker import FIXTURE


def with_run_first(item: pytest.Function) -> list[str]:
    """The names of *item*'s fixtures in order of setup, the run before all that are set up for it alone."""
    wider: list[str] = []
    own: list[str] = []
    for name in item.fixturenames:
        definitions = _definitions(item).get(name)
        (wider if definitions and definitions[-1].scope != "function" else own).append(name)
    return [*wider, FIXTURE, *(name for name in own if name != FIXTURE)]


def is_requested_by_fixture(item: pytest.Function) -> bool:
    """Whether a fixture of *item* counts on the run being open in its teardown."""
    chains = _definitions(item).values()
    return any(FIXTURE in definition.argnames for chain in chains for definition in chain)


def _definitions(item: pytest.Function) -> Mapping[str, Sequence[pytest.FixtureDef[object]]]:
    # pytest has no public way to ask for a fixture's scope before it is set up.
    return item._fixtureinfo.name2fixturedefs  # noqa: SLF001
