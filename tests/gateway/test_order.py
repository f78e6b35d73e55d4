"""A client that asks several things at once reads the ends of the answers in the order of their outcomes."""

import json
import random
import select
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from tests.gateway.conftest import recording, replaying

CALLS = 12
BODY = b'{"choices": [{"finish_reason": "stop", "text": "' + b"x" * 600 + b'"}]}'
HEAD = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNK = b"\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
ANSWERS = (
    HEAD + LENGTH,
    HEAD + b"Connection: close\r\n" + LENGTH,
    HEAD + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + CHUNK,
)
"""Each way to end an answer takes the gateway another time."""


def serve(server):
    """Answer all calls at once, when the last of them has come."""
    with ExitStack() as stack, suppress(OSError):  # the server is closed at the end
        clients = [stack.enter_context(server.accept()[0]) for _ in range(CALLS)]
        for client in clients:
            client.recv(65536)
        random.shuffle(clients)
        for number, client in enumerate(clients):
            client.sendall(ANSWERS[number % len(ANSWERS)])


def ask_all(address, pause_s):
    """The paths of the calls, in the order in which a client that pauses between reads sees them end."""
    host, _, port = address.removeprefix("http://").partition(":")
    order = []
    with ExitStack() as stack:
        ready = stack.enter_context(select.epoll())
        came = {}
        for number in range(CALLS):
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            came[client.fileno()] = (client, f"/up/{number}", b"")
            ready.register(client.fileno(), select.EPOLLIN)
            client.sendall(f"GET /up/{number} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        while len(order) < CALLS:
            ((fileno, _),) = ready.poll(20, maxevents=1)
            client, path, before = came[fileno]
            received = before + client.recv(65536)
            came[fileno] = (client, path, received)
            time.sleep(pause_s)
            is_chunked = b"chunked" in received.partition(b"\r\n\r\n")[0]
            if received.endswith(b"\r\n0\r\n\r\n" if is_chunked else BODY):
                order.append(path.removeprefix("/up"))
                ready.unregister(fileno)
    return order


def outcomes(path):
    """The paths of the calls in the order of their outcomes on disk."""
    paths, order = {}, []
    for line in (path / "events.jsonl").read_bytes().splitlines():
        data = json.loads(line)["data"]
        if "url" in json.dumps(data.get("request", "")):
            paths[data["callId"]] = "/" + data["request"]["url"].rpartition("/")[2]
        elif "callId" in data:
            order.append(paths[data["callId"]])
    return order


@pytest.mark.parametrize("pause_s", [0, 0.005], ids=["quick client", "slow client"])
def test_answers_end_in_the_order_of_their_outcomes(tmp_path, pause_s):
    """A replay repeats the order on disk, and what the agent asks next depends on what it read."""
    for number in range(6):
        path = tmp_path / f"run{number}"
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            threading.Thread(target=serve, args=(server,), daemon=True).start()
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            with recording(path, {"up": url}) as gateway:
                came = ask_all(gateway.address, pause_s)
            recorded = outcomes(path)
            with replaying(path, {"up": url}) as seen:
                again = ask_all(seen.address, pause_s)
        assert came == recorded
        assert again == recorded
