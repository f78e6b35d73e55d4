"""Work for a client that may go away before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from starlette.types import Receive


async def whole_body(receive: Receive) -> bytes | None:
    """The body of a request; ``None`` where the client went away before its end."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(chunks)


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do *work*; it is cancelled when the client of a whole request goes away."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
