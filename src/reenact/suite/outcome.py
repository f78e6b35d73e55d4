"""What goes into a run of tests, and what comes out of each."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from reenact.formats.result import TestResult
from reenact.suite.settings import Settings

EVIDENCE_CHARACTERS: Final = 400
"""How much of an event, of parameters and of an observation is shown to people."""


class Plan(NamedTuple):
    """What all tests of one run share; it travels to other processes."""

    test_run_id: str
    settings: Settings = Settings()
    name: str | None = None
    """Only tests whose id, title or path contains it."""
    tags: tuple[str, ...] = ()
    """Only tests with one of them."""
    strict: bool = False
    """Whether a key or a parameter that nobody knows keeps a test from being run."""
    output_directory: Path | None = None
    """Where result files go; ``None`` writes none but the traces that tests ask for."""


class Outcome(NamedTuple):
    """A result, and what a report for people adds to it."""

    result: TestResult
    title: str
    lines: dict[str, int]
    """Where in the test file each assertion stands, by id; empty for a test that passed without a warning."""
    events: dict[str, str]
    """What failed assertions looked at, by event id, one line each."""
