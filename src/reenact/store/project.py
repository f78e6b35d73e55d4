"""``reenact.toml``: what a project says about its runs and tests, in the nearest folder upwards."""

from __future__ import annotations

import logging
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError, StoreError
from reenact.store.outfile import write_output

PROJECT_FILE: Final = "reenact.toml"
PROJECT_VARIABLE: Final = "REENACT_PROJECT"
"""Names the file to read, whoever owns it."""
_ROOT: Final = 0

log: Final = logging.getLogger("reenact")
_warned: set[Path] = set()


def find_project_file(start: Path) -> Path | None:
    """The nearest ``reenact.toml`` in *start* or above it, or the one that ``REENACT_PROJECT`` names.

    One that somebody else has put there, or may change, is passed over with a warning: nobody else must say
    under which rules we compare.
    """
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).absolute()
    start = start.resolve()
    for directory in (start, *start.parents):
        file = directory / PROJECT_FILE
        if file.is_file() and _is_ours(file):
            return file
    return None


def project_file_to_write(start: Path) -> Path:
    """The file that is read in *start*, or a new one there; raises where that would be ignored."""
    if (found := find_project_file(start)) is not None:
        return found
    file = start.absolute() / PROJECT_FILE
    if file.exists() and not file.is_file():
        raise StoreError(f"{file}: is not a regular file; remove it")
    if not _belong_to_us([start, file] if os.path.lexists(file) else [start]):
        raise StoreError(
            f"{file}: would belong to somebody else and be ignored; name another with {PROJECT_VARIABLE}"
        )
    return file


def _is_ours(file: Path) -> bool:
    """Whether it and its folder belong to us, and not everybody may change it."""
    reason = ""
    if not _belong_to_us([file, file.parent]):
        reason = "belongs to somebody else"
    elif file.stat().st_mode & stat.S_IWOTH:
        reason = "may be changed by everybody"
    if reason and file not in _warned:
        _warned.add(file)
        log.warning("%s: %s and is ignored; use it with %s=%s", file, reason, PROJECT_VARIABLE, file)
    return not reason


def _belong_to_us(paths: Iterable[Path]) -> bool:
    """Whether *paths*, and what they lead to, are ours or root's; under ``sudo`` also who called it."""
    trusted = {os.geteuid(), _ROOT}
    caller = os.environ.get("SUDO_UID", "")
    if os.geteuid() == _ROOT and caller.isdecimal():
        trusted.add(int(caller))
    try:
        owners = {found.st_uid for path in paths for found in _path_and_target(path)}
    except OSError:
        return False
    return owners <= trusted


def _path_and_target(path: Path) -> Iterator[os.stat_result]:
    yield os.lstat(path)
    with suppress(FileNotFoundError):  # a link may lead to what is yet to be made
        yield os.stat(path)


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
