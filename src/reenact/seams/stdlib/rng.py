"""Random values: ``random``, ``uuid``, ``secrets``, ``os.urandom`` and ``ssl.RAND_bytes``.

The functions of ``random`` still draw from the shared generator, also in replay, so that ``random.seed``
keeps its effect on other code that shares it; the agent gets the recorded values.

Tokens of ``secrets`` are redacted like any text, unlike the numbers of ``random``: in replay, a token that is
hidden in the recording is replaced by its placeholder.
"""

from __future__ import annotations

import os
import random
import secrets
import ssl
import uuid
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.stdlib.sources import (
    AS_IT_IS,
    TEXT,
    Form,
    Source,
    formed_value_of,
    is_genuine,
    lane_for,
    stand_for,
    value_of,
)
from reenact.seams.stdlib.stand_ins import StandInMeta

_random: Final = random.Random
_system_random: Final = random.SystemRandom
_next_float: Final = random.random
_next_bits: Final = random.getrandbits
_gauss: Final = random.gauss
_SEED_BITS: Final = 256
_DRAWS: Final = [
    *("betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss"),
    *("getrandbits", "lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random"),
    *("randrange", "sample", "shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate"),
]


@cache
def draw_of(key: str) -> Instant:
    """The draw of a number that cannot be a secret."""
    return Instant("nondeterministic", {"source": "rng", "key": key}, is_plain=True)


def record_fakes(
    module: ModuleType, name: str, draw: Callable[..., object], source: Source
) -> Callable[..., object]:
    """*draw*, unless a test has replaced the module's *name* by a fake: then record the fake's values."""
    original, instant = getattr(module, name), draw_of(f"{module.__name__}.{name}")

    def draw_or_fake(*args: object, **kwargs: object) -> object:
        real = getattr(module, name)
        if real is original or is_genuine(real, original):
            return draw(*args, **kwargs)
        return formed_value_of(source, instant, lambda: real(*args, **kwargs), AS_IT_IS, is_fake=True)

    return stand_for(module, name, draw_or_fake)


_RANDOM: Final = draw_of("random")
_GAUSS: Final = draw_of("gauss")


def bits(key: str, count: int, produce: Callable[[], int], source: Source = "random") -> int:
    """*count* random bits."""
    value: int = value_of(source, draw_of(f"{key}({count})"), produce)
    return value


class _Shared(random.Random):
    """The generator behind the module's functions; it uses the state of the real shared one."""

    def __init__(self) -> None:
        """Do not seed: that would seed the generator that all code shares."""

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        # Not built on recorded draws: the generator computes two numbers at once and keeps the second.
        drawn_value = _gauss(mu, sigma)
        value: float = value_of("random", _GAUSS, lambda: drawn_value)
        return value

    def random(self) -> float:
        drawn = _next_float()
        lane = lane_for("random")
        if lane is None:
            return drawn
        value: float = lane.context.instant(_RANDOM, lane, lambda: drawn)
        return value

    def getrandbits(self, k: int, /) -> int:
        drawn = _next_bits(k)
        return bits("getrandbits", k, lambda: drawn)


class Random(random.Random, metaclass=StandInMeta):
    """``random.Random``; without an explicit seed it gets a recorded one."""

    __supertype__ = random.Random

    def __reduce__(self) -> Any:
        return _random, (), self.getstate()

    def seed(self, a: Any = None, version: int = 2) -> None:
        if a is None:
            a = bits("seed", _SEED_BITS, lambda: int.from_bytes(os.urandom(_SEED_BITS // 8)))
        super().seed(a, version)


class SystemRandom(random.SystemRandom, metaclass=StandInMeta):
    """``random.SystemRandom``, but each number is recorded."""

    __supertype__ = random.SystemRandom

    source: Source = "random"

    def random(self) -> float:
        value: float = value_of(self.source, _RANDOM, super().random)
        return value

    def getrandbits(self, k: int, /) -> int:
        return bits("getrandbits", k, lambda: _system_random.getrandbits(self, k), self.source)

    def randbytes(self, n: int) -> bytes:
        return self.getrandbits(n * 8).to_bytes(n)


_shared: Final = _Shared()

STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    random: {
        **{
            name: record_fakes(random, name, getattr(_shared, name), "random")
            for name in _DRAWS
            if hasattr(random, name)
        },
        "Random": Random,
        "SystemRandom": SystemRandom,
    },
}


_MAKERS: Final = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8")
_NODE_BITS: Final = 48
_UUID_FORM: Final = Form(uuid.UUID, str, uuid.UUID)
_original_getnode: Final = uuid.getnode


def _uuid_maker(name: str) -> Callable[..., uuid.UUID]:
    instant, original = draw_of(f"uuid.{name}"), getattr(uuid, name)

    def make(*args: object, **kwargs: object) -> uuid.UUID:
        real = getattr(uuid, name)  # looked up at each call: a test may have replaced it
        made: uuid.UUID = formed_value_of(
            "uuid", instant, lambda: real(*args, **kwargs), _UUID_FORM, is_fake=not is_genuine(real, original)
        )
        return made

    return stand_for(uuid, name, make)


def _getnode() -> int:
    if is_genuine(uuid.getnode, _original_getnode):
        return bits("uuid.getnode", _NODE_BITS, uuid.getnode, "uuid")
    faked: int = formed_value_of("uuid", draw_of("uuid.getnode"), uuid.getnode, AS_IT_IS, is_fake=True)
    return faked


UUID_STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    uuid: {
        **{name: _uuid_maker(name) for name in _MAKERS if hasattr(uuid, name)},
        "getnode": stand_for(uuid, "getnode", _getnode),
    },
}


class _Secret(SystemRandom):
    source = "secrets"

    def randbelow(self, exclusive_upper_bound: int) -> int:
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return self.randrange(exclusive_upper_bound)


_BYTES: Final = Form(bytes, bytes.hex, bytes.fromhex)


def _token_maker(module: ModuleType, name: str, form: Form) -> Callable[..., object]:
    instant, original = _token(module, name), getattr(module, name)

    def make(*args: object, **kwargs: object) -> object:
        real = getattr(module, name)
        is_fake = not is_genuine(real, original)
        return formed_value_of("secrets", instant, lambda: real(*args, **kwargs), form, is_fake=is_fake)

    return stand_for(module, name, make)


def _token(module: ModuleType, name: str) -> Instant:
    return Instant("nondeterministic", {"source": "rng", "key": f"{module.__name__}.{name}"})


_secret: Final = _Secret()

SECRETS_STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    secrets: {
        "choice": record_fakes(secrets, "choice", _secret.choice, "secrets"),
        "randbits": record_fakes(secrets, "randbits", _secret.getrandbits, "secrets"),
        "randbelow": record_fakes(secrets, "randbelow", _secret.randbelow, "secrets"),
        "SystemRandom": SystemRandom,
        "token_bytes": _token_maker(secrets, "token_bytes", _BYTES),
        "token_hex": _token_maker(secrets, "token_hex", TEXT),
        "token_urlsafe": _token_maker(secrets, "token_urlsafe", TEXT),
    },
    os: {"urandom": _token_maker(os, "urandom", _BYTES)},
    ssl: {"RAND_bytes": _token_maker(ssl, "RAND_bytes", _BYTES)},
}
