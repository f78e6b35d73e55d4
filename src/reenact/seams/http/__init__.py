"""HTTP clients: a call is matched by the meaning of its request, and its answer is recorded as bytes.

The seam lies below the client's own logic (redirects, retries, authentication, cookies, decoding,
exceptions) and above its connections. So in replay the client's code runs as it did during recording, but
needs no socket.

A pause that a library makes between two attempts is recorded with its length. In replay it takes no time, and
ends when it is its turn in the recorded order: who tries again first may decide what the run does next. Only
libraries that are known to retry are treated so; how the agent itself sleeps is handled elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant, Lane, current_lane
from reenact.seams.deadlines import sleep_in_turn
from reenact.seams.http import aiohttp, http_client, httpx, urllib3
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

RETRYING: Final = ("openai", "anthropic", "google.genai", "tenacity", "urllib3")
"""Prefixes of the module names of libraries that sleep between attempts."""
_NO_TIME_S: Final = 1e-6

_PAUSE: Final = Instant("nondeterministic", {"source": "clock", "key": "retry pause"}, is_plain=True)


def _pauses(owner: ModuleType, wrap: Callable[..., object]) -> list[Patch]:
    # Some modules load their names lazily: access the name, so that it exists before it is replaced.
    assert owner.sleep
    return [Patch(owner, "sleep", wrap)]


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        lane = _retrying_lane()
        if lane is None:
            original(seconds)
        elif _is_real(seconds, lane):
            original(seconds)
            if lane.has_order and not lane.is_beside:
                lane.context.timer_fired(lane, lane.next_timer("z"))
        elif lane.has_order and not lane.is_beside:
            sleep_in_turn(lane, seconds)

    return sleep


def _async_sleep(original: Callable[..., Any]) -> Callable[..., object]:
    async def sleep(delay: float, *result: object, **options: object) -> object:
        lane = _retrying_lane()
        is_skipped = lane is not None and not _is_real(delay, lane)
        # Not zero, which sets no timer: replay fires the timers in their recorded order.
        return await original(min(delay, _NO_TIME_S) if is_skipped else delay, *result, **options)

    return sleep


def _retrying_lane() -> Lane | None:
    """The current lane if a retrying library is about to sleep; ``None`` for any other caller."""
    caller = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001 — only known libraries count
    return current_lane() if caller.startswith(RETRYING) else None


def _is_real(seconds: float, lane: Lane) -> bool:
    """Whether to really sleep: yes in a live run, which also records the pause; no in replay.

    The pauses of traffic beside the run are not recorded, because that differs from run to run.
    """
    if lane.is_beside:
        return lane.context.time_passes(lane)
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
    "respx": httpx.respx_patches,
    "urllib3": urllib3.patches,
    "requests": urllib3.requests_patches,
    "aiohttp": aiohttp.patches,
    "http.client": http_client.patches,
    "time": lambda time: _pauses(time, _sleep),
    "asyncio": lambda asyncio: _pauses(asyncio, _async_sleep),
    "anyio": lambda anyio: _pauses(anyio, _async_sleep),
}
