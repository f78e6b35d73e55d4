"""``reenact.toml``: what a project says about its runs and tests, in the nearest folder upwards."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from reenact.errors import FormatError
from reenact.store.outfile import write_output

PROJECT_FILE: Final = "reenact.toml"


def find_project_file(start: Path) -> Path | None:
    """The nearest ``reenact.toml`` in *start* or above it."""
    start = start.resolve()
    files = (directory / PROJECT_FILE for directory in (start, *start.parents))
    return next((file for file in files if file.is_file()), None)


def read_project(file: Path) -> dict[str, Any]:
    """All tables of *file*."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
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
