"""What a replay would refuse is said while it is recorded."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

import reenact
from reenact.replayer.allow import Allow
from tests.seams.http.site import open_site


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def say_hello(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"hello")


def test_a_raw_connection_is_a_warning(tmp_path: Path, port: int) -> None:
    """In the run, for the listener and in the manifest, with its place; once for each target."""
    heard: list[str] = []
    with reenact.capture(tmp_path / "run", on_warning=heard.append) as run:
        for _ in range(3):
            say_hello(port)
    [warning] = run.warnings
    assert heard == [warning]
    assert run.manifest is not None
    assert (run.manifest.status, run.manifest.warnings) == ("ok", [warning])
    assert f"{__file__}:" in warning
    assert f"connecting to 127.0.0.1:{port} is not recorded, and a replay will refuse it" in warning


def test_a_lookup_is_a_warning(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run") as run, suppress(OSError):
        socket.getaddrinfo("nowhere.invalid", 80)
    assert ["looking up nowhere.invalid" in warning for warning in run.warnings] == [True]


def test_what_a_recorded_call_does_is_none(tmp_path: Path, port: int) -> None:
    """A tool's own connections, and those of clients that are recorded."""

    @reenact.tool
    def tool() -> None:
        say_hello(port)

    with open_site() as site, reenact.capture(tmp_path / "run") as run:
        tool()
        thread = threading.Thread(target=lambda: httpx2.get(f"{site.url}/page"))
        thread.start()
        thread.join()
    assert run.warnings == []


def test_what_a_replay_may_do_is_none(tmp_path: Path, port: int) -> None:
    with reenact.capture(tmp_path / "run", allow=Allow(loopback_ports=[port])) as run:
        say_hello(port)
    assert run.warnings == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_connection_past_python_is_a_warning(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by C code and still open when the run ends."""
    monkeypatch.delitem(sys.modules, "uvloop", raising=False)  # with which nothing can be told
    libc = ctypes.CDLL(None)
    connect = libc.connect  # before the run: looking it up is a warning
    with reenact.capture(tmp_path / "run") as run:
        sock = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        address = (socket.AF_INET).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big")
        assert connect(sock, address + socket.inet_aton("127.0.0.1") + bytes(8), 16) == 0
    libc.close(sock)
    [warning] = run.warnings
    assert f"a connection to 127.0.0.1:{port} was made by a C library, outside Python" in warning


def test_nothing_is_said_of_what_is_outside_the_run(tmp_path: Path, port: int) -> None:
    with reenact.capture(tmp_path / "run") as run:
        pass
    socket.create_connection(("127.0.0.1", port)).close()
    assert run.warnings == []


def test_a_client_in_native_code_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes its connections at once, so only its name can tell."""
    (tmp_path / "aerospike.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "aerospike", raising=False)
    with reenact.capture(tmp_path / "run") as run:
        importlib.import_module("aerospike")
    [warning] = run.warnings
    assert "aerospike was imported, which connects outside Python" in warning
    with reenact.capture(tmp_path / "other") as other:
        importlib.import_module("aerospike")
    assert other.warnings == []


CONNECTS = """
#include <netinet/in.h>
#include <unistd.h>
int ask(void) {
    struct sockaddr_in nowhere = {0};
    int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    int failed = connect(socket_fd, (struct sockaddr *)&nowhere, sizeof nowhere);
    close(socket_fd);
    return failed;
}
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="only Linux tells; needs cc")
@pytest.mark.parametrize(("source", "warnings"), [(CONNECTS, 1), ("int ask(void) { return 3; }", 0)])
def test_a_c_library_that_may_connect_is_a_warning(tmp_path: Path, source: str, warnings: int) -> None:
    """It has closed its connection when the run ends, so that only its functions tell."""
    (tmp_path / "asks.c").write_text(source)
    library = tmp_path / "libasks.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "asks.c"], check=True)
    with reenact.capture(tmp_path / "run") as run:
        ctypes.CDLL(str(library)).ask()
        ctypes.CDLL(None).getpid()
    assert len(run.warnings) == warnings
    assert all(f"{library} was loaded by ctypes and may connect" in text for text in run.warnings)
