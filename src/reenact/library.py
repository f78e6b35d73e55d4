"""Whether code belongs to a library (the standard one, an installed one, reenact) or to the agent."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from os import sep
from pathlib import Path
from types import ModuleType
from typing import Final

from reenact.process_state import library_modules

_MARKS: Final = (f"{sep}site-packages{sep}", f"{sep}dist-packages{sep}")
_ROOTS: Final = (
    *(sysconfig.get_path(name) + sep for name in ("stdlib", "platstdlib")),
    str(Path(__file__).resolve().parent) + sep,
    "<frozen ",
)

_DEMO_AGENT: Final = str(Path(__file__).resolve().parent / "testing" / "support_agent.py")
"""Part of our package, but treated as an agent."""


@cache
def is_library(filename: str) -> bool:
    """Whether the code in *filename* belongs to a library."""
    if filename == _DEMO_AGENT:
        return False
    return filename.startswith(_ROOTS) or any(mark in filename for mark in _MARKS)


@cache
def is_standard(filename: str) -> bool:
    """Whether the code in *filename* belongs to the standard library or to reenact."""
    return filename.startswith(_ROOTS) and not any(mark in filename for mark in _MARKS)


def namespace_of(value: object) -> dict[str, object]:
    """The namespace of *value* if it is a module, else an empty one; runs no code of *value*.

    Reading the class or names of a lazy object would load it: a module of ``importlib.util.LazyLoader``, or
    Django's ``settings`` before they are configured.
    """
    if not issubclass(type(value), ModuleType):
        return {}
    names: dict[str, object] = ModuleType.__getattribute__(value, "__dict__")
    return names


def possible_agents() -> list[tuple[str, dict[str, object]]]:
    """The name and namespace of every loaded module that may belong to the agent.

    A process has thousands of modules and an agent a few; each library is checked once, unless another module
    takes its name.
    """
    found: list[tuple[str, dict[str, object]]] = []
    for name, module in sys.modules.copy().items():  # another thread may import; list() may then raise
        if library_modules.get(name) is module:
            continue
        namespace = namespace_of(module)
        file = namespace.get("__file__")
        if isinstance(file, str) and is_library(file):
            library_modules[name] = module
        else:
            found.append((name, namespace))
    return found


POOLS: Final = (
    "concurrent.futures.process",
    "multiprocessing.pool",
    "loky.process_executor",
    "joblib.externals.loky.process_executor",
)
"""Modules whose functions run in worker processes."""


def is_pool_worker() -> bool:
    """Whether this process is a worker of a pool, whose jobs are calls of the process that has the pool."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None:
        return False
    target = getattr(multiprocessing.current_process(), "_target", None)
    return getattr(target, "__module__", "") in POOLS


_OF_LOKY: Final = frozenset(
    f"{place}loky.backend.{name}"
    for place in ("", "joblib.externals.")
    for name in ("context", "resource_tracker", "utils")
)
HOST_QUESTIONS: Final = _OF_LOKY | {
    "ctypes.util",
    "distro.distro",
    "multiprocessing.resource_tracker",
    "platform",
    "uuid",
}
"""Modules whose child processes only read facts about this host or clean up.

SDK clients put ``platform.platform()`` into a header, which runs ``uname -p``; refusing that would stop every
replay.
"""
_DEPTH_LIMIT: Final = 200
"""The number of frames to look at; stacks of SDKs stay below a hundred."""


def asking_module(passed_on_by: frozenset[str]) -> str | None:
    """The innermost calling module outside of reenact and of modules that only pass calls on."""
    frame = sys._getframe(1)  # noqa: SLF001
    for _ in range(_DEPTH_LIMIT):
        name = str(frame.f_globals.get("__name__"))
        if name not in passed_on_by and not name.startswith("reenact."):
            return name
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
