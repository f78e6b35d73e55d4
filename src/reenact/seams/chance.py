"""The recorded clock and random numbers of a run, for agents that ask for them explicitly."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from typing import Any

from reenact.boundary import Instant, current_lane

_NOW = Instant("nondeterministic", {"source": "clock", "key": "now"}, is_plain=True)
_MONOTONIC = Instant("nondeterministic", {"source": "clock", "key": "monotonic"}, is_plain=True)
_RANDOM = Instant("nondeterministic", {"source": "rng", "key": "random"}, is_plain=True)


def instant(moment: Instant, produce: Callable[[], object]) -> Any:
    """The value of *moment* in the current run; outside any run, what *produce* returns."""
    lane = current_lane()
    return produce() if lane is None else lane.context.instant(moment, lane, produce)


class Clock:
    """A clock whose every reading is recorded."""

    def now(self) -> float:
        """Seconds since the epoch."""
        value: float = instant(_NOW, time.time)
        return value

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        value: float = instant(_MONOTONIC, time.monotonic)
        return value


class RecordedRandom(random.Random):
    """A generator whose every draw is recorded; ``random.Random`` builds all others on these two methods."""

    def random(self) -> float:
        value: float = instant(_RANDOM, super().random)
        return value

    def getrandbits(self, k: int, /) -> int:
        draw = Instant("nondeterministic", {"source": "rng", "key": f"getrandbits({k})"}, is_plain=True)
        value: int = instant(draw, lambda: super(RecordedRandom, self).getrandbits(k))
        return value


def uuid4(rng: RecordedRandom) -> uuid.UUID:
    """A random UUID from recorded bits."""
    return uuid.UUID(int=rng.getrandbits(128), version=4)
