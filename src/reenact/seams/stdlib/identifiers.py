"""Identifiers made of chance and time: ``uuid``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any, Final

from reenact.seams.stdlib.chosen import value_of
from reenact.seams.stdlib.rng import bits, drawn

_MAKERS: Final = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")
_NODE_BITS: Final = 48


def _maker(name: str) -> Callable[..., uuid.UUID]:
    instant = drawn(f"uuid.{name}")

    def make(*args: Any, **kwargs: Any) -> uuid.UUID:
        return uuid.UUID(value_of("uuid", instant, lambda: str(getattr(uuid, name)(*args, **kwargs))))

    return update_wrapper(make, getattr(uuid, name))


def _getnode() -> int:
    return bits("uuid.getnode", _NODE_BITS, uuid.getnode, "uuid")


STAND_INS: Final[dict[ModuleType, dict[str, Any]]] = {
    uuid: {
        **{name: _maker(name) for name in _MAKERS if hasattr(uuid, name)},
        "getnode": update_wrapper(_getnode, uuid.getnode),
    },
}
