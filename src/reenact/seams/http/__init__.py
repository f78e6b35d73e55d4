"""HTTP clients: each call crosses the boundary with its request as meaning and its answer as bytes.

The seam lies below what a client does by itself (redirects, retries, authentication, cookies, decoding,
exceptions) and above connections: the client's own code runs in replay as it ran when recorded, and nothing
of it needs a socket.

The pauses that libraries make between two attempts are real when recorded, and skipped in replay. Only
sleeping that a library known to retry asks for counts; the agent's own sleeping is its own business. Such a
pause is an instant of the run, recorded with its length; it is made where the boundary asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant, Lane, current_lane
from reenact.seams.http import aiohttp, http_client, httpx, urllib3
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

RETRYING: Final = ("openai", "anthropic", "google.genai", "tenacity", "urllib3")
"""Libraries that sleep between attempts, by the beginning of their modules' names."""

_PAUSE: Final = Instant("nondeterministic", {"source": "clock", "key": "retry pause"}, is_plain=True)


def _pauses(owner: ModuleType, wrap: Callable[..., object]) -> list[Patch]:
    # A library that fills its names in late must have filled in this one before it can be replaced.
    assert owner.sleep
    return [Patch(owner, "sleep", wrap)]


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        lane = _retrying_lane()
        if lane is None or _is_real(seconds, lane):
            original(seconds)

    return sleep


def _async_sleep(original: Callable[..., Any]) -> Callable[..., object]:
    async def sleep(delay: float, *result: object, **options: object) -> object:
        lane = _retrying_lane()
        is_skipped = lane is not None and not _is_real(delay, lane)
        return await original(0 if is_skipped else delay, *result, **options)

    return sleep


def _retrying_lane() -> Lane | None:
    """The lane of a library that is about to sleep between attempts; ``None`` for any other caller."""
    caller = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001 — who calls decides what it means
    return current_lane() if caller.startswith(RETRYING) else None


def _is_real(seconds: float, lane: Lane) -> bool:
    """Whether the pause is to be made: a live run records it, a replayed one has it behind it."""
    is_produced = False

    def produce() -> float:
        nonlocal is_produced
        is_produced = True
        return float(seconds)

    lane.context.instant(_PAUSE, lane, produce)
    return is_produced


LIBRARIES: Final[Libraries] = {
    "httpx2": httpx.patches,
    "httpx": httpx.patches,
    "urllib3": urllib3.patches,
    "requests": urllib3.requests_patches,
    "aiohttp": aiohttp.patches,
    "http.client": http_client.patches,
    "time": lambda time: _pauses(time, _sleep),
    "asyncio": lambda asyncio: _pauses(asyncio, _async_sleep),
    "anyio": lambda anyio: _pauses(anyio, _async_sleep),
}
