"""Stand-ins in the namespaces of the agent's modules, for as long as a run is open.

Names that are bound already are exchanged when the run opens; those an ``import`` binds later are handed out
exchanged. No library's namespace is touched, and at the end every stand-in is taken back wherever it went.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.library import is_library, namespace_of, possible_agents
from reenact.seams.patches import Patch, attach, detach
from reenact.seams.stdlib.standing import StandIn

Namespace: TypeAlias = dict[str, Any]
Patterns: TypeAlias = tuple[str, ...]
"""Names of modules or packages, with ``*`` where wanted; none at all means all that are no library."""


def is_agents(namespace: Namespace, patterns: Patterns) -> bool:
    """Whether the module with this namespace is the agent's own."""
    name = namespace.get("__name__")
    if not isinstance(name, str):
        return False
    if patterns:
        return _is_named(name, patterns)
    file = namespace.get("__file__")
    # A program typed in, or given on the command line, has no file.
    return not is_library(file) if isinstance(file, str) else name == "__main__"


@lru_cache(maxsize=2**16)
def _is_named(name: str, patterns: Patterns) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns)


def agents_namespaces(patterns: Patterns) -> Iterator[Namespace]:
    """The namespaces of the agent's modules that are loaded."""
    # What is named may be a library.
    loaded = _all_namespaces() if patterns else (namespace for _, namespace in possible_agents())
    return (namespace for namespace in loaded if is_agents(namespace, patterns))


def _all_namespaces() -> Iterator[Namespace]:
    return map(namespace_of, list(sys.modules.values()))


class Exchanged(NamedTuple):
    """One name of a module of the standard library, and what it means to the agent."""

    module: ModuleType
    name: str
    original: Any
    standing: Any
    gives_way: bool
    """Whether a test's own fake in the module counts, unseen; other stand-ins record what it yields."""


def exchanged(
    stand_ins: Mapping[ModuleType, Mapping[str, object]], *, gives_way: bool = False
) -> tuple[Exchanged, ...]:
    """What *stand_ins* exchange, with the originals as they are now, before anything is patched."""
    return tuple(
        Exchanged(module, name, getattr(module, name), standing, gives_way)
        for module, names in stand_ins.items()
        for name, standing in names.items()
    )


class _Open:
    """What is exchanged while any run is open."""

    def __init__(self) -> None:
        self.agents: list[Patterns] = []
        """Whose namespaces: one entry for each open run."""
        self._modules: dict[ModuleType, StandIn] = {}
        self._standing: dict[int, object] = {}
        """By the identity of a real object: what stands for it."""
        self._originals: dict[int, object] = {}
        """The other way round."""
        self._built_in: dict[str, object] = {}
        """What stands for built-in functions; a namespace has no name for these until it gets ours."""
        self._visited: dict[int, Namespace] = {}
        """Namespaces that may hold a stand-in; not every one is that of a loaded module."""

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
        _libraries.clear()
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
        """Whether *namespace* is that of a module of the agent's; if so, it may hold stand-ins now."""
        if id(namespace) in self._visited:
            return True
        name = namespace.get("__name__")
        if name in _libraries:
            return False
        if not any(is_agents(namespace, patterns) for patterns in self.agents):
            if name is not None and "__file__" in namespace:
                _libraries.add(name)
            return False
        self._visit(namespace)
        return True

    def imported(self, module: object, names: Iterable[str]) -> Any:
        """What an import gets instead of *module*; *names* are what it takes from it."""
        namespace = namespace_of(module)
        for taken in (namespace, *(namespace_of(namespace.get(name)) for name in names)):
            if taken:
                self.holds(taken)
        return self._standing.get(id(module), module)

    def _visit(self, namespace: Namespace) -> None:
        self._visited[id(namespace)] = namespace
        _libraries.discard(namespace["__name__"])
        for name, standing in self._built_in.items():
            namespace.setdefault(name, standing)


def _swap(namespace: Namespace, mapping: dict[int, object]) -> None:
    for name, value in list(namespace.items()):
        other = mapping.get(id(value))
        # `__builtins__` is the interpreter's: it takes all built-in names from the module's dictionary.
        if other is not None and name != "__builtins__":
            namespace[name] = other


_lock: Final = threading.RLock()
_libraries: Final[set[str]] = set()
"""Names of modules that are none of the agent's, so that it is found out once for each."""
_open: _Open = _Open()


def open_exchange(names: Sequence[Exchanged], patterns: Patterns) -> None:
    """Exchange *names* in the modules that *patterns* name, beside what other open runs exchange."""
    with _lock:
        _open.add(names)
        _open.enter(patterns)
        attach(_PATCHES)


def close_exchange(patterns: Patterns) -> None:
    """One run less; the last one takes all stand-ins back."""
    global _open
    with _lock:
        detach(_PATCHES)
        if len(_open.agents) == 1:
            _open.leave()
            _open = _Open()
        else:
            _open.agents.remove(patterns)


def is_exchanged_in(namespace: Namespace) -> bool:
    """Whether *namespace* is that of a module in which names are exchanged now."""
    return _open.holds(namespace)


def _import(original: Callable[..., object]) -> Callable[..., object]:
    libraries = _libraries

    def import_for(
        name: str,
        globals: Namespace | None = None,  # noqa: A002 — the parameters' own names
        locals: Namespace | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        module = original(name, globals, locals, fromlist, level)
        # Some libraries import within their functions, hundreds of times in one model call: they are known
        # by name, and get what they imported.
        try:
            if globals["__name__"] in libraries:  # type: ignore[index]  # else it has no namespace
                return module
        except (TypeError, KeyError):
            pass
        return _open.imported(module, fromlist or ()) if globals and _open.holds(globals) else module

    return import_for


_PATCHES: Final = [Patch(builtins, "__import__", _import)]
