"""The upstreams by name, and the environment variables that route a program to the gateway instead.

An upstream's path on the gateway replaces its base URL: a program appends the same path to both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from reenact.errors import UsageError
from reenact.gateway.lane import BELOW

Upstreams: TypeAlias = Mapping[str, str]
"""Base URLs by name, without a slash at the end."""

ADDRESS_VARIABLE: Final = "REENACT_GATEWAY"
_PROXY_EXCEPTIONS: Final = ("NO_PROXY", "no_proxy")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class _Known(NamedTuple):
    base_url: str
    variables: tuple[str, ...]
    """The variables from which SDKs and agents read the base URL; the first that is set takes precedence."""


_KNOWN: Final[Mapping[str, _Known]] = {
    "anthropic": _Known("https://api.anthropic.com", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")),
    "gemini": _Known("https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL",)),
    "ollama": _Known("http://127.0.0.1:11434", ("OLLAMA_HOST", "OLLAMA_API_BASE")),
    "openai": _Known("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
}


def upstreams_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The known upstreams as configured in *environ*."""
    return {name: _configured_url(known, environ) for name, known in _KNOWN.items()}


def read_upstreams(given: Iterable[str]) -> dict[str, str]:
    """Read upstreams that are *given* as ``NAME=URL``."""
    found: dict[str, str] = {}
    for text in given:
        name, _, url = text.partition("=")
        if not _NAME.fullmatch(name):
            raise UsageError(f"--upstream {text}: is not NAME=URL; write openai=https://api.openai.com/v1")
        found[name] = _base_url(url, f"--upstream {text}")
    return found


def variables(address: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that route a program to the gateway at *address*."""
    found = {variable: f"{address}/{name}" for name, known in _KNOWN.items() for variable in known.variables}
    host = urlsplit(address).hostname or ""
    for variable in _PROXY_EXCEPTIONS:
        found[variable] = ",".join(filter(None, [environ.get(variable), host]))
    return found | {ADDRESS_VARIABLE: address}


def environment_below(
    address: str, environ: Mapping[str, str] | None, *, is_whole: bool = True
) -> Mapping[str, str] | None:
    """The environment for a program below a recorded process that routes it to the gateway at *address*.

    Variables that were set for this program alone are kept. Without *is_whole*, ``None`` stays ``None``.
    """
    if environ is None and not is_whole:
        return None
    given = os.environ if environ is None else environ
    changes = variables(f"{address}/{BELOW}", given)
    return {
        **given,
        **{name: value for name, value in changes.items() if given.get(name) == os.environ.get(name)},
    }


def _configured_url(known: _Known, environ: Mapping[str, str]) -> str:
    for variable in known.variables:
        if environ.get(variable):
            value = environ[variable]
            return _base_url(_host_url(value) if variable == "OLLAMA_HOST" else value, f"{variable}={value}")
    return known.base_url


def _host_url(value: str) -> str:
    """Read a value that Ollama accepts: ``host``, ``host:port``, a URL, or a server's ``0.0.0.0``."""
    url = value if "://" in value else f"http://{value}"
    parts = urlsplit(url)
    if parts.port is None and "://" not in value:
        url = f"http://{parts.hostname}:11434{parts.path}"
    return url.replace("//0.0.0.0", "//127.0.0.1", 1)


def _base_url(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(f"{where}: is not a base URL; write one that begins with http:// or https://")
    return url.rstrip("/")
