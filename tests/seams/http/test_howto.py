"""The how-to's program runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.seams.http.site import Site
from tests.seams.http.test_clients import calls_in

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "http-clients.md"


def test_the_example_runs(tmp_path: Path, web: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    before = len(web.bodies)
    names["record_and_replay"](f"{web.url}/")
    assert len(web.bodies) == before + 1
    assert calls_in(tmp_path / "runs" / "weather")[0]["request"]["body"] == {"question": "How warm is it?"}
