"""The schemas of a capsule's input and output, and checking values against them.

`walk` finds every problem, in order, and is slow: fields in the order of the schema, depth first, then
unexpected members, sorted; the items of an array that is too small are checked too. Only plain JSON types are
accepted: a subclass or a tuple is of the wrong type. `compile_schema` makes a fast function that only returns
whether a value is valid, as `walk` would find (a property test compares them). `to_json_schema` converts a
schema to JSON Schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.check.findings import FindingSeverity

ProblemCode: TypeAlias = Literal[
    "invalid_type",
    "missing_field",
    "unexpected_field",
    "number_below_minimum",
    "number_above_maximum",
    "invalid_enum_value",
    "array_too_small",
    "empty_field",
    "empty_output",
]


class Problem(msgspec.Struct, frozen=True):
    code: str
    """One of :data:`ProblemCode`, or a code that a capsule defines."""
    path: str
    """``""`` for the value itself, else like ``a.b`` or ``a[0].b``; keys are not escaped."""
    message: str
    severity: FindingSeverity = "error"


def member_path(path: str, key: object) -> str:
    """The path of a member of the object at *path*."""
    return f"{path}.{key}" if path else f"{key}"


def item_path(path: str, index: int) -> str:
    """The path of an item of the array at *path*."""
    return f"{path}[{index}]"


class _Schema(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    description: str


class AnySchema(_Schema, frozen=True, tag="any"):
    """Takes every value, null included."""


class StringSchema(_Schema, frozen=True, tag="string"):
    """Takes every text, the empty one included."""


class NumberSchema(_Schema, frozen=True, tag="number"):
    """Takes integers and floats; the bounds are allowed themselves."""

    minimum: float | None = None
    maximum: float | None = None


class BooleanSchema(_Schema, frozen=True, tag="boolean"):
    """Takes true and false."""


class EnumSchema(_Schema, frozen=True, tag="enum"):
    """Takes one of some texts."""

    values: tuple[str, ...]


class ArraySchema(_Schema, frozen=True, tag="array"):
    items: Schema
    minimum: int = 0
    """The least number of items."""


class ObjectSchema(_Schema, frozen=True, tag="object"):
    fields: tuple[Field, ...]
    """Their order is the order in which problems are reported."""
    extras: bool = False
    """Whether other members than the fields are allowed."""


class Field(msgspec.Struct, frozen=True):
    name: str
    description: str
    schema: Schema
    required: bool = True
    """An optional field may be absent; null is a value and usually of the wrong type."""


Schema: TypeAlias = (
    AnySchema | StringSchema | NumberSchema | BooleanSchema | EnumSchema | ArraySchema | ObjectSchema
)


def walk(schema: Schema, value: Any, path: str = "", *, null_is_absent: bool = False) -> Iterator[Problem]:
    """The problems of *value* at *path*.

    With *null_is_absent* an optional field may also be null, as in the output of capsules.
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
            yield Problem("invalid_type", path, f"must be {_KINDS[type(schema)]}, not {type_name(value)}")


def is_number(value: JsonValue) -> bool:
    """Whether JSON could hold *value* as a number."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _members(
    schema: ObjectSchema, value: dict[Any, JsonValue], path: str, null_is_absent: bool
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


def _may_be_null(field: Field, value: dict[str, JsonValue]) -> bool:
    return not field.required and value[field.name] is None


def _items(schema: ArraySchema, value: list[object], path: str, null_is_absent: bool) -> Iterator[Problem]:
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


def type_name(value: JsonValue) -> str:
    """The name of the type of *value* in JSON, or else in Python."""
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


Accepts: TypeAlias = Callable[[Any], bool]


def compile_schema(schema: Schema, *, null_is_absent: bool = False) -> Accepts:
    """A function that returns whether `walk`, with the same *null_is_absent*, would find no problem."""
    match schema:
        case AnySchema():
            return lambda _: True
        case ObjectSchema():
            return _accept_object(schema, null_is_absent)
        case ArraySchema():
            return _accept_array(compile_schema(schema.items, null_is_absent=null_is_absent), schema.minimum)
        case NumberSchema():
            return _accept_number(schema.minimum, schema.maximum)
        case EnumSchema():
            values = frozenset(schema.values)
            return lambda value: type(value) is str and value in values
        case BooleanSchema():
            return lambda value: type(value) is bool
        case _:
            return _is_text


def _is_text(value: JsonValue) -> bool:
    return type(value) is str


def _accept_object(schema: ObjectSchema, null_is_absent: bool) -> Accepts:
    required = tuple(field.name for field in schema.fields if field.required)
    fields = {field.name: _accept_field(field, null_is_absent) for field in schema.fields}
    find, extras = fields.get, schema.extras

    def accepts_object(value: JsonValue) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for key, member in value.items():
            accepts = find(key)
            if accepts is _is_text:  # inlined, because most members are texts and calls are slow
                if type(member) is not str:
                    return False
            elif not extras if accepts is None else not accepts(member):
                return False
        return True

    return accepts_object


def _accept_field(field: Field, null_is_absent: bool) -> Accepts:
    accepts = compile_schema(field.schema, null_is_absent=null_is_absent)
    if field.required or not null_is_absent:
        return accepts
    return lambda value: value is None or accepts(value)


def _accept_array(accepts: Accepts, minimum: int) -> Accepts:
    def accepts_array(value: JsonValue) -> bool:
        if type(value) is not list or len(value) < minimum:
            return False
        for item in value:  # noqa: SIM110 - all() with a generator takes half as long again
            if not accepts(item):
                return False
        return True

    return accepts_array


def _accept_number(minimum: float | None, maximum: float | None) -> Accepts:
    low = -math.inf if minimum is None else minimum
    high = math.inf if maximum is None else maximum

    def accepts_number(value: Any) -> bool:
        kind = type(value)
        return (kind is int or (kind is float and math.isfinite(value))) and low <= value <= high

    return accepts_number


def to_json_schema(schema: Schema, *, null_is_absent: bool = False) -> dict[str, JsonValue]:
    """The JSON Schema that allows exactly the values in which `walk` finds no problem."""
    return {"description": schema.description, **_keywords(schema, null_is_absent)}


def _keywords(schema: Schema, null_is_absent: bool) -> dict[str, Any]:
    match schema:
        case StringSchema():
            return {"type": "string"}
        case BooleanSchema():
            return {"type": "boolean"}
        case EnumSchema():
            return {"type": "string", "enum": list(schema.values)}
        case NumberSchema():
            bounds = {"minimum": schema.minimum, "maximum": schema.maximum}
            return {"type": "number"} | {word: bound for word, bound in bounds.items() if bound is not None}
        case ArraySchema():
            items = {"type": "array", "items": to_json_schema(schema.items, null_is_absent=null_is_absent)}
            return items | ({"minItems": schema.minimum} if schema.minimum else {})
        case ObjectSchema():
            return _object_keywords(schema, null_is_absent)
        case _:
            return {}


def _object_keywords(schema: ObjectSchema, null_is_absent: bool) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": {field.name: _property(field, null_is_absent) for field in schema.fields},
        "required": [field.name for field in schema.fields if field.required],
        "additionalProperties": schema.extras,
    }


def _property(field: Field, null_is_absent: bool) -> dict[str, JsonValue]:
    keywords = _keywords(field.schema, null_is_absent)
    if null_is_absent and not field.required:
        keywords = {"anyOf": [keywords, {"type": "null"}]}
    return {"description": field.description, **keywords}
