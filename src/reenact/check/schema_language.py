"""The language in which a capsule says what it takes and gives: seven kinds of schema, as values."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


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
    """How many items there must be."""


class ObjectSchema(_Schema, frozen=True, tag="object"):
    fields: tuple[Field, ...]
    """Their order is the order in which problems are reported."""
    extras: bool = False
    """Whether members that are no field are allowed."""


class Field(msgspec.Struct, frozen=True):
    name: str
    description: str
    schema: Schema
    required: bool = True
    """An optional field may be absent; null is a value, and mostly of the wrong type."""


Schema: TypeAlias = (
    AnySchema | StringSchema | NumberSchema | BooleanSchema | EnumSchema | ArraySchema | ObjectSchema
)
