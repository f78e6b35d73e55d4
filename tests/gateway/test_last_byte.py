"""The outcome of a call is on disk before its client has the last byte of the answer."""

import json
import socket
import threading
import time
from contextlib import closing, suppress

import pytest

from tests.gateway.conftest import recording
from tests.hard import rounds

BODY = b'{"answer": "' + b"x" * 3000 + b'"}'
DONE = b"data: one\n\n", b"data: [DONE]\n\n"
ANSWERS = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an empty body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


def at_once():
    pass


def serve(server, answers):
    """Answer each connection with the next of *answers*, in pieces, each behind what is waited for."""
    for pieces in answers:
        client, _ = server.accept()
        with client:
            client.recv(65536)
            with suppress(OSError):  # the gateway leaves when its client has
                for wait, piece in pieces:
                    wait()
                    client.sendall(piece)


@pytest.fixture
def upstream():
    """Make one that answers like this."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def start(answers):
            threading.Thread(target=serve, args=(server, answers), daemon=True).start()
            return f"http://127.0.0.1:{server.getsockname()[1]}"

        yield start


def ask(address, is_enough, method="GET"):
    """Ask until what came *is_enough*, and hang on."""
    host, port = address.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)), timeout=20)
    sock.sendall(f"{method} /up/x HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    came = b""
    while not is_enough(came):
        came += sock.recv(65536)
    return sock


def outcomes(path):
    """How many outcomes are on disk now."""
    lines = (path / "events.jsonl").read_bytes().splitlines()
    return sum("request" not in json.loads(line)["data"] and b"callId" in line for line in lines)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_outcome_is_there_before_the_last_byte(name, upstream, tmp_path):
    """As often as it is tried."""
    answer, times = ANSWERS[name], rounds(20, 300)
    end = answer.rpartition(b"\r\n\r\n")[2] or b"\r\n\r\n"
    end = b"0\r\n\r\n" if name == "chunks" else end
    url = upstream([[(at_once, answer)]] * times)
    with recording(tmp_path / "run", {"up": url}) as gateway:
        for number in range(times):
            with ask(gateway.address, lambda came: came.endswith(end)):
                assert outcomes(tmp_path / "run") == number + 1


def test_a_head_is_the_last_where_no_body_follows(upstream, tmp_path):
    url = upstream([[(at_once, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")]])
    with (
        recording(tmp_path / "run", {"up": url}) as gateway,
        ask(gateway.address, lambda came: came.endswith(b"\r\n\r\n"), method="HEAD"),
    ):
        assert outcomes(tmp_path / "run") == 1


ENDS = {
    "openai": [DONE[1]],
    "openai, cut": [b"data: [DO", b"NE]\n\n"],
    "openai, by its reason": [b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'],
    "responses": [b'data: {"type": "response.completed", "response": {', b'"output": []', b"}}\n\n"],
    "anthropic": [b'data: {"type": "message_stop"}\n\n'],
    "gemini": [b'data: {"candidates": [{"finishReason": "STOP"}]}\n\n'],
    "ollama": [b'{"model": "m", "done": true}\n'],
}


@pytest.mark.parametrize("name", ENDS)
def test_the_event_that_ends_a_stream_waits_for_the_end(name, upstream, tmp_path, monkeypatch):
    """Clients leave at it, however it is spelled or cut; the upstream takes its time, within our patience."""
    monkeypatch.setattr("reenact.gateway.app._PATIENCE_S", 60)
    pieces = [
        (at_once, STREAM + chunk(DONE[0])),
        *((lambda: time.sleep(0.05), chunk(piece)) for piece in ENDS[name]),
        (lambda: time.sleep(0.3), b"0\r\n\r\n"),
    ]
    with (
        recording(tmp_path / "run", {"up": upstream([pieces])}) as gateway,
        ask(gateway.address, lambda came: ENDS[name][-1] in came),
    ):
        assert outcomes(tmp_path / "run") == 1


def test_a_stream_flows(upstream, tmp_path):
    """Each event is there before the next one comes, also the one that says the end."""
    seen_one, seen_done = threading.Event(), threading.Event()
    pieces = [
        (at_once, STREAM + chunk(DONE[0])),
        (seen_one.wait, chunk(DONE[1])),
        (seen_done.wait, b"0\r\n\r\n"),
    ]

    def is_enough(came):
        if b"one" in came:
            seen_one.set()
        if b"[DONE]" in came:
            seen_done.set()
        return came.endswith(b"0\r\n\r\n")

    with (
        recording(tmp_path / "run", {"up": upstream([pieces])}) as gateway,
        ask(gateway.address, is_enough),
    ):
        assert outcomes(tmp_path / "run") == 1
