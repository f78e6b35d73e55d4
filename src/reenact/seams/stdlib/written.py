"""Files and databases that anybody in this process opens to write while a run is recorded.

What a run leaves behind may make the next one differ; a replay that diverges names what was there. Only the
places are kept. What C code opens by itself is not seen, but SQLite tells.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reenact.boundary import OUTSIDE, hear_audit_events, lane_var
from reenact.volatile.places import working_folder

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MAX_KEPT: Final = 200
_NOT_FILES: Final = ("/dev/", "/proc/", "/sys/")
_CAPTURE: Final = "events.jsonl"
_CAPTURE_DEPTH: Final = 4
"""So deep lies a blob in it."""
_URI: Final = re.compile(r"^file:(?://)?([^?#]*).*$", re.DOTALL)
_PASSED_BY: Final = f"{os.sep}__pycache__{os.sep}"


class Written:
    """The places of one run."""

    def __init__(self) -> None:
        self._places: dict[str, None] = {}

    def add(self, place: object) -> None:
        if isinstance(place, str | bytes | os.PathLike) and len(self._places) < _MAX_KEPT:
            name = _URI.sub(r"\1", os.fsdecode(place))
            self._places[os.path.normpath(os.path.join(working_folder(), name))] = None

    def left_behind(self) -> list[str]:
        """Those that are still there as files of the user's, as :func:`tell_place` tells them."""
        return [tell_place(place) for place in self._places if is_users_file(place)]


def is_users_file(place: str, cwd: str | None = None) -> bool:
    """Whether a file is there that is neither temporary, nor compiled code, nor part of a capture."""
    folders = (cwd or working_folder(), tempfile.gettempdir())
    here, temporary = (os.path.join(folder, "") for folder in folders)
    is_temporary = place.startswith(temporary) and not place.startswith(here)
    if is_temporary or _PASSED_BY in place or place.startswith(_NOT_FILES) or not os.path.isfile(place):
        return False
    return not any((folder / _CAPTURE).exists() for folder in list(Path(place).parents)[:_CAPTURE_DEPTH])


def tell_place(place: str, cwd: str | None = None) -> str:
    """*place* below the working folder or the home folder where it is there: a replay may have others."""
    for folder, name in ((cwd or working_folder(), ""), (os.path.expanduser("~"), "~/")):
        if place.startswith(folder.rstrip(os.sep) + os.sep):
            return name + os.path.relpath(place, folder)
    return place


_open: tuple[Written, ...] = ()
"""Replaced, never changed, because the hook reads it without a lock."""


@contextmanager
def watched_by(written: Written) -> Iterator[None]:
    """Have *written* told what is opened to write in the block."""
    global _open
    hear_audit_events(("open", "sqlite3.connect", "os.rename"), _listen)
    _open = (*_open, written)
    try:
        yield
    finally:
        _open = tuple(each for each in _open if each is not written)


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if not _open:
        return
    if event == "open":
        if arguments[2] & _WRITING:
            _tell(arguments[0])
    elif event == "sqlite3.connect":
        _tell(arguments[0])
    elif event == "os.rename":
        _tell(arguments[1])


def _tell(place: Any) -> None:
    if lane_var.get() is OUTSIDE:
        return  # by us, in place of a call that was answered
    for written in _open:
        written.add(place)
