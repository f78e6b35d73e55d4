"""``--reenact-orphans``: captures that no collected test uses, because it was renamed or removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reenact.analysis.brief import plural
from reenact.pytest_plugin.marker import is_used_by
from reenact.pytest_plugin.places import CAPTURES, display_path, place_of
from reenact.store.paths import folder_name

_OUTPUT: Final = "reenact_orphans"


class Orphans:
    """Collects all tests, also those that are deselected later."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._items: list[pytest.Item] = []
        self._found: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self._items.append(item)

    def pytest_collection_finish(self) -> None:
        self._found = [display_path(place, self._config) for place in orphans(self._items)]
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = self._found

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take the result of an xdist worker; each worker collects all tests."""
        self._found = getattr(node, "workeroutput", {}).get(_OUTPUT, self._found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.ensure_newline()
        if _is_partial(self._config):
            terminalreporter.write_line(
                "reenact: orphans are only searched when complete files are collected"
            )
            return
        terminalreporter.write_line(f"reenact: {plural(len(self._found), 'capture')} that no test uses")
        for place in self._found:
            terminalreporter.write_line(f"  orphan    {place}")


def orphans(items: list[pytest.Item]) -> list[Path]:
    """Captures beside the files of *items* that belong to no item and to no uncollected file."""
    used = {place_of(item) for item in items if is_used_by(item)}
    files = {item.path for item in items}
    found: list[Path] = []
    for folder in sorted({file.parent for file in files}):
        collected = {folder_name(file.stem) for file in files if file.parent == folder}
        absent = {folder_name(file.stem) for file in folder.glob("*.py")} - collected
        found += [place for place in _captures(folder, absent) if place not in used]
    return found


def _captures(folder: Path, besides: set[str]) -> Iterator[Path]:
    for manifest in sorted(folder.glob(f"{CAPTURES}/*/*/manifest.json")):
        if manifest.parent.parent.name not in besides:
            yield manifest.parent


def _is_partial(config: pytest.Config) -> bool:
    return config.getoption("lf", default=False) or any("::" in argument for argument in config.args)
