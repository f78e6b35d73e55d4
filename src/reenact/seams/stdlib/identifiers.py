"""Identifiers made of chance and time: ``uuid``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any, Final

from reenact.seams.stdlib.chosen import AS_IT_IS, Form, formed_value_of, is_genuine
from reenact.seams.stdlib.rng import bits, drawn

_MAKERS: Final = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")
_NODE_BITS: Final = 48
_FORM: Final = Form(uuid.UUID, str, uuid.UUID)
_original_getnode: Final = uuid.getnode


def _maker(name: str) -> Callable[..., uuid.UUID]:
    instant, original = drawn(f"uuid.{name}"), getattr(uuid, name)

    def make(*args: Any, **kwargs: Any) -> uuid.UUID:
        real = getattr(uuid, name)  # looked up at each call: a test may have put a fake there
        made: uuid.UUID = formed_value_of(
            "uuid", instant, lambda: real(*args, **kwargs), _FORM, is_fake=not is_genuine(real, original)
        )
        return made

    return update_wrapper(make, original)


def _getnode() -> int:
    if is_genuine(uuid.getnode, _original_getnode):
        return bits("uuid.getnode", _NODE_BITS, uuid.getnode, "uuid")
    faked: int = formed_value_of("uuid", drawn("uuid.getnode"), uuid.getnode, AS_IT_IS, is_fake=True)
    return faked


STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    uuid: {
        **{name: _maker(name) for name in _MAKERS if hasattr(uuid, name)},
        "getnode": update_wrapper(_getnode, uuid.getnode),
    },
}
