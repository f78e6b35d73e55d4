"""The scripted provider: a model whose answers a test defines, over real HTTP."""

from __future__ import annotations

import asyncio
import socket
import time
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.testing.answer import Answer, Voice, answer_id, answer_with, phrase
from reenact.testing.request import Message, Request
from reenact.testing.script import Script, ScriptSource
from reenact.testing.turns import Disconnect, Reply, Turn
from reenact.testing.wire import SERVICES, Wire, WireRequest, service_for, wire_for

MAX_HEAD_BYTES: Final = 1 << 20


class BadRequest(Exception):
    """The request is not HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Received:
    """A raw request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def keeps_open(self) -> bool:
        """Whether the client wants to use the connection again."""
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: StreamReader, writer: StreamWriter) -> Received | None:
    """The next request on this connection; ``None`` at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parse_head(head)
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Received(method, target, headers, await _read_body(reader, headers))
    except IncompleteReadError:
        return None
    except (ValueError, asyncio.LimitOverrunError) as error:
        raise BadRequest(f"not HTTP/1.1: {error}") from error


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"unknown version {version!r}")
    pairs = (line.partition(":") for line in lines)
    return method, target, {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    chunks = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    while (await reader.readline()).strip():
        pass  # trailers
    return b"".join(chunks)


async def write_answer(writer: StreamWriter, answer: Answer, *, has_body: bool = True) -> bool:
    """Send *answer* with its delays; ``False`` if the connection must be closed after it.

    *has_body* is false for a HEAD request.
    """
    await asyncio.sleep(answer.delay_ms / 1000)
    if answer.status is None:
        return False
    if answer.chunked and has_body:
        await _write_chunks(writer, answer)
    else:
        writer.write(_head(answer) + (b"".join(answer.chunks) if has_body else b""))
        await writer.drain()
    return answer.ends


async def _write_chunks(writer: StreamWriter, answer: Answer) -> None:
    writer.write(_head(answer))
    for ordinal, chunk in enumerate(answer.chunks):
        if ordinal and answer.chunk_delay_ms:
            await asyncio.sleep(answer.chunk_delay_ms / 1000)
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
    if answer.ends:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _head(answer: Answer) -> bytes:
    assert answer.status is not None
    lines = [f"HTTP/1.1 {answer.status} {phrase(answer.status)}"]
    lines += (f"{name}: {value}" for name, value in answer.headers.items())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


Conversation: TypeAlias = Callable[[StreamReader, StreamWriter], Awaitable[None]]


class LoopbackServer:
    """Passes every connection to *converse*, in an event loop in its own thread.

    It listens from its construction until :meth:`close`.
    """

    def __init__(self, converse: Conversation, port: int, read_limit_bytes: int) -> None:
        self._converse = converse
        self._read_limit_bytes = read_limit_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        """The number of accepted connections."""
        # Bound here, not in the thread: a busy port raises here, and clients can connect at once.
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._is_serving = Event()
        self._thread = Thread(target=self._run, name=f"loopback-server:{self.port}", daemon=True)
        self._thread.start()
        # The event loop listens again. In a run that is opened after this, it would be a server of that run.
        self._is_serving.wait()

    def close(self) -> None:
        """Close all connections, also in the middle of an answer, and end the thread."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._is_serving.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._socket, limit=self._read_limit_bytes)
        self._is_serving.set()
        await self._closing.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next tick

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.connections += 1
        # asyncio sets this only if the socket was created with a protocol number, and ``create_server``
        # gives none. Without it every stream would stall for the client's delayed acknowledgement.
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


ProviderName = Literal["anthropic", "openai", "gemini", "ollama"]


class ScriptedProvider:
    """A model provider on loopback that follows a script, for testing agents without a model.

    It speaks Anthropic Messages, OpenAI Chat Completions and Responses, Gemini generateContent and Ollama
    chat, streaming or not, well enough for the real SDKs::

        with ScriptedProvider([Reply("Hello!")]) as provider:
            client = anthropic.Anthropic(base_url=provider.base_url("anthropic"), api_key="any")
            ...
        provider.assert_finished()

    The same script serves every format. Answers depend on the requests and the script alone: no clock, no
    random numbers. Use the same ``with`` in async tests; the server has its own thread. Keys are not checked.
    """

    def __init__(
        self,
        script: ScriptSource,
        *,
        port: int = 0,
        models: Sequence[str] = ("scripted",),
        ids: Literal["hash", "counter"] = "hash",
        created_at: int = 1_767_225_600,
        gzip: bool = False,
    ) -> None:
        """*script* is anything :meth:`Script.of` takes.

        *port*        0 takes a free one, and a restart takes the same again
        *models*      what the model list names; a call may name any model
        *ids*         ``"hash"`` derives the ids of answers and tool calls from the request, so that the order
                      of parallel requests does not matter and equal requests get equal ids; ``"counter"``
                      derives them from the order of arrival
        *created_at*  the time in every answer, in seconds since the epoch
        *gzip*        compresses for clients that accept it
        """
        self._script = Script.of(script)
        self._port = port
        self._models = tuple(models)
        self._ids = ids
        self._created_at = created_at
        self._gzip = gzip
        self._server: LoopbackServer | None = None
        self._past_connections = 0
        self._conversations: dict[str, tuple[Message, ...]] = {}
        self.requests: list[Request] = []
        """Every request received, in order of arrival."""
        self.unanswered: list[str] = []
        """The reason for each request that the script did not answer."""

    def start(self) -> Self:
        """Start listening, after :meth:`stop` on the same port; the script continues."""
        if self._server is not None:
            raise UsageError("ScriptedProvider: already started; call stop() first")
        self._server = LoopbackServer(self._converse, self._port, MAX_HEAD_BYTES)
        self._port = self._server.port
        return self

    def stop(self) -> None:
        """Close every connection and stop listening; does nothing if stopped."""
        if self._server is not None:
            self._server.close()
            self._past_connections += self._server.connections
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The current or last port; 0 before the first start unless one was given."""
        return self._port

    @property
    def url(self) -> str:
        """The address without a path, such as ``http://127.0.0.1:49152``."""
        if not self._port:
            raise UsageError("ScriptedProvider: no address yet; enter the with block or call start() first")
        return f"http://127.0.0.1:{self._port}"

    def base_url(self, provider: ProviderName) -> str:
        """The base URL for the SDK of this provider (for Ollama the host)."""
        if provider not in SERVICES:
            raise UsageError(f"base_url: {provider!r} is not served; choose one of {', '.join(SERVICES)}")
        return self.url + SERVICES[provider].base_path

    @property
    def connections(self) -> int:
        """The number of accepted TCP connections, over all starts; 0 proves that nothing connected."""
        return self._past_connections + (self._server.connections if self._server else 0)

    @property
    def unused(self) -> tuple[Turn, ...]:
        """The turns of the script that have answered nothing yet."""
        return self._script.unused

    def assert_finished(self) -> None:
        """Raise :class:`AssertionError` unless every turn was used and every request was answered."""
        problems = list(self.unanswered)
        problems += (f"never asked for: {turn!r}" for turn in self.unused)
        if problems:
            raise AssertionError("; ".join(problems))

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while received := await read_request(reader, writer):
                answer = self._answer(received)
                has_body = received.method != "HEAD"
                if not (await write_answer(writer, answer, has_body=has_body) and received.keeps_open):
                    return
        except BadRequest as error:
            text = str(error).encode()
            headers = {"content-length": str(len(text)), "connection": "close"}
            await write_answer(writer, Answer(status=400, headers=headers, chunks=(text,)))

    def _answer(self, received: Received) -> Answer:
        path = received.target.partition("?")[0]
        wire = wire_for(received.method, path)
        service = wire.service if wire else service_for(path, received.headers)
        body = _json(received.body)
        asked = wire.read(path, body) if wire and isinstance(body, dict) else None
        request = self._request(received, service.name, wire, body, asked)
        self.requests.append(request)
        voice = Voice(service, request, self._seed(request), self._created_at, self._gzip)
        if wire and asked:
            return self._play(wire, voice)
        if wire:
            return voice.error(400, "the request's body is not a JSON object")
        if received.method == "GET" and path.endswith(("/models", "/api/tags")):
            return voice.json(service.models(self._models, self._created_at))
        return voice.error(404, f"{received.method} {path}: not something the scripted provider serves")

    def _request(
        self, received: Received, provider: str, wire: Wire | None, body: JsonValue, asked: WireRequest | None
    ) -> Request:
        request = Request(
            number=len(self.requests),
            provider=provider,
            wire=wire.name if wire else None,
            method=received.method,
            path=received.target,
            headers=received.headers,
            raw=received.body,
            body=body,
            time=time.time(),
        )
        if asked is None:
            return request
        messages = self._conversations.get(asked.follows, ()) + asked.messages
        return replace(request, model=asked.model, stream=asked.stream, messages=messages)

    def _play(self, wire: Wire, voice: Voice) -> Answer:
        request = voice.request
        try:
            turn = self._script.take(request)
            if turn is not None:
                self._remember(turn, answer_id(wire, voice.seed), request)
                return answer_with(turn, wire, voice)
            reason = (
                f"no turn is left for request {request.number} (turn {request.turn}, {request.user_text!r})"
            )
        except Exception as error:
            # The script is the user's code: its failure must reach the test.
            reason = f"the script failed on request {request.number}: {type(error).__name__}: {error}"
        self.unanswered.append(reason)
        return voice.error(500, f"scripted provider: {reason}", {"x-should-retry": "false"})

    def _remember(self, turn: Turn, answer_id: str, request: Request) -> None:
        """Keep this answer, because a later request may refer to it instead of repeating the conversation."""
        if isinstance(turn, Reply | Disconnect):
            self._conversations[answer_id] = (*request.messages, Message("assistant"))

    def _seed(self, request: Request) -> str:
        if self._ids == "counter":
            return str(request.number)
        return sha256(f"{request.path}\n".encode() + request.raw).hexdigest()


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return None
