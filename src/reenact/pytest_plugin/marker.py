"""Which tests use reenact, and what has to be known of them before they run."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import pytest

Mode: TypeAlias = Literal["replay", "record", "once", "update", "off"]

MARKER: Final = "reenact"
FIXTURE: Final = "reenact_run"
MODES: Final[tuple[Mode, ...]] = ("replay", "record", "once", "update", "off")


def is_used_by(item: pytest.Item) -> bool:
    """Whether *item* is marked, or requests the run by its fixture alone."""
    return item.get_closest_marker(MARKER) is not None or FIXTURE in getattr(item, "fixturenames", ())


def path_of(item: pytest.Item) -> str | None:
    """The one option that is needed before the test runs."""
    paths = (mark.kwargs["path"] for mark in item.iter_markers(MARKER) if "path" in mark.kwargs)
    return next(paths, None)
