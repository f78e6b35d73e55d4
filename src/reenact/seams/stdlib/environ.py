"""The environment, for runs that record it: replay gives the agent the recorded variables.

A variable is recorded under its own name, by which redaction recognises a key. In replay the agent reads the
placeholder and needs no key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from functools import update_wrapper
from types import ModuleType
from typing import Final

from reenact.boundary import Instant
from reenact.seams.stdlib.sources import value_of, wants_variable

_environ: Final = os.environ
_ALL: Final = "*"


def _instant(name: str) -> Instant:
    return Instant("state_mutation", {"type": "env_read", "details": {"name": name}})


def _read(name: str) -> str | None:
    if not wants_variable(name):
        return _environ.get(name)
    found: dict[str, str | None] = value_of("environ", _instant(name), lambda: {name: _environ.get(name)})
    return found[name]


class Environ(MutableMapping[str, str]):
    """``os.environ``: reading is recorded, writing goes to the real one."""

    def __getitem__(self, name: str) -> str:
        value = _read(name) if isinstance(name, str) else _environ[name]  # raises Python's own error
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        _environ[name] = value

    def __delitem__(self, name: str) -> None:
        del _environ[name]

    def __iter__(self) -> Iterator[str]:
        if not wants_variable(_ALL):
            return iter(_environ)
        return iter(value_of("environ", _instant(_ALL), lambda: list(_environ)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _read(name) is not None

    def copy(self) -> dict[str, str]:
        return dict(self)

    def __or__(self, other: Mapping[str, str]) -> dict[str, str]:
        return dict(self) | dict(other)

    def __ror__(self, other: Mapping[str, str]) -> dict[str, str]:
        return dict(other) | dict(self)

    def __repr__(self) -> str:
        return repr(_environ)


def _getenv(key: str, default: object = None) -> object:
    value = _read(key)
    return default if value is None else value


STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    os: {"environ": Environ(), "getenv": update_wrapper(_getenv, os.getenv)},
}
