"""Audit events read into what they would send out, without sending it."""

from __future__ import annotations

import pathlib
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.replayer.egress import (
    MAX_TARGET_CHARACTERS,
    READERS,
    Connect,
    ConnectLocal,
    Egress,
    Lookup,
    Spawn,
    is_loopback,
)


class Family:
    """The one attribute of a socket that reading an address needs."""

    def __init__(self, family: int) -> None:
        self.family = family


IPV4, IPV6, UNIX = Family(socket.AF_INET), Family(socket.AF_INET6), Family(socket.AF_UNIX)

LEAVES: dict[str, tuple[str, tuple[Any, ...], Egress, str]] = {
    "ipv4": ("socket.connect", (IPV4, ("10.0.0.1", 443)), Connect("10.0.0.1", 443), "10.0.0.1:443"),
    "ipv6": ("socket.connect", (IPV6, ("fc00::1", 443, 0, 0)), Connect("fc00::1", 443), "[fc00::1]:443"),
    "name as bytes": ("socket.sendto", (IPV4, (b"a.example", 53)), Connect("a.example", 53), "a.example:53"),
    "name as bytearray": ("socket.sendmsg", (IPV4, (bytearray(b"a"), 5)), Connect("a", 5), "a:5"),
    "unix path": ("socket.connect", (UNIX, "/run/x"), ConnectLocal("/run/x"), "/run/x"),
    "abstract unix": ("socket.connect", (UNIX, b"\0bus"), ConnectLocal("\0bus"), r"\x00bus"),
    "other family": ("socket.connect", (Family(40), (2, 1024)), ConnectLocal("(2, 1024)"), "(2, 1024)"),
    "name": ("socket.getaddrinfo", ("a.example", 443, 0, 0, 0), Lookup("a.example"), "a.example"),
    "odd number": ("socket.getaddrinfo", ("127.1", 443, 0, 0, 0), Lookup("127.1"), "127.1"),
    "address to name": ("socket.gethostbyaddr", ("10.0.0.1",), Lookup("10.0.0.1"), "10.0.0.1"),
    "address pair to name": ("socket.getnameinfo", (("10.0.0.1", 80),), Lookup("10.0.0.1"), "10.0.0.1"),
    "executable wins": ("subprocess.Popen", ("/a", ["b", "c"], None, None), Spawn(("/a", "c")), "/a c"),
    "words of any type": (
        "os.posix_spawn",
        (b"a", (pathlib.Path("x"), pathlib.Path("b c")), {}),
        Spawn(("a", "b c")),
        "a 'b c'",
    ),
    "open file": ("os.exec", (3, ["a"], None), Spawn(("3",)), "3"),
    "shell": ("os.system", (b"a | b",), Spawn(("/bin/sh", "-c", "a | b")), "/bin/sh -c 'a | b'"),
    "terminal, one word": ("pty.spawn", ("sh",), Spawn(("sh",)), "sh"),
    "terminal": ("pty.spawn", (["sh", "-i"],), Spawn(("sh", "-i")), "sh -i"),
}

STAYS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "connected socket": ("socket.sendmsg", (UNIX, None)),
    "own address": ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
    "empty name": ("socket.gethostbyname", ("",)),
    "numeric address": ("socket.getaddrinfo", ("10.0.0.1", 443, 0, 0, 0)),
    "numeric ipv6": ("socket.getaddrinfo", (b"fe80::1%eth0", 443, 0, 0, 0)),
    "localhost": ("socket.getaddrinfo", ("LocalHost", 443, 0, 0, 0)),
    "name of loopback": ("socket.gethostbyaddr", ("127.0.0.1",)),
    "name of localhost": ("socket.getnameinfo", (("::1", 80, 0, 0),)),
}

LOOPBACK = ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST")
ELSEWHERE = (
    "",
    "0.0.0.0",
    "10.0.0.1",
    "::",
    "::ffff:10.0.0.1",
    "localhost.example",
    "127.1",
    "127.0.0.1.example",
)


@pytest.mark.parametrize(("event", "arguments", "egress", "target"), LEAVES.values(), ids=LEAVES)
def test_what_leaves_is_read(event, arguments, egress, target):
    """The value has the facts, its target the words for people."""
    read = READERS[event](arguments)
    assert (read, read.target) == (egress, target)


@pytest.mark.parametrize(("event", "arguments"), STAYS.values(), ids=STAYS)
def test_what_stays_is_not_egress(event, arguments):
    """Asking nobody is not going live."""
    assert READERS[event](arguments) is None


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback(host):
    """Every spelling the resolver never sees."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_not_loopback(host):
    """In doubt a host is elsewhere."""
    assert not is_loopback(host)


@given(st.lists(st.binary().filter(lambda word: b"\0" not in word), min_size=1))
def test_any_command_line_is_shown_on_one_short_line(words):
    """No command can break the message, fool the terminal or fail to encode."""
    target = READERS["subprocess.Popen"]((words[0], words, None, None)).target
    assert target.isprintable()
    assert len(target) <= MAX_TARGET_CHARACTERS * len(r"\U0010ffff")
    target.encode()


def test_a_long_target_is_cut():
    """A script on a command line does not fill the report."""
    target = Spawn(("python", "-c", "x" * 1000)).target
    assert (len(target), target[-1]) == (MAX_TARGET_CHARACTERS, "…")
