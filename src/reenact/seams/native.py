"""Clients in native code: C opens their connections, so no audit event is raised and nothing is recorded.

The seam announces where such a client is about to connect, so that the recording says what a replay will not
answer, and the replay refuses it. ZeroMQ is no such client: a program of the run that is talked with over it,
such as the kernel of a notebook, is run in the replay of a command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, Final, cast
from urllib.parse import urlsplit

from reenact.boundary import NATIVE_CONNECT
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch


def _announce(client: str, read_target: Callable[..., str]) -> Callable[[Any], Any]:
    """A wrapper that announces where *client* goes: to what *read_target* reads from its arguments.

    That is ``host:port`` or the path of a Unix socket.
    """

    def wrap(original: Callable[..., object]) -> Callable[..., object]:
        def connect(*args: object, **options: object) -> object:
            target = None
            with suppress(Exception):  # of arguments that are wrong; the client itself says so
                target = read_target(*args, **options)
            if target is not None:
                sys.audit(NATIVE_CONNECT, client, target)
            return original(*args, **options)

        return connect

    return wrap


_SCHEME_PORTS: Final = {
    **dict.fromkeys(("http", "ws"), 80),
    **dict.fromkeys(("https", "wss"), 443),
    **dict.fromkeys(("postgres", "postgresql"), 5432),
    "git": 9418,
    "pulsar": 6650,
    "pulsar+ssl": 6651,
    "ssh": 22,
}


def _address_of(url: str) -> str:
    """The host and port of *url*; a text that is no URL is returned as it is."""
    try:
        parts = urlsplit(url)
        port = parts.port or _SCHEME_PORTS.get(parts.scheme)
    except ValueError:
        return url
    if not parts.hostname:
        return url
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}" if port else host


def _read_url(position: int, name: str = "url") -> Callable[..., str]:
    """Reads the address from the URL that is given at *position*, or by *name*."""

    def read_target(*args: object, **options: object) -> str:
        return _address_of(str(options[name] if name in options else args[position]))

    return read_target


_VERBS: Final = ("get", "head", "options", "delete", "post", "put", "patch", "trace", "websocket")


def _verbs(client: str, *owners: object) -> list[Patch]:
    """Patches for the verbs of an HTTP client: methods of classes, or functions of a module."""
    patches = []
    for owner in owners:
        first = int(isinstance(owner, type))
        for verb in _VERBS:
            patches.append(Patch(owner, verb, _announce(client, _read_url(first)), may_lack=True))
        patches.append(Patch(owner, "request", _announce(client, _read_url(first + 1)), may_lack=True))
    return patches


def _subclass(client: str, read_target: Callable[..., str]) -> Callable[[Any], type[object]]:
    """A wrapper for a class of C, which cannot be patched: a subclass that announces where it goes."""

    def wrap(original: Any) -> type[object]:
        class Announced(original):  # type: ignore[misc]  # a class that is known only here
            __init__ = _announce(client, read_target)(original.__init__)

        Announced.__name__ = Announced.__qualname__ = original.__name__
        Announced.__module__ = original.__module__
        return cast("type[object]", Announced)

    return wrap


def _url_of_handle(curl: Any, url: object) -> str:
    text = curl.getinfo(url)
    return _address_of(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text))


_POSTGRES: Final = "5432"


def _address_of_postgres(settings: Mapping[str, object]) -> str:
    """Where libpq connects; of several hosts the first."""
    host, port = (
        str(value or fallback).split(",")[0]
        for value, fallback in (
            (settings.get("hostaddr") or settings.get("host"), "/var/run/postgresql"),
            (settings.get("port"), _POSTGRES),
        )
    )
    if host.startswith(("/", "@")):
        return f"{host}/.s.PGSQL.{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _psycopg(module: ModuleType) -> list[Patch]:
    def read_target(conninfo: str = "", **_: object) -> str:
        return _address_of_postgres(sys.modules["psycopg.conninfo"].conninfo_to_dict(conninfo))

    return [Patch(module, "connect", _announce("psycopg", read_target))]


def _psycopg2(module: ModuleType) -> list[Patch]:
    def read_target(dsn: str, *_: object, **__: object) -> str:
        return _address_of_postgres(sys.modules["psycopg2.extensions"].parse_dsn(dsn))

    return [Patch(module, "_connect", _announce("psycopg2", read_target))]


def _curl_cffi(module: ModuleType) -> list[Patch]:
    def read_target(curl: object, *_: object, **__: object) -> str:
        return _url_of_handle(curl, module.CurlInfo.EFFECTIVE_URL)

    return [Patch(module.Curl, "perform", _announce("curl_cffi", read_target))]


def _curl_cffi_async(module: ModuleType) -> list[Patch]:
    def read_target(_: object, curl: object, **__: object) -> str:
        return _url_of_handle(curl, sys.modules["curl_cffi.curl"].CurlInfo.EFFECTIVE_URL)

    return [Patch(module.AsyncCurl, "add_handle", _announce("curl_cffi", read_target))]


def _pycurl(module: ModuleType) -> list[Patch]:
    """Its classes are C's own, so subclasses take their names."""

    def announce(curl: object) -> None:
        sys.audit(NATIVE_CONNECT, "pycurl", _url_of_handle(curl, module.EFFECTIVE_URL))

    def wrap_curl(original: Any) -> type:
        class Curl(original):  # type: ignore[misc]  # a class that is known only here
            def perform(self) -> object:
                announce(self)
                return super().perform()

        return Curl

    def wrap_multi(original: Any) -> type:
        class CurlMulti(original):  # type: ignore[misc]  # a class that is known only here
            def add_handle(self, curl: object) -> object:
                announce(curl)
                return super().add_handle(curl)

        return CurlMulti

    return [Patch(module, "Curl", wrap_curl), Patch(module, "CurlMulti", wrap_multi)]


def _tls_client(module: ModuleType) -> list[Patch]:
    return [Patch(module.Session, "execute_request", _announce("tls_client", _read_url(2)))]


def _noble_tls(module: ModuleType) -> list[Patch]:
    return [Patch(module.Session, "execute_request", _announce("noble_tls", _read_url(2)))]


def _primp(module: ModuleType) -> list[Patch]:
    return _verbs("primp", module, module.Client, module.AsyncClient)


def _wreq(module: ModuleType) -> list[Patch]:
    return _verbs("wreq", module, module.Client)


def _wreq_blocking(module: ModuleType) -> list[Patch]:
    return _verbs("wreq", module.Client)


def _rnet(module: ModuleType) -> list[Patch]:
    return _verbs("rnet", module, module.Client, module.BlockingClient)


def _pyreqwest(module: ModuleType) -> list[Patch]:
    return _verbs("pyreqwest", module.Client, module.SyncClient)


_SCP_ADDRESS: Final = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/@]{2,}):(?!//).+")


def address_of_git(url: str) -> str:
    """Where git goes; ``ValueError`` for a repository on the disk."""
    scp = _SCP_ADDRESS.fullmatch(url)
    if scp is not None:
        return f"{scp['host']}:22"
    if "://" not in url or url.startswith("file:"):
        raise ValueError(url)
    return _address_of(url)


def _pygit2(module: ModuleType) -> list[Patch]:
    def read_url(url: object, *_: object, **__: object) -> str:
        return address_of_git(os.fsdecode(cast("str", url)))

    def read_remote(remote: Any, *_: object, **__: object) -> str:
        return address_of_git(remote.url)

    remote_acts = [
        Patch(module.Remote, name, _announce("pygit2", read_remote), may_lack=True)
        for name in ("fetch", "push", "connect")
    ]
    return [Patch(module, "clone_repository", _announce("pygit2", read_url)), *remote_acts]


def _pycares(module: ModuleType) -> list[Patch]:
    """It asks name servers, so it is announced as a lookup of the standard library is."""

    def wrap(original: Callable[..., object]) -> Callable[..., object]:
        def ask(channel: object, name: object, *args: object, **options: object) -> object:
            sys.audit("socket.getaddrinfo", name, None, 0, 0, 0)
            return original(channel, name, *args, **options)

        return ask

    names = ("query", "search", "getaddrinfo", "gethostbyname", "gethostbyaddr")
    return [Patch(module.Channel, name, wrap, may_lack=True) for name in names]


def _first_broker(_: object, *args: Mapping[str, object], **options: object) -> str:
    settings = {**(args[0] if args else {}), **options}
    return str(settings["bootstrap.servers"]).split(",")[0]


def _kafka(module: ModuleType) -> list[Patch]:
    wrap = _subclass("confluent_kafka", _first_broker)
    return [Patch(module, "Producer", wrap), Patch(module, "Consumer", wrap)]


def _kafka_admin(module: ModuleType) -> list[Patch]:
    return [Patch(module.AdminClient, "__init__", _announce("confluent_kafka", _first_broker))]


def _pulsar(module: ModuleType) -> list[Patch]:
    return [Patch(module.Client, "__init__", _announce("pulsar", _read_url(1, "service_url")))]


def _adbc(module: ModuleType) -> list[Patch]:
    def read_target(_: object, *__: object, **options: object) -> str:
        url = str(options["uri"])
        if "://" not in url or url.startswith("file:"):
            raise ValueError(url)  # a database on the disk
        return _address_of(url)

    wrap = _subclass("adbc", read_target)
    return [Patch(owner, "AdbcDatabase", wrap) for owner in (module, sys.modules["adbc_driver_manager._lib"])]


_ACTS_ON_OBJECTS: Final = (
    *("get", "get_range", "get_ranges", "put", "head"),
    *("list", "list_with_delimiter", "delete"),
)


def _obstore(module: ModuleType) -> list[Patch]:
    """The methods of its stores call these functions."""

    def read_target(store: Any, *_: object, **__: object) -> str:
        if type(store).__name__ == "HTTPStore":
            return _address_of(str(store.url))
        settings = store.config  # a store on the disk or in memory has none
        named = (settings.get(name) for name in ("endpoint", "bucket", "container_name"))
        return _address_of(next(str(name) for name in named if name))

    wrap = _announce("obstore", read_target)
    names = [name + ending for name in _ACTS_ON_OBJECTS for ending in ("", "_async")]
    return [Patch(module, name, wrap, may_lack=True) for name in names]


def _pymssql(module: ModuleType) -> list[Patch]:
    def read_target(server: str = ".", *_: object, port: object = "1433", **__: object) -> str:
        return server if ":" in server else f"{server}:{port}"

    return [Patch(module, "connect", _announce("pymssql", read_target))]


LIBRARIES: Final[Libraries] = {
    "psycopg.generators": _psycopg,
    "psycopg2": _psycopg2,
    "curl_cffi.curl": _curl_cffi,
    "curl_cffi.aio": _curl_cffi_async,
    "pycurl": _pycurl,
    "tls_client.sessions": _tls_client,
    "noble_tls.sessions": _noble_tls,
    "pymssql": _pymssql,
    "primp": _primp,
    "wreq": _wreq,
    "wreq.blocking": _wreq_blocking,
    "rnet": _rnet,
    "pyreqwest.client": _pyreqwest,
    "pygit2": _pygit2,
    "pycares": _pycares,
    "confluent_kafka": _kafka,
    "confluent_kafka.admin": _kafka_admin,
    "pulsar": _pulsar,
    "adbc_driver_manager": _adbc,
    "obstore": _obstore,
}
