"""Assertions over recorded behaviour, written in test.yaml."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reenact.suite.judge import assertion
    from reenact.suite.params import Params
    from reenact.suite.verdict import Verdict

__all__ = ["Params", "Verdict", "assertion"]

# Name → module. Imported on first use: reading the settings does not load every assertion.
_HOMES = {"Params": "params", "Verdict": "verdict", "assertion": "judge"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
