"""The bytes on the connection, seen without an HTTP library where one would hide them."""

from __future__ import annotations

import gzip
import json
import socket
import time
from http.client import HTTPConnection

import httpx2
import pytest

from reenact.testing import Disconnect, Fail, Raw, Reply, ScriptedProvider, echo
from reenact.testing.provider import MAX_HEAD_BYTES

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}


def exchange(provider: ScriptedProvider, *pieces: bytes) -> bytes:
    """Everything that comes back for *pieces*, each sent by itself, until the server closes."""
    with socket.create_connection(("127.0.0.1", provider.port)) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.005)
        received = b""
        while data := connection.recv(65536):
            received += data
    return received


def post(provider: ScriptedProvider, body: object, path: str = "/v1/messages") -> httpx2.Response:
    return httpx2.post(provider.url + path, json=body)


def test_a_whole_answer_has_a_length() -> None:
    """Content type, length and request id are there; the ids are the provider's style."""
    with ScriptedProvider(echo()) as provider:
        claude = post(provider, ASK)
        gpt = post(provider, ASK, "/v1/chat/completions")
    assert claude.headers["content-type"] == "application/json"
    assert int(claude.headers["content-length"]) == len(claude.content)
    assert claude.headers["request-id"].startswith("req_")
    assert gpt.headers["x-request-id"].startswith("req_")


def test_a_stream_comes_in_exactly_its_chunks() -> None:
    """Each event of a stream is one HTTP chunk, and the client sees these boundaries."""
    with (
        ScriptedProvider(Reply(chunks=["a", "b"])) as provider,
        httpx2.stream("POST", f"{provider.url}/v1/chat/completions", json=STREAM) as answer,
    ):
        chunks = list(answer.iter_raw())
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in answer.headers
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in chunks)
    # Role, "a", "b", finish reason, [DONE].
    assert len(chunks) == 5


def test_a_broken_stream_delivers_what_was_sent_before() -> None:
    """Exactly the chunks asked for arrive, then the connection ends without the final chunk."""
    received = []
    with (
        ScriptedProvider(Disconnect(2, Reply(chunks=["a", "b"]))) as provider,
        httpx2.stream("POST", f"{provider.url}/v1/chat/completions", json=STREAM) as answer,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        received.extend(answer.iter_raw())
    # `extend` keeps what came before the error.
    assert len(received) == 2


def test_delays_are_kept() -> None:
    """The headers wait for one delay and every chunk but the first for the other."""
    reply = Reply(chunks=["a", "b"], delay_ms=60, chunk_delay_ms=30)
    with ScriptedProvider(reply) as provider:
        began = time.monotonic()
        with httpx2.stream("POST", f"{provider.url}/v1/chat/completions", json=STREAM) as answer:
            headers_s = time.monotonic() - began
            answer.read()
        total_s = time.monotonic() - began
    assert headers_s >= 0.06
    assert total_s - headers_s >= 4 * 0.03 * 0.9


def test_raw_chunks_may_cut_a_character() -> None:
    """Raw boundaries are kept, in the middle of a character too."""
    with (
        ScriptedProvider(Raw(headers={"X-Odd": "1"}, chunks=[b"\xc3", b"\xbc", b"!"])) as provider,
        httpx2.stream("POST", f"{provider.url}/v1/messages", json=STREAM) as answer,
    ):
        assert list(answer.iter_raw()) == [b"\xc3", b"\xbc", b"!"]
    assert answer.headers["x-odd"] == "1"


def test_a_raw_body_has_its_length() -> None:
    """A raw body without framing headers is a proper response."""
    with ScriptedProvider(Raw(status=418, body=b"{nope")) as provider:
        answer = post(provider, ASK)
    assert (answer.status_code, answer.content) == (418, b"{nope")


def test_a_raw_length_may_lie() -> None:
    """A wrong content-length goes out as written and the connection is closed behind the body."""
    lie = Raw(headers={"content-length": "99"}, body=b"short")
    with ScriptedProvider(lie) as provider, pytest.raises(httpx2.RemoteProtocolError, match="expected 99"):
        post(provider, ASK)


def test_a_failure_may_have_any_body_and_headers() -> None:
    """A body is sent as JSON, or as it is when it is text; a header given replaces the usual one."""
    page = Fail(502, "<html>", {"Content-Type": "text/html"})
    with ScriptedProvider([Fail(503, {"why": "tired"}, {"retry-after": "7"}), page]) as provider:
        first, second = post(provider, ASK), post(provider, ASK)
    assert (first.status_code, first.json(), first.headers["retry-after"]) == (503, {"why": "tired"}, "7")
    assert (second.status_code, second.text) == (502, "<html>")
    assert second.headers.get_list("content-type") == ["text/html"]


def test_gzip_when_the_client_accepts_it() -> None:
    """Compressed on request only, and only when switched on."""
    with ScriptedProvider(echo(), gzip=True) as provider:
        url = f"{provider.url}/v1/messages"
        with httpx2.stream("POST", url, json=ASK, headers={"accept-encoding": "gzip"}) as packed:
            body = b"".join(packed.iter_raw())
        plain = httpx2.post(url, json=ASK, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(body)
    assert gzip.decompress(body) == plain.content
    assert "content-encoding" not in plain.headers


def test_a_compressed_stream_is_readable_part_by_part() -> None:
    """Every chunk is flushed, so that the client decodes it on arrival."""
    with (
        ScriptedProvider(Reply(chunks=["a", "b"]), gzip=True) as provider,
        httpx2.stream("POST", f"{provider.url}/v1/chat/completions", json=STREAM) as answer,
    ):
        assert answer.headers["content-encoding"] == "gzip"
        parts = [part for part in answer.iter_bytes() if part]
    assert len(parts) == 5


def test_a_chunked_request_is_read() -> None:
    """Clients may send their body in chunks, split anywhere, with trailers."""
    body = json.dumps(ASK).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunks = b"%x;x=y\r\n%b\r\n%x\r\n%b\r\n0\r\nT: 1\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    with ScriptedProvider(echo()) as provider:
        exchange(provider, head, chunks[:7], chunks[7:])
    assert provider.requests[0].body == ASK


def test_a_client_that_expects_it_is_told_to_continue() -> None:
    """``Expect: 100-continue`` gets its interim response before the body is there."""
    body = json.dumps(ASK).encode()
    headers = b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    with ScriptedProvider(echo()) as provider:
        answer = exchange(provider, b"POST /v1/messages HTTP/1.1\r\n" + headers, body)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


NOT_HTTP = {
    "no request line": b"hello\r\n\r\n",
    "another protocol": b"GET / SPDY/3\r\n\r\n",
    "a length that is none": b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
    "a chunk size that is none": b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    "an endless head": b"GET / HTTP/1.1\r\n".ljust(MAX_HEAD_BYTES + 4, b"a"),
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
def test_what_is_not_http_is_refused(sent: bytes) -> None:
    """The client is told so and the connection is closed; the server goes on."""
    with ScriptedProvider(echo()) as provider:
        assert exchange(provider, sent).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert post(provider, ASK).status_code == 200


def test_a_body_that_is_not_json_is_a_bad_request() -> None:
    """It is recorded, answered in the provider's shape and uses up no turn."""
    with ScriptedProvider([Reply()]) as provider:
        answer = httpx2.post(f"{provider.url}/v1/messages", content=b"{nope")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    [request] = provider.requests
    assert (request.raw, request.body) == (b"{nope", None)
    assert len(provider.unused) == 1


def test_head_is_answered_without_a_body() -> None:
    """What followed would be taken for the next answer."""
    with ScriptedProvider(Reply("Yes.")) as provider:
        connection = HTTPConnection("127.0.0.1", provider.port)
        for _ in range(2):
            connection.request("HEAD", "/api/hello")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (404, b"")
        connection.close()
