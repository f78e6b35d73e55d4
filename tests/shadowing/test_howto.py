"""The examples of the pages on forks and shadow runs, as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["fork.md", "shadow.md"])
def test_the_example_runs_as_printed(page, tmp_path):
    """In an empty folder, with the output that the page shows."""
    text = (PAGES / page).read_text()
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == (printed, "")
