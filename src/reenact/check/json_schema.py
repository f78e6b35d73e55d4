"""A capsule's schema as JSON Schema (2020-12), for the tools of others."""

from __future__ import annotations

from typing import Any

from reenact.check.schema_language import (
    ArraySchema,
    BooleanSchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
)


def to_json_schema(schema: Schema, *, null_is_absent: bool = False) -> dict[str, Any]:
    """The JSON Schema that allows exactly the values in which the walk finds no problem."""
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
            return _object(schema, null_is_absent)
        case _:
            return {}


def _object(schema: ObjectSchema, null_is_absent: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _property(field, null_is_absent) for field in schema.fields},
        "required": [field.name for field in schema.fields if field.required],
        "additionalProperties": schema.extras,
    }


def _property(field: Field, null_is_absent: bool) -> dict[str, Any]:
    keywords = _keywords(field.schema, null_is_absent)
    if null_is_absent and not field.required:
        keywords = {"anyOf": [keywords, {"type": "null"}]}
    return {"description": field.description, **keywords}
