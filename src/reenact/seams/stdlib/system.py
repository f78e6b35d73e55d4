"""What the agent asks about its machine: its name, its load, what the process has used so far.

Such facts differ from machine to machine or from moment to moment, so they are recorded like the clock.
The number of a process or a thread is not: the agent may need the real one, to send a signal for example.
Replay renames such numbers instead, like generated names.
"""

from __future__ import annotations

import gc
import getpass
import os
import platform
import shutil
import socket
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.patches import Patch
from reenact.seams.stdlib.cwd import tell_folder
from reenact.seams.stdlib.exchange import is_exchanged_in
from reenact.seams.stdlib.sources import Form, formed_value_of, is_genuine, stand_for
from reenact.volatile.places import working_folder

_DiskUsage: Final = type(shutil.disk_usage(os.sep))

_FACTS: Final[dict[ModuleType, dict[str, type]]] = {
    gc: {"get_count": tuple},
    getpass: {"getuser": str},
    os: {"cpu_count": int, "getloadavg": tuple, "getlogin": str, "process_cpu_count": int},
    platform: {
        **dict.fromkeys(("machine", "node", "platform", "processor", "release", "version"), str),
        "uname": platform.uname_result,
    },
    shutil: {"disk_usage": _DiskUsage},
    tracemalloc: {"get_traced_memory": tuple},
}
"""By module: the functions that read a fact, and what they return. No system has all of them."""

if sys.platform != "win32":
    import resource

    _FACTS[os] |= {"statvfs": os.statvfs_result, "times": os.times_result, "uname": os.uname_result}
    _FACTS[resource] = {"getrusage": resource.struct_rusage}


def _make_uname(fields: list[str]) -> platform.uname_result:
    *stored, processor = fields
    found = platform.uname_result(*stored)
    found.__dict__["processor"] = processor  # a cached property, which would look at this machine
    return found


_MAKERS: Final[dict[type, Callable[[list[Any]], object]]] = {
    platform.uname_result: _make_uname,
    _DiskUsage: _DiskUsage._make,
}
"""How to make a tuple of its fields, where its type does not take a list."""


def _form_of(kind: type) -> Form:
    if issubclass(kind, tuple):
        return Form(kind, list, _MAKERS.get(kind, kind))
    return Form(kind, kind, kind)


def _describe(argument: object) -> str:
    """*argument* of a function that reads a fact; a path is the same wherever the project is."""
    if isinstance(argument, str | bytes | os.PathLike):
        return tell_folder(Path(working_folder(), os.fsdecode(argument)), Path(working_folder()))
    return repr(argument)


def _read_fact(module: ModuleType, name: str, form: Form) -> Callable[..., object]:
    original = getattr(module, name)

    def read(*args: object, **options: object) -> object:
        real = getattr(module, name)  # looked up at each call: a test may have put a fake there
        words = [_describe(value) for value in (*args, *options.values())]
        key = f"{module.__name__}.{name}" + (f"({', '.join(words)})" if words else "")
        return formed_value_of(
            "system",
            Instant("nondeterministic", {"source": "system", "key": key}),
            lambda: real(*args, **options),
            form,
            is_fake=not is_genuine(real, original),
        )

    return stand_for(module, name, read)


STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    module: {
        name: _read_fact(module, name, _form_of(kind))
        for name, kind in facts.items()
        if hasattr(module, name)
    }
    for module, facts in _FACTS.items()
}


def _name_of_host(name: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """``gethostname`` or ``getfqdn``, recorded if the agent calls it.

    Not by a stand-in for ``socket``: fakes of sockets take that module apart.
    """
    form, genuine = _form_of(str), getattr(socket, name)

    def wrap(original: Callable[..., str]) -> Callable[..., str]:
        is_fake = not is_genuine(original, genuine)

        def read(*args: str) -> str:
            if not is_exchanged_in(sys._getframe(1).f_globals):  # noqa: SLF001 — who calls decides
                return original(*args)
            key = f"socket.{name}" + (f"({args[0]!r})" if args else "")
            instant = Instant("nondeterministic", {"source": "system", "key": key})
            found: str = formed_value_of("system", instant, lambda: original(*args), form, is_fake=is_fake)
            return found

        return read

    return wrap


PATCHES: Final = [Patch(socket, name, _name_of_host(name)) for name in ("gethostname", "getfqdn")]
