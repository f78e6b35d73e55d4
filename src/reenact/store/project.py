"""``reenact.toml``: the settings of a project for its runs and tests, in this folder or the nearest above."""

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
from reenact.process_state import distrusted_files
from reenact.store.outfile import write_output

PROJECT_FILE: Final = "reenact.toml"
PROJECT_VARIABLE: Final = "REENACT_PROJECT"
"""The environment variable with the path of the file; then its owner is not checked."""
_ROOT: Final = 0

log: Final = logging.getLogger("reenact")


def find_project_file(start: Path) -> Path | None:
    """The nearest ``reenact.toml`` in *start* or above it, or the one that ``REENACT_PROJECT`` names.

    A file that another user owns or may change is ignored with a warning, because it decides under which
    rules runs are compared.
    """
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).absolute()
    start = Path(os.path.realpath(start))  # unlike `resolve` it takes a link to itself
    for directory in (start, *start.parents):
        file = directory / PROJECT_FILE
        if file.is_file() and _is_ours(file):
            return file
    return None


def project_file_to_write(start: Path) -> Path:
    """The file that is read in *start*, or a new one there; raises if that file would be ignored."""
    if (found := find_project_file(start)) is not None:
        return found
    file = start.absolute() / PROJECT_FILE
    if file.exists() and not file.is_file():
        raise StoreError(f"{file}: is not a regular file; remove it")
    if not _are_ours([start, file] if os.path.lexists(file) else [start]):
        raise StoreError(
            f"{file}: would belong to somebody else and be ignored; name another with {PROJECT_VARIABLE}"
        )
    return file


def _is_ours(file: Path) -> bool:
    """Whether *file* and its folder belong to this user, and not everybody may write to it."""
    reason = ""
    if not _are_ours([file, file.parent]):
        reason = "belongs to somebody else"
    elif file.stat().st_mode & stat.S_IWOTH:
        reason = "may be changed by everybody"
    if reason and file not in distrusted_files:
        distrusted_files.add(file)
        log.warning("%s: %s and is ignored; use it with %s=%s", file, reason, PROJECT_VARIABLE, file)
    return not reason


def _are_ours(paths: Iterable[Path]) -> bool:
    """Whether this user or root owns *paths* and their link targets; under ``sudo`` also the calling user."""
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
    with suppress(FileNotFoundError):  # the target of a link need not exist yet
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
    """Append tables to *file*, which is created if it is missing; its present text is not changed."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    separator = "\n" if before.endswith("\n") else "\n\n" if before else ""
    whole = before + separator + text
    try:
        tomllib.loads(whole)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"the tables cannot be added: {error}; add them by hand", file=str(file)) from None
    write_output(file, whole.encode())
