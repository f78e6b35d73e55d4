"""Libraries that are patched when they are there: at once if loaded, else as soon as something loads them.

Nothing is imported on their behalf. While a run is open a finder stands first in ``sys.meta_path``; it finds
nothing by itself and only learns when a watched module has been executed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final, TypeAlias

from reenact.seams.patches import Patch, attach, detach

Libraries: TypeAlias = Mapping[str, Callable[[ModuleType], list[Patch]]]
"""By module name: what to patch once that module is loaded."""

_lock = threading.RLock()
_log = logging.getLogger("reenact")
_UNKNOWN_VERSION: Final = "reenact: this version of %s is not known (%s): what it does may not be recorded"


class _Watch:
    """The libraries of one open run and the patches it has attached so far."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._attached: dict[str, list[Patch]] = {}

    @property
    def names(self) -> set[str]:
        return self._libraries.keys() - self._attached.keys()

    def loaded(self, module: ModuleType, name: str) -> None:
        """Patch what is there; a version that we do not know is the program's to use all the same."""
        with _lock:
            if name not in self.names:
                return
            self._attached[name] = []
            try:
                patches = self._libraries[name](module)
                found = [patch for patch in patches if patch.has_place]
                missing = [patch.name for patch in patches if not patch.has_place and not patch.may_lack]
                attach(found)
                self._attached[name] = found
            except AttributeError as error:
                missing = [str(error)]
            if missing:
                _log.warning(_UNKNOWN_VERSION, name, ", ".join(missing))

    def close(self) -> None:
        with _lock:
            for patches in self._attached.values():
                detach(patches)


_watches: list[_Watch] = []


@contextmanager
def watched(libraries: Libraries) -> Iterator[None]:
    """Patch each of *libraries* for the block, from the moment it is loaded."""
    watch = _Watch(libraries)
    _wait_for_half_loaded(libraries)
    with _lock:
        _watches.append(watch)
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        for name in libraries:
            module = sys.modules.get(name)
            if module is not None and not _is_half_loaded(name):
                watch.loaded(module, name)
    try:
        yield
    finally:
        with _lock:
            _watches.remove(watch)
            if not _watches:
                sys.meta_path.remove(_FINDER)
        watch.close()


def _is_half_loaded(name: str) -> bool:
    """Whether that module is being executed: not all of its names are there."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False) is True


def _wait_for_half_loaded(names: Iterable[str]) -> None:
    """Wait for other threads that load one of *names*; in a fork they are not there any more."""
    for name in names:
        if _is_half_loaded(name) and os.getpid() == _PID:
            with suppress(Exception):  # it is their import that failed
                import_module(name)


_PID: Final = os.getpid()


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(fullname in watch.names for watch in _watches):
            return None
        spec = _found_by_others(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec, spec.loader)
        return spec


_FINDER = _Finder()


def _found_by_others(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    finders = [finder for finder in sys.meta_path if finder is not _FINDER]
    specs = (finder.find_spec(fullname, path, target) for finder in finders)
    return next((spec for spec in specs if spec is not None), None)


class _Telling(Loader):
    """Loads as the original loader does, puts it back in its place and tells the open runs."""

    def __init__(self, spec: ModuleSpec, loader: Loader) -> None:
        self._spec = spec
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        with _lock:
            for watch in _watches:
                watch.loaded(module, self._spec.name)
