"""HTTP headers as a JSON object: a name that came several times has a list of its values.

Names keep their case and order. As an object, names decide what is secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Pairs: TypeAlias = list[tuple[str, str]]


def to_json(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in pairs:
        before = headers.get(name)
        if before is None:
            headers[name] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            headers[name] = [before, value]
    return headers


def from_json(headers: dict[str, Any]) -> Pairs:
    return [
        (name, each)
        for name, value in headers.items()
        for each in (value if isinstance(value, list) else [value])
    ]


def value_of(pairs: Iterable[tuple[str, str]], name: str) -> str:
    """The value of the header *name*, given in lower case; values of several are joined, no header is empty."""
    return ", ".join(value for key, value in pairs if key.lower() == name)


def decoded(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    # Latin-1 takes any byte and gives it back.
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
