"""Clients in native code: C opens their connections, so no audit event is raised and nothing is recorded.

The seam announces where such a client is about to connect, so that the recording says what a replay will not
answer, and the replay refuses it. ZeroMQ is no such client: a program of the run that is talked with over it,
such as the kernel of a notebook, is run in the replay of a command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, Final
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


_SCHEME_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}


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

    def announce(curl: Any) -> None:
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
    def read_target(_: object, *args: object, **options: object) -> str:
        return _address_of(str(options["url"] if "url" in options else args[1]))

    return [Patch(module.Session, "execute_request", _announce("tls_client", read_target))]


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
    "pymssql": _pymssql,
}
