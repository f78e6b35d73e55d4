"""Chance that is meant to be secret: ``secrets`` and ``os.urandom``.

Tokens pass through redaction like any text, unlike the numbers of ``random``: one that is hidden in the
recording comes back as its placeholder, wherever it went.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.stdlib.chosen import value_of
from reenact.seams.stdlib.rng import SystemRandom


class _Secret(SystemRandom):
    source = "secrets"

    def randbelow(self, exclusive_upper_bound: int) -> int:
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return self.randrange(exclusive_upper_bound)


def _text(module: ModuleType, name: str) -> Callable[..., str]:
    instant = _token(module, name)

    def make(*args: Any, **kwargs: Any) -> str:
        text: str = value_of("secrets", instant, lambda: getattr(module, name)(*args, **kwargs))
        return text

    return update_wrapper(make, getattr(module, name))


def _bytes(module: ModuleType, name: str) -> Callable[..., bytes]:
    instant = _token(module, name)

    def make(*args: Any, **kwargs: Any) -> bytes:
        text = value_of("secrets", instant, lambda: getattr(module, name)(*args, **kwargs).hex())
        return bytes.fromhex(text)

    return update_wrapper(make, getattr(module, name))


def _token(module: ModuleType, name: str) -> Instant:
    return Instant("nondeterministic", {"source": "rng", "key": f"{module.__name__}.{name}"})


_secret: Final = _Secret()

STAND_INS: Final[dict[ModuleType, dict[str, Any]]] = {
    secrets: {
        "choice": _secret.choice,
        "randbits": _secret.getrandbits,
        "randbelow": _secret.randbelow,
        "SystemRandom": SystemRandom,
        "token_bytes": _bytes(secrets, "token_bytes"),
        "token_hex": _text(secrets, "token_hex"),
        "token_urlsafe": _text(secrets, "token_urlsafe"),
    },
    os: {"urandom": _bytes(os, "urandom")},
}
