"""Servers of the run's own, asked by clients of the run's own: what they do is the run's, in any order."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import aiohttp.web
import httpx
import pytest
import requests
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

import reenact
from tests.twice import events

TOPICS = ("ants", "bees", "cats", "dogs", "eels", "foxes", "goats", "hares")


@reenact.tool
async def ask(question: str) -> str:
    """What a model would be asked; answers overtake each other."""
    await asyncio.sleep(random.random() / 50)
    return f"{question}!"


async def answer(topic: str) -> str:
    first = await ask(f"something about {topic}")
    more = await asyncio.gather(*(ask(f"{word} about {first}") for word in ("more", "less")))
    return " ".join([first, *more])


async def _ask_all(address: str, topics: list[str]) -> dict[str, str]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        answers = await asyncio.gather(*(client.get("/ask", params={"topic": topic}) for topic in topics))
        return {topic: each.json() for topic, each in zip(topics, answers, strict=True)}


async def uvicorn_served(topics: list[str]) -> dict[str, str]:
    async def respond(request: Request) -> JSONResponse:
        return JSONResponse(await answer(request.query_params["topic"]))

    app = Starlette(routes=[Route("/ask", respond)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        return await _ask_all(f"http://127.0.0.1:{port}", topics)
    finally:
        server.should_exit = True
        await serving


async def aiohttp_served(topics: list[str]) -> dict[str, str]:
    async def respond(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.json_response(await answer(request.query["topic"]))

    app = aiohttp.web.Application()
    app.router.add_get("/ask", respond)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        return await _ask_all(f"http://127.0.0.1:{runner.addresses[0][1]}", topics)
    finally:
        await runner.cleanup()


async def thread_served(topics: list[str]) -> dict[str, str]:
    """A thread for each request, and clients in threads."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = asyncio.run(answer(self.path.rpartition("=")[2])).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Nothing is to be said."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            with ThreadPoolExecutor(len(topics)) as pool:
                address = f"http://127.0.0.1:{server.server_address[1]}/ask?topic="
                told = [pool.submit(lambda topic: urlopen(address + topic).read(), topic) for topic in topics]
                return {topic: each.result().decode() for topic, each in zip(topics, told, strict=True)}
        finally:
            server.shutdown()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("serve", [uvicorn_served, aiohttp_served, thread_served])
def test_parallel_requests_are_found_in_whichever_order_they_come(tmp_path, serve, run):
    """Eight at once, each with three calls; in every replay they arrive in another order."""
    topics = list(TOPICS)
    with reenact.capture(tmp_path / "run", sources=()):
        recorded = run(serve(topics))
    assert [kind for kind, _ in events(tmp_path / "run")].count("tool_call") == 3 * len(topics)
    for seed in range(20 if serve is uvicorn_served and run is asyncio.run else 4):
        random.Random(seed).shuffle(topics)
        with reenact.replay(tmp_path / "run") as replay:
            assert run(serve(topics)) == recorded
        assert replay.divergences == []


def test_a_request_that_asks_something_else_diverges(tmp_path):
    """Order does not matter, content does."""
    with reenact.capture(tmp_path / "run", sources=()):
        asyncio.run(uvicorn_served(list(TOPICS)))
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        asyncio.run(uvicorn_served([*TOPICS[:-1], "horses"]))


@contextmanager
def listening(asked: list[str]) -> Iterator[int]:
    """A server that keeps what it is asked; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode().replace(": ", ":")
            asked.append(f"{self.path} {body}".rstrip())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        do_POST = do_GET  # noqa: N815 — named after the method

        def log_message(self, *_: object) -> None:
            """Nothing is to be said."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("session", [requests.Session, httpx.Client])
def test_a_body_reaches_a_server_of_the_run(tmp_path, session):
    """It is no call of the run's, so no client on the way keeps it back."""
    asked: list[str] = []
    with reenact.capture(tmp_path / "run", sources=()), listening(asked) as port, session() as client:
        assert client.post(f"http://127.0.0.1:{port}/x", json={"topic": "ants"}).text == "hello"
        assert client.get(f"http://127.0.0.1:{port}/y").text == "hello"
    assert asked == ['/x {"topic":"ants"}', "/y"]


def test_a_server_from_before_the_run_is_outside_of_it(tmp_path):
    """What it is asked is a call of the run's, answered from the recording."""
    asked: list[str] = []
    with listening(asked) as port:
        with reenact.capture(tmp_path / "run", sources=()):
            httpx.get(f"http://127.0.0.1:{port}/x")
        with reenact.replay(tmp_path / "run"):
            assert httpx.get(f"http://127.0.0.1:{port}/x").text == "hello"
    assert asked == ["/x"]


def test_a_capture_that_has_the_answer_of_an_own_server_answers_with_it(tmp_path):
    """As captures have that were made before such requests were left to the server."""
    asked: list[str] = []
    with listening(asked) as port, reenact.capture(tmp_path / "run", sources=()):
        httpx.get(f"http://127.0.0.1:{port}/x")
    with reenact.replay(tmp_path / "run") as replay, listening(asked) as port:
        assert httpx.get(f"http://127.0.0.1:{port}/x").text == "hello"
    assert asked == ["/x"]
    assert replay.divergences == []


ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


async def program_of_library(*words: str) -> str:
    """As libraries start it, below what the agent's own modules have."""
    done = await asyncio.to_thread(subprocess.Popen, words, stdout=subprocess.PIPE, text=True)
    return (await asyncio.to_thread(done.communicate))[0]


async def program_on_loop(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode()


@pytest.mark.parametrize("start", [program_of_library, program_on_loop])
def test_a_program_that_asks_a_server_of_the_run_is_run_in_replay_too(tmp_path, start):
    """What the server does for it is the run's; the receipt names the program."""

    async def serve_program() -> str:
        async def respond(request: Request) -> JSONResponse:
            return JSONResponse(await answer(request.query_params["topic"]))

        app = Starlette(routes=[Route("/ask", respond)])
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
            serving = asyncio.create_task(server.serve([listening]))
            address = f"http://127.0.0.1:{listening.getsockname()[1]}/ask?topic=ants"
            said = await start(sys.executable, "-c", ASK, address)
            server.should_exit = True
            await serving
        return said

    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(serve_program())
    assert "something about ants!" in recorded
    assert not [data for kind, data in events(tmp_path / "run") if data.get("source") == "process"]
    with reenact.replay(tmp_path / "run") as replay:
        assert asyncio.run(serve_program()) == recorded
    assert replay.divergences == []
    assert any("was run: it is given the address of a server of this run" in note for note in replay.notes)
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        asyncio.run(program_of_library(sys.executable, "-c", ASK, "http://127.0.0.1:9/"))


def test_an_app_that_outlives_the_run_keeps_its_tasks_apart(tmp_path: Path) -> None:
    """A fixture closes the test client after the run; the task of the lifespan is then still running."""

    async def stamped(request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers["x-stamp"] = str(uuid.uuid4())
        return response

    async def order(_: Request) -> JSONResponse:
        return JSONResponse([str(uuid.uuid4()), datetime.now().isoformat()])  # noqa: DTZ005

    app = Starlette(
        routes=[Route("/order", order)], middleware=[Middleware(BaseHTTPMiddleware, dispatch=stamped)]
    )

    def run_in(capture: AbstractContextManager[object]) -> list[object]:
        with ExitStack() as after_the_run, capture:
            client = after_the_run.enter_context(TestClient(app))
            answers = [client.get("/order") for _ in range(3)]
            return [(answer.json(), answer.headers["x-stamp"]) for answer in answers]

    recorded = run_in(reenact.capture(tmp_path / "run"))
    replay = reenact.replay(tmp_path / "run")
    assert run_in(replay) == recorded
    assert replay.divergences == []


def test_a_call_of_a_server_from_before_the_run_is_explained(tmp_path: Path) -> None:
    """The server is answered for in replay, so what it called is missing; who wonders is told why."""

    @reenact.tool
    def look_up(word: str) -> str:
        return f"{word}!"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = look_up("lamp").encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with reenact.capture(tmp_path / "run"):
                httpx.get(f"http://127.0.0.1:{server.server_port}/")
            with (
                pytest.raises(
                    reenact.Diverged, match="was there before the run, as a server of a fixture is"
                ),
                reenact.replay(tmp_path / "run"),
            ):
                httpx.get(f"http://127.0.0.1:{server.server_port}/")
        finally:
            server.shutdown()
            thread.join()
