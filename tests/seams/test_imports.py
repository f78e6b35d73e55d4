"""Libraries are patched when they are whole."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reenact.seams.imports import watch_imports
from reenact.seams.patches import Patch

HALF = """
import half_loaded_hook
half_loaded_hook.run()
def ask(): return "real"
"""


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """What the module ``half_loaded`` runs before it has a name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "half_loaded.py").write_text(HALF)
    found = ModuleType("half_loaded_hook")
    monkeypatch.setitem(sys.modules, "half_loaded_hook", found)
    importlib.invalidate_caches()
    yield found
    sys.modules.pop("half_loaded", None)


def patches(module: ModuleType) -> list[Patch]:
    return [Patch(module, "ask", lambda _: lambda: "ours")]


def test_a_library_that_another_thread_loads_is_waited_for(hook: ModuleType) -> None:
    begun, rest = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        rest.wait(10)

    hook.run = run  # type: ignore[attr-defined]
    thread = threading.Thread(target=importlib.import_module, args=("half_loaded",))
    thread.start()
    begun.wait(10)
    threading.Timer(0.05, rest.set).start()
    with watch_imports({"half_loaded": patches}):
        assert sys.modules["half_loaded"].ask() == "ours"
    thread.join()
    assert sys.modules["half_loaded"].ask() == "real"


def test_a_fork_from_within_a_library_that_is_being_loaded_goes_on(hook: ModuleType) -> None:
    """Nobody there will ever finish loading it."""
    ended = []

    def run() -> None:
        child = os.fork()
        if not child:
            with watch_imports({"half_loaded": patches}):
                os._exit(0)
        ended.append(os.waitpid(child, 0)[1])

    hook.run = run  # type: ignore[attr-defined]
    importlib.import_module("half_loaded")
    assert ended == [0]


def test_a_version_without_a_place_for_us_can_be_used(
    hook: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    """It is patched where it can be, and that something is missing is said."""
    hook.run = lambda: None  # type: ignore[attr-defined]

    def more_patches(module: ModuleType) -> list[Patch]:
        same = lambda original: original  # noqa: E731
        return [Patch(module, "gone", same), Patch(module, "new", same, may_lack=True), *patches(module)]

    with watch_imports({"half_loaded": more_patches}):
        assert importlib.import_module("half_loaded").ask() == "ours"
    assert "this version of half_loaded is not known (gone)" in caplog.text
    sys.modules.pop("half_loaded")
    with watch_imports({"half_loaded": lambda module: [Patch(module.no_class, "ask", str)]}):
        assert importlib.import_module("half_loaded").ask() == "real"
    assert "no_class" in caplog.text
