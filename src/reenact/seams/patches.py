"""Patches, applied once per process while any run is open, and removed after the last.

A patch decides at each call, by the current run, whether to do anything. Other libraries may patch the same
places: if one has patched on top of ours, both stay, and ours does nothing without a run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final, Self, TypeVar

import msgspec

from reenact.process_state import applied_patches, locks, patches_left_below

_F = TypeVar("_F", bound=Callable[..., object])


def as_import_machinery(function: _F) -> _F:
    """Let ``warnings`` skip *function* as it skips Python's own import machinery, by the name of its file.

    Otherwise a module that warns its importer would warn us, and filters for the importer would not hold.
    """
    code = function.__code__
    function.__code__ = code.replace(co_filename=f"{code.co_filename} (as importlib._bootstrap)")
    return function


class ModuleByName:
    """Pickled, it becomes the module *name*."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return import_module, (self._name,)


class Replacement(functools.partial[Any]):
    """A function in the place of *name* of *module*, or an agent's stand-in for it; pickled as that.

    Like a compiled function it is not bound to objects, because classes have such functions as attributes.
    """

    def __new__(cls, function: Callable[..., Any], module: ModuleType, name: str) -> Self:
        made = super().__new__(cls, function)
        functools.update_wrapper(made, getattr(module, name))
        made._place = ModuleByName(module.__name__), name
        return made

    __wrapped__: Callable[..., Any]
    _place: tuple[ModuleByName, str]

    @property  # type: ignore[misc]  # nobody sets it
    def __class__(self) -> type:
        """That of a compiled function, for libraries that look for those (pyfakefs replaces them)."""
        return BuiltinFunctionType if isinstance(self.__wrapped__, BuiltinFunctionType) else Replacement

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[ModuleByName, str]]:
        return getattr, self._place

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class Patch(msgspec.Struct, frozen=True):
    """*owner*.*name* becomes ``wrap(original)``."""

    owner: Any
    name: str
    wrap: Callable[[Any], Any]
    may_lack: bool = False
    """Whether a version of the library without that name is supported, too."""

    @property
    def has_place(self) -> bool:
        return hasattr(self.owner, self.name)


_IMMUTABLE: Final = 1 << 8
"""``Py_TPFLAGS_IMMUTABLETYPE``."""


class AppliedPatch:
    def __init__(self, patch: Patch) -> None:
        self.users = 0
        self.is_immutable = bool(getattr(patch.owner, "__flags__", 0) & _IMMUTABLE)
        """Whether the owner is now a compiled class, as gevent puts there: it cannot be patched."""
        if self.is_immutable:
            return
        own = vars(patch.owner)
        self.is_inherited = patch.name not in own
        self.original = own.get(patch.name)
        # By getattr, not from vars(): only so a wrapper of an instrumentation library binds to the owner.
        got = getattr(patch.owner, patch.name)
        self.replacement = patch.wrap(got)
        if isinstance(got, BuiltinFunctionType) and isinstance(patch.owner, ModuleType):
            self.replacement = Replacement(self.replacement, patch.owner, patch.name)
        elif not isinstance(self.replacement, type):  # a class has its own name and docstring
            functools.update_wrapper(self.replacement, got)
        setattr(patch.owner, patch.name, self.replacement)


def attach(patches: list[Patch]) -> None:
    """Apply *patches*, or count one more user of those that are applied already."""
    with locks.patches:
        for patch in patches:
            key = (id(patch.owner), patch.name)
            if key not in applied_patches:
                left = patches_left_below.pop(key, None)
                is_there = left is not None and left.replacement in _chain(patch)
                applied_patches[key] = left if left is not None and is_there else AppliedPatch(patch)
            applied_patches[key].users += 1


def detach(patches: list[Patch]) -> None:
    """Count one user less of each patch; the last one removes it."""
    with locks.patches:
        for patch in patches:
            key = (id(patch.owner), patch.name)
            applied = applied_patches[key]
            applied.users -= 1
            if applied.users == 0:
                _restore(patch, applied)
                del applied_patches[key]


def _restore(patch: Patch, applied: AppliedPatch) -> None:
    if applied.is_immutable:
        return
    if vars(patch.owner).get(patch.name) is not applied.replacement:
        patches_left_below[id(patch.owner), patch.name] = applied
    elif applied.is_inherited:
        delattr(patch.owner, patch.name)
    else:
        setattr(patch.owner, patch.name, applied.original)


def _chain(patch: Patch) -> list[object]:
    """The current function at the place of *patch*, and all that it wraps, outermost first."""
    function = vars(patch.owner).get(patch.name)
    chain = [function]
    while (function := getattr(function, "__wrapped__", None)) is not None:
        chain.append(function)
    return chain
