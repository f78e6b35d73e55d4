"""Clients in native code: a recording says where they connect, and a replay refuses it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import curl_cffi
import obstore
import psycopg
import psycopg2
import pycurl
import pytest
from obstore.store import HTTPStore, MemoryStore, S3Store

import reenact
from reenact.errors import LiveCallBlocked
from reenact.seams.native import address_of_git


@pytest.fixture
def port() -> Iterator[int]:
    """A server that was there before the run, and closes every connection at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _ask_psycopg(port: int) -> None:
    psycopg.connect(f"host=127.0.0.1 port={port} sslmode=disable gssencmode=disable")


def _ask_psycopg_async(port: int) -> None:
    asyncio.run(psycopg.AsyncConnection.connect(f"postgresql://ada@127.0.0.1:{port}/shop?sslmode=disable"))


def _ask_psycopg2(port: int) -> None:
    psycopg2.connect(host="127.0.0.1", port=port, sslmode="disable")


def _ask_curl_cffi(port: int) -> None:
    curl_cffi.requests.get(f"http://127.0.0.1:{port}/")


def _ask_curl_cffi_async(port: int) -> None:
    async def ask() -> None:
        async with curl_cffi.requests.AsyncSession() as session:
            await session.get(f"http://127.0.0.1:{port}/")

    asyncio.run(ask())


def _curl(port: int) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{port}/")
    return curl


def _ask_pycurl(port: int) -> None:
    _curl(port).perform()


def _ask_pycurl_multi(port: int) -> None:
    multi = pycurl.CurlMulti()
    multi.add_handle(_curl(port))
    while multi.perform()[1]:
        multi.select(0.1)


def _ask_obstore(port: int) -> None:
    store = HTTPStore.from_url(f"http://127.0.0.1:{port}/", client_options={"allow_http": True})
    obstore.get(store, "notes.txt")


def _ask_obstore_async(port: int) -> None:
    store = S3Store(
        "bucket",
        endpoint=f"http://127.0.0.1:{port}",
        skip_signature=True,
        client_options={"allow_http": True},
    )
    asyncio.run(store.head_async("notes.txt"))


CLIENTS = {
    "obstore": (_ask_obstore, _ask_obstore_async),
    "psycopg": (_ask_psycopg, _ask_psycopg_async),
    "psycopg2": (_ask_psycopg2,),
    "curl_cffi": (_ask_curl_cffi, _ask_curl_cffi_async),
    "pycurl": (_ask_pycurl, _ask_pycurl_multi),
}
WAYS = [pytest.param(name, ask, id=ask.__name__[5:]) for name, asks in CLIENTS.items() for ask in asks]


@pytest.mark.parametrize(("name", "ask"), WAYS)
def test_a_connection_that_is_closed_again_is_said_when_recorded(
    tmp_path: Path, port: int, name: str, ask: Callable[[int], None]
) -> None:
    """Although the library was imported before the run, and nothing is open at its end."""
    with reenact.capture(tmp_path / "run") as run, suppress(Exception):
        ask(port)
    [warning] = run.warnings
    assert f"{name} asks 127.0.0.1:{port} outside Python" in warning
    assert "test_native.py" in warning


@pytest.mark.parametrize(("name", "ask"), WAYS)
def test_a_replay_refuses_it(tmp_path: Path, port: int, name: str, ask: Callable[[int], None]) -> None:
    """Even where the agent swallows the exception."""
    with reenact.capture(tmp_path / "run"):
        pass
    refused = pytest.raises(LiveCallBlocked, match=f"connecting to 127.0.0.1:{port}")
    with refused, reenact.replay(tmp_path / "run"), suppress(Exception):
        ask(port)


@pytest.mark.parametrize(("name", "ask"), WAYS)
def test_an_allowed_port_is_neither_said_nor_refused(
    tmp_path: Path, port: int, name: str, ask: Callable[[int], None]
) -> None:
    with reenact.capture(tmp_path / "run", allow=[port]) as run, suppress(Exception):
        ask(port)
    assert run.warnings == []
    with reenact.replay(tmp_path / "run", allow=[port]), suppress(Exception):
        ask(port)


OTHERS = {
    "primp": "import primp; primp.Client().get(f'http://127.0.0.1:{port}/')",
    "wreq": "import wreq.blocking; wreq.blocking.Client().request(wreq.Method.GET, f'http://127.0.0.1:{port}/')",
    "rnet": "import asyncio, rnet; asyncio.run(rnet.Client().get(url=f'http://127.0.0.1:{port}/'))",
    "pyreqwest": "from pyreqwest.client import SyncClientBuilder\n"
    "SyncClientBuilder().build().get(f'http://127.0.0.1:{port}/').build().send()",
    "tls_client": "import tls_client; tls_client.Session().get(f'http://127.0.0.1:{port}/')",
    "pygit2": "import pygit2; pygit2.clone_repository(f'http://127.0.0.1:{port}/a.git', 'cloned')",
    "confluent_kafka": "from confluent_kafka import Consumer\n"
    "Consumer({'bootstrap.servers': f'127.0.0.1:{port}', 'group.id': 'a'}).list_topics(timeout=1)",
    "adbc": "import adbc_driver_postgresql.dbapi\n"
    "adbc_driver_postgresql.dbapi.connect(f'postgresql://ada@127.0.0.1:{port}/shop')",
    "pulsar": "import pulsar; pulsar.Client(f'pulsar://127.0.0.1:{port}').close()",
}


@pytest.mark.parametrize("name", OTHERS)
def test_clients_that_are_not_installed_here_by_default_too(
    tmp_path: Path, port: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setup of the tests has none of them; whoever has one tests it."""
    pytest.importorskip("adbc_driver_postgresql" if name == "adbc" else name)
    monkeypatch.chdir(tmp_path)

    def ask() -> None:
        with suppress(Exception):
            exec(compile(OTHERS[name], __file__, "exec"), {"port": port})

    with reenact.capture(tmp_path / "run") as run:
        ask()
    [warning] = run.warnings
    assert f"{name} asks 127.0.0.1:{port} outside Python" in warning
    with (
        pytest.raises(LiveCallBlocked, match=f"connecting to 127.0.0.1:{port}"),
        reenact.replay(tmp_path / "run"),
    ):
        ask()


def test_a_lookup_by_pycares_is_one(tmp_path: Path) -> None:
    pycares = pytest.importorskip("pycares")

    def ask() -> None:
        channel = pycares.Channel(servers=["127.0.0.1"], udp_port=9, tcp_port=9, timeout=0.1, tries=1)
        channel.query("shop.example", pycares.QUERY_TYPE_A, callback=lambda *_: None)

    with reenact.capture(tmp_path / "run") as run:
        ask()
    [warning] = run.warnings
    assert "looking up shop.example is not recorded" in warning
    with pytest.raises(LiveCallBlocked, match=r"looking up shop\.example"), reenact.replay(tmp_path / "run"):
        ask()


def test_objects_on_the_disk_are_asked_without_a_word(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run") as run:
        obstore.put(MemoryStore(), "notes.txt", b"milk")
    assert run.warnings == []


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/a.git", "example.org:443"),
        ("ssh://git@example.org/a.git", "example.org:22"),
        ("git@example.org:a/b.git", "example.org:22"),
        ("git://[::1]/a.git", "[::1]:9418"),
    ],
)
def test_where_git_goes(url: str, address: str) -> None:
    assert address_of_git(url) == address


@pytest.mark.parametrize("url", ["/srv/a.git", "../a.git", "file:///srv/a.git", "C:\\a.git"])
def test_a_repository_on_the_disk_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"a\.git"):
        address_of_git(url)


def test_inside_a_tool_it_is_fine(tmp_path: Path, port: int) -> None:
    @reenact.tool
    def look() -> str:
        with suppress(psycopg2.OperationalError):
            _ask_psycopg2(port)
        return "empty"

    with reenact.capture(tmp_path / "run") as run:
        look()
    assert run.warnings == []
    with reenact.replay(tmp_path / "run"):
        assert look() == "empty"


def test_a_database_behind_a_unix_socket_is_named_by_its_path(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run") as run, suppress(psycopg2.OperationalError):
        psycopg2.connect(host=str(tmp_path), dbname="shop")
    [warning] = run.warnings
    assert f"psycopg2 asks {tmp_path}/.s.PGSQL.5432" in warning


def test_wrong_arguments_are_the_clients_to_refuse(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run") as run, pytest.raises(psycopg.ProgrammingError):
        psycopg.connect("no such setting")
    assert run.warnings == []


def test_what_ctypes_connects_is_said_and_refused(tmp_path: Path, port: int) -> None:
    """Its target is not known, and the socket is closed before the run ends."""

    def ask() -> None:
        libc = ctypes.CDLL(None)
        sock = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        family = int(socket.AF_INET).to_bytes(2, sys.byteorder)
        libc.connect(sock, family + port.to_bytes(2, "big") + socket.inet_aton("127.0.0.1") + bytes(8), 16)
        libc.close(sock)

    with reenact.capture(tmp_path / "run") as run:
        ask()
    [warning] = run.warnings
    assert "connecting to what connect() gets through ctypes is not recorded" in warning
    with pytest.raises(LiveCallBlocked), reenact.replay(tmp_path / "run"):
        ask()


UNKNOWN_CLIENT = """
#include <Python.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
static PyObject *ask(PyObject *self, PyObject *arguments) {
    int port, got;
    char answer[9];
    if (!PyArg_ParseTuple(arguments, "i", &port)) return NULL;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sock, (struct sockaddr *)&there, sizeof there)) return PyErr_SetFromErrno(PyExc_OSError);
    got = read(sock, answer, sizeof answer);
    close(sock);
    return PyLong_FromLong(got);
}
static PyMethodDef methods[] = {{"ask", ask, METH_VARARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "unknown_client", "", -1, methods};
PyMODINIT_FUNC PyInit_unknown_client(void) { return PyModule_Create(&module); }
"""
COMPILER = shutil.which("gcc") or shutil.which("cc")


@pytest.mark.skipif(not COMPILER or not Path("/proc/net/tcp").exists(), reason="needs a C compiler and Linux")
def test_a_connection_that_unknown_native_code_closes_again_is_said(tmp_path: Path) -> None:
    """The command that records sees it from outside, while the code waits for the answer."""
    (tmp_path / "client.c").write_text(UNKNOWN_CLIENT)
    include = sysconfig.get_path("include")
    build = [str(COMPILER), "-shared", "-fPIC", f"-I{include}", "client.c", "-o", "unknown_client.so"]
    subprocess.run(build, cwd=tmp_path, check=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            until_s = time.monotonic() + 30
            while not list(tmp_path.glob("*/connections-*")) and time.monotonic() < until_s:
                time.sleep(0.01)
            connection.sendall(b"hello")
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        agent = f"import time, unknown_client; time.time(); print(unknown_client.ask({port}))"
        done = subprocess.run(
            [sys.executable, "-m", "reenact", "record", "-o", "run", "--", sys.executable, "-c", agent],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "5\n"
    assert f"warning: a connection to 127.0.0.1:{port} was made by a C library" in done.stderr
