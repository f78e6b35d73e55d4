"""Work for a client that may go away before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def unless_gone(listening: Coroutine[Any, Any, None], work: Coroutine[Any, Any, None]) -> None:
    """Do *work*; it is cancelled when *listening* to the client is over before it."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(listening)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
    with suppress(asyncio.CancelledError):
        await working
