"""A request's body while it comes in: passed on as it comes, and kept for the recording."""

from __future__ import annotations

from asyncio import Queue
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.types import Receive


class RequestBody:
    """Read by one task while :meth:`listen` runs in another, the only one that asks the client."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        # Of one piece, so that whoever is slow to read slows the client down.
        self._coming: Queue[tuple[bytes, bool]] = Queue(maxsize=1)
        self._pieces: list[bytes] = []
        self.is_whole = False

    async def listen(self) -> None:
        """Take what the client sends, until it has gone away."""
        has_more = True
        while (message := await self._receive())["type"] != "http.disconnect":
            if has_more:
                has_more = message.get("more_body", False)
                await self._coming.put((message.get("body", b""), has_more))

    async def next_piece(self) -> bytes:
        """What comes next of a body that is not whole yet; it may be empty."""
        piece, has_more = await self._coming.get()
        self._pieces.append(piece)
        self.is_whole = not has_more
        return piece

    async def whole(self) -> bytes:
        while not self.is_whole:
            await self.next_piece()
        self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    async def passed_on(self, record: Callable[[], Awaitable[object]]) -> AsyncIterator[bytes]:
        """The body while it comes; its last byte waits until the body is whole and *record* is done.

        Which byte is the last shows only when no other follows, so one is held back all the time.
        """
        held = b"".join(self._pieces)
        while not self.is_whole:
            yield held[:-1]
            held = held[-1:] + await self.next_piece()
        await record()
        yield held
