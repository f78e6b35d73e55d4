"""Where a test's capture is: ``captures/<module>/<test>/`` beside the test's file."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from reenact.pytest_plugin.marker import is_used_by, path_of
from reenact.store.paths import folder_name

CAPTURES: Final = "captures"
_SHARED: Final = pytest.StashKey[frozenset[str]]()


def place_of(item: pytest.Item) -> Path:
    """The capture directory of *item*, whether or not it exists."""
    path = path_of(item)
    if path is not None:
        return item.path.parent / path
    folder = item.path.parent / CAPTURES / folder_name(item.path.stem)
    return folder / folder_name(".".join(_names(item)))


def parent_of(item: pytest.Item, name: str) -> Path:
    """The capture of which *item* is to be a fork: another test of its module, or a path from its folder."""
    if name.startswith("test") and "/" not in name:
        return item.path.parent / CAPTURES / folder_name(item.path.stem) / folder_name(name)
    return item.path.parent / name


def is_vacant(place: Path) -> bool:
    """Whether there is nothing at *place*, not even something broken."""
    return not place.exists() or (place.is_dir() and not any(place.iterdir()))


def note_shared(session: pytest.Session) -> None:
    """Remember the places that several of the collected tests have."""
    used = Counter(str(place_of(item)).casefold() for item in session.items if is_used_by(item))
    session.config.stash[_SHARED] = frozenset(place for place, count in used.items() if count > 1)


def is_shared(place: Path, config: pytest.Config) -> bool:
    """Whether another of the collected tests has its capture at *place*, on any file system."""
    return str(place).casefold() in config.stash.get(_SHARED, frozenset())


def shown(place: Path, config: pytest.Config) -> str:
    """*place* as a person at the command line would write it."""
    return os.path.relpath(place, config.invocation_params.dir)


def command(item: pytest.Item, mode: str) -> str:
    """The command line that runs *item* alone in *mode*."""
    test = "::".join([shown(item.path, item.config), *_names(item)])
    return f"pytest {shlex.quote(test)} --reenact={mode}"


def _names(item: pytest.Item) -> list[str]:
    # Not from the node id, to which plugins add their own marks.
    return [*(node.name for node in item.listchain() if isinstance(node, pytest.Class)), item.name]
