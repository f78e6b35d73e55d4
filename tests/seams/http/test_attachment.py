"""Seams are there while a run is open, for whatever is used meanwhile, and leave no trace."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import httpx
import httpx2
import pytest
import requests
import urllib3

import reenact
from tests.seams.http.clients import attempt
from tests.seams.http.site import PAGE, Site
from tests.seams.http.test_clients import calls_in, record, replay, twice

PATCHED: list[tuple[Any, str]] = [
    *((library.Client, "send") for library in (httpx, httpx2)),
    *((library.HTTPTransport, "handle_request") for library in (httpx, httpx2)),
    *((library.AsyncClient, "send") for library in (httpx, httpx2)),
    *((library.AsyncHTTPTransport, "handle_async_request") for library in (httpx, httpx2)),
    (urllib3.connectionpool.HTTPConnectionPool, "_make_request"),
    (urllib3.connectionpool.HTTPSConnectionPool, "_prepare_proxy"),
    (requests.adapters.HTTPAdapter, "send"),
    (aiohttp.ClientSession, "_request"),
    (time, "sleep"),
    (asyncio, "sleep"),
    (anyio, "sleep"),
]


def attached() -> list[Any]:
    return [getattr(owner, name) for owner, name in PATCHED]


def test_everything_is_as_before_when_the_run_is_over(tmp_path: Path) -> None:
    before, finders = attached(), list(sys.meta_path)
    with reenact.capture(tmp_path / "run"):
        assert all(now is not was for now, was in zip(attached(), before, strict=True))
    assert attached() == before
    assert sys.meta_path == finders


def test_a_run_that_ends_leaves_the_other_one_its_seams(tmp_path: Path) -> None:
    """One patch for the process, in place until the last run has ended."""
    before = attached()
    outer = reenact.capture(tmp_path / "outer")
    with outer:
        with reenact.capture(tmp_path / "inner"):
            during = attached()
        assert attached() == during
    assert attached() == before


def test_two_runs_in_two_threads_have_each_their_own_calls(tmp_path: Path, web: Site) -> None:
    """One is recorded while another is replayed, and a third thread is in no run."""
    record(tmp_path / "old", lambda: [httpx2.get(f"{web.url}/echo/old{n}").text for n in range(20)])
    barrier = threading.Barrier(3)
    found: dict[str, Any] = {}

    def recording() -> None:
        with reenact.capture(tmp_path / "new") as run:
            barrier.wait()
            found["new"] = [httpx2.get(f"{web.url}/echo/new{n}").text for n in range(20)]
        found["warnings"] = run.warnings

    def replaying() -> None:
        with reenact.replay(tmp_path / "old") as run:
            barrier.wait()
            found["old"] = [httpx2.get(f"{web.url}/echo/old{n}").text for n in range(20)]
        found["divergences"] = run.divergences

    threads = [threading.Thread(target=recording), threading.Thread(target=replaying)]
    for thread in threads:
        thread.start()
    barrier.wait()
    for thread in threads:
        thread.join()
    assert found["new"] == [f"new{n}" for n in range(20)]
    assert found["old"] == [f"old{n}" for n in range(20)]
    assert (found["warnings"], found["divergences"]) == ([], [])
    assert [call["key"] for call in calls_in(tmp_path / "new")] == [
        f"GET {web.url}/echo/new{n}" for n in range(20)
    ]


def test_clients_that_are_older_than_the_run_are_covered(tmp_path: Path, web: Site) -> None:
    """Also with connections that are open already."""
    session = requests.Session()
    with httpx2.Client(verify=False) as client, session, urllib3.PoolManager() as pool:

        def work() -> list[Any]:
            url = f"{web.url}/page"
            return [client.get(url).text, session.get(url).text, pool.request("GET", url).data.decode()]

        assert work() == [PAGE] * 3
        assert twice(tmp_path / "run", work, web) == [PAGE] * 3
    assert len(calls_in(tmp_path / "run")) == 3


def test_what_a_transport_of_the_users_own_asks_is_recorded(tmp_path: Path, web: Site) -> None:
    """It runs in replay, mounted or not, and what it asks is answered from the recording."""
    relayed: list[str] = []

    class Relay(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            relayed.append(request.url.host)
            answer = requests.get(f"{web.url}{request.url.path}", timeout=5)
            return httpx2.Response(answer.status_code, content=answer.content)

    def work() -> list[str]:
        with httpx2.Client(transport=Relay(), mounts={"all://other": Relay()}) as client:
            return [client.get("http://one/page").text, client.get("http://other/page").text]

    assert twice(tmp_path / "run", work, web) == [PAGE] * 2
    assert [call["key"] for call in calls_in(tmp_path / "run")] == [f"GET {web.url}/page"] * 2
    assert relayed == ["one", "other"] * 2


def test_a_tunnel_is_dug_only_when_the_call_is_live(tmp_path: Path, web: Site) -> None:
    """A proxy that is not there fails the call in replay as it did before, and is not asked again."""

    def work() -> Any:
        return attempt(
            lambda: requests.get("https://there.invalid/", proxies={"https": "http://127.0.0.1:9"}, timeout=5)
        )

    failed = twice(tmp_path / "run", work, web)
    assert failed.kind is requests.exceptions.ProxyError


def test_what_leaves_http_is_not_recorded(tmp_path: Path) -> None:
    """A WebSocket's handshake goes by; no single answer could stand for what follows."""
    answer = httpx2.MockTransport(lambda _: httpx2.Response(101))
    with reenact.capture(tmp_path / "run"), httpx2.Client(transport=answer) as client:
        client.get("http://x/", headers={"connection": "upgrade", "upgrade": "websocket"})
    assert calls_in(tmp_path / "run") == []


IMPORTS_LATE = """
import sys, reenact
def work():
    import {library}
    return {expression}
path, url = sys.argv[1:]
assert "{library}" not in sys.modules
with reenact.capture(path):
    assert "{library}" not in sys.modules
    recorded = work()
with reenact.replay(path):
    assert work() == recorded
assert len(open(path + "/events.jsonl").read().splitlines()) == 4
import {library}
assert "reenact" not in type({library}.__spec__.loader).__module__
assert {library}.__loader__ is {library}.__spec__.loader
"""

EXPRESSIONS = {
    "httpx": "httpx.get(url).text",
    "requests": "requests.get(url).text",
    "urllib3": "urllib3.request('GET', url).data",
}


@pytest.mark.parametrize("library", EXPRESSIONS)
def test_a_library_that_is_imported_during_the_run_is_covered(
    tmp_path: Path, web: Site, library: str
) -> None:
    """From its first call on; its loader is put back in its place."""
    program = IMPORTS_LATE.format(library=library, expression=EXPRESSIONS[library])
    command = [sys.executable, "-c", program, str(tmp_path / "run"), f"{web.url}/page"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_client_library_is_imported_on_its_own(tmp_path: Path) -> None:
    """A run imports none of the libraries it has seams for."""
    program = (
        "import sys, reenact\n"
        f"with reenact.capture({str(tmp_path / 'run')!r}): pass\n"
        "names = {'httpx', 'httpx2', 'requests', 'urllib3', 'aiohttp', 'anyio'}\n"
        "assert not names & sys.modules.keys(), names & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_stream_nobody_finished_is_left_when_the_run_ends(tmp_path: Path, web: Site) -> None:
    """Its call has an outcome, and replay may leave it the same way."""

    def work() -> bytes:
        response = httpx2.Client(verify=False).send(httpx2.Request("GET", f"{web.url}/stream"), stream=True)
        kept.append(response)
        return next(response.iter_bytes())

    kept: list[httpx2.Response] = []
    first = record(tmp_path / "run", work)
    assert replay(tmp_path / "run", work, web) == first
    for response in kept:
        response.close()
