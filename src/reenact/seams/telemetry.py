"""What libraries send and look up by themselves: no part of the run, although it happens in its time.

Its times and ids are new in every run, and it goes out whenever a timer fires, so it could never be matched.
Which requests these are says a table (:mod:`reenact.volatile.beside`), the project's list of hosts, or how
a request is made: a library posts from a thread of its own, in which nothing else runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from sys import _getframe
from types import FrameType, ModuleType
from typing import Final, NamedTuple

from reenact.boundary import current_lane, outside
from reenact.library import is_library, is_standard
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.volatile.beside import NAMED, BesideRequest, is_of_hosts, reason

_PASSING_ON: Final = frozenset(
    {
        *(
            "aiohttp",
            "h11",
            "h2",
            "httpcore",
            "httpcore2",
            "httpx",
            "httpx2",
            "requests",
            "urllib3",
            "botocore",
        ),
        *("anyio", "sniffio", "backoff", "stamina", "tenacity", "wrapt"),
    }
)
"""Packages that send what another asked for, or try again: it is not they who ask."""
_LOOKING_ON: Final = ("opentelemetry.instrumentation.", "sentry_sdk.integrations.", "ddtrace.", "newrelic.")
"""Modules that stand around every call or thread to measure it."""
_SHARED_THREADS: Final = ("asyncio", "concurrent", "trio", "gevent", "eventlet")
"""Packages whose frames show that a thread is not one library's own: it runs tasks or jobs of anybody."""
_SENDING: Final = ("POST", "PUT", "PATCH")

_hosts: list[tuple[str, ...]] = []
"""What the open runs' projects name as beside them."""


@contextmanager
def beside_hosts(hosts: Iterable[str]) -> Iterator[None]:
    """For the block, requests to *hosts* are no part of a run."""
    entry = tuple(hosts)
    _hosts.append(entry)
    try:
        yield
    finally:
        _hosts.remove(entry)


class Beside(NamedTuple):
    """A request that is no part of the run."""

    what: str
    is_background: bool = False
    """It is known by how it is made alone."""


def traffic_beside(
    method: str, url: str, headers: Mapping[str, str], body: object, *, is_elsewhere: bool = False
) -> Beside | None:
    """What a request is, where it is traffic beside the run; ``None`` where it belongs to the run.

    To be called where the request is made; *is_elsewhere*: by a program of which only its requests are seen.
    """
    if any(is_of_hosts(url, hosts) for hosts in _hosts if hosts):
        return Beside(NAMED)
    asker = None if is_elsewhere else _asker()
    if asker is None and not is_elsewhere:
        return None
    if what := reason(BesideRequest.to(method, url, headers, body), asker):
        return Beside(what)
    if asker is not None and method in _SENDING and _has_own_thread(asker):
        return Beside(f"sent by {asker} in a thread of its own", is_background=True)
    return None


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = _getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    """The top-level package of the library whose code *frame* runs; empty for what only passes on."""
    name = str(frame.f_globals.get("__name__", ""))
    package = name.partition(".")[0]
    is_nobody = (
        is_standard(frame.f_code.co_filename) or package in _PASSING_ON or name.startswith(_LOOKING_ON)
    )
    return "" if is_nobody else package


def _asker() -> str | None:
    """The library that makes the request; ``None`` where the agent's own code does."""
    for frame in _frames():
        if not is_library(frame.f_code.co_filename):
            return None
        if package := _package(frame):
            return package
    return None


def _has_own_thread(asker: str) -> bool:
    """Whether nothing but *asker* runs in this thread, outside any call: nobody waits there for an answer."""
    lane = current_lane()
    if lane is None or lane.within is not None:
        return False
    outermost = ""
    for frame in _frames():
        outermost = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        is_shared = outermost in _SHARED_THREADS or not is_library(frame.f_code.co_filename)
        if is_shared or _package(frame) not in ("", asker):
            return False
    return outermost == "threading"


def _agents_patches(processors: ModuleType) -> list[Patch]:
    """Of the OpenAI Agents SDK, which collects traces and sends them from a thread of its own."""
    return [
        Patch(processors.BatchTraceProcessor, "on_trace_start", _reported),
        Patch(processors.BatchTraceProcessor, "on_span_end", _reported),
        Patch(processors.BackendSpanExporter, "_export_with_deadline", _reported, may_lack=True),
    ]


def _reported(original: Callable[..., None]) -> Callable[..., None]:
    """A thread that it starts is no child of the run, whose later children would be counted from there."""

    def report(*args: object, **options: object) -> None:
        lane = current_lane()
        if lane is None or lane.context.time_passes(lane):
            with outside():
                original(*args, **options)

    return report


LIBRARIES: Final[Libraries] = {"agents.tracing.processors": _agents_patches}
