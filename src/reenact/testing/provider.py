"""The scripted provider: a model that says what a test tells it to, over real HTTP."""

from __future__ import annotations

import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.testing.answer import Answer, Voice, answer_id, answer_with
from reenact.testing.http1 import MAX_HEAD_BYTES, BadRequest, Received, read_request, write_answer
from reenact.testing.request import Message, Request
from reenact.testing.script import Script, ScriptSource
from reenact.testing.server import LoopbackServer
from reenact.testing.turns import Disconnect, Reply, Turn
from reenact.testing.wire import SERVICES, Wire, WireRequest, service_for, wire_for

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
    chance. Use the same ``with`` in async tests; the server has a thread of its own. Keys are not checked.
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
        *created_at*  the time that every answer bears, in seconds since the epoch
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
        self._told: dict[str, tuple[Message, ...]] = {}
        self.requests: list[Request] = []
        """Every request received, in order of arrival."""
        self.unanswered: list[str] = []
        """Why, for each request that the script had no answer for."""

    def start(self) -> Self:
        """Listen; again on the same port after :meth:`stop`. The script goes on where it was."""
        if self._server is not None:
            raise UsageError("ScriptedProvider: already started; call stop() first")
        self._server = LoopbackServer(self._converse, self._port, MAX_HEAD_BYTES)
        self._port = self._server.port
        return self

    def stop(self) -> None:
        """Drop every connection and stop listening; harmless when stopped."""
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
        """The port it listens on, or did; 0 before the first start if none was asked for."""
        return self._port

    @property
    def url(self) -> str:
        """The address without a path, such as ``http://127.0.0.1:49152``."""
        if not self._port:
            raise UsageError("ScriptedProvider: no address yet; enter the with block or call start() first")
        return f"http://127.0.0.1:{self._port}"

    def base_url(self, provider: ProviderName) -> str:
        """What that provider's SDK takes as its base URL (Ollama's: its host)."""
        if provider not in SERVICES:
            raise UsageError(f"base_url: {provider!r} is not served; choose one of {', '.join(SERVICES)}")
        return self.url + SERVICES[provider].base_path

    @property
    def connections(self) -> int:
        """How many TCP connections were accepted, over all starts; zero proves that nothing came near."""
        return self._past_connections + (self._server.connections if self._server else 0)

    @property
    def unused(self) -> tuple[Turn, ...]:
        """The turns of the script that have answered nothing yet."""
        return self._script.unused

    def assert_finished(self) -> None:
        """Raise :class:`AssertionError` unless every turn was used and every request found one."""
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
        messages = self._told.get(asked.follows, ()) + asked.messages
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
            # The script is the user's code: its failure must reach the test, not vanish with the connection.
            reason = f"the script failed on request {request.number}: {type(error).__name__}: {error}"
        self.unanswered.append(reason)
        return voice.error(500, f"scripted provider: {reason}", {"x-should-retry": "false"})

    def _remember(self, turn: Turn, answer_id: str, request: Request) -> None:
        """So that a later request may name this answer instead of repeating the conversation."""
        if isinstance(turn, Reply | Disconnect):
            self._told[answer_id] = (*request.messages, Message("assistant"))

    def _seed(self, request: Request) -> str:
        if self._ids == "counter":
            return str(request.number)
        return sha256(f"{request.path}\n".encode() + request.raw).hexdigest()


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return None
