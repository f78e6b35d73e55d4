"""An agent of one's own: a module written for the test, imported before or during a run."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def module_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a source text as a new module of the agent's."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def module_of(source: str) -> ModuleType:
        name = f"agent_module_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        made.append(name)
        return importlib.import_module(name)

    yield module_of
    for name in made:
        sys.modules.pop(name, None)
