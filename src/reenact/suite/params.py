"""Parameters of assertions: typed, with defaults, and tolerant in their notation.

The same tests run on a Ruby engine, so a text may stand for a list of one, ``"3"`` for 3, and null for a
parameter that is not given. An unknown name is ignored and reported.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from reenact.canonical import JsonValue, child_path
from reenact.errors import UsageError


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of one assertion type; a field without a default must be given.

    Null means *not given*, except for a field whose default is ``UNSET``: there it is a value.
    """


P = TypeVar("P")


class UnknownName(NamedTuple):
    """An unknown parameter: a typo, or from a later version."""

    path: str
    """Below the parameters: ``.min_call`` or ``.before.kind``."""
    message: str


def read_params(
    kind: type[P], given: dict[str, JsonValue], path: str = "params", *, strict: bool = False
) -> P:
    """Read *given* as *kind*; :class:`UsageError` for a wrong parameter, with *strict* for an unknown one."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError:
        pass  # the slower way below accepts more forms and explains errors
    relaxed, unknown = _relax(inspect.type_info(kind), given, "")
    for name in unknown if strict else ():
        raise UsageError(f"{path}{name.path}: {name.message}")
    try:
        return msgspec.convert(relaxed, kind)
    except msgspec.ValidationError as error:
        raise UsageError(_explain(str(error), path)) from None


def unknown_params(kind: type[object], given: dict[str, JsonValue]) -> list[UnknownName]:
    """The names in *given* that *kind* does not have, at any depth."""
    try:
        msgspec.convert(given, kind)
    except msgspec.ValidationError:
        return _relax(inspect.type_info(kind), given, "")[1]
    return []


def _relax(info: inspect.Type, value: Any, path: str) -> tuple[JsonValue, list[UnknownName]]:
    """Convert *value* to the type of *info* if that is unambiguous."""
    unknown: list[UnknownName] = []
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    fitting = next((option for option in options if _accepts(option, value)), None)
    if isinstance(fitting, inspect.StructType):
        return _relax_members(fitting, value, path)
    if isinstance(fitting, inspect.DictType):
        children = {key: _relax(fitting.value_type, child, f"{path}.{key}") for key, child in value.items()}
        return {key: child for key, (child, _) in children.items()}, [
            name for _, names in children.values() for name in names
        ]
    if isinstance(fitting, inspect.ListType | inspect.VarTupleType):
        items = [_relax(fitting.item_type, item, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item, _ in items], [name for _, names in items for name in names]
    if fitting is not None or not isinstance(value, str | int | float):
        return value, unknown
    for option in options:
        if isinstance(option, inspect.ListType | inspect.VarTupleType):
            return _relax(option, [value], path)
        if isinstance(option, inspect.StrType):
            return msgspec.json.encode(value).decode(), unknown
        if isinstance(option, inspect.IntType | inspect.FloatType) and (number := _number(value)) is not None:
            return number, unknown
    return value, unknown


def _accepts(info: inspect.Type, value: JsonValue) -> bool:
    """Whether *info* accepts a value of this JSON type; members and items are not checked."""
    match info:
        case inspect.AnyType():
            return True
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.ListType() | inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.LiteralType():
            return value in info.values
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return type(value) is int
        case inspect.FloatType():
            return type(value) in (int, float)
        case _:
            return value is None


def _number(value: str | float) -> int | float | None:
    """Read a number from a text; turn 3.0 into 3."""
    try:
        number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    except OverflowError:
        return None
    if isinstance(number, str | bool):
        return None
    return int(number) if float(number).is_integer() else number


_NUMBER: Final = re.compile(r"\s*[-+]?[0-9]{1,15}(\.[0-9]{1,15})?\s*", re.ASCII)


def _relax_members(
    struct: inspect.StructType, value: dict[str, JsonValue], path: str
) -> tuple[dict[str, JsonValue], list[UnknownName]]:
    fields = {field.encode_name: field for field in struct.fields}
    members: dict[str, JsonValue] = {}
    unknown: list[UnknownName] = []
    for key, child in value.items():
        below = child_path(path, key)
        if key not in fields:
            unknown.append(UnknownName(below, unknown_name(key, "parameter", list(fields))))
        elif child is not None or fields[key].required or fields[key].default is msgspec.UNSET:
            members[key], names = _relax(fields[key].type, child, below)
            unknown += names
    return members, unknown


_PLACED: Final = re.compile(r"(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?\Z", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")


def _explain(message: str, path: str) -> str:
    placed = _PLACED.match(message)
    assert placed is not None
    place, reason = path + (placed["path"] or ""), placed["reason"]
    if missing := _MISSING.fullmatch(reason):
        return f"{place}.{missing['name']}: required, but missing"
    return f"{place}: {reason[:1].lower()}{reason[1:]}"


def unknown_name(name: str, what: str, known: list[str]) -> str:
    """A message that *name* is unknown, with the most similar known name, or all names."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"unknown {what}; did you mean {near[0]!r}?"
    return f"unknown {what}; known are {', '.join(known)}" if known else f"unknown {what}"
