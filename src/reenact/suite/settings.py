"""The ``[test]`` table of ``reenact.toml``: assertions of the project's own, and defaults for parameters.

[test]
assertions = ["checks/orders.py"]        # relative to this file

[test.defaults.cost_budget.prices]       # where a test.yaml does not say
"gpt-5*" = { input = 1.25, output = 10 }
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.errors import FormatError

FILE_NAME: Final = "reenact.toml"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the project says about its tests."""

    assertions: tuple[str, ...] = ()
    """Python files; absolute once they are read."""
    defaults: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Parameters by assertion type."""


def find_settings(start: Path) -> Settings:
    """The settings of the nearest ``reenact.toml`` in *start* or above it; the defaults without one."""
    start = start.resolve()
    for directory in (start, *start.parents):
        if (directory / FILE_NAME).is_file():
            return read_settings(directory / FILE_NAME)
    return Settings()


def read_settings(file: Path) -> Settings:
    """The settings in *file*; its other tables are not looked at."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("test", {})
        settings = msgspec.convert(table, Settings)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"not TOML: {error}", file=str(file)) from None
    except msgspec.ValidationError as error:
        raise FormatError(f"[test]: {error}", file=str(file)) from None
    files = tuple(str(file.parent / name) for name in settings.assertions)
    return msgspec.structs.replace(settings, assertions=files)
