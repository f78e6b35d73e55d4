"""Every problem of a value under a schema, in order; the exact and slow way.

Fields come in the order of the schema, depth first, then unexpected members, sorted. An array that is
too small still has its items checked. Plain JSON types only: a subclass or a tuple is of the wrong type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from reenact.check.problem import Problem, item_path, member_path
from reenact.check.schema_language import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
)


def walk(schema: Schema, value: Any, path: str = "", *, null_is_absent: bool = False) -> Iterator[Problem]:
    """The problems of *value*, which stands at *path*.

    With *null_is_absent* an optional field may be null as well: so it is in what capsules give.
    """
    match schema:
        case AnySchema():
            return
        case ObjectSchema() if type(value) is dict:
            yield from _members(schema, value, path, null_is_absent)
        case ArraySchema() if type(value) is list:
            yield from _items(schema, value, path, null_is_absent)
        case NumberSchema() if is_number(value):
            yield from _bounds(schema, value, path)
        case EnumSchema() if type(value) is str:
            if value not in schema.values:
                yield Problem("invalid_enum_value", path, f"must be one of {', '.join(schema.values)}")
        case StringSchema() if type(value) is str:
            return
        case BooleanSchema() if type(value) is bool:
            return
        case _:
            yield Problem("invalid_type", path, f"must be {_KINDS[type(schema)]}, not {kind_of(value)}")


def is_number(value: Any) -> bool:
    """Whether JSON could hold *value* as a number."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _members(
    schema: ObjectSchema, value: dict[Any, Any], path: str, null_is_absent: bool
) -> Iterator[Problem]:
    for field in schema.fields:
        where = member_path(path, field.name)
        if field.name not in value:
            if field.required:
                yield Problem("missing_field", where, "required, but missing")
        elif not (null_is_absent and _may_be_null(field, value)):
            yield from walk(field.schema, value[field.name], where, null_is_absent=null_is_absent)
    if not schema.extras:
        known = {field.name for field in schema.fields}
        for key in sorted((key for key in value if key not in known), key=str):
            yield Problem("unexpected_field", member_path(path, key), "no such field; remove it")


def _may_be_null(field: Field, value: dict[Any, Any]) -> bool:
    return not field.required and value[field.name] is None


def _items(schema: ArraySchema, value: list[Any], path: str, null_is_absent: bool) -> Iterator[Problem]:
    if len(value) < schema.minimum:
        message = f"must have at least {schema.minimum} item{'s'[: schema.minimum != 1]}, not {len(value)}"
        yield Problem("array_too_small", path, message)
    for index, item in enumerate(value):
        yield from walk(schema.items, item, item_path(path, index), null_is_absent=null_is_absent)


def _bounds(schema: NumberSchema, value: float, path: str) -> Iterator[Problem]:
    if schema.minimum is not None and value < schema.minimum:
        yield Problem("number_below_minimum", path, f"must be {schema.minimum:g} or more")
    if schema.maximum is not None and value > schema.maximum:
        yield Problem("number_above_maximum", path, f"must be {schema.maximum:g} or less")


_KINDS = {
    StringSchema: "a string",
    NumberSchema: "a number",
    BooleanSchema: "a boolean",
    EnumSchema: "a string",
    ArraySchema: "an array",
    ObjectSchema: "an object",
}


def kind_of(value: Any) -> str:
    """What JSON, or else Python, calls the type of *value*."""
    if value is None:
        return "null"
    if type(value) is float and not math.isfinite(value):
        return str(value)
    return _JSON_KINDS.get(type(value), f"a Python {type(value).__name__}")


_JSON_KINDS: dict[type, str] = {
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
}
