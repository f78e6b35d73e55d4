"""The ``[test]`` table of ``reenact.toml``: assertions of the project's own, and defaults for parameters.

[test]
assertions = ["checks/orders.py"]        # relative to this file

[test.defaults.cost_budget.prices]       # where a test.yaml does not say
"gpt-5*" = { input = 1.25, output = 10 }
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from reenact.errors import FormatError
from reenact.store.project import find_project_file, read_project


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the project says about its tests."""

    assertions: tuple[str, ...] = ()
    """Python files; absolute once they are read."""
    defaults: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Parameters by assertion type."""


def find_settings(start: Path) -> Settings:
    """The settings of the nearest ``reenact.toml`` in *start* or above it; the defaults without one."""
    file = find_project_file(start)
    return read_settings(file) if file is not None else Settings()


def read_settings(file: Path) -> Settings:
    """The settings in *file*; its other tables are not looked at."""
    table = read_project(file).get("test", {})
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise FormatError(f"[test]: {error}", file=str(file)) from None
    files = tuple(str(file.parent / name) for name in settings.assertions)
    return msgspec.structs.replace(settings, assertions=files)
