"""Requests that come in pieces: passed on while they come, recorded before the upstream has them whole."""

import asyncio
import gzip
import json
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx2
import pytest
import zstandard

from reenact.gateway.app import Forwarding
from reenact.store.reader import CaptureReader
from tests.gateway.conftest import both, capture_of, recording, replaying

BODY = json.dumps({"words": ["word"] * 20_000}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"


@contextmanager
def listening():
    """A server socket that the test itself accepts from, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def accepted(server):
    sock = server.accept()[0]
    sock.settimeout(30)
    return sock


@contextmanager
def uploading(address, *framing, target="/up/x"):
    """A connection on which the head of a POST has been sent."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        lines = [f"POST {target} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", *framing]
        sock.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        yield sock


def read_until(sock, is_enough):
    came = b""
    while not is_enough(came):
        more = sock.recv(1 << 16)
        assert more, f"closed after {came[-200:]!r}"
        came += more
    return came


def is_answer(came):
    return came.endswith(ANSWER[-4:])


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


def in_pieces(data, size_bytes=7_000):
    return (data[start : start + size_bytes] for start in range(0, len(data), size_bytes))


def asked(path):
    """The body of the first recorded call."""
    reader = CaptureReader(path)
    return reader.resolve(reader.event(2).data.request)["body"]


def recorded_lines(folder):
    return [line for path in folder.rglob("events.jsonl") for line in path.read_bytes().splitlines()]


# What goes out, and when


def test_a_part_reaches_the_upstream_before_the_rest_is_sent(tmp_path):
    """With the length that the client gave."""
    with (
        listening() as (server, url),
        recording(tmp_path / "run", {"up": url}) as gateway,
        uploading(gateway.address, f"Content-Length: {len(BODY)}") as client,
    ):
        client.sendall(BODY[:1000])
        with accepted(server) as sock:
            came = read_until(sock, lambda so_far: so_far.endswith(BODY[900:999]))
            assert recorded_lines(tmp_path) == []
            client.sendall(BODY[1000:])
            came += read_until(sock, lambda so_far: so_far.endswith(BODY[-10:]))
            sock.sendall(ANSWER)
            assert read_until(client, is_answer)
    head, _, body = came.partition(b"\r\n\r\n")
    assert f"content-length: {len(BODY)}".encode() in head.lower()
    assert body == BODY
    assert asked(tmp_path / "run") == json.loads(BODY)


def test_a_body_of_unknown_length_stays_one(tmp_path):
    """Chunk for chunk, as soon as there is one."""
    with (
        listening() as (server, url),
        recording(tmp_path / "run", {"up": url}) as gateway,
        uploading(gateway.address, "Transfer-Encoding: chunked") as client,
    ):
        client.sendall(chunk(BODY[:1000]))
        with accepted(server) as sock:
            head = read_until(sock, lambda so_far: BODY[900:999] in so_far).lower()
            assert b"transfer-encoding: chunked" in head
            assert b"content-length" not in head
            client.sendall(chunk(BODY[1000:]) + b"0\r\n\r\n")
            read_until(sock, lambda so_far: so_far.endswith(b"0\r\n\r\n"))
            sock.sendall(ANSWER)
            assert read_until(client, is_answer)
    assert asked(tmp_path / "run") == json.loads(BODY)


def test_the_last_byte_waits_until_the_call_is_on_disk(tmp_path):
    """An upstream that has a whole request is one whose call is recorded, even if we were killed now."""
    recordable = threading.Event()
    with (
        listening() as (server, url),
        recording(tmp_path / "run", {"up": url}, on_call=lambda: recordable.wait(30)) as gateway,
        uploading(gateway.address, f"Content-Length: {len(BODY)}") as client,
    ):
        client.sendall(BODY[:1000])
        with accepted(server) as sock:
            read_until(sock, lambda so_far: so_far.endswith(BODY[900:999]))
            client.sendall(BODY[1000:])
            sock.settimeout(0.2)
            came = b""
            with pytest.raises(TimeoutError):
                while True:
                    came += sock.recv(1 << 16)
            assert 999 + len(came) < len(BODY)
            assert recorded_lines(tmp_path) == []
            recordable.set()
            sock.settimeout(30)
            read_until(sock, lambda so_far: len(came + so_far) == len(BODY) - 999)
            assert b"POST" in recorded_lines(tmp_path)[-1]
            sock.sendall(ANSWER)
            assert read_until(client, is_answer)


CODED = {
    "plain": ({}, lambda data: data),
    "gzip": ({"content-encoding": "gzip"}, gzip.compress),
    "zstd": ({"content-encoding": "zstd"}, zstandard.ZstdCompressor().compress),
}


@pytest.mark.parametrize("is_length_known", [True, False], ids=["length", "chunked"])
@pytest.mark.parametrize(("headers", "coded"), CODED.values(), ids=CODED)
def test_the_same_request_in_other_pieces_is_the_same(
    headers, coded, is_length_known, site, client, tmp_path
):
    """What goes out are the client's own bytes; what is matched is what they say."""
    sent = coded(BODY)
    headers = {**headers, "content-type": "application/json"}
    if is_length_known:
        headers["content-length"] = str(len(sent))
    with recording(tmp_path / "run", {"site": site.url}) as gateway:
        pieces = in_pieces(sent, len(sent) // 9 + 1)
        first = client.post(f"{gateway.address}/site/x", content=pieces, headers=headers).text
    assert site.bodies == [sent]
    with replaying(tmp_path / "run", {"site": site.url}) as seen:
        pieces = in_pieces(sent, len(sent) // 4 + 1)
        assert client.post(f"{seen.address}/site/x", content=pieces, headers=headers).text == first
    assert seen.receipt.verdict == "reproduced", seen.receipt.divergences
    assert site.bodies == [sent]


def test_a_slow_upstream_slows_the_client_down(tmp_path):
    """What it does not take stays where it is: in the client."""
    size_bytes = 64 << 20
    with (
        listening() as (server, url),
        recording(tmp_path / "run", {"up": url}) as gateway,
        uploading(gateway.address, f"Content-Length: {size_bytes}") as client,
    ):
        sent_bytes = client.send(bytes(1 << 16))
        with accepted(server):
            client.settimeout(0.5)
            with pytest.raises(TimeoutError):
                while sent_bytes < size_bytes:
                    sent_bytes += client.send(bytes(1 << 20))
    assert sent_bytes < size_bytes
    assert not (tmp_path / "run").exists()


def test_uploads_side_by_side_keep_to_themselves(site, tmp_path):
    """Large and small ones, whole and in pieces, recorded and replayed; some are never finished."""

    def ask(address, number):
        data = b"%d " % number * 20_000
        with httpx2.Client(timeout=60, trust_env=False) as client:
            content = data if number % 2 else in_pieces(data, 10_000 + number)
            return client.post(f"{address}/site/{number}", content=content).text

    def give_up(address):
        with uploading(address, "Content-Length: 100000", target="/site/x") as client:
            client.sendall(b"x" * 50_000)

    def work(address):
        with ThreadPoolExecutor(12) as pool:
            answers = pool.map(ask, [address] * 24, range(24))
            given_up = [pool.submit(give_up, address) for _ in range(8)]
            return [*answers], [future.result() for future in given_up]

    first, again = both(tmp_path / "run", {"site": site.url}, work)
    assert first == again
    assert first[0] == [f"got {len(b'%d ' % number) * 20_000}" for number in range(24)]


# What goes wrong


def test_an_upload_that_breaks_off_breaks_off_for_the_upstream(site, client, tmp_path):
    """It is no call, since nobody had it whole; others go on."""
    with listening() as (server, url), recording(tmp_path / "run", {"up": url, "site": site.url}) as gateway:
        with uploading(gateway.address, f"Content-Length: {len(BODY)}") as leaving:
            leaving.sendall(BODY[:1000])
            sock = accepted(server)
            read_until(sock, lambda so_far: BODY[900:999] in so_far)
        with sock:
            assert sock.recv(1) == b""
        assert client.get(f"{gateway.address}/site/page").status_code == 200
    assert [line for line in recorded_lines(tmp_path) if b"POST" in line] == []


def test_a_client_that_leaves_after_its_upload_is_an_outcome(tmp_path):
    """The upstream had the request, and is told that nobody waits for its answer."""
    with listening() as (server, url), recording(tmp_path / "run", {"up": url}) as gateway:
        with uploading(gateway.address, f"Content-Length: {len(BODY)}") as client:
            client.sendall(BODY[:1000])
            sock = accepted(server)
            read_until(sock, lambda so_far: BODY[900:999] in so_far)
            client.sendall(BODY[1000:])
            read_until(sock, lambda so_far: so_far.endswith(BODY[-10:]))
        with sock:
            assert sock.recv(1) == b""
    assert CaptureReader(tmp_path / "run").event(3).data.cancelled


def post_in_pieces(client, address, size_bytes):
    response = client.post(f"{address}/up/x", content=in_pieces(BODY, size_bytes))
    return response.status_code, response.content


def recorded_and_replayed(path, url, client):
    with recording(path, {"up": url}) as gateway:
        first = post_in_pieces(client, gateway.address, 7_000)
    with replaying(path, {"up": url}) as seen:
        again = post_in_pieces(client, seen.address, 11_000)
    assert seen.receipt.verdict == "reproduced", seen.receipt.divergences
    assert asked(path) == json.loads(BODY)
    assert first == again
    return first


def test_an_upstream_that_is_down_is_an_outcome_of_the_whole_request(client, tmp_path):
    """The rest of it is taken all the same: a replay knows the call by it."""
    with listening() as (_, url):
        pass
    status, told = recorded_and_replayed(tmp_path / "run", url, client)
    assert status == 502
    assert b"ConnectError" in told


@contextmanager
def upstream(serve):
    """The address of an upstream that does *serve* with every connection, as soon as a body has begun."""

    def run(server):
        while True:
            try:
                sock = server.accept()[0]
            except OSError:
                return
            with sock:
                read_until(sock, lambda came: b"word" in came)
                serve(sock)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run, args=[server])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def read_on(sock):
    """As a server does that wants its answer to be read; until the other side closes, whichever way."""
    with suppress(ConnectionResetError):
        while sock.recv(1 << 16):
            pass


def answer_early(sock):
    sock.sendall(TOO_LARGE)
    sock.shutdown(socket.SHUT_WR)
    read_on(sock)


def hang_up(sock):
    """Not even waiting for the other side to notice."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_an_upstream_that_hangs_up_in_the_middle_is_an_outcome(client, tmp_path):
    """As if it had been sent the whole at once."""
    with upstream(hang_up) as url:
        status, told = recorded_and_replayed(tmp_path / "run", url, client)
    assert status == 502
    assert json.loads(told)["error"]["type"] == "upstream_failed"


def test_an_answer_before_the_end_is_passed_on(client, tmp_path):
    """When the client has said all it has to say."""
    with upstream(answer_early) as url:
        assert recorded_and_replayed(tmp_path / "run", url, client) == (413, b"big")


def slow_client(pieces, *last, may_go_on=None):
    """A ``receive`` that gives each piece by itself; those after the first when *may_go_on* is set."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.extend(last or [{"type": "http.request"}])
    all_of_them = len(messages)

    async def receive():
        while may_go_on and len(messages) < all_of_them and not may_go_on.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        return messages.pop(0) if messages else await asyncio.Future()

    return receive


def forwarded(context, url, receive, on_told=lambda message: None, **options):
    """What a client is told whose request is that of *receive*; *options* are those of the way upstream."""
    told = []

    async def send(message):
        told.append(message)
        on_told(message)

    async def forward():
        scope = {"method": "POST", "raw_path": b"/up/x", "query_string": b"", "headers": []}
        async with httpx2.AsyncClient(trust_env=False, **options) as to_upstream:
            await Forwarding(context, {"up": url}, lambda: to_upstream, lambda: None)(scope, receive, send)

    asyncio.run(forward())
    return b"".join(message.get("body", b"") for message in told)


def test_an_upstream_that_hung_up_before_the_end_gets_the_whole_anew(tmp_path):
    """It has not had the request, and who has not said all yet may not have heard the answer."""
    has_hung_up = threading.Event()

    def serve(sock):
        if has_hung_up.is_set():
            answer_early(sock)
        else:
            hang_up(sock)
            sock.close()
            has_hung_up.set()

    run = capture_of(tmp_path / "run", {})
    with upstream(serve) as url, run.serve(port=0, on_call=lambda: None):
        receive = slow_client([*in_pieces(BODY, 20_000)], may_go_on=has_hung_up)
        assert forwarded(run.context, url, receive) == b"big"
    assert asked(tmp_path / "run") == json.loads(BODY)


class EarlyAnswer(httpx2.AsyncByteStream):
    is_closed = False

    async def __aiter__(self):
        yield b"big"

    async def aclose(self):
        self.is_closed = True


class Hasty(httpx2.AsyncBaseTransport):
    """Answers whatever begins."""

    async def handle_async_request(self, request):
        await anext(aiter(request.stream))
        self.answer = EarlyAnswer()
        return httpx2.Response(413, stream=self.answer)


LAST = {"whole": ({"type": "http.request"}, b"big"), "gone": ({"type": "http.disconnect"}, b"")}


@pytest.mark.parametrize(("last", "told"), LAST.values(), ids=LAST)
def test_an_answer_to_half_a_request_waits_for_the_other_half(last, told, tmp_path):
    """And is closed where that never comes."""
    hasty = Hasty()
    run = capture_of(tmp_path / "run", {})
    with run.serve(port=0, on_call=lambda: None):
        assert forwarded(run.context, "http://up", slow_client([BODY], last), transport=hasty) == told
        assert (tmp_path / "run").exists() == bool(told)
    assert hasty.answer.is_closed


def test_the_upstream_is_left_before_the_client_hears_the_end(tmp_path):
    """Closing is not cut off by a client that goes away when it has all."""
    hasty, was_closed = Hasty(), []
    run = capture_of(tmp_path / "run", {})
    with run.serve(port=0, on_call=lambda: None):
        receive = slow_client([], {"type": "http.request", "body": BODY})
        forwarded(
            run.context,
            "http://up",
            receive,
            on_told=lambda _: was_closed.append(hasty.answer.is_closed),
            transport=hasty,
        )
    assert was_closed == [False, False, True]


def test_an_early_answer_is_left_with_a_client_that_leaves(tmp_path):
    """Nothing is kept open for it."""
    with listening() as (server, url), recording(tmp_path / "run", {"up": url}) as gateway:
        with uploading(gateway.address, f"Content-Length: {len(BODY)}") as client:
            client.sendall(BODY[:1000])
            sock = accepted(server)
            read_until(sock, lambda so_far: BODY[900:999] in so_far)
            sock.sendall(TOO_LARGE)
            sock.shutdown(socket.SHUT_WR)
            client.sendall(BODY[1000:5000])
        with sock:
            read_on(sock)
    assert not (tmp_path / "run").exists()


def test_a_gateway_that_is_closed_leaves_no_upload_behind(tmp_path, monkeypatch):
    """Neither a thread nor a connection, nor half a call."""
    monkeypatch.setattr("reenact.gateway.server._LAST_WORDS_S", 0.1)
    with listening() as (server, url):
        with (
            recording(tmp_path / "run", {"up": url}) as gateway,
            uploading(gateway.address, f"Content-Length: {len(BODY)}") as client,
        ):
            client.sendall(BODY[:1000])
            sock = accepted(server)
            read_until(sock, lambda so_far: BODY[900:999] in so_far)
            gateway.close()
        with sock:
            assert sock.recv(1) == b""
    assert [thread.name for thread in threading.enumerate() if thread.name == "reenact-gateway"] == []
    assert not (tmp_path / "run").exists()
