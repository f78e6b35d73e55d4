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
from reenact.seams.stdlib.chosen import TEXT, Form, formed_value_of, is_genuine
from reenact.seams.stdlib.rng import SystemRandom, heed_fakes


class _Secret(SystemRandom):
    source = "secrets"

    def randbelow(self, exclusive_upper_bound: int) -> int:
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return self.randrange(exclusive_upper_bound)


_BYTES: Final = Form(bytes, bytes.hex, bytes.fromhex)


def _maker(module: ModuleType, name: str, form: Form) -> Callable[..., object]:
    instant, original = _token(module, name), getattr(module, name)

    def make(*args: object, **kwargs: object) -> Any:
        real = getattr(module, name)
        is_fake = not is_genuine(real, original)
        return formed_value_of("secrets", instant, lambda: real(*args, **kwargs), form, is_fake=is_fake)

    return update_wrapper(make, original)


def _token(module: ModuleType, name: str) -> Instant:
    return Instant("nondeterministic", {"source": "rng", "key": f"{module.__name__}.{name}"})


_secret: Final = _Secret()

STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    secrets: {
        "choice": heed_fakes(secrets, "choice", _secret.choice, "secrets"),
        "randbits": heed_fakes(secrets, "randbits", _secret.getrandbits, "secrets"),
        "randbelow": heed_fakes(secrets, "randbelow", _secret.randbelow, "secrets"),
        "SystemRandom": SystemRandom,
        "token_bytes": _maker(secrets, "token_bytes", _BYTES),
        "token_hex": _maker(secrets, "token_hex", TEXT),
        "token_urlsafe": _maker(secrets, "token_urlsafe", TEXT),
    },
    os: {"urandom": _maker(os, "urandom", _BYTES)},
}
