"""Whose code a loaded module is, asked again and again in one process."""

from __future__ import annotations

import gc
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from reenact.library import possible_agents
from reenact.seams.stdlib import exchange

LIBRARY = str(Path(sysconfig.get_path("stdlib")) / "a_library.py")
AGENT = "/home/someone/agent.py"


def loaded(monkeypatch: pytest.MonkeyPatch, file: str | None) -> None:
    module = ModuleType("reenact_test_subject")
    if file is not None:
        module.__file__ = file
    monkeypatch.setitem(sys.modules, "reenact_test_subject", module)


def is_possible() -> bool:
    return "reenact_test_subject" in dict(possible_agents())


@pytest.mark.parametrize(("file", "expected"), [(LIBRARY, False), (AGENT, True), (None, True)])
def test_what_is_known_stays_known(
    monkeypatch: pytest.MonkeyPatch, file: str | None, *, expected: bool
) -> None:
    """The second answer is the first."""
    loaded(monkeypatch, file)
    assert [is_possible(), is_possible()] == [expected, expected]


def test_a_module_loaded_later_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may import its own modules between two runs."""
    assert not is_possible()
    loaded(monkeypatch, AGENT)
    assert is_possible()


def test_a_module_that_takes_a_librarys_name_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another module, whatever was known of the one before."""
    loaded(monkeypatch, LIBRARY)
    assert not is_possible()
    loaded(monkeypatch, AGENT)
    assert is_possible()
    loaded(monkeypatch, LIBRARY)
    assert not is_possible()


def test_a_module_whose_file_is_named_later_is_seen_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file nothing is known for good."""
    loaded(monkeypatch, None)
    assert is_possible()
    sys.modules["reenact_test_subject"].__file__ = LIBRARY
    assert not is_possible()


def test_what_is_no_module_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """``None`` in ``sys.modules`` forbids an import, and any object may stand there."""
    monkeypatch.setitem(sys.modules, "reenact_forbidden", None)
    monkeypatch.setitem(sys.modules, "reenact_object", object())
    assert possible_agents()


def test_an_import_while_we_look_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector may run at any allocation, and let another thread import meanwhile."""
    arrivals = iter(range(100_000))

    def import_something(phase: str, _: dict[str, int]) -> None:
        monkeypatch.setitem(sys.modules, f"arrived{next(arrivals)}", ModuleType("arrived"))

    threshold = gc.get_threshold()
    gc.callbacks.append(import_something)
    gc.set_threshold(50, 1, 1)
    try:
        for _ in range(20):
            assert __name__ in dict(possible_agents())
            assert list(exchange.agents_namespaces(("tests",)))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(import_something)
