"""The how-to page's code runs as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/howto/scripted-provider.md"


def printed_code() -> dict[str, Any]:
    """The page's blocks, run one after the other as one module."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    exec("\n".join(blocks), names)
    return names


EXAMPLES = {name: value for name, value in printed_code().items() if name.startswith("test_")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_holds(name: str) -> None:
    """Each test function on the page passes."""
    EXAMPLES[name]()


def test_the_page_has_examples() -> None:
    """A page whose code is no longer found would pass unseen."""
    assert len(EXAMPLES) == 4
