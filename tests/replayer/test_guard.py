"""Nothing leaves the process while a guard is open: every way out is tried against a real server."""

from __future__ import annotations

import asyncio
import functools
import http.client
import multiprocessing
import os
import pty
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from reenact.errors import LiveCallBlocked
from reenact.replayer.guard import Guard


class CountingServer(ThreadingHTTPServer):
    """An HTTP server on loopback that notes whose connections it accepted, in order."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Silent)
        self.port = self.server_address[1]
        self.clients: list[tuple[str, int]] = []

    def process_request(self, request, client_address) -> None:
        self.clients.append(client_address)
        super().process_request(request, client_address)

    def handle_error(self, request, client_address) -> None:
        """Clients that hang up without a word are what most of these tests send."""


class Silent(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def dial(port: int) -> None:
    socket.create_connection(("127.0.0.1", port), timeout=10).close()


def dial_and_forget(port: int) -> None:
    """As an agent that swallows every exception would."""
    with suppress(Exception):
        dial(port)


def dialler(port: int) -> list[str]:
    """A command that connects to *port* and exits with 0 if it could."""
    script = f"import socket; socket.create_connection(('127.0.0.1', {port})).close()"
    return [sys.executable, "-I", "-S", "-c", script]


def by_connect_ex(port: int) -> None:
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port)) == 0


def by_raw_socket(port: int) -> None:
    """The C type below ``socket.socket``, which only the audit hook can see."""
    sock = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.connect(("127.0.0.1", port))
    finally:
        sock.close()


def by_http_client(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    finally:
        connection.close()


def by_urllib(port: int) -> None:
    urllib.request.urlopen(f"http://localhost:{port}/", timeout=10).close()


def by_httpx2(port: int) -> None:
    with httpx2.Client(trust_env=False) as client:
        client.get(f"http://127.0.0.1:{port}/")


async def by_async_httpx2(port: int) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        await client.get(f"http://127.0.0.1:{port}/")


async def by_open_connection(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await writer.wait_closed()


async def by_asyncio_tasks(port: int) -> None:
    await asyncio.gather(*(asyncio.create_task(by_open_connection(port)) for _ in range(3)))


async def by_to_thread(port: int) -> None:
    await asyncio.to_thread(dial, port)


async def by_run_in_executor(port: int) -> None:
    await asyncio.get_running_loop().run_in_executor(None, dial, port)


async def by_asyncio_subprocess(port: int) -> None:
    process = await asyncio.create_subprocess_exec(*dialler(port), stdin=subprocess.PIPE)
    assert await process.wait() == 0


def by_thread(port: int) -> None:
    thread = threading.Thread(target=dial_and_forget, args=(port,))
    thread.start()
    thread.join()


def by_executor(port: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(dial, [port] * 4))


def by_subprocess_run(port: int) -> None:
    subprocess.run(dialler(port), check=True)


def by_popen_with_pipes(port: int) -> None:
    with subprocess.Popen(dialler(port), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.communicate()


def by_system(port: int) -> None:
    program, *rest = dialler(port)
    assert os.system(f'{program} {rest[0]} {rest[1]} {rest[2]} "{rest[3]}"') == 0


def by_posix_spawn(port: int) -> None:
    os.waitpid(os.posix_spawn(sys.executable, dialler(port), os.environ), 0)


def by_spawnv(port: int) -> None:
    """Forks first: the refusal happens in the child, whose exit code is all the caller sees."""
    os.spawnv(os.P_WAIT, sys.executable, dialler(port))


def by_fork(port: int) -> None:
    pid = os.fork()
    if pid == 0:
        dial_and_forget(port)
        os._exit(0)
    os.waitpid(pid, 0)


def by_multiprocessing(method: str, port: int) -> None:
    # A spawned child imports its target by name, and this module may not be importable there.
    target, arguments = (dial_and_forget, (port,))
    if method != "fork":
        target, arguments = (socket.create_connection, (("127.0.0.1", port),))
    process = multiprocessing.get_context(method).Process(target=target, args=arguments)
    process.start()
    process.join()
    process.close()


WAYS_OUT: dict[str, Callable[[int], object]] = {
    "socket": dial,
    "connect_ex": by_connect_ex,
    "raw socket type": by_raw_socket,
    "http.client": by_http_client,
    "urllib by name": by_urllib,
    "httpx2": by_httpx2,
    "httpx2 async": by_async_httpx2,
    "asyncio.open_connection": by_open_connection,
    "asyncio tasks": by_asyncio_tasks,
    "asyncio.to_thread": by_to_thread,
    "run_in_executor": by_run_in_executor,
    "thread": by_thread,
    "executor": by_executor,
    "subprocess.run": by_subprocess_run,
    "Popen with pipes": by_popen_with_pipes,
    "asyncio subprocess": by_asyncio_subprocess,
    "os.system": by_system,
    "os.posix_spawn": by_posix_spawn,
    "os.spawnv": by_spawnv,
    "fork": by_fork,
    "multiprocessing fork": functools.partial(by_multiprocessing, "fork"),
    "multiprocessing spawn": functools.partial(by_multiprocessing, "spawn"),
    "multiprocessing forkserver": functools.partial(by_multiprocessing, "forkserver"),
}


def take(way_out: Callable[[int], object], port: int) -> None:
    outcome = way_out(port)
    if asyncio.iscoroutine(outcome):
        asyncio.run(outcome)


def connections(server: CountingServer) -> int:
    """How many were accepted before one of our own, which is the last to arrive."""
    with socket.create_connection(("127.0.0.1", server.port)) as ours:
        while ours.getsockname() not in server.clients:
            time.sleep(0.001)
        return server.clients.index(ours.getsockname())


pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.mark.parametrize("way_out", WAYS_OUT.values(), ids=WAYS_OUT)
def test_no_way_out_reaches_the_server(server, way_out):
    """The attempt is refused and kept, and no connection arrives."""
    with Guard() as guard:
        with suppress(Exception):
            take(way_out, server.port)
        assert guard.blocked
    assert connections(server) == 0


@pytest.mark.parametrize("way_out", WAYS_OUT.values(), ids=WAYS_OUT)
def test_every_way_is_free_again_afterwards(server, way_out):
    """What was refused once works as soon as the guard is closed."""
    with Guard(), suppress(Exception):
        take(way_out, server.port)
    take(way_out, server.port)
    assert connections(server) > 0


NO_RETURN: dict[str, Callable[[], object]] = {
    "os.execv": lambda: os.execv("/bin/true", ["true"]),
    "os.forkpty": os.forkpty,
    "pty.spawn": lambda: pty.spawn(["true"]),
}


@pytest.mark.parametrize("leave", NO_RETURN.values(), ids=NO_RETURN)
def test_replacing_or_wrapping_the_process_is_refused(leave):
    """Ways to another program that cannot be taken for real inside a test run."""
    with Guard() as guard, pytest.raises(LiveCallBlocked):
        leave()
    assert guard.counts == {"connect": 0, "dns": 0, "spawn": 1}


DATAGRAMS: dict[str, Callable[[socket.socket, int], object]] = {
    "sendto": lambda sock, port: sock.sendto(b"x", ("127.0.0.1", port)),
    "sendto with flags": lambda sock, port: sock.sendto(b"x", 0, ("127.0.0.1", port)),
    "sendmsg": lambda sock, port: sock.sendmsg([b"x"], [], 0, ("127.0.0.1", port)),
}


@pytest.mark.parametrize("send", DATAGRAMS.values(), ids=DATAGRAMS)
def test_datagrams_do_not_arrive(send):
    """Without a connection to refuse, each datagram is refused; the first to arrive comes after the guard."""
    with socket.socket(type=socket.SOCK_DGRAM) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        port = receiver.getsockname()[1]
        with Guard() as guard, pytest.raises(LiveCallBlocked):
            send(sender, port)
        assert [call.target for call in guard.blocked] == [f"127.0.0.1:{port}"]
        sender.sendto(b"after", ("127.0.0.1", port))
        assert receiver.recv(10) == b"after"


NAME = "name.invalid"
LOOKUPS: dict[str, Callable[[], object]] = {
    "getaddrinfo": lambda: socket.getaddrinfo(NAME, 443),
    "gethostbyname": lambda: socket.gethostbyname(NAME),
    "gethostbyname_ex": lambda: socket.gethostbyname_ex(NAME),
    "gethostbyaddr": lambda: socket.gethostbyaddr("192.0.2.1"),
    "getnameinfo": lambda: socket.getnameinfo(("192.0.2.1", 443), 0),
    "getfqdn": lambda: socket.getfqdn(NAME),
    "create_connection": lambda: socket.create_connection((NAME, 443)),
    "httpx2": lambda: httpx2.get(f"http://{NAME}/", trust_env=False),
    "asyncio": lambda: asyncio.run(asyncio.open_connection(NAME, 443)),
}


@pytest.mark.parametrize("look_up", LOOKUPS.values(), ids=LOOKUPS)
def test_a_name_is_refused_before_it_is_looked_up(look_up):
    """Our refusal comes instead of the resolver's ``gaierror``, so the resolver was never asked."""
    with Guard() as guard, pytest.raises(LiveCallBlocked):
        look_up()
    assert guard.counts == {"connect": 0, "dns": 1, "spawn": 0}
    assert guard.blocked[0].target in (NAME, "192.0.2.1")


SENDS_TO_A_NAME: dict[str, Callable[[socket.socket], object]] = {
    "connect": lambda sock: sock.connect((NAME, 443)),
    "connect_ex": lambda sock: sock.connect_ex((NAME, 443)),
    "sendto": lambda sock: sock.sendto(b"x", (NAME, 443)),
    "sendmsg": lambda sock: sock.sendmsg([b"x"], [], 0, (NAME, 443)),
}


@pytest.mark.parametrize("send", SENDS_TO_A_NAME.values(), ids=SENDS_TO_A_NAME)
def test_a_socket_given_a_name_does_not_look_it_up(send):
    """CPython resolves the name before its audit event; the refusal must come still earlier."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock, Guard() as guard, pytest.raises(LiveCallBlocked):
        send(sock)
    assert [call.target for call in guard.blocked] == [f"{NAME}:443"]


def test_what_an_agent_swallows_is_kept():
    """The guard's own list tells, where the agent's ``except Exception`` did not."""
    with Guard() as guard:
        dial_and_forget(9)
    assert [call.kind for call in guard.blocked] == ["connect"]


def test_the_error_carries_the_value_and_says_what_to_do():
    """One line: the agent's place, the deed, the remedy."""
    with Guard() as guard, pytest.raises(LiveCallBlocked) as caught:
        subprocess.run(["curl", "-d", "a\nb", "http://example.com"])
    (call,) = guard.blocked
    assert caught.value.divergence is call
    assert str(caught.value) == (
        f"{call.frame}: running `curl -d 'a\\nb' http://example.com` is refused in replay; "
        "do it inside a @reenact.tool, or allow its command (multiprocessing: use threads, "
        "or record the whole command with `reenact record`)"
    )
    assert call.frame.startswith(f"{__file__}:")
    assert call.thread == threading.current_thread().name


def test_on_blocked_hears_of_each_refusal_before_it_is_raised():
    """A run latches its divergence there, so it must not depend on the exception coming through."""
    heard = []
    with Guard(on_blocked=heard.append) as guard:
        dial_and_forget(9)
        assert heard == guard.blocked
    assert len(heard) == 1


def test_refusals_in_forked_children_are_counted_in_the_parent():
    """Every child's report arrives, once, with the child's own place."""
    heard = []
    with Guard(on_blocked=heard.append) as guard:
        for _ in range(20):
            by_fork(9)
    assert len(guard.blocked) == len(heard) == 20
    assert {call.target for call in heard} == {"127.0.0.1:9"}
    assert all("test_guard.py" in call.frame for call in heard)


def test_parallel_refusals_are_all_counted():
    """Nothing is lost when many threads are refused at once."""
    with Guard() as guard, ThreadPoolExecutor(8) as pool:
        list(pool.map(dial_and_forget, [9] * 400))
    assert guard.counts == {"connect": 400, "dns": 0, "spawn": 0}
