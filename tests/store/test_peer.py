"""Whose program has connected."""

import os
import socket
from contextlib import closing

import pytest

from reenact.store.peer import is_other_user, peer_of

CLIENT, SERVER = ("127.0.0.1", 4711), ("127.0.0.1", 7335)
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "  18: {there} {here} 01 00000000:00000000 00:00000000 00000000 {user:5d}        0 {inode} 1 0 20 4\n"
V4 = {"there": "0100007F:1267", "here": "0100007F:1CA7"}
MAPPED = {name: f"0000000000000000FFFF0000{value}" for name, value in V4.items()}


def tables(folder, tcp="", tcp6=""):
    (folder / "tcp").write_text(HEADER + tcp)
    (folder / "tcp6").write_text(HEADER + tcp6)
    return folder


def user_of(*args):
    peer = peer_of(*args)
    return None if peer is None else peer.user


def test_both_tables_are_read(tmp_path):
    """A program that connects through IPv6 stands in the second."""
    assert user_of(CLIENT, SERVER, tables(tmp_path, tcp=ROW.format(**V4, user=1000, inode=77))) == 1000
    assert user_of(CLIENT, SERVER, tables(tmp_path, tcp6=ROW.format(**MAPPED, user=1000, inode=77))) == 1000
    assert user_of(("::ffff:127.0.0.1", 4711), ("::ffff:127.0.0.1", 7335), tmp_path) == 1000


def test_a_connection_that_was_closed_is_nobodys(tmp_path):
    """The kernel calls its user 0, who would be let in."""
    network = tables(tmp_path, tcp=ROW.format(**V4, user=0, inode=0))
    assert user_of(CLIENT, SERVER, network) is None
    assert is_other_user(CLIENT, SERVER, network)


def test_the_unknown_are_others(tmp_path):
    """Not where there are no tables at all: other systems have none."""
    assert is_other_user(CLIENT, SERVER, tables(tmp_path))
    assert is_other_user(None, SERVER, tmp_path)
    (tmp_path / "tcp").write_text(HEADER + "garbage 0100007F:1267\n")
    assert is_other_user(CLIENT, SERVER, tmp_path)
    assert not is_other_user(CLIENT, SERVER, tmp_path / "none")


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_a_connection_of_ours_is_known(address):
    """As the kernel tells it now, by either family."""
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as server,
        closing(socket.create_connection((address, server.getsockname()[1]))),
    ):
        accepted, client = server.accept()
        with accepted:
            assert user_of(client, server.getsockname()) == os.getuid()
            assert not is_other_user(client, server.getsockname())


def test_a_connection_that_is_gone_is_nobodys_although_its_port_is_used_again():
    """The kernel answers with who listens at a port where nobody is connected from it."""
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as server,
        closing(socket.create_server(("127.0.0.1", 0))) as other,
    ):
        client = other.getsockname()
        assert user_of(client, server.getsockname()) is None
        assert is_other_user(client, server.getsockname())


def test_the_answer_of_the_kernel_is_that_of_its_table(monkeypatch):
    """Where it cannot be asked for one connection, the table of all is read."""
    with (
        closing(socket.create_server(("::1", 0), family=socket.AF_INET6)) as server,
        closing(socket.create_connection(server.getsockname()[:2])) as client,
    ):
        connected, listening = client.getsockname()[:2], server.getsockname()[:2]
        assert user_of(connected, listening) == os.getuid()
        monkeypatch.setattr(socket, "AF_NETLINK", -1)
        assert user_of(connected, listening) == os.getuid()


def test_what_the_client_has_not_read_is_counted():
    """By the kernel, for this one connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        accepted.sendall(b"x" * 300)
        assert peer_of(client.getsockname(), server.getsockname()).unread_bytes == 300
        client.recv(300)
        assert peer_of(client.getsockname(), server.getsockname()).unread_bytes == 0
