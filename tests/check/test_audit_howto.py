"""The how-to about audits: its Python runs; its commands are run with those of the other pages."""

import re

from tests.formats import ROOT

PAGE = (ROOT / "docs" / "howto" / "audit.md").read_text(encoding="utf-8")


def test_every_piece_of_python_runs(monkeypatch, tmp_path):
    """Its own assertions are the test."""
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "audit.md", "exec"), {"__name__": "howto"})
    assert (tmp_path / "REPLAY.jsonl").exists()
