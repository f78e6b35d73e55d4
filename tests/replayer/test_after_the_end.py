"""What a replayed run has started goes on when the run is over, and still does not go live."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

import reenact
from reenact.errors import LiveCallBlocked
from reenact.replayer.allow import Allow
from reenact.replayer.guard import Guard
from tests.cli.commands import PYTHON, run
from tests.greeting import greeting


@reenact.tool
def ask(what: str) -> str:
    return f"answer to {what}"


def test_a_thread_that_outlives_the_run_is_refused(tmp_path: Path) -> None:
    """For as long as the process lives; everybody else is as free as before, and the receipt says so."""
    go, came = threading.Event(), threading.Event()
    found: list[str] = []

    def linger(port: int) -> None:
        go.wait()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
            found.append("connected")
        except LiveCallBlocked:
            found.append("refused")
        came.set()

    def agent(port: int) -> None:
        ask("one")
        threading.Thread(target=linger, args=(port,), daemon=True).start()

    with greeting() as port:
        with reenact.capture(tmp_path / "run"):
            agent(port)
        go.set()
        assert came.wait(10)
        go.clear()
        came.clear()
        with reenact.replay(tmp_path / "run") as replayed:
            agent(port)
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
        go.set()
        assert came.wait(10)
    assert found == ["connected", "refused"]
    assert any("threads of the run went on" in note for note in replayed.notes)


LINGERING = """
import reenact, socket, sys, threading, time

@reenact.tool
def ask(what):
    return what

def linger():
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10).close()
        except BaseException:
            pass

class Slow:
    def __del__(self):
        time.sleep(0.3)

ask("one")
threading.Thread(target=linger, daemon=True).start()
time.sleep(0.1)
import atexit
atexit.register(time.sleep, 0.3)
slow = Slow()
"""


def test_a_thread_that_outlives_the_command_is_refused(tmp_path: Path) -> None:
    """While its interpreter is being taken down."""
    (tmp_path / "agent.py").write_text(LINGERING)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        words = [PYTHON, "agent.py", str(server.getsockname()[1])]
        run("record", "-o", "run", "--", *words, cwd=tmp_path)
        while True:
            try:
                server.accept()[0].close()
            except BlockingIOError:
                break
        run("replay", "run", "--", *words, cwd=tmp_path)
        time.sleep(0.2)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_another_interpreter_is_refused() -> None:
    """It would have no guard."""
    code = "\n".join(
        [
            "import importlib.util",
            "from reenact.replayer.guard import Guard",
            "names = ('_xxsubinterpreters', '_interpreters')",
            "name = next(name for name in names if importlib.util.find_spec(name))",
            "with Guard() as guard:",
            "    try:",
            "        __import__(name).create()",
            "    except Exception as error:",
            "        print(type(error).__name__, guard.counts['spawn'])",
            "print(__import__(name).create() is not None)",
        ]
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "LiveCallBlocked 1\nTrue\n"


@pytest.mark.skipif(not hasattr(socket, "AF_PACKET"), reason="this platform has no packet sockets")
def test_a_socket_at_a_network_card_is_refused() -> None:
    """What is sent through it names no address."""
    try:
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    except PermissionError:
        pytest.skip("only root makes packet sockets")
    with packets, Guard(), pytest.raises(LiveCallBlocked):
        packets.bind(("lo", 0))


def test_a_listener_that_is_none_of_the_runs_is_refused(tmp_path: Path) -> None:
    """However it is asked; one that multiprocessing has made since the run began may be the run's own."""

    def connect(path: Path) -> None:
        with Listener(str(path), "AF_UNIX"):
            Client(str(path), "AF_UNIX").close()

    (tmp_path / "pymp-own").mkdir()
    allow = Allow(children=lambda: False, began_s=time.time())
    with Guard(allow):
        connect(tmp_path / "pymp-own" / "listener-1")
        with pytest.raises(LiveCallBlocked):
            connect(tmp_path / "foreign")
    with Guard(Allow(children=lambda: False, began_s=time.time() + 60)), pytest.raises(LiveCallBlocked):
        connect(tmp_path / "pymp-own" / "listener-2")
