"""Whose code a file is: a library's (the standard one, an installed one, reenact) or else the agent's."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from os import sep
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_MARKS: Final = (f"{sep}site-packages{sep}", f"{sep}dist-packages{sep}")
_ROOTS: Final = (
    *(sysconfig.get_path(name) + sep for name in ("stdlib", "platstdlib")),
    str(Path(__file__).resolve().parent) + sep,
    "<frozen ",
)

_DEMO_AGENT: Final = str(Path(__file__).resolve().parent / "testing" / "support_agent.py")
"""Lives with us and is an agent all the same."""


@cache
def is_library(filename: str) -> bool:
    """Whether the code in *filename* is not the agent's own."""
    if filename == _DEMO_AGENT:
        return False
    return filename.startswith(_ROOTS) or any(mark in filename for mark in _MARKS)


@cache
def is_standard(filename: str) -> bool:
    """Whether the code in *filename* is Python's own or ours."""
    return filename.startswith(_ROOTS) and not any(mark in filename for mark in _MARKS)


_libraries: Final[dict[str, object]] = {}
"""By name: loaded modules that were found to be libraries, so that the next run need not look again."""


def namespace_of(value: object) -> dict[str, object]:
    """The names of *value* if it is a module, else none; whatever it is, no code of its own runs.

    Asking a lazy object for its class or its names makes it load: a module of ``importlib.util.LazyLoader``,
    Django's ``settings`` before they are configured.
    """
    if not issubclass(type(value), ModuleType):
        return {}
    names: dict[str, Any] = ModuleType.__getattribute__(value, "__dict__")
    return names


def possible_agents() -> list[tuple[str, dict[str, object]]]:
    """Name and namespace of every loaded module that is not known to be a library's.

    A process has thousands of modules and an agent a few; each library is looked at once, unless another
    module takes its name.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    for name, module in list(sys.modules.items()):
        if _libraries.get(name) is module:
            continue
        namespace = namespace_of(module)
        file = namespace.get("__file__")
        if isinstance(file, str) and is_library(file):
            _libraries[name] = module
        else:
            found.append((name, namespace))
    return found


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
"""Modules whose child processes are housekeeping: they ask this host about itself or tidy up after it.

SDK clients put ``platform.platform()`` into a header, which runs ``uname -p``; refusing that would stop
every replay over something the agent never asked for.
"""
_DEPTH_LIMIT: Final = 200
"""Frames looked at from the inside; SDK stacks stay under a hundred."""


def asking_module(passed_on_by: frozenset[str]) -> str | None:
    """The innermost calling module beyond reenact and the modules that only pass the request on."""
    frame = sys._getframe(1)  # noqa: SLF001
    for _ in range(_DEPTH_LIMIT):
        name = str(frame.f_globals.get("__name__"))
        if name not in passed_on_by and not name.startswith("reenact."):
            return name
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None
