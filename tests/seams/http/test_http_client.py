"""``http.client`` and what is built on it, in the ways that no other client has."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest
import urllib3

import reenact
from reenact.errors import Diverged
from reenact.testing import Reply, ScriptedProvider
from tests.seams.http.clients import Failed, attempt
from tests.seams.http.site import PAGE, Site
from tests.seams.http.test_clients import calls_in, twice


def connected(web: Site) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(web.url.removeprefix("http://"), timeout=5)


def test_a_connection_is_used_for_several_requests(tmp_path: Path, web: Site) -> None:
    """Keep-alive, headers, lines and sizes are http.client's own."""

    def work() -> list[Any]:
        connection = connected(web)
        found: list[Any] = []
        for path in ("/page", "/echo/word", "/bytes"):
            connection.request("GET", path, headers={"X-A": "1"})
            response = connection.getresponse()
            found += [
                response.status,
                response.getheader("content-length"),
                response.read(3),
                response.readline(),
            ]
            found.append(response.read())
            assert response.isclosed()
        connection.close()
        return found

    twice(tmp_path / "run", work, web)
    assert len(calls_in(tmp_path / "run")) == 3


def test_the_socket_of_a_connection_can_be_set(tmp_path: Path, web: Site) -> None:
    """Between request and answer there is one, as code expects that sets its timeout or options."""

    def work() -> list[Any]:
        found: list[Any] = []
        with closing(connected(web)) as connection:
            for headers in ({}, {"Connection": "close"}):
                connection.request("GET", "/page", headers=headers)
                connection.sock.settimeout(4)
                connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                found.append(connection.getresponse().read())
                found.append(connection.sock is None)
        return found

    twice(tmp_path / "run", work, web)


def test_a_connection_of_urllib3_can_be_used_by_hand(tmp_path: Path, web: Site) -> None:
    def work() -> bytes:
        with closing(urllib3.connection.HTTPConnection(web.url.removeprefix("http://"))) as connection:
            connection.request("GET", "/page")
            return connection.getresponse().data

    twice(tmp_path / "run", work, web)


def test_a_body_that_is_sent_in_pieces_is_one_request(tmp_path: Path, web: Site) -> None:
    def work(second: bytes = b"two") -> bytes:
        with closing(connected(web)) as connection:
            connection.putrequest("POST", "/")
            connection.putheader("Content-Length", "6")
            connection.putheader("Content-Type", "text/plain")
            connection.endheaders()
            connection.send(b"one")
            connection.send(second)
            return connection.getresponse().read()

    assert twice(tmp_path / "run", work, web)
    with pytest.raises(Diverged), reenact.replay(tmp_path / "run"):
        work(b"owt")


def test_an_unread_response_is_not_forgotten(tmp_path: Path, web: Site) -> None:
    """http.client refuses a second answer before the first is asked for."""

    def work() -> Any:
        with closing(connected(web)) as connection:
            connection.request("GET", "/page")
            connection.getresponse().read()
            return attempt(connection.getresponse)

    assert twice(tmp_path / "run", work, web).kind is http.client.ResponseNotReady


def test_errors_come_where_they_came(tmp_path: Path, web: Site) -> None:
    """Refused while sending, reset while receiving: urllib wraps only the first."""

    def work() -> list[Any]:
        refused = attempt(lambda: urllib.request.urlopen("http://127.0.0.1:9/", timeout=5))
        with closing(connected(web)) as connection:
            connection.timeout = 0.1
            connection.request("GET", "/slow")
            return [refused, attempt(connection.getresponse)]

    refused, late = twice(tmp_path / "run", work, web)
    assert refused.kind is urllib.error.URLError
    assert late.kind is TimeoutError


def test_urllib_reports_an_error_status_as_it_does(tmp_path: Path, web: Site) -> None:
    failed = twice(
        tmp_path / "run", lambda: attempt(lambda: urllib.request.urlopen(f"{web.url}/status/503")), web
    )
    assert isinstance(failed, Failed)
    assert failed.kind is urllib.error.HTTPError


def test_a_model_asked_with_urllib_is_a_model_call(tmp_path: Path, web: Site) -> None:
    with ScriptedProvider(Reply("Yes.")) as provider:
        url = f"{provider.base_url('openai')}/chat/completions"
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}

        def work() -> Any:
            request = urllib.request.Request(
                url, json.dumps(asked).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request) as response:
                return json.load(response)["choices"][0]["message"]["content"]

        assert twice(tmp_path / "run", work, web) == "Yes."
    assert '"type":"llm_request"' in (tmp_path / "run" / "events.jsonl").read_text()


@pytest.fixture
def adder() -> Iterator[str]:
    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(lambda a, b: a + b, "add")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_xmlrpc_is_recorded(tmp_path: Path, web: Site, adder: str) -> None:
    def work() -> Any:
        with xmlrpc.client.ServerProxy(adder) as proxy:
            return [proxy.add(1, 2), proxy.add(3, 4)]

    assert twice(tmp_path / "run", work, web) == [3, 7]


def test_a_page_is_left_where_the_agent_left_it(tmp_path: Path, web: Site) -> None:
    def work() -> bytes:
        with urllib.request.urlopen(f"{web.url}/page") as response:
            first: bytes = response.read(5)
            return first

    assert twice(tmp_path / "run", work, web) == PAGE.encode()[:5]
