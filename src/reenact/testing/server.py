"""A TCP server on loopback with a thread of its own."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

Conversation: TypeAlias = Callable[[StreamReader, StreamWriter], Awaitable[None]]


class LoopbackServer:
    """Hands every connection to *converse*, all in one event loop, whatever its maker's thread is doing.

    It listens from the moment it is made until :meth:`close`.
    """

    def __init__(self, converse: Conversation, port: int, read_limit_bytes: int) -> None:
        self._converse = converse
        self._read_limit_bytes = read_limit_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        """Accepted so far."""
        # Bound here, not in the thread: a busy port is the caller's exception, and clients may come at once.
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = Thread(target=self._run, name=f"loopback-server:{self.port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Drop all connections, in mid-answer if need be, and end the thread."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=self._read_limit_bytes)
        await self._closing.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the tick after

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.connections += 1
        # asyncio does this only where the socket names its protocol, which ``create_server``'s do not;
        # without it every stream would stall for the client's delayed acknowledgement.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = asyncio.create_task(self._attend(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attend(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                await self._converse(reader, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()
