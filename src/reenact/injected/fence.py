"""A fence around a replayed command in any language: it can reach this machine, but no other.

Python processes have their own guard, which knows every call. Other programs, and native code in libraries,
are stopped by the kernel, where it supports seccomp notifications. Servers on this machine are allowed,
because the tools of such programs really run in replay; those that are no part of the run are noted. Name
servers and proxies are refused, since they lead to other machines, and so are the models whose answers are in
the recording.
"""

from __future__ import annotations

import os
import select
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EFAULT, ENETUNREACH
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_UNSPEC, getaddrinfo, socket, socketpair
from sys import byteorder
from threading import Thread
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from reenact.errors import UsageError
from reenact.injected.held_calls import (
    HeldCall,
    Listener,
    adopt_orphans,
    filter_program,
    is_known_machine,
    receive_listener,
    send_listener,
)
from reenact.replayer.egress import is_listening, is_loopback, listening_ports

_LOOKUPS_PORT: Final = 53
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")


class Target(NamedTuple):
    """The address that a system call sends to."""

    host: IPv4Address | IPv6Address
    port: int

    @classmethod
    def of(cls, address: bytes) -> Target | None:
        """Parse a ``sockaddr``; ``None`` if it is no IP address."""
        if len(address) < 8:
            return None
        family = int.from_bytes(address[:2], byteorder)
        port = int.from_bytes(address[2:4], "big")
        # Linux sends a datagram without a family by IPv4; connect() without one only disconnects.
        if family in (AF_INET, AF_UNSPEC):
            return cls(IPv4Address(address[4:8]), port)
        if family == AF_INET6 and len(address) >= 24:
            return cls(IPv6Address(address[8:24]), port)
        return None

    def __str__(self) -> str:
        if self.port == _LOOKUPS_PORT:
            return "a name lookup"
        return f"a connection to {self.address}"

    def to_ipv4(self) -> Target:
        """The same target, by IPv4 if its address is one of IPv4 in the form of IPv6."""
        mapped = self.host.ipv4_mapped if isinstance(self.host, IPv6Address) else None
        return Target(mapped or self.host, self.port)

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if self.host.version == 6 else self.host
        return f"{host}:{self.port}"


class Fence:
    """See the module's docstring; *environ* names the proxies that the command may use.

    Hosts and ports in *allowed* may be reached; if one is on another machine, name lookups are allowed too.
    *models* (base URLs) that listen on this machine are refused: their answers are in the recording.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        allowed: Collection[tuple[str, int]] = (),
        models: Iterable[str] = (),
    ) -> None:
        self._allowed = {(found, port) for host, port in allowed for found in _addresses_of(host)}
        self._may_look_up = any(not is_loopback(host) for host, _ in allowed)
        live_models = listening_ports().intersection(_local_ports(models))
        self._outward_ports = frozenset({_LOOKUPS_PORT, *_local_proxy_ports(environ), *live_models})
        self._refused: Counter[tuple[str, str]] = Counter()
        self._reached: Counter[tuple[str, Target]] = Counter()
        self._ports_of_run: set[int] = set()
        self.stands = False
        """Whether the fence was in force for the command."""

    @property
    def notes(self) -> list[str]:
        """One sentence for each program and target that was refused, or that was live."""
        refused = [
            f"{program} was refused {target}{_times(count)}"
            for (program, target), count in self._refused.items()
        ]
        reached = [
            f"{program} made {target}{_times(count)}: no part of the run, so its answers were live"
            for (program, target), count in self._reached.items()
        ]
        return refused + reached

    @property
    def reached(self) -> list[str]:
        """The servers on this machine, as ``host:port``, that were live and no part of the run."""
        return sorted({target.address for _, target in self._reached})

    @contextmanager
    def fence_child(self) -> Iterator[Callable[[], None] | None]:
        """Yield the ``preexec_fn`` of a child that is started in the block; ``None`` without a fence."""
        if not is_known_machine():
            yield None
            return
        filter_program()
        ours, theirs = socketpair()
        watching = Thread(target=self._watch, args=(ours,), name="reenact-fence", daemon=True)
        watching.start()
        try:
            with adopt_orphans():
                yield lambda: send_listener(theirs)
        finally:
            theirs.close()
            watching.join()
            ours.close()

    def _watch(self, child: socket) -> None:
        """Decide about held calls until the block is left or no fenced process is left."""
        listener = receive_listener(child)
        if listener is None:
            return
        with listener:
            self.stands = True
            poll = select.poll()
            poll.register(child, select.POLLIN)
            poll.register(listener, select.POLLIN)
            while True:
                ready = dict(poll.poll())
                if child.fileno() in ready or not ready[listener.fileno()] & select.POLLIN:
                    return
                call = listener.next()
                if call is None:
                    continue
                try:
                    self._decide(listener, call)
                except Exception:  # the watcher survives whatever a program passes to the kernel
                    self._refused[_program_name(call.pid), "a call that cannot be read"] += 1
                    listener.refuse(call, EFAULT)

    def _decide(self, listener: Listener, call: HeldCall) -> None:
        try:
            targets = [target for target in map(Target.of, call.addresses()) if target is not None]
        except OSError as error:
            # A call with a bad pointer fails by itself. Without permission to read, the fence claims nothing.
            self.stands = self.stands and not isinstance(error, PermissionError)
            targets = []
        beyond = next(filter(self._leads_out, targets), None)
        if beyond is None:
            listener.continue_call(call)
            for target in targets:
                self._note_live_server(call, target.to_ipv4())
        else:
            self._refused[_program_name(call.pid), str(beyond)] += 1
            listener.refuse(call, ENETUNREACH)

    def _note_live_server(self, call: HeldCall, target: Target) -> None:
        """Note *target* if a process listens there that is no part of the run."""
        if self._is_allowed(target) or target.port in self._ports_of_run:
            return
        by = (_program_name(call.pid), target)
        if by not in self._reached:
            if is_listening(os.getpid(), target.port):
                self._ports_of_run.add(target.port)
                return
            if target.port not in listening_ports():
                return
        self._reached[by] += 1

    def _is_allowed(self, target: Target) -> bool:
        return (str(target.to_ipv4().host), target.port) in self._allowed

    def _leads_out(self, target: Target) -> bool:
        if self._is_allowed(target) or (target.port == _LOOKUPS_PORT and self._may_look_up):
            return False
        is_here = target.host.is_unspecified or is_loopback(str(target.host))
        return not is_here or target.port in self._outward_ports


def _times(count: int) -> str:
    return f", {count} times" if count > 1 else ""


def _addresses_of(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in getaddrinfo(host, None)]
    except OSError as error:
        raise UsageError(f"--allow {host}: {error.strerror}; name a host that can be found") from error


def _program_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return "a program"


def _local_proxy_ports(environ: Mapping[str, str]) -> Iterator[int]:
    """The ports of proxies on this machine, through which a program could reach others."""
    named = (environ.get(each) for name in _PROXIES for each in (name, name.upper()))
    return _local_ports(value if "//" in value else f"//{value}" for value in filter(None, named))


def _local_ports(urls: Iterable[str]) -> Iterator[int]:
    """The ports of the *urls* that lead to this machine."""
    for url in urls:
        try:
            parts = urlsplit(url)
            if parts.port is not None and is_loopback(parts.hostname or ""):
                yield parts.port
        except ValueError:
            continue
