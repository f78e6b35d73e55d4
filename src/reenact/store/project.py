"""``reenact.toml``: what a project says about its runs and tests, in the nearest folder upwards."""

from __future__ import annotations

import logging
import os
import tomllib
from pathlib import Path
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.store.outfile import write_output

PROJECT_FILE: Final = "reenact.toml"
PROJECT_VARIABLE: Final = "REENACT_PROJECT"
"""Names the file to read, whoever owns it."""
_ROOT: Final = 0

log: Final = logging.getLogger("reenact")
_warned: set[Path] = set()


def find_project_file(start: Path) -> Path | None:
    """The nearest ``reenact.toml`` in *start* or above it, or the one that ``REENACT_PROJECT`` names.

    One that somebody else has put there is passed over with a warning: whoever may write to a folder above
    must not say under which rules we compare.
    """
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).absolute()
    start = start.resolve()
    for directory in (start, *start.parents):
        file = directory / PROJECT_FILE
        if file.is_file() and _is_ours(file):
            return file
    return None


def _is_ours(file: Path) -> bool:
    """Whether it and its folder belong to us or to root; under ``sudo`` also to who called it."""
    trusted = {os.geteuid(), _ROOT}
    caller = os.environ.get("SUDO_UID", "")
    if os.geteuid() == _ROOT and caller.isdecimal():
        trusted.add(int(caller))
    try:
        is_ours = {os.lstat(file).st_uid, os.stat(file).st_uid, os.stat(file.parent).st_uid} <= trusted
    except OSError:
        is_ours = False
    if not is_ours and file not in _warned:
        _warned.add(file)
        log.warning(
            "%s: belongs to somebody else and is ignored; use it with %s=%s", file, PROJECT_VARIABLE, file
        )
    return is_ours


def read_project(file: Path) -> dict[str, JsonValue]:
    """All tables of *file*."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise FormatError("nested too deep", file=str(file)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"not TOML: {error}", file=str(file)) from None


def append_to_project(file: Path, text: str) -> None:
    """Add tables to the end of *file*, which is made where it is missing; what is in it stays as it is."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    separator = "\n" if before.endswith("\n") else "\n\n" if before else ""
    whole = before + separator + text
    try:
        tomllib.loads(whole)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"the tables cannot be added: {error}; add them by hand", file=str(file)) from None
    write_output(file, whole.encode())
