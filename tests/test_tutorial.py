"""The tutorial and the page about the API run as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["tutorial.md", "api.md"])
def test_the_page_prints_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of the page, in order, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert tried > 15
    assert not failed
