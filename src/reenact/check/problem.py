"""A problem of a validated value: what is wrong, by a fixed code, and where."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from reenact.check.findings import Severity

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
    """One of :data:`ProblemCode` for everything built in; a capsule may have codes of its own."""
    path: str
    """``""`` for the value itself, else like ``a.b`` or ``a[0].b``; keys stand as they are."""
    message: str
    severity: Severity = "error"


def member_path(path: str, key: object) -> str:
    """The path of a member of the object at *path*."""
    return f"{path}.{key}" if path else f"{key}"


def item_path(path: str, index: int) -> str:
    """The path of an item of the array at *path*."""
    return f"{path}[{index}]"
