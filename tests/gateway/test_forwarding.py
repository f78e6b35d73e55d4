"""The gateway between a client and an upstream that both really speak HTTP: recorded, then replayed."""

import asyncio
import gzip
import json
import re
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import httpx2
import pytest
import zstandard
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reenact.errors import UsageError
from reenact.gateway.server import Gateway
from reenact.seams.http.message import decoder
from reenact.store.reader import CaptureReader
from tests.gateway.conftest import both, recording, replaying
from tests.seams.http.site import CHUNKS, CODINGS, PAGE


def raw_get(address, target, read=lambda sock: b"".join(iter(lambda: sock.recv(65536), b""))):
    """The bytes that come for a GET on a connection of its own."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return read(sock)


# What comes back


@pytest.mark.parametrize(
    "target", ["page", "bytes", "nothing", "status/404", "status/500", "moved", "echo/a%2Fb?q=%20"]
)
def test_an_answer_is_passed_on_and_replayed_as_it_was(target, site, client, tmp_path):
    """Status, headers and body; errors of the upstream are answers too."""

    def work(address):
        response = client.get(f"{address}/site/{target}")
        return response.status_code, response.content, response.headers.multi_items()

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    direct = client.get(f"{site.url}/{target}")
    assert first == again
    assert first[:2] == (direct.status_code, direct.content)
    kept = [pair for pair in direct.headers.multi_items() if pair[0] != "date"]
    assert [pair for pair in first[2] if pair[0] != "date"] == kept


def test_a_head_has_no_body(site, client, tmp_path):
    """But the length that the body would have."""

    def work(address):
        response = client.head(f"{address}/site/page")
        return response.headers["content-length"], response.content

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert first == again == (str(len(PAGE.encode())), b"")


def test_the_upstream_is_left_alone_in_replay(site, client, tmp_path):
    """Not one connection is made to it."""
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        client.get(f"{gateway.address}/site/page")
    before = site.connections
    with replaying(tmp_path / "run", {"site": site.url}) as seen:
        client.get(f"{seen.address}/site/page")
    assert site.connections == before


def test_a_stream_is_replayed_with_its_chunks(site, tmp_path):
    """Cut where the upstream cut it, in the middle of a character if need be."""

    def work(address):
        answer = raw_get(address, "/site/stream")
        return answer.partition(b"\r\n\r\n")[2]

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert (
        first == again == b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in CHUNKS) + b"0\r\n\r\n"
    )


@pytest.mark.parametrize("coding", CODINGS)
def test_coded_answers_stay_coded_for_the_client_and_readable_in_the_capture(coding, site, client, tmp_path):
    """The client gets the very bytes; the recording has the text."""

    def work(address):
        with client.stream("GET", f"{address}/site/coded/{coding}") as response:
            return response.headers["content-encoding"], b"".join(response.iter_raw())

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert first == again
    assert (first[0], decoder(coding)(first[1])) == (coding, PAGE.encode())
    reader = CaptureReader(tmp_path / "run")
    assert PAGE.encode() == "".join(reader.resolve(reader.event(3).data.pieces)).encode()


BODIES = {
    "plain": ({}, lambda text: text),
    "gzip": ({"content-encoding": "gzip"}, gzip.compress),
    "zstd": ({"content-encoding": "zstd"}, zstandard.ZstdCompressor().compress),
}


@pytest.mark.parametrize(("headers", "coded"), BODIES.values(), ids=BODIES)
def test_a_request_is_forwarded_as_received_and_matched_by_what_it_says(
    headers, coded, site, client, tmp_path
):
    """Another way of writing the same JSON is the same request."""
    body = {"b": [1, 2], "a": "é" * 1000}
    headers = headers | {"content-type": "application/json"}
    sent = coded(json.dumps(body).encode())
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        first = client.post(f"{gateway.address}/site/x", content=sent, headers=headers).text
    assert site.bodies == [sent]
    request = CaptureReader(tmp_path / "run").event(2).data.request
    assert request == {"method": "POST", "url": f"{site.url}/x", "body": body}
    with replaying(tmp_path / "run", {"site": site.url}) as seen:
        again = coded(json.dumps(body, sort_keys=True, ensure_ascii=False).encode())
        assert client.post(f"{seen.address}/site/x", content=again, headers=headers).text == first
    assert seen.receipt.verdict == "reproduced"


def test_a_large_body_goes_through(site, client, tmp_path):
    """Twenty megabytes there; chunked, so that nobody knows its length beforehand."""
    part = b"x" * (1 << 20)

    def work(address):
        return client.post(f"{address}/site/x", content=(part for _ in range(20))).text

    assert both(tmp_path / "run", {"site": site.url}, work) == (f"got {20 << 20}",) * 2


def test_one_connection_serves_many_calls(site, client, tmp_path):
    """Kept alive towards the client; an upstream at ``http://`` is connected to for each."""
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        streams = set()
        for word in "abcde":
            response = client.get(f"{gateway.address}/site/echo/{word}")
            streams.add(response.extensions["network_stream"].get_extra_info("client_addr"))
    assert len(streams) == 1
    assert site.connections == 5


def test_the_first_byte_comes_before_the_last_is_sent(tmp_path):
    """Nothing is held back."""
    go_on = threading.Event()

    def upstream(server):
        sock, _ = server.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
            go_on.wait(30)
            sock.sendall(b" last")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=upstream, args=[server])
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with (
            recording(tmp_path / "run", {"up": address}) as gateway,
            httpx2.stream("GET", f"{gateway.address}/up/x", timeout=30) as response,
        ):
            pieces = response.iter_raw()
            assert next(pieces) == b"first"
            go_on.set()
            assert b"".join(pieces) == b" last"
        thread.join()


def test_two_hundred_streams_at_once(site, tmp_path):
    """Each gets its own, recorded and replayed."""

    async def ask_all(address):
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(timeout=60, trust_env=False, limits=limits) as client:
            asked = [client.get(f"{address}/site/stream?{number}") for number in range(200)]
            return [response.content for response in await asyncio.gather(*asked)]

    def work(address):
        return asyncio.run(ask_all(address))

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert first == again == [b"".join(CHUNKS)] * 200


# What goes wrong


def test_an_upstream_that_is_down_is_an_outcome(client, tmp_path):
    """The client is told, may try again, and is told the same in replay."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

    def work(address):
        response = client.get(f"{address}/up/x")
        return response.status_code, response.json(), response.headers.get("x-should-retry")

    first, again = both(tmp_path / "run", {"up": url}, work)
    assert first == again
    assert first[0] == 502
    assert first[1]["error"]["type"] == "upstream_failed"
    assert "ConnectError" in first[1]["error"]["message"]
    assert first[2] is None


def one_answer(text):
    """An upstream that says *text* to whoever comes, and closes."""

    def serve(server):
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            with sock:
                sock.recv(65536)
                sock.sendall(text)

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=[server], daemon=True).start()
    return server, f"http://127.0.0.1:{server.getsockname()[1]}"


def test_garbage_is_an_outcome(client, tmp_path):
    """It never reaches the client."""
    server, url = one_answer(b"\x00\x01 this is not HTTP\r\n\r\n")
    with server:
        first, again = both(tmp_path / "run", {"up": url}, lambda at: client.get(f"{at}/up/x").text)
        server.shutdown(socket.SHUT_RDWR)
    assert first == again
    assert json.loads(first)["error"]["type"] == "upstream_failed"


@pytest.mark.parametrize("target", ["broken", "short"])
def test_an_answer_that_breaks_off_breaks_off_for_the_client(target, site, client, tmp_path):
    """What came is passed on; the end is not taken for one, neither now nor in replay."""

    def work(address):
        came = []
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            client.stream("GET", f"{address}/site/{target}") as response,
        ):
            came.extend(response.iter_raw())
        return came

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert first == again == [{"broken": b"hello", "short": b"abc"}[target]]


def test_a_silent_upstream_is_a_timeout(site, client, tmp_path):
    """After as long as was said."""
    run = tmp_path / "run"
    with recording(run, {"site": site.url}, upstream_timeout_s=0.05) as gateway:
        first = client.get(f"{gateway.address}/site/slow")
    with replaying(run, {"site": site.url}) as seen:
        again = client.get(f"{seen.address}/site/slow")
    assert (first.status_code, first.json()["error"]["type"]) == (504, "upstream_timeout")
    assert (again.status_code, again.content) == (504, first.content)
    assert seen.receipt.verdict == "reproduced"


def leave_early(sock):
    """Read up to the first piece of the body, then go."""
    came = b""
    while b"data: one" not in came:
        came += sock.recv(65536)
    return came


def test_a_client_that_leaves_half_way_is_an_outcome(tmp_path):
    """As far as it read; in replay it leaves again, and nobody waits for it."""
    go_on = threading.Event()

    def upstream(server):
        sock, _ = server.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
            assert sock.recv(1) == b""  # the gateway leaves too
            go_on.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=upstream, args=[server])
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with recording(tmp_path / "run", {"up": url}) as gateway:
            raw_get(gateway.address, "/up/x", leave_early)
            assert go_on.wait(30)
        thread.join()
    outcome = CaptureReader(tmp_path / "run").event(3).data
    assert (outcome.cancelled, outcome.pieces) == (True, ["data: one\n\n"])
    started_s = time.monotonic()
    with replaying(tmp_path / "run", {"up": url}) as seen:
        assert b"data: one" in raw_get(seen.address, "/up/x", leave_early)
        time.sleep(0.2)
    assert seen.receipt.verdict == "reproduced", seen.receipt.divergences
    assert time.monotonic() - started_s < 8


def test_a_server_that_closes_without_a_word_fails_no_call(client, tmp_path):
    """A client that connects for each call does not notice how long the server keeps a connection."""

    def answer_once(connection):
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.recv(65536)  # whatever else comes on it, it is closed

    def upstream(server):
        for _ in range(3):
            threading.Thread(target=answer_once, args=[server.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=upstream, args=[server], daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with recording(tmp_path / "run", {"up": url}) as gateway:
            answers = [client.get(f"{gateway.address}/up/{number}").text for number in range(3)]
    assert answers == ["ok"] * 3


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    """Of 127.0.0.1, for one server; clients of this process trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setattr("reenact.gateway.client._IDLE_S", 600.0)  # however slow the machine is
    return path


def _read_request(connection):
    """All of one; the body may come by itself."""
    came = b""
    while b"\r\n\r\n" not in came:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError
        came += piece
    length = re.search(rb"content-length: (\d+)", came.lower())
    while length and len(came.partition(b"\r\n\r\n")[2]) < int(length[1]):
        came += connection.recv(65536)
    return came


class ClosesWithoutAWord:
    """An upstream behind TLS that answers once on each connection, and closes it when more comes."""

    def __init__(self, certificate, requests_before_it_closes=1):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        self._before = requests_before_it_closes
        self._server = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.url = f"https://127.0.0.1:{self._server.getsockname()[1]}"
        self.connections = 0
        self.answered = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection):
        with connection, suppress(OSError):
            for _ in range(self._before):
                self.answered.append(_read_request(connection).split(b" ")[:2])
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.recv(65536)


def test_a_question_survives_a_connection_that_was_closed_without_a_word(client, certificate, tmp_path):
    """It is asked again on a new connection, and recorded once."""
    upstream = ClosesWithoutAWord(certificate)
    with recording(tmp_path / "run", {"up": upstream.url}) as gateway:
        answers = [client.get(f"{gateway.address}/up/{number}") for number in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert upstream.answered == [[b"GET", b"/%d" % number] for number in range(4)]
    assert len(list(CaptureReader(tmp_path / "run").events())) == 2 + 2 * 4


def test_what_may_have_changed_something_is_not_sent_again(client, certificate, tmp_path):
    """The client decides; from then on each call has a connection of its own."""
    upstream = ClosesWithoutAWord(certificate)
    with recording(tmp_path / "run", {"up": upstream.url}) as gateway:
        url = f"{gateway.address}/up/x"
        answers = [client.post(url, content=b"{}").status_code for _ in range(4)]
        named = client.post(url, content=b"{}", headers={"Idempotency-Key": "1"}).status_code
    assert (answers, named) == ([200, 502, 200, 200], 200)
    assert upstream.connections == 4


def test_connections_to_a_polite_upstream_are_used_again(client, certificate, tmp_path):
    """Connecting anew takes two more ways to it and back."""
    upstream = ClosesWithoutAWord(certificate, requests_before_it_closes=9)
    with recording(tmp_path / "run", {"up": upstream.url}) as gateway:
        for _ in range(3):
            assert client.post(f"{gateway.address}/up/x", content=b"{}").status_code == 200
    assert upstream.connections == 1


def test_what_was_not_recorded_is_refused_and_not_to_be_tried_again(site, client, tmp_path):
    """With the divergence as the message; the upstream is not asked."""
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        client.get(f"{gateway.address}/site/echo/one")
    before = site.connections
    with replaying(tmp_path / "run", {"site": site.url}) as seen:
        response = client.get(f"{seen.address}/site/echo/two")
    assert (response.status_code, response.headers["x-should-retry"]) == (400, "false")
    assert "echo/two" in response.json()["error"]["message"]
    assert seen.receipt.verdict == "diverged"
    assert site.connections == before


def test_a_call_may_not_come_before_what_had_ended_before_it(site, client, tmp_path):
    """Equal requests exist for both, but the second could not know then what the first would be told."""
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        for word in ("one", "two"):
            client.get(f"{gateway.address}/site/echo/{word}")
    with replaying(tmp_path / "run", {"site": site.url}, stall_s=0.3) as seen:
        answers = [client.get(f"{seen.address}/site/echo/{word}").status_code for word in ("two", "one")]
    assert answers == [400, 400]
    assert seen.receipt.divergences[0]["code"] == "event_unexpected"
    assert "event 2 " in seen.receipt.divergences[0]["detail"]


def test_calls_that_were_under_way_together_may_come_in_any_order(tmp_path):
    """And one that comes too early waits for the one before it."""

    def upstream(server):
        socks = [server.accept()[0] for _ in range(2)]
        asked = [sock.recv(65536) for sock in socks]
        for sock, request in zip(socks, asked, strict=True):
            word = request.split(b" ")[1][1:]
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(word), word))
            sock.close()

    def ask(address, word, delay_s=0.0):
        time.sleep(delay_s)
        return httpx2.get(f"{address}/up/{word}", timeout=30, trust_env=False).text

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        thread = threading.Thread(target=upstream, args=[server])
        thread.start()
        with recording(tmp_path / "run", {"up": url}) as gateway, ThreadPoolExecutor() as pool:
            assert [*pool.map(ask, [gateway.address] * 2, ["a", "b"])] == ["a", "b"]
        thread.join()
    with replaying(tmp_path / "run", {"up": url}) as seen, ThreadPoolExecutor() as pool:
        assert [*pool.map(ask, [seen.address] * 2, ["b", "a"], [0, 0.3])] == ["b", "a"]
    assert seen.receipt.verdict == "reproduced", seen.receipt.divergences


# Who may come


def test_another_host_is_refused(site, client, tmp_path):
    """A web page whose name was pointed to this host gets nothing."""
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        refused = client.get(f"{gateway.address}/site/page", headers={"host": "evil.example"})
        port = gateway.address.rpartition(":")[2]
        allowed = client.get(f"http://localhost:{port}/site/page")
    assert (refused.status_code, allowed.status_code) == (400, 200)
    assert site.connections == 1


def test_an_unknown_name_is_told_what_there_is(client, tmp_path):
    """And leaves no capture."""
    with recording(tmp_path / "run", {"site": "http://127.0.0.1:1"}) as gateway:
        response = client.get(f"{gateway.address}/stie/page")
        assert gateway.unknown_names == ["stie"]
    assert response.status_code == 404
    assert response.json()["error"]["message"] == (
        "reenact: /stie: no upstream has this name, there are site; add it with --upstream stie=URL"
    )
    assert not (tmp_path / "run").exists()


def test_a_port_in_use_is_said_in_one_line(tmp_path):
    """With the way out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UsageError, match=rf"^port {port}: is in use; name another with --port"):
            Gateway(None, {}, port=port)


def test_a_gateway_that_nobody_comes_to_ends_at_once(tmp_path):
    """Its thread too."""
    with recording(tmp_path / "run", {}) as gateway:
        address = gateway.address
    assert [thread.name for thread in threading.enumerate() if thread.name == "reenact-gateway"] == []
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(address)
