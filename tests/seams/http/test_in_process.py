"""What is answered in the agent's own process runs in replay too, and what it asks is recorded."""

from __future__ import annotations

import asyncio
import functools
import io
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import httpcore
import httpcore2
import httpx
import httpx2
import pytest
import requests
import urllib3
import vcr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import reenact
from reenact.errors import Diverged
from tests.seams.http.site import PAGE, Site
from tests.seams.http.test_clients import calls_in, record, replay

LIBRARIES = [httpx, httpx2]
Work = Callable[[], Any]


class App:
    """A web app whose only route asks *url*; it counts how often it ran."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.entered = 0

    def asgi(self) -> Starlette:
        async def page(_: Request) -> PlainTextResponse:
            self.entered += 1
            async with httpx2.AsyncClient(verify=False) as client:
                return PlainTextResponse((await client.get(self.url)).text)

        return Starlette(routes=[Route("/page", page)])

    def wsgi(self, _: Any, start_response: Callable[..., Any]) -> list[bytes]:
        self.entered += 1
        start_response("200 OK", [("content-type", "text/plain")])
        return [requests.get(self.url, timeout=5).content]


def by_test_client(app: App) -> Work:
    return lambda: TestClient(app.asgi()).get("/page").text


def by_asgi(library: Any) -> Callable[[App], Work]:
    async def ask(app: App) -> str:
        async with library.AsyncClient(transport=library.ASGITransport(app.asgi())) as client:
            return str((await client.get("http://app/page")).text)

    return lambda app: lambda: asyncio.run(ask(app))


def by_wsgi(library: Any) -> Callable[[App], Work]:
    def ask(app: App) -> str:
        with library.Client(transport=library.WSGITransport(app.wsgi)) as client:
            return str(client.get("http://app/page").text)

    return lambda app: lambda: ask(app)


class Around(httpx2.BaseTransport):
    """A transport of the user's own around another."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["x-tried"] = "1"
        return self._inner.handle_request(request)


def by_wrapped_wsgi(app: App) -> Work:
    client = httpx2.Client(transport=Around(httpx2.WSGITransport(app.wsgi)))
    return lambda: client.get("http://app/page").text


WAYS = {
    "TestClient": by_test_client,
    "httpx ASGI": by_asgi(httpx),
    "httpx2 ASGI": by_asgi(httpx2),
    "httpx WSGI": by_wsgi(httpx),
    "httpx2 WSGI": by_wsgi(httpx2),
    "wrapped WSGI": by_wrapped_wsgi,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_app_runs_in_replay_and_its_own_calls_are_recorded(tmp_path: Path, web: Site, way: str) -> None:
    app = App(f"{web.url}/page")
    work = WAYS[way](app)
    assert record(tmp_path / "run", work) == PAGE
    assert [call["key"] for call in calls_in(tmp_path / "run")] == [f"GET {web.url}/page"]
    assert replay(tmp_path / "run", work, web) == PAGE
    assert app.entered == 2


@pytest.mark.parametrize("way", WAYS)
def test_an_app_that_no_longer_works_fails_the_replay(tmp_path: Path, web: Site, way: str) -> None:
    """The test's own client is not answered from the recording."""
    app = App(f"{web.url}/page")
    record(tmp_path / "run", WAYS[way](app))
    app.url = f"{web.url}/another"
    with pytest.raises(Diverged), reenact.replay(tmp_path / "run"):
        WAYS[way](app)()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_fake_of_the_users_own_is_asked_in_replay_too(tmp_path: Path, library: Any) -> None:
    asked: list[str] = []

    def answer(request: Any) -> Any:
        asked.append(request.url.path)
        return library.Response(200, text="fake")

    def work() -> str:
        with library.Client(transport=library.MockTransport(answer)) as client:
            return str(client.get("http://x/a").text)

    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"):
            assert work() == "fake"
    assert asked == ["/a", "/a"]
    assert calls_in(tmp_path / "run") == []


@pytest.fixture(params=["before the run", "in the run"])
def moment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fake_of(library: Any, place: str) -> Any:
    if place == "pool":
        core: Any = httpcore2 if library is httpx2 else httpcore
        answer = lambda *_: core.Response(200, content=b"fake")  # noqa: E731
        return mock.patch.object(core.ConnectionPool, "handle_request", answer)
    options = {"autospec": True} if place == "transport, with its signature" else {}
    answered = library.Response(200, text="fake")
    return mock.patch.object(library.HTTPTransport, "handle_request", return_value=answered, **options)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("place", ["transport", "pool", "transport, with its signature"])
def test_a_patched_transport_is_a_fake_too(tmp_path: Path, library: Any, place: str, moment: str) -> None:
    """As pytest-httpx and respx put theirs in, whoever was there first; nothing of it is left behind."""
    before = library.HTTPTransport.handle_request
    for run in (reenact.capture, reenact.replay):
        patched = fake_of(library, place)
        if moment == "before the run":
            with patched, run(tmp_path / "run"):
                assert library.get("http://x.invalid/").text == "fake"
        else:
            with run(tmp_path / "run"):
                patched.start()
                assert library.get("http://x.invalid/").text == "fake"
            patched.stop()
    assert calls_in(tmp_path / "run") == []
    with reenact.capture(tmp_path / "after"):
        """Takes the place of what was left."""
    assert library.HTTPTransport.handle_request is before


def _let_pass(original: Callable[..., Any]) -> Callable[..., Any]:
    """What respx puts in the place of a pool's method: it answers one path itself."""

    def handle_request(pool: Any, request: Any) -> Any:
        fake = httpcore.Response(200, content=b"fake")
        return fake if request.url.target == b"/fake" else original(pool, request)

    async def handle_async_request(pool: Any, request: Any) -> Any:
        fake = httpcore.Response(200, content=b"fake")
        return fake if request.url.target == b"/fake" else await original(pool, request)

    return handle_async_request if asyncio.iscoroutinefunction(original) else handle_request


async def _ask_async(url: str) -> str:
    async with httpx.AsyncClient(verify=False) as client, client.stream("GET", url) as answer:
        return (await answer.aread()).decode()


@pytest.mark.parametrize(
    "ask",
    [
        lambda url: httpx.get(url, verify=False).text,
        lambda url: httpx.post(url, json={"a": 1}, verify=False).text,
        lambda url: asyncio.run(_ask_async(url)),
    ],
    ids=["get", "post", "async stream"],
)
def test_what_respx_lets_pass_is_recorded(
    tmp_path: Path, web: Site, ask: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "respx", ModuleType("respx"))

    def work() -> list[str]:
        with monkeypatch.context() as patch:
            for pool, name in (
                (httpcore.ConnectionPool, "handle_request"),
                (httpcore.AsyncConnectionPool, "handle_async_request"),
            ):
                patch.setattr(pool, name, _let_pass(getattr(pool, name)))
            return [ask(f"{web.url}/fake"), ask(f"{web.url}/page")]

    recorded = record(tmp_path / "run", work)
    assert recorded[0] == "fake"
    assert [call["key"].partition(" ")[2] for call in calls_in(tmp_path / "run")] == [f"{web.url}/page"]
    assert replay(tmp_path / "run", work, web) == recorded


class FakeSocket:
    """Answers by itself, as those of httpretty and mocket do."""

    asked = 0

    def sendall(self, _: bytes) -> None:
        type(self).asked += 1

    def makefile(self, *_: object, **__: object) -> io.BytesIO:
        return io.BytesIO(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfake")

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: urllib.request.urlopen("http://x.invalid/").read().decode(),
        lambda: requests.get("http://x.invalid/", timeout=5).text,
    ],
    ids=["urllib", "requests"],
)
def test_a_fake_of_sockets_is_a_fake_too(
    tmp_path: Path, ask: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked in replay as in the recording, whichever client is above it."""
    monkeypatch.setattr(FakeSocket, "asked", 0)
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"), monkeypatch.context() as patch:
            patch.setattr(socket, "socket", FakeSocket)
            patch.setattr(socket, "create_connection", lambda *_, **__: FakeSocket())
            patch.setattr("urllib3.util.connection.create_connection", lambda *_, **__: FakeSocket())
            assert ask() == "fake"
    assert calls_in(tmp_path / "run") == []
    assert FakeSocket.asked == 2


class GuardedSocket(socket.socket):
    """One that only looks, as pytest-socket's does."""


def test_a_socket_of_a_kind_of_its_own_is_no_fake(
    tmp_path: Path, web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked over it is recorded, and answered."""
    monkeypatch.setattr(socket, "socket", GuardedSocket)

    def work() -> str:
        return requests.get(f"{web.url}/page", timeout=5).text

    assert record(tmp_path / "run", work) == PAGE
    assert replay(tmp_path / "run", work, web) == PAGE


def test_a_fake_class_of_connections_is_a_fake_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tests of code over urllib3 have them."""
    asked = []

    class FakeConnection(urllib3.connection.HTTPConnection):
        def request(self, *_: object, **__: object) -> None:
            asked.append(self.host)

        def getresponse(self) -> Any:
            return urllib3.HTTPResponse(io.BytesIO(b"fake"), status=200, preload_content=False)

    monkeypatch.setattr(urllib3.HTTPConnectionPool, "ConnectionCls", FakeConnection)
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"):
            assert urllib3.PoolManager().request("GET", "http://x.invalid/").data == b"fake"
    assert calls_in(tmp_path / "run") == []
    assert asked == ["x.invalid"] * 2


@pytest.mark.parametrize("get", [requests.get, httpx2.get, urllib.request.urlopen])
def test_a_cassette_is_a_fake_too(get: Callable[[str], Any], tmp_path: Path, web: Site) -> None:
    """It answers, in replay as well."""

    def work() -> bytes:
        with vcr.VCR(ignore_localhost=False).use_cassette(str(tmp_path / "it.yaml")):
            answer = get(f"{web.url}/page")
            return bytes(answer.read() if get is urllib.request.urlopen else answer.content)

    assert work().decode() == PAGE
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"):
            assert work().decode() == PAGE
    assert calls_in(tmp_path / "run") == []


def test_what_is_asked_to_make_a_cassette_is_recorded(tmp_path: Path, web: Site) -> None:
    """The cassette is made anew in replay, from the recording."""

    def work() -> str:
        with vcr.VCR(ignore_localhost=False, record_mode="all").use_cassette(str(tmp_path / "it.yaml")):
            return requests.get(f"{web.url}/page", timeout=5).text

    assert record(tmp_path / "run", work) == PAGE
    assert replay(tmp_path / "run", work, web) == PAGE


def test_instrumentation_that_wraps_a_transport_is_no_fake(tmp_path: Path, web: Site, moment: str) -> None:
    """What passes through it is recorded, and it stays when the run is over."""
    seen: list[str] = []
    owner = httpx2.HTTPTransport
    before = owner.handle_request

    def instrument() -> None:
        inner = owner.handle_request

        @functools.wraps(inner)
        def handle_request(self: Any, request: httpx2.Request) -> httpx2.Response:
            seen.append(request.url.path)
            return inner(self, request)

        owner.handle_request = handle_request  # type: ignore[method-assign]

    def work() -> str:
        return httpx2.get(f"{web.url}/page", verify=False).text

    try:
        if moment == "before the run":
            instrument()
        with reenact.capture(tmp_path / "run", sources=()):
            if moment == "in the run":
                instrument()
            assert work() == PAGE
        assert len(calls_in(tmp_path / "run")) == 1
        assert work() == PAGE
        assert replay(tmp_path / "run", work, web) == PAGE
        assert seen == ["/page"] * (2 if moment == "before the run" else 3)
    finally:
        owner.handle_request = before  # type: ignore[method-assign]
