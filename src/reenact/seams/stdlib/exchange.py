"""Stand-ins in the namespaces of the agent's modules, for as long as a run is open.

Names that are bound already are exchanged when the run opens; those an ``import`` binds later are handed out
exchanged. No library's namespace is touched, and at the end every stand-in is taken back wherever it went.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

from reenact.seams.patches import Patch, attach, detach
from reenact.seams.stdlib.agent import Namespace, Patterns, agents_namespaces, is_agents
from reenact.seams.stdlib.standing import StandIn


class Exchanged(NamedTuple):
    """One name of a module of the standard library, and what it means to the agent."""

    module: ModuleType
    name: str
    original: Any
    standing: Any


def exchanged(stand_ins: Mapping[ModuleType, Mapping[str, Any]]) -> tuple[Exchanged, ...]:
    """What *stand_ins* exchange, with the originals as they are now, before anything is patched."""
    return tuple(
        Exchanged(module, name, getattr(module, name), standing)
        for module, names in stand_ins.items()
        for name, standing in names.items()
    )


class _Open:
    """What is exchanged while any run is open."""

    def __init__(self) -> None:
        self.agents: list[Patterns] = []
        """Whose namespaces: one entry for each open run."""
        self._modules: dict[ModuleType, StandIn] = {}
        self._standing: dict[int, Any] = {}
        """By the identity of a real object: what stands for it."""
        self._originals: dict[int, Any] = {}
        """The other way round."""
        self._visited: dict[int, Namespace] = {}
        """Where an import was handed a stand-in; not every namespace is that of a loaded module."""

    def add(self, names: Iterable[Exchanged]) -> None:
        for module, name, original, standing in names:
            stand_in = self._modules.setdefault(module, StandIn(module))
            stand_in.exchange(name, original, standing)
            for real, ours in ((module, stand_in), (original, standing)):
                self._standing[id(real)] = ours
                self._originals[id(ours)] = real

    def enter(self) -> None:
        for namespace in self._agents_namespaces():
            _swap(namespace, self._standing)

    def leave(self) -> None:
        for namespace in (*self._agents_namespaces(), *self._visited.values()):
            _swap(namespace, self._originals)

    def imported(self, module: Any, namespace: Namespace) -> Any:
        """*module*, or what stands for it in *namespace*."""
        standing = self._standing.get(id(module))
        if standing is None or not any(is_agents(namespace, patterns) for patterns in self.agents):
            return module
        self._visited[id(namespace)] = namespace
        return standing

    def _agents_namespaces(self) -> list[Namespace]:
        return [namespace for patterns in self.agents for namespace in agents_namespaces(patterns)]


def _swap(namespace: Namespace, mapping: dict[int, Any]) -> None:
    for name, value in list(namespace.items()):
        other = mapping.get(id(value))
        if other is not None:
            namespace[name] = other


_lock: Final = threading.RLock()
_open: _Open = _Open()


def open_exchange(names: Sequence[Exchanged], patterns: Patterns) -> None:
    """Exchange *names* in the modules that *patterns* name, beside what other open runs exchange."""
    with _lock:
        _open.add(names)
        _open.agents.append(patterns)
        _open.enter()
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


def _import(original: Callable[..., Any]) -> Callable[..., Any]:
    def import_for(
        name: str,
        globals: Namespace | None = None,  # noqa: A002 — the parameters' own names
        locals: Namespace | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        module = original(name, globals, locals, fromlist, level)
        return module if level or globals is None else _open.imported(module, globals)

    return import_for


_PATCHES: Final = [Patch(builtins, "__import__", _import)]
