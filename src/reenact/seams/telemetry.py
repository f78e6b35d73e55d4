"""Requests that libraries make on their own, such as telemetry: they do not belong to the run.

Their times and ids differ in every run, and a timer decides when they are sent, so replay could never match
them. They are recognised by a table (:mod:`reenact.volatile.beside`), by the project's list of hosts, or by
how they are made: a library posts from its own thread, in which nothing else runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from sys import _getframe
from types import FrameType, ModuleType
from typing import Final, NamedTuple

from reenact.boundary import current_lane, outside
from reenact.library import is_library, is_standard
from reenact.process_state import hosts_beside
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.volatile.beside import NAMED, BesideRequest, is_of_hosts, reason

_FORWARDING: Final = frozenset(
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
"""Packages that send or retry requests for other code, so they are not the origin of a request."""
_MEASURING: Final = ("opentelemetry.instrumentation.", "sentry_sdk.integrations.", "ddtrace.", "newrelic.")
"""Modules that wrap every call or thread to measure it."""
_SHARED_THREADS: Final = ("asyncio", "concurrent", "trio", "gevent", "eventlet")
"""Packages whose frames show that a thread runs tasks or jobs of different code, not of one library."""
_SENDING: Final = ("POST", "PUT", "PATCH")


class Beside(NamedTuple):
    """A request that does not belong to the run."""

    what: str
    is_background: bool = False
    """Whether it was recognised only by how it was made."""


def traffic_beside(
    method: str, url: str, headers: Mapping[str, str], body: object, *, is_elsewhere: bool = False
) -> Beside | None:
    """Why a request does not belong to the run; ``None`` if it does.

    Call it where the request is made, because it reads the stack; *is_elsewhere*: another program makes it.
    """
    if any(is_of_hosts(url, hosts) for hosts in hosts_beside.entries if hosts):
        return Beside(NAMED)
    asker = None if is_elsewhere else _find_library()
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
    """The top-level package of the library whose code *frame* runs; empty if it only forwards requests."""
    name = str(frame.f_globals.get("__name__", ""))
    package = name.partition(".")[0]
    is_ignored = (
        is_standard(frame.f_code.co_filename) or package in _FORWARDING or name.startswith(_MEASURING)
    )
    return "" if is_ignored else package


def _find_library() -> str | None:
    """The library that makes the request; ``None`` if the agent's own code does."""
    for frame in _frames():
        if not is_library(frame.f_code.co_filename):
            return None
        if package := _package(frame):
            return package
    return None


def _has_own_thread(asker: str) -> bool:
    """Whether only *asker* runs in this thread, outside any call, so that the agent waits for no answer."""
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
    """The patches for the OpenAI Agents SDK, which collects traces and sends them from its own thread."""
    return [
        Patch(processors.BatchTraceProcessor, "on_trace_start", _report_outside),
        Patch(processors.BatchTraceProcessor, "on_span_end", _report_outside),
        Patch(processors.BackendSpanExporter, "_export_with_deadline", _report_outside, may_lack=True),
    ]


def _report_outside(original: Callable[..., None]) -> Callable[..., None]:
    """Report traces outside the run: a thread started here must not shift the numbers of the run's lanes."""

    def report(*args: object, **options: object) -> None:
        lane = current_lane()
        if lane is None or lane.context.time_passes(lane):
            with outside():
                original(*args, **options)

    return report


LIBRARIES: Final[Libraries] = {"agents.tracing.processors": _agents_patches}
