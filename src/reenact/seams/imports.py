"""Patches libraries: at once if they are loaded, else as soon as the program imports them.

It imports no library itself. While a run is open, a finder stands first in ``sys.meta_path``; it delegates to
the other finders and is notified when a watched module has been executed.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final, TypeAlias

from reenact.process_state import watched_libraries
from reenact.seams.patches import Patch, as_import_machinery, attach, detach

Libraries: TypeAlias = Mapping[str, Callable[[ModuleType], list[Patch]]]
"""By module name: a function that returns the patches for the loaded module."""

_log = logging.getLogger("reenact")
_UNKNOWN_VERSION: Final = "reenact: this version of %s is not known (%s): what it does may not be recorded"


class WatchedLibraries:
    """The libraries of one open run and the patches it has attached so far."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._attached: dict[str, list[Patch]] = {}

    @property
    def names(self) -> set[str]:
        return self._libraries.keys() - self._attached.keys()

    def patch_module(self, module: ModuleType, name: str) -> None:
        """Patch *module*; of an unknown version, only the parts that it has, with a warning."""
        with watched_libraries.lock:
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
        with watched_libraries.lock:
            for patches in self._attached.values():
                detach(patches)


@contextmanager
def watch_imports(libraries: Libraries) -> Iterator[None]:
    """Patch each of *libraries* for the block, from the moment it is loaded."""
    watch = WatchedLibraries(libraries)
    _wait_for_half_loaded(libraries)
    with watched_libraries.lock:
        watched_libraries.add(watch)
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        for name in libraries:
            module = sys.modules.get(name)
            if module is not None and not _is_half_loaded(name):
                watch.patch_module(module, name)
    try:
        yield
    finally:
        with watched_libraries.lock:
            watched_libraries.remove(watch)
            if not watched_libraries.entries:
                sys.meta_path.remove(_FINDER)
        watch.close()


def _is_half_loaded(name: str) -> bool:
    """Whether the module is still being executed, so that some of its names are missing."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False) is True


def _wait_for_half_loaded(names: Iterable[str]) -> None:
    """Wait for other threads that are importing one of *names*; a forked process has no such threads."""
    for name in names:
        if _is_half_loaded(name) and os.getpid() == _PID:
            with suppress(Exception):  # the other thread reports its failed import
                import_module(name)


_PID: Final = os.getpid()


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not any(fullname in watch.names for watch in watched_libraries.entries):
            return None
        spec = _find_by_others(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _NotifyingLoader(spec, spec.loader)
        return spec


_FINDER = _Finder()


def _find_by_others(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    finders = [finder for finder in sys.meta_path if finder is not _FINDER]
    specs = (finder.find_spec(fullname, path, target) for finder in finders)
    return next((spec for spec in specs if spec is not None), None)


class _NotifyingLoader(Loader):
    """Loads with the original loader, restores it on the module, and then lets the open runs patch it."""

    def __init__(self, spec: ModuleSpec, loader: Loader) -> None:
        self._spec = spec
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    @as_import_machinery
    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        with watched_libraries.lock:
            for watch in watched_libraries.entries:
                watch.patch_module(module, self._spec.name)
