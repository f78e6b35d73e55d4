"""Each HTTP client in each way it can be asked, seen in one shape."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
import httpx2
import requests
import urllib3

from reenact.seams.http.message import decoder

TIMEOUT_S = 0.05


@dataclass(frozen=True)
class Seen:
    """What the agent gets to see of an answer."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    content: bytes
    history: int = 0
    cookies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """What it gets to see of a failure."""

    kind: type[BaseException]
    text: str
    cause: type[BaseException] | None

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        cause = error.__cause__
        return cls(type(error), str(error), type(cause) if cause else None)


@dataclass(frozen=True)
class Client:
    """One client; each function opens, asks and closes a client of its own."""

    get: Callable[[str], Seen]
    head: Callable[[str], Seen]
    raw: Callable[[str], bytes]
    """The body with its content coding, as one."""
    pieces: Callable[[str, int], list[bytes]]
    """At most that many chunks of a stream."""
    post: Callable[..., bytes]
    """Takes ``json``, ``form``, ``files`` or ``chunks``, and ``headers`` beside ``content``."""
    waits: Callable[[str], Any]
    """A GET with a short read timeout."""


def attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return Failed.of(error)


# httpx and httpx2


def _httpx_client(library: Any) -> Client:
    def get(url: str) -> Seen:
        with library.Client(verify=False, follow_redirects=True) as client:
            return _seen_by_httpx(client.get(url), client)

    def head(url: str) -> Seen:
        with library.Client(verify=False) as client:
            return _seen_by_httpx(client.head(url), client)

    def raw(url: str) -> bytes:
        with library.Client(verify=False) as client, client.stream("GET", url) as response:
            return b"".join(response.iter_raw())

    def pieces(url: str, count: int) -> list[bytes]:
        with library.Client(verify=False) as client, client.stream("GET", url) as response:
            return _first(response.iter_bytes(), count)

    def post(url: str, **body: Any) -> bytes:
        with library.Client(verify=False) as client:
            content: bytes = client.post(url, **_for_httpx(body)).content
            return content

    def waits(url: str) -> Any:
        with library.Client(verify=False, timeout=TIMEOUT_S) as client:
            return client.get(url)

    return Client(get, head, raw, pieces, post, waits)


def _seen_by_httpx(response: Any, client: Any) -> Seen:
    assert response.elapsed.total_seconds() >= 0
    assert response.request.method in ("GET", "HEAD")
    return Seen(
        response.status_code,
        response.reason_phrase,
        response.headers.multi_items(),
        response.content,
        len(response.history),
        tuple(client.cookies),
    )


def _for_httpx(body: dict[str, Any]) -> dict[str, Any]:
    names = {"form": "data", "chunks": "content"}
    return {names.get(name, name): value for name, value in body.items()}


def _first(chunks: Any, count: int) -> list[bytes]:
    found = []
    for chunk in chunks:
        found.append(chunk)
        if len(found) == count:
            break
    return found


def _async_httpx_client(library: Any) -> Client:
    async def get(url: str) -> Seen:
        async with library.AsyncClient(verify=False, follow_redirects=True) as client:
            return _seen_by_httpx(await client.get(url), client)

    async def head(url: str) -> Seen:
        async with library.AsyncClient(verify=False) as client:
            return _seen_by_httpx(await client.head(url), client)

    async def raw(url: str) -> bytes:
        async with library.AsyncClient(verify=False) as client, client.stream("GET", url) as response:
            return b"".join([chunk async for chunk in response.aiter_raw()])

    async def pieces(url: str, count: int) -> list[bytes]:
        async with library.AsyncClient(verify=False) as client, client.stream("GET", url) as response:
            return await _async_first(response.aiter_bytes(), count)

    async def post(url: str, **body: Any) -> bytes:
        if "chunks" in body:
            body["chunks"] = _async_chunks(body["chunks"])
        async with library.AsyncClient(verify=False) as client:
            content: bytes = (await client.post(url, **_for_httpx(body))).content
            return content

    async def waits(url: str) -> Any:
        async with library.AsyncClient(verify=False, timeout=TIMEOUT_S) as client:
            return await client.get(url)

    return Client(*map(_run, (get, head, raw, pieces, post, waits)))


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: asyncio.run(function(*args, **options))


async def _async_chunks(chunks: Any) -> Any:
    for chunk in chunks:
        yield chunk


async def _async_first(chunks: Any, count: int) -> list[bytes]:
    found = []
    async for chunk in chunks:
        found.append(chunk)
        if len(found) == count:
            break
    return found


# requests


def _requests_client() -> Client:
    def get(url: str) -> Seen:
        with requests.Session() as session:
            return _seen_by_requests(session.get(url), session)

    def head(url: str) -> Seen:
        with requests.Session() as session:
            return _seen_by_requests(session.head(url), session)

    def raw(url: str) -> bytes:
        with requests.get(url, stream=True, timeout=5) as response:
            content: bytes = response.raw.read(decode_content=False)
            return content

    def pieces(url: str, count: int) -> list[bytes]:
        with requests.get(url, stream=True, timeout=5) as response:
            return _first(response.iter_content(None), count)

    def post(url: str, **body: Any) -> bytes:
        names = {"form": "data", "chunks": "data", "content": "data"}
        if "chunks" in body:
            body["chunks"] = iter(body["chunks"])
        return requests.post(url, timeout=5, **{names.get(k, k): v for k, v in body.items()}).content

    return Client(get, head, raw, pieces, post, lambda url: requests.get(url, timeout=TIMEOUT_S))


def _seen_by_requests(response: requests.Response, session: requests.Session) -> Seen:
    assert response.elapsed.total_seconds() >= 0
    return Seen(
        response.status_code,
        response.reason,
        list(response.headers.items()),
        response.content,
        len(response.history),
        tuple(sorted(session.cookies.keys())),
    )


# urllib3


def _urllib3_client() -> Client:
    def get(url: str) -> Seen:
        with urllib3.PoolManager() as pool:
            return _seen_by_urllib3(pool.request("GET", url))

    def head(url: str) -> Seen:
        with urllib3.PoolManager() as pool:
            return _seen_by_urllib3(pool.request("HEAD", url))

    def raw(url: str) -> bytes:
        with urllib3.PoolManager() as pool:
            return pool.request("GET", url, preload_content=False).read(decode_content=False)

    def pieces(url: str, count: int) -> list[bytes]:
        with urllib3.PoolManager() as pool:
            response = pool.request("GET", url, preload_content=False)
            found = _first(response.stream(None), count)
            response.close()
            return found

    def post(url: str, **body: Any) -> bytes:
        names = {"form": "fields", "files": "fields", "chunks": "body", "content": "body"}
        options = {names.get(name, name): value for name, value in body.items()}
        if "form" in body:
            options["encode_multipart"] = False
        with urllib3.PoolManager() as pool:
            return pool.request("POST", url, **options).data

    def waits(url: str) -> Any:
        with urllib3.PoolManager(retries=False) as pool:
            return pool.request("GET", url, timeout=TIMEOUT_S)

    return Client(get, head, raw, pieces, post, waits)


def _seen_by_urllib3(response: Any) -> Seen:
    history = len(response.retries.history) if response.retries else 0
    return Seen(response.status, response.reason, list(response.headers.items()), response.data, history)


# aiohttp


def _aiohttp_client() -> Client:
    async def get(url: str) -> Seen:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await _seen_by_aiohttp(response, session)

    async def head(url: str) -> Seen:
        async with aiohttp.ClientSession() as session, session.head(url) as response:
            return await _seen_by_aiohttp(response, session)

    async def raw(url: str) -> bytes:
        async with aiohttp.ClientSession(auto_decompress=False) as session, session.get(url) as response:
            return await response.read()

    async def pieces(url: str, count: int) -> list[bytes]:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await _async_first(response.content.iter_any(), count)

    async def post(url: str, **body: Any) -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, **_for_aiohttp(body)) as response,
        ):
            return await response.read()

    async def waits(url: str) -> Any:
        timeout = aiohttp.ClientTimeout(sock_read=TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            return await response.read()

    return Client(*map(_run, (get, head, raw, pieces, post, waits)))


async def _seen_by_aiohttp(response: aiohttp.ClientResponse, session: aiohttp.ClientSession) -> Seen:
    assert response.reason is not None
    return Seen(
        response.status,
        response.reason,
        list(response.headers.items()),
        await response.read(),
        len(response.history),
        tuple(sorted(cookie.key for cookie in session.cookie_jar)),
    )


def _for_aiohttp(body: dict[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in body.items() if name in ("json", "headers")}
    if "chunks" in body:
        options["data"] = _async_chunks(body["chunks"])
    elif "files" in body:
        options["data"] = form = aiohttp.FormData()
        for name, (filename, content) in body["files"].items():
            form.add_field(name, content, filename=filename)
    elif "json" not in body:
        options["data"] = body.get("form", body.get("content"))
    return options


# urllib


def _urllib_client() -> Client:
    def opened(url: str, **options: Any) -> Any:
        wanted = urllib.request.Request(url, **options)
        try:
            return urllib.request.urlopen(wanted, timeout=5)
        except urllib.error.HTTPError as error:
            return error

    def seen(url: str, method: str) -> Seen:
        opener = urllib.request.build_opener(counting := _Redirects())
        try:
            response = opener.open(urllib.request.Request(url, method=method), timeout=5)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            content, coding = response.read(), response.headers.get("content-encoding", "")
            decode = decoder(coding)
            return Seen(
                response.status,
                response.reason,
                list(response.headers.items()),
                decode(content) if decode else content,
                counting.count,
            )

    def raw(url: str) -> bytes:
        with opened(url) as response:
            content: bytes = response.read()
            return content

    def pieces(url: str, count: int) -> list[bytes]:
        with opened(url) as response:
            return _first(iter(lambda: response.read1(1 << 16), b""), count)

    def post(url: str, **body: Any) -> bytes:
        headers, data = dict(body.get("headers", {})), body.get("content")
        if "chunks" in body:
            data = iter(body["chunks"])
        elif "content" not in body:
            made = requests.Request("POST", url, **_for_requests(body)).prepare()
            data, headers = made.body, headers | {"Content-Type": made.headers["Content-Type"]}
        data = data.encode() if isinstance(data, str) else data
        with opened(url, data=data, headers=headers, method="POST") as response:
            content: bytes = response.read()
            return content

    return Client(
        lambda url: seen(url, "GET"),
        lambda url: seen(url, "HEAD"),
        raw,
        pieces,
        post,
        lambda url: urllib.request.urlopen(url, timeout=TIMEOUT_S).read(),
    )


class _Redirects(urllib.request.HTTPRedirectHandler):
    count = 0

    def redirect_request(self, *args: Any) -> Any:
        self.count += 1
        return super().redirect_request(*args)


def _for_requests(body: dict[str, Any]) -> dict[str, Any]:
    return {{"form": "data"}.get(name, name): value for name, value in body.items() if name != "headers"}


CLIENTS = {
    "httpx2": _httpx_client(httpx2),
    "httpx2-async": _async_httpx_client(httpx2),
    "httpx": _httpx_client(httpx),
    "httpx-async": _async_httpx_client(httpx),
    "requests": _requests_client(),
    "urllib3": _urllib3_client(),
    "aiohttp": _aiohttp_client(),
    "urllib": _urllib_client(),
}
