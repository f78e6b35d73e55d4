"""Assertion types that users add: installed packages by entry point, projects by a Python file.

A package declares ``[project.entry-points."reenact.assertions"]`` with ``name = "package.module:function"``.
A project names its files in ``reenact.toml`` and marks the functions in them::

    from reenact.suite import Verdict, assertion

    @assertion
    def mentions_order_number(trace, params):
        return Verdict(passed="#" in trace.final_output.content, message="…")
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar, overload

from reenact.errors import UsageError
from reenact.suite.judge import BUILT_IN, Judge

GROUP: Final = "reenact.assertions"
_MARK: Final = "__reenact_assertion__"

F = TypeVar("F", bound=Judge)


@overload
def assertion(function: F, /) -> F: ...
@overload
def assertion(*, name: str) -> Callable[[F], F]: ...
def assertion(function: F | None = None, /, *, name: str | None = None) -> F | Callable[[F], F]:
    """Mark a function as an assertion type, called *name* or what the function is called."""

    def mark(marked: F) -> F:
        setattr(marked, _MARK, name or marked.__name__)
        return marked

    return mark if function is None else mark(function)


def all_kinds(files: Iterable[Path] = ()) -> dict[str, Judge]:
    """The built-in types, those of installed packages and those in *files*; no name may be taken twice."""
    kinds: dict[str, Judge] = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        try:
            found = {point.name: point.load()}
        except Exception as error:
            raise UsageError(f"{point.value}: cannot be loaded: {type(error).__name__}: {error}") from error
        _add(kinds, found, point.value)
    for file in files:
        _add(kinds, _marked(_load(file)), str(file))
    return kinds


def _add(kinds: dict[str, Judge], found: Mapping[str, Judge], where: str) -> None:
    for name, function in found.items():
        if name in kinds:
            raise UsageError(f"{where}: the assertion type {name!r} exists already; choose another name")
        kinds[name] = function


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reenact_assertions_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(f"{file}: no Python file; check assertions in reenact.toml")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file}: cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _marked(module: ModuleType) -> dict[str, Judge]:
    functions = {getattr(value, _MARK): value for value in vars(module).values() if hasattr(value, _MARK)}
    if not functions:
        raise UsageError(f"{module.__file__}: no function is marked; use @reenact.suite.assertion")
    return functions
