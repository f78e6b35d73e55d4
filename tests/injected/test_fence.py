"""What a replayed command can reach, whatever it is written in: this machine, and nobody beyond."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from reenact.errors import UsageError
from reenact.injected import fence as fences
from reenact.injected import held_calls
from reenact.injected.fence import Fence, Target
from reenact.injected.held_calls import HeldCall
from reenact.injected.launch import run
from tests.greeting import greeting
from tests.injected.fenced import needs_fences

pytestmark = needs_fences

BEYOND: Final = "192.0.2.1"
"""An address that is nobody's."""
PROGRAM: Final = Path(sys.executable).resolve().name
CONNECTING: Final = """
import socket, sys
family, host, port = sys.argv[1:]
with socket.socket(getattr(socket, family)) as client:
    client.settimeout(20)
    client.connect((host, int(port)))
    print(client.recv(10).decode())
"""


def _has_ipv6() -> bool:
    try:
        with greeting("::1"):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")


class Ran:
    """How a program without seams fared within the fence."""

    def __init__(
        self,
        path: Path,
        code: str,
        *words: str,
        environ: Mapping[str, str] = os.environ,
        models: Iterable[str] = (),
    ) -> None:
        fence = Fence(environ, models=models)
        with (path / "out").open("w+b") as out:
            command = [sys.executable, "-I", "-c", code, *words]
            self.status = run(command, os.environ, stdout=out, fence=fence)
            out.seek(0)
            self.said = out.read().decode()
        assert fence.stands
        self.notes = fence.notes


@pytest.fixture
def server() -> Iterator[int]:
    with greeting() as port:
        yield port


@pytest.mark.parametrize(
    ("family", "host", "served"),
    [
        ("AF_INET", "127.0.0.1", "127.0.0.1"),
        ("AF_INET", "127.9.9.9", "127.9.9.9"),
        ("AF_INET6", "::ffff:127.0.0.1", "127.0.0.1"),
        pytest.param("AF_INET6", "::1", "::1", marks=needs_ipv6),
    ],
)
def test_this_machine_is_reached(tmp_path: Path, family: str, host: str, served: str) -> None:
    with greeting(served) as port:
        ran = Ran(tmp_path, CONNECTING, family, host, str(port))
    assert (ran.status, ran.said, ran.notes) == (0, "hello\n", [])


@pytest.mark.parametrize(
    ("family", "host", "told"),
    [
        ("AF_INET", BEYOND, f"{BEYOND}:443"),
        ("AF_INET6", "2001:db8::1", "[2001:db8::1]:443"),
        ("AF_INET6", f"::ffff:{BEYOND}", f"[::ffff:{BEYOND}]:443"),
    ],
)
def test_nobody_beyond_is_reached(tmp_path: Path, family: str, host: str, told: str) -> None:
    """At once, with an error of the network's, and it is noted."""
    ran = Ran(tmp_path, CONNECTING, family, host, "443")
    assert ran.status == 1
    assert [note.replace("::ffff:c000:201", f"::ffff:{BEYOND}") for note in ran.notes] == [
        f"{PROGRAM} was refused a connection to {told}"
    ]


SENDING: Final = {
    "sendto": "client.sendto(b'?', address)",
    "sendmsg": "client.sendmsg([b'?'], (), 0, address)",
    "connect": "client.connect(address)",
}


@pytest.mark.parametrize("way", SENDING)
def test_no_datagram_gets_out(tmp_path: Path, way: str) -> None:
    code = f"""
import errno, socket
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address = ("{BEYOND}", 443)
try:
    {SENDING[way]}
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    ran = Ran(tmp_path, code)
    assert ran.said == "ENETUNREACH\n"
    assert ran.notes == [f"{PROGRAM} was refused a connection to {BEYOND}:443"]


def test_several_datagrams_at_once_do_not_get_out(tmp_path: Path) -> None:
    """One for this machine, one for beyond."""
    code = """
import ctypes, ctypes.util, errno, os, socket, struct
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def named(host):
    return ctypes.create_string_buffer(struct.pack("=H", socket.AF_INET) + struct.pack(">H", 443)
                                       + socket.inet_aton(host) + bytes(8), 16)
names = [named("127.0.0.1"), named("192.0.2.1")]
headers = b"".join(struct.pack("@PIxxxxPNPNixxxxIxxxx", ctypes.addressof(name), 16, 0, 0, 0, 0, 0, 0)
                   for name in names)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.sendmmsg(client.fileno(), headers, 2, 0), errno.errorcode[ctypes.get_errno()])
"""
    ran = Ran(tmp_path, code)
    assert ran.said == "-1 ENETUNREACH\n"
    assert ran.notes == [f"{PROGRAM} was refused a connection to {BEYOND}:443"]


def test_calls_that_make_no_sense_hurt_nobody(tmp_path: Path) -> None:
    """The kernel refuses them by itself; who watches goes on."""
    code = f"""
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
number = client.fileno()
for attempt in (
    lambda: libc.connect(number, ctypes.create_string_buffer(128), ctypes.c_uint(2**32 - 1)),
    lambda: libc.connect(number, ctypes.c_void_p(8), 16),
    lambda: libc.sendmsg(number, ctypes.c_void_p(8), 0),
    lambda: libc.sendmmsg(number, ctypes.c_void_p(8), ctypes.c_uint(2**31), 0),
    lambda: libc.connect(number, ctypes.c_void_p(2**64 - 8), 16),
    lambda: libc.sendto(number, b"?", 1, 0, ctypes.c_void_p(2**63), 16),
    lambda: libc.sendmsg(number, ctypes.c_void_p(2**64 - 1), 0),
):
    assert attempt() == -1
print(errno.errorcode[client.connect_ex(("{BEYOND}", 443))])
"""
    ran = Ran(tmp_path, code)
    assert (ran.status, ran.said) == (0, "ENETUNREACH\n")
    assert ran.notes == [f"{PROGRAM} was refused a connection to {BEYOND}:443"]


def test_who_watches_survives_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read is refused, and the next call is decided about as ever."""
    addresses = HeldCall.addresses
    broken = iter([True])

    def break_once(call: HeldCall) -> Iterator[bytes]:
        if next(broken, False):
            raise ValueError("nobody thought of this")
        return addresses(call)

    monkeypatch.setattr(HeldCall, "addresses", break_once)
    code = f"""
import errno, socket
for _ in range(2):
    with socket.socket() as client:
        print(errno.errorcode[client.connect_ex(("{BEYOND}", 443))])
"""
    ran = Ran(tmp_path, code)
    assert ran.said == "EFAULT\nENETUNREACH\n"
    assert ran.notes == [
        f"{PROGRAM} was refused a call that cannot be read",
        f"{PROGRAM} was refused a connection to {BEYOND}:443",
    ]


def test_a_datagram_without_a_family_does_not_get_out(tmp_path: Path) -> None:
    """The kernel sends it by IPv4."""
    code = f"""
import ctypes, errno, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = struct.pack("=H", socket.AF_UNSPEC) + struct.pack(">H", 443) + socket.inet_aton("{BEYOND}") + bytes(8)
print(libc.sendto(client.fileno(), b"?", 1, 0, name, 16), errno.errorcode[ctypes.get_errno()])
client.connect(("127.0.0.1", 9))
print(libc.connect(client.fileno(), bytes(16), 16))
"""
    ran = Ran(tmp_path, code)
    assert ran.said == "-1 ENETUNREACH\n0\n"
    assert ran.notes == [f"{PROGRAM} was refused a connection to {BEYOND}:443"]


@pytest.mark.parametrize("family", ["AF_PACKET", "AF_VSOCK", "AF_CAN"])
def test_sockets_past_ip_cannot_be_made(tmp_path: Path, family: str) -> None:
    code = f"""
import errno, socket
try:
    socket.socket(socket.{family}, socket.SOCK_RAW)
except OSError as error:
    print(errno.errorcode[error.errno])
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), socket.socketpair()[0]:
    print("others can")
"""
    assert Ran(tmp_path, code).said == "EAFNOSUPPORT\nothers can\n"


def test_names_are_not_looked_up(tmp_path: Path) -> None:
    """Also where the name server is on this machine: it asks others."""
    for host in ("127.0.0.53", BEYOND):
        ran = Ran(tmp_path, CONNECTING, "AF_INET", host, "53")
        assert ran.notes == [f"{PROGRAM} was refused a name lookup"]


def test_a_proxy_on_this_machine_is_no_way_out(tmp_path: Path, server: int) -> None:
    for proxy in (f"http://127.0.0.1:{server}", f"localhost:{server}", f"http://u:p@[::1]:{server}/"):
        ran = Ran(tmp_path, CONNECTING, "AF_INET", "127.0.0.1", str(server), environ={"HTTPS_PROXY": proxy})
        assert ran.notes == [f"{PROGRAM} was refused a connection to 127.0.0.1:{server}"]
    odd = {"http_proxy": "http://[oops", "all_proxy": "socks5://elsewhere:1080", "ftp_proxy": "http://x:y"}
    assert Ran(tmp_path, CONNECTING, "AF_INET", "127.0.0.1", str(server), environ=odd).said == "hello\n"


def test_a_model_on_this_machine_is_not_asked(tmp_path: Path, server: int) -> None:
    """What it says is in the recording; a program that asks it past the gateway would ask it live."""
    ran = Ran(
        tmp_path, CONNECTING, "AF_INET", "127.0.0.1", str(server), models=[f"http://localhost:{server}/v1"]
    )
    assert ran.status != 0
    assert ran.notes == [f"{PROGRAM} was refused a connection to 127.0.0.1:{server}"]


def test_a_server_of_the_command_is_reached_where_a_model_could_be(tmp_path: Path) -> None:
    """Nobody listened there before, so it is none that is live."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = f"""
import socket
with socket.create_server(("127.0.0.1", {port})) as server, socket.create_connection(("127.0.0.1", {port})):
    print("reached")
"""
    assert Ran(tmp_path, code, models=[f"http://127.0.0.1:{port}"]).said == "reached\n"


def test_what_stays_within_the_process_goes_on(tmp_path: Path) -> None:
    """Unix sockets, and descriptors handed over by them."""
    code = """
import os, socket, threading
here, there = socket.socketpair()
socket.send_fds(here, [b"!"], [os.open("/dev/null", os.O_RDONLY)])
data, descriptors, _, _ = socket.recv_fds(there, 10, 1)
print(data, os.read(descriptors[0], 1))
"""
    ran = Ran(tmp_path, code)
    assert (ran.said, ran.notes) == ("b'!' b''\n", [])


def test_it_holds_for_everybody_below(tmp_path: Path) -> None:
    """For a child's child, and for one that has gone its own way, with a session of its own."""
    code = f"""
import os, subprocess, sys
connecting = {CONNECTING!r}
command = [sys.executable, "-I", "-c", connecting, "AF_INET", "{BEYOND}", "443"]
subprocess.run(["sh", "-c", 'exec "$@"', "sh", *command], stderr=subprocess.DEVNULL)
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.set_inheritable(writing, True)
        os.execv(command[0], command)
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
"""
    ran = Ran(tmp_path, code)
    assert ran.notes == [f"{PROGRAM} was refused a connection to {BEYOND}:443, 2 times"]


def test_many_connections_at_once(tmp_path: Path, server: int) -> None:
    code = f"""
import socket
from concurrent.futures import ThreadPoolExecutor
def ask(_):
    with socket.create_connection(("127.0.0.1", {server}), 20) as client:
        return client.recv(10)
with ThreadPoolExecutor(50) as pool:
    print(set(pool.map(ask, range(400))))
"""
    ran = Ran(tmp_path, code)
    assert (ran.said, ran.notes) == ("{b'hello'}\n", [])


def test_the_ring_is_not_there(tmp_path: Path) -> None:
    """What is handed to the kernel through it would not be seen."""
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(425, 8, ctypes.create_string_buffer(120))
print(errno.errorcode[ctypes.get_errno()])
"""
    assert Ran(tmp_path, code).said == "ENOSYS\n"


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """No listener, no thread, and no fence around ourselves."""

    def fenced() -> list[str]:
        status = Path("/proc/self/status").read_text().splitlines()
        return [line for line in status if line.startswith(("Seccomp", "NoNewPrivs"))]

    before = fenced()
    Ran(tmp_path, "pass")
    with pytest.raises(UsageError, match="No such file"):
        run([str(tmp_path / "nothing")], os.environ, fence=Fence({}))
    assert fenced() == before
    assert "reenact-fence" not in {thread.name for thread in threading.enumerate()}
    open_files = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    assert not [name for name in open_files if "seccomp" in name]


class Refusing:
    """What keeps a fence from standing."""

    def another_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fences, "is_known_machine", lambda: False)

    def the_kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        no_such_call = held_calls._machine()._replace(seccomp=9999)
        monkeypatch.setattr(held_calls, "_machine", lambda: no_such_call)

    def the_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def hidden(_: HeldCall) -> Iterator[bytes]:
            raise PermissionError

        monkeypatch.setattr(HeldCall, "addresses", hidden)


@pytest.mark.parametrize("refusing", [Refusing.another_machine, Refusing.the_kernel, Refusing.the_process])
def test_without_a_fence_the_command_runs_as_it_is(
    tmp_path: Path, server: int, monkeypatch: pytest.MonkeyPatch, refusing: Any
) -> None:
    """And nothing is claimed."""
    refusing(None, monkeypatch)
    fence = Fence({})
    command = [sys.executable, "-I", "-c", CONNECTING, "AF_INET", "127.0.0.1", str(server)]
    with (tmp_path / "out").open("wb") as out:
        assert run(command, os.environ, stdout=out, fence=fence) == 0
    assert (fence.stands, fence.notes) == (False, [])


def test_an_address_that_is_none_is_nobodys() -> None:
    for address in (b"", b"\x02", b"\x02\x00\x01\xbb", b"\x11\x00" + bytes(14), b"\x0a\x00" + bytes(10)):
        assert Target.of(address) is None


def test_the_exit_status_is_the_commands(tmp_path: Path) -> None:
    assert Ran(tmp_path, "raise SystemExit(7)").status == 7
    assert Ran(tmp_path, "import os; os.kill(os.getpid(), 9)").status == 128 + 9
