"""The place of a test's capture: ``captures/<module>/<test>/`` beside the test's file.

With ``--reenact-captures ADDRESS`` it is in object storage, under its path below the root of the project, and
a temporary folder has copies during the session.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from reenact.pytest_plugin.marker import is_used_by, path_of
from reenact.store.paths import folder_name

if TYPE_CHECKING:
    from reenact.pytest_plugin.stored import StoredCaptures

CAPTURES: Final = "captures"
STORED: Final = pytest.StashKey["StoredCaptures"]()
"""Set only if captures are at an address, because it needs slow imports."""
_NO_CASSETTE_SIGN: Final = re.compile(r"[<>?%*:|\"'/\\]")
"""Characters that pytest-recording replaces by ``-`` in the name of a cassette."""
_SHARED: Final = pytest.StashKey[frozenset[str]]()


def stored_captures(config: pytest.Config) -> StoredCaptures | None:
    """The captures at an address; ``None`` if captures are local."""
    return config.stash.get(STORED, None)


def _home(item: pytest.Item) -> Path:
    """The folder of the test's file, or the local copy of its folder at an address."""
    stored = stored_captures(item.config)
    if stored is None:
        return item.path.parent
    below = os.path.relpath(item.path.parent, item.config.rootpath)
    return stored.folder.joinpath(*(part for part in Path(below).parts if part != ".."))


def place_of(item: pytest.Item) -> Path:
    """The capture directory of *item*, whether or not it exists."""
    path = path_of(item)
    if path is not None:
        place = _home(item) / path
        return place if stored_captures(item.config) is None else Path(os.path.normpath(place))
    folder = _home(item) / CAPTURES / folder_name(item.path.stem)
    name = ".".join(_names(item))
    place, imported = folder / folder_name(name), folder / folder_name(_NO_CASSETTE_SIGN.sub("-", name))
    return imported if imported != place and is_vacant(place) and _is_of_cassette(imported) else place


def _is_of_cassette(place: Path) -> bool:
    """Whether the capture at *place* was imported from a cassette of that name."""
    try:
        manifest = json.loads((place / "manifest.json").read_bytes())
        return bool(manifest["imported"]["format"] == "vcr")
    except (OSError, ValueError, LookupError, TypeError):
        return False


def parent_of(item: pytest.Item, name: str) -> Path:
    """The capture that *item* forks: of another test of its module, or a path relative to its folder."""
    if name.startswith("test") and "/" not in name:
        return _home(item) / CAPTURES / folder_name(item.path.stem) / folder_name(name)
    return _home(item) / name


def is_vacant(place: Path) -> bool:
    """Whether nothing exists at *place*, not even a damaged capture."""
    return not place.exists() or (place.is_dir() and not any(place.iterdir()))


def find_shared_places(session: pytest.Session) -> None:
    """Find the places that several collected tests share."""
    used = Counter(str(place_of(item)).casefold() for item in session.items if is_used_by(item))
    session.config.stash[_SHARED] = frozenset(place for place, count in used.items() if count > 1)


def is_shared(place: Path, config: pytest.Config) -> bool:
    """Whether another collected test has its capture at *place*, also ignoring case."""
    return str(place).casefold() in config.stash.get(_SHARED, frozenset())


def display_path(place: Path, config: pytest.Config) -> str:
    """*place* relative to the working folder, if possible."""
    stored = stored_captures(config)
    if stored is not None and place.is_relative_to(stored.folder):
        return stored.address_of(place)
    return os.path.relpath(place, config.invocation_params.dir)


def command(item: pytest.Item, mode: str) -> str:
    """The command line that runs *item* alone in *mode*."""
    test = "::".join([display_path(item.path, item.config), *_names(item)])
    return f"pytest {shlex.quote(test)} --reenact={mode}"


def _names(item: pytest.Item) -> list[str]:
    # Not from the node id, which plugins may extend.
    return [*(node.name for node in item.listchain() if isinstance(node, pytest.Class)), item.name]
