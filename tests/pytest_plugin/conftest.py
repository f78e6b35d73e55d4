"""A suite of its own for each test: files in a folder, run by a real pytest."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reenact import pytest_plugin

AGENT = """
import asyncio, os, random, reenact

VARIANT = os.environ.get("VARIANT", "")


@reenact.tool
def search(query):
    print("live:", query)
    assert VARIANT != "offline", f"{query} went live"
    return random.getrandbits(60)


@reenact.tool
async def ask(query):
    await asyncio.sleep(random.random() / 200)
    return search.__wrapped__(query)


def got(*values):
    print("got:", *values)
"""


class KeepLoaded:
    """A plugin that remembers what an inner run imported.

    Pytester forgets it. But an audit hook cannot be removed again, and a library of which half is loaded
    anew no longer knows its own exceptions.
    """

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self.modules = dict(sys.modules)

    def restore(self, besides: Path) -> None:
        """Load again what was forgotten and does not lie in the folder *besides*."""
        for name, module in self.modules.items():
            if not str(getattr(module, "__file__", "")).startswith(str(besides)):
                sys.modules.setdefault(name, module)


class Suite:
    """Test files, and what came out when they were run."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makepyfile(agent=AGENT)

    def write(self, **modules: str) -> None:
        """Write test modules; each may use the agent's names."""
        heading = "import pytest, reenact\nfrom agent import *\n"
        for name, text in modules.items():
            self.pytester.path.joinpath(f"{name}.py").write_text(heading + text)

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in this process, with this plugin and none of the installed ones."""
        options = ("-s", "-W", "default", "-p", "no:cacheprovider")
        loaded = KeepLoaded()
        result = self.pytester.runpytest_inprocess(
            *options, *arguments, plugins=[pytest_plugin, loaded], no_reraise_ctrlc=True
        )
        loaded.restore(besides=self.path)
        return result

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own."""
        plugin = pytest_plugin.__name__
        return self.pytester.runpytest_subprocess("-p", plugin, "-p", "no:cacheprovider", *arguments)

    def manifest(self, place: str) -> Any:
        return json.loads((self.path / place / "manifest.json").read_text())

    def captures(self) -> list[str]:
        """The places of all captures, and whatever else lies beside them."""
        places = [*self.path.glob("captures/*/*"), *self.path.glob("*/captures/*/*")]
        return sorted(str(place.relative_to(self.path)) for place in places)

    def content(self, place: str) -> dict[str, bytes]:
        folder = self.path / place
        return {
            str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()
        }


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # A test file may be written twice within the second that compiled files are told apart by.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("CI", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "VARIANT"):
        monkeypatch.delenv(name, raising=False)
    return Suite(pytester)


def printed(result: pytest.RunResult, word: str) -> list[str]:
    """What the agent printed after *word*; pytest's progress may stand before it."""
    return re.findall(rf"\b{word}: (.*)$", str(result.stdout), re.MULTILINE)
