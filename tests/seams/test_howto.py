"""The code on the how-to pages runs as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


def files_on(page: str) -> dict[str, str]:
    """The page's Python files: each block of code follows a line that ends with its file's name."""
    text = (PAGES / page).read_text(encoding="utf-8")
    return dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


EXAMPLES = {
    "anthropic.md": ("try_it.py", 2),
    "chance-and-time.md": ("agent.py", 1),
    "langgraph.md": ("try_it.py", 2),
    "mcp.md": ("agent.py", 2),
    "openai.md": ("try_it.py", 2),
    "openai-agents.md": ("try_it.py", 2),
    "pydantic-ai.md": ("try_it.py", 2),
}
"""By page: the program to run, and how many files the page has."""


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_example_holds(page: str, tmp_path: Path) -> None:
    """The program asserts by itself that its replay is its recording."""
    program, count = EXAMPLES[page]
    files = files_on(page)
    assert len(files) == count
    for name, code in files.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    subprocess.run([sys.executable, "-W", "error", program], cwd=tmp_path, check=True, timeout=280)
