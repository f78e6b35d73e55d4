"""The tutorial runs as it stands."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"


def test_the_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of the page, in order, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert tried > 15
    assert not failed
