"""Files and databases that any code in this process opens for writing while a run is recorded.

Files that a run leaves behind may make the next run differ, so a replay that diverges names them. Only the
paths are kept. Files that C code opens are not seen, except SQLite databases, which raise an audit event.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reenact.boundary import OUTSIDE, hear_audit_events
from reenact.process_state import lane_var, written_files
from reenact.volatile.places import working_folder

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MAX_KEPT: Final = 200
_NOT_FILES: Final = ("/dev/", "/proc/", "/sys/")
_CAPTURE: Final = "events.jsonl"
_CAPTURE_DEPTH: Final = 4
"""How deep a blob lies in a capture."""
_URI: Final = re.compile(r"^file:(?://)?([^?#]*).*$", re.DOTALL)
_COMPILED: Final = f"{os.sep}__pycache__{os.sep}"


class WrittenFiles:
    """The paths that one run opened for writing."""

    def __init__(self) -> None:
        self._places: dict[str, None] = {}

    def add(self, place: object) -> None:
        if isinstance(place, str | bytes | os.PathLike) and len(self._places) < _MAX_KEPT:
            name = _URI.sub(r"\1", os.fsdecode(place))
            self._places[os.path.normpath(os.path.join(working_folder(), name))] = None

    def list_written(self) -> list[str]:
        """Those that still exist as files of the user, in the form of :func:`tell_place`."""
        return [tell_place(place) for place in self._places if is_users_file(place)]


def is_users_file(place: str, cwd: str | None = None) -> bool:
    """Whether *place* is an existing file, not temporary, no compiled code, and no part of a capture."""
    folders = (cwd or working_folder(), tempfile.gettempdir())
    here, temporary = (os.path.join(folder, "") for folder in folders)
    is_temporary = place.startswith(temporary) and not place.startswith(here)
    if is_temporary or _COMPILED in place or place.startswith(_NOT_FILES) or not os.path.isfile(place):
        return False
    return not any((folder / _CAPTURE).exists() for folder in list(Path(place).parents)[:_CAPTURE_DEPTH])


def tell_place(place: str, cwd: str | None = None) -> str:
    """*place* relative to the working folder or the home folder if below it: they may differ in replay."""
    for folder, name in ((cwd or working_folder(), ""), (os.path.expanduser("~"), "~/")):
        if place.startswith(folder.rstrip(os.sep) + os.sep):
            return name + os.path.relpath(place, folder)
    return place


@contextmanager
def watch_written_files(written: WrittenFiles) -> Iterator[None]:
    """Add to *written* what is opened for writing in the block."""
    hear_audit_events(("open", "sqlite3.connect", "os.rename"), _listen)
    with written_files.holding(written):
        yield


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if not written_files.entries:
        return
    if event == "open":
        if arguments[2] & _WRITING:
            _note(arguments[0])
    elif event == "sqlite3.connect":
        _note(arguments[0])
    elif event == "os.rename":
        _note(arguments[1])


def _note(place: object) -> None:
    if lane_var.get() is OUTSIDE:
        return  # we write it ourselves, to repeat the effect of an answered call
    for written in written_files.entries:
        written.add(place)
