"""Looking into JSON values and comparing them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

_STEP: Final = re.compile(r"\[(?P<index>\d+|\*)\]|\.?(?P<key>[^.\[\]]+)")


def values_at(value: Any, path: str) -> list[Any]:
    """The values at a path such as ``filters.tags[0]`` or ``$.items[*].id``; none where nothing is.

    A key that has the whole path for its name goes first.
    """
    if isinstance(value, dict) and path in value:
        return [value[path]]
    found = [value]
    for step in _STEP.finditer(path.removeprefix("$")):
        found = [child for parent in found for child in _children(parent, step["index"], step["key"])]
    return found


def has_key(value: Any, key: str) -> bool:
    """Whether an object has the member *key*; a key that begins with ``$`` is a path to something."""
    if key.startswith("$") and not (isinstance(value, dict) and key in value):
        return any(found is not False for found in values_at(value, key))
    return isinstance(value, dict) and key in value


def _children(parent: Any, index: str | None, key: str | None) -> Iterator[Any]:
    if key == "*" or index == "*":
        yield from parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ()
    elif isinstance(parent, dict) and key in parent:
        yield parent[key]
    elif isinstance(parent, list):
        place = index if index is not None else key
        if place is not None and place.isdecimal() and int(place) < len(parent):
            yield parent[int(place)]


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(child, b[key]) for key, child in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
    return bool(a == b)


def includes(value: Any, part: Any) -> bool:
    """Whether *part* is in *value*: objects may have more members; all else must be equal."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and includes(value[key], child) for key, child in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return len(value) == len(part) and all(
            includes(one, other) for one, other in zip(value, part, strict=True)
        )
    return same(value, part)
