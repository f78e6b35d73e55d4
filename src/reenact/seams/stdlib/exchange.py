"""Puts stand-ins into the namespaces of the agent's modules while a run is open.

Names that are already bound are exchanged when the run opens; a later ``import`` binds the stand-in at once.
No library's namespace is changed, and at the end every stand-in is replaced by the original again.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from inspect import isroutine
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.library import is_library, namespace_of, possible_agents
from reenact.process_state import name_exchange, names_of_libraries
from reenact.seams.patches import Patch, Replacement, as_import_machinery, attach, detach
from reenact.seams.stdlib.stand_ins import StandIn

Namespace: TypeAlias = dict[str, Any]
Patterns: TypeAlias = tuple[str, ...]
"""Names of modules or packages, which may contain ``*``; empty means all modules that are no library."""


def is_agents(namespace: Namespace, patterns: Patterns) -> bool:
    """Whether the module with this namespace is the agent's own."""
    name = namespace.get("__name__")
    if not isinstance(name, str):
        return False
    if patterns:
        return _is_named(name, patterns)
    file = namespace.get("__file__")
    # A program from the prompt, or from the command line, has no file.
    return not is_library(file) if isinstance(file, str) else name == "__main__"


@lru_cache(maxsize=2**16)
def _is_named(name: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns)


def agents_namespaces(patterns: Patterns) -> Iterator[Namespace]:
    """The namespaces of the agent's loaded modules."""
    # A pattern may name a library.
    loaded = _all_namespaces() if patterns else (namespace for _, namespace in possible_agents())
    return (namespace for namespace in loaded if is_agents(namespace, patterns))


def _all_namespaces() -> Iterator[Namespace]:
    return map(namespace_of, sys.modules.copy().values())


class Exchanged(NamedTuple):
    """One name of a standard-library module, with its original value and its stand-in."""

    module: ModuleType
    name: str
    original: Any
    standing: Any
    gives_way: bool
    """Whether a test's fake in the module replaces the stand-in; other stand-ins record the fake's values."""


def exchanges_of(
    stand_ins: Mapping[ModuleType, Mapping[str, object]], *, gives_way: bool = False
) -> tuple[Exchanged, ...]:
    """The names that *stand_ins* exchange, with their originals; call it before anything is patched."""
    return tuple(
        Exchanged(
            module,
            name,
            getattr(module, name),
            Replacement(standing, module, name) if isroutine(standing) else standing,
            gives_way,
        )
        for module, names in stand_ins.items()
        for name, standing in names.items()
    )


class ExchangedNames:
    """What is exchanged now, for all open runs."""

    def __init__(self) -> None:
        self.agents: list[Patterns] = []
        """The patterns of each open run."""
        self._modules: dict[ModuleType, StandIn] = {}
        self._standing: dict[int, object] = {}
        """By the identity of a real object: its stand-in."""
        self._originals: dict[int, object] = {}
        """By the identity of a stand-in: the real object."""
        self._built_in: dict[str, object] = {}
        """Stand-ins for built-in functions, by name; a module's own namespace does not have these names."""
        self._visited: dict[int, Namespace] = {}
        """Namespaces that may hold a stand-in; not all of them belong to a loaded module."""

    def add(self, names: Iterable[Exchanged]) -> None:
        for module, name, original, standing, gives_way in names:
            if module not in self._modules:
                self._modules[module] = StandIn(module)
            stand_in = self._modules[module]
            stand_in.exchange(name, original, standing, gives_way=gives_way)
            if module is builtins:
                self._built_in[name] = standing
            for real, ours in ((module, stand_in), (original, standing)):
                self._standing[id(real)] = ours
                self._originals[id(ours)] = real

    def enter(self, patterns: Patterns) -> None:
        self.agents.append(patterns)
        names_of_libraries.clear()
        for each in self.agents:
            for namespace in agents_namespaces(each):
                _swap(namespace, self._standing)
                self._visit(namespace)

    def leave(self) -> None:
        for namespace in self._visited.values():
            for name, standing in self._built_in.items():
                if namespace.get(name) is standing:
                    del namespace[name]
            _swap(namespace, self._originals)

    def holds(self, namespace: Namespace) -> bool:
        """Whether *namespace* belongs to a module of the agent; if so, it is remembered as visited."""
        if id(namespace) in self._visited:
            return True
        name = namespace.get("__name__")
        if name in names_of_libraries:
            return False
        if not any(is_agents(namespace, patterns) for patterns in self.agents):
            if name is not None and "__file__" in namespace:
                names_of_libraries.add(name)
            return False
        self._visit(namespace)
        return True

    def exchange_imported(self, module: object, names: Iterable[str]) -> object:
        """What an import of *names* from *module* gets instead of *module*."""
        namespace = namespace_of(module)
        for taken in (namespace, *(namespace_of(namespace.get(name)) for name in names)):
            if taken:
                self.holds(taken)
        return self._standing.get(id(module), module)

    def _visit(self, namespace: Namespace) -> None:
        self._visited[id(namespace)] = namespace
        names_of_libraries.discard(namespace["__name__"])
        for name, standing in self._built_in.items():
            namespace.setdefault(name, standing)


def _swap(namespace: Namespace, mapping: dict[int, object]) -> None:
    for name, value in list(namespace.items()):
        other = mapping.get(id(value))
        # `__builtins__` belongs to the interpreter, which reads all built-in names from its dictionary.
        if other is not None and name != "__builtins__":
            namespace[name] = other


def open_exchange(names: Sequence[Exchanged], patterns: Patterns) -> None:
    """Exchange *names* in the modules that match *patterns*, in addition to what other open runs exchange."""
    with name_exchange.lock:
        if not name_exchange.entries:
            name_exchange.add(ExchangedNames())
        (exchanged,) = name_exchange.entries
        exchanged.add(names)
        exchanged.enter(patterns)
        attach(_PATCHES)


def close_exchange(patterns: Patterns) -> None:
    """End one run's exchange; the last one restores all originals."""
    with name_exchange.lock:
        detach(_PATCHES)
        (exchanged,) = name_exchange.entries
        if len(exchanged.agents) == 1:
            exchanged.leave()
            name_exchange.remove(exchanged)
        else:
            exchanged.agents.remove(patterns)


def is_exchanged_in(namespace: Namespace) -> bool:
    """Whether *namespace* belongs to a module in which names are exchanged now."""
    return any(exchanged.holds(namespace) for exchanged in name_exchange.entries)


def _import(original: Callable[..., object]) -> Callable[..., object]:
    libraries = names_of_libraries

    @as_import_machinery
    def import_for(
        name: str,
        globals: Namespace | None = None,  # noqa: A002 — the original's parameter names
        locals: Namespace | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        module = original(name, globals, locals, fromlist, level)
        # A fast path: some libraries import inside functions, hundreds of times in one model call. They are
        # known by name and get the real module.
        try:
            if globals["__name__"] in libraries:  # type: ignore[index]  # else it has no namespace
                return module
        except (TypeError, KeyError):
            pass
        if globals:
            for exchanged in name_exchange.entries:
                if exchanged.holds(globals):
                    return exchanged.exchange_imported(module, fromlist or ())
        return module

    return import_for


_PATCHES: Final = [Patch(builtins, "__import__", _import)]
