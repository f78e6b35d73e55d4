"""Whether a value has no problem under a schema, as a compiled function; the fast way.

It says yes or no and nothing else, looks only at members that are there, and agrees with the walk
(a property of the tests).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from reenact.check.schema_language import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    Schema,
)

Accepts: TypeAlias = Callable[[Any], bool]


def compile_schema(schema: Schema, *, null_is_absent: bool = False) -> Accepts:
    """The function that tells whether the walk, with the same *null_is_absent*, would find nothing."""
    match schema:
        case AnySchema():
            return lambda _: True
        case ObjectSchema():
            return _object(schema, null_is_absent)
        case ArraySchema():
            return _array(compile_schema(schema.items, null_is_absent=null_is_absent), schema.minimum)
        case NumberSchema():
            return _number(schema.minimum, schema.maximum)
        case EnumSchema():
            values = frozenset(schema.values)
            return lambda value: type(value) is str and value in values
        case BooleanSchema():
            return lambda value: type(value) is bool
        case _:
            return _is_text


def _is_text(value: Any) -> bool:
    return type(value) is str


def _object(schema: ObjectSchema, null_is_absent: bool) -> Accepts:
    required = tuple(field.name for field in schema.fields if field.required)
    fields = {field.name: _field(field, null_is_absent) for field in schema.fields}
    find, extras = fields.get, schema.extras

    def accepts_object(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for key, member in value.items():
            accepts = find(key)
            if accepts is _is_text:  # tested right here: most members are texts, and calls are dear
                if type(member) is not str:
                    return False
            elif not extras if accepts is None else not accepts(member):
                return False
        return True

    return accepts_object


def _field(field: Field, null_is_absent: bool) -> Accepts:
    accepts = compile_schema(field.schema, null_is_absent=null_is_absent)
    if field.required or not null_is_absent:
        return accepts
    return lambda value: value is None or accepts(value)


def _array(accepts: Accepts, minimum: int) -> Accepts:
    def accepts_array(value: Any) -> bool:
        if type(value) is not list or len(value) < minimum:
            return False
        for item in value:  # noqa: SIM110 - all() with a generator takes half as long again
            if not accepts(item):
                return False
        return True

    return accepts_array


def _number(minimum: float | None, maximum: float | None) -> Accepts:
    low = -math.inf if minimum is None else minimum
    high = math.inf if maximum is None else maximum

    def accepts_number(value: Any) -> bool:
        kind = type(value)
        return (kind is int or (kind is float and math.isfinite(value))) and low <= value <= high

    return accepts_number
