"""Matchers for one value: ``{contains: news}``, ``{min: 1, max: 10}``, or simply the value itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.suite.params import Params, read_params
from reenact.suite.patterns import Searcher
from reenact.suite.text import contains
from reenact.suite.values import same
from reenact.suite.verdict import quoted, shown

TypeName: TypeAlias = Literal["string", "number", "integer", "boolean", "array", "object", "null"]


class Matcher(Params, frozen=True, kw_only=True):
    """All conditions that are given must hold."""

    equals: Any = msgspec.UNSET
    one_of: list[Any] | None = None
    contains: Any = msgspec.UNSET
    """Part of a text, ignoring case, or an item of an array."""
    regex: str | None = None
    type: TypeName | None = None
    min: int | float | None = None
    max: int | float | None = None
    exists: bool | None = None


_TYPES: Final[dict[TypeName, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def matcher_problem(values: list[Any], given: Any, path: str, searcher: Searcher) -> str | None:
    """Why none of *values* satisfies the matcher *given* at *path*; ``None`` when one does."""
    matcher = read_params(Matcher, given if isinstance(given, dict) else {"equals": given}, path, strict=True)
    if matcher.exists is False:
        return f"should not be there, is {shown(values[0])}" if values else None
    if not values:
        return "is missing"
    found = [[*_unmet(value, matcher, searcher)] for value in values]
    if not all(found):
        return None
    return f"should {found[0][0]}, is {' and '.join(shown(value) for value in values)}"


def _unmet(value: Any, matcher: Matcher, searcher: Searcher) -> Iterator[str]:
    if matcher.equals is not msgspec.UNSET and not same(value, matcher.equals):
        yield f"be {shown(matcher.equals)}"
    if matcher.one_of is not None and not any(same(value, option) for option in matcher.one_of):
        yield f"be one of {shown(matcher.one_of)}"
    if matcher.contains is not msgspec.UNSET and not _has(value, matcher.contains):
        yield f"contain {shown(matcher.contains)}"
    if matcher.regex is not None and not (isinstance(value, str) and searcher.search(matcher.regex, value)):
        yield f"match {quoted(matcher.regex)}"
    if matcher.type is not None and not _is_of_type(value, matcher.type):
        yield f"be of type {matcher.type}"
    yield from _out_of_range(value, matcher)


def _out_of_range(value: Any, matcher: Matcher) -> Iterator[str]:
    is_number = _is_of_type(value, "number")
    if matcher.min is not None and not (is_number and value >= matcher.min):
        yield f"be {matcher.min} or more"
    if matcher.max is not None and not (is_number and value <= matcher.max):
        yield f"be {matcher.max} or less"


def _has(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and contains(value, part)
    return isinstance(value, list) and any(same(item, part) for item in value)


def _is_of_type(value: Any, name: TypeName) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])
