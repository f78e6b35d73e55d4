"""HTTP headers as JSON: a list of objects with one member each.

So they keep their order, their case and their repetitions, and a member's name still decides whether its
value is secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Pairs: TypeAlias = list[tuple[str, str]]


def to_json(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{name: value} for name, value in pairs]


def from_json(headers: list[dict[str, str]]) -> Pairs:
    return [pair for header in headers for pair in header.items()]


def value_of(pairs: Iterable[tuple[str, str]], name: str) -> str:
    """The value of the header *name*, given in lower case; several are joined, none is empty."""
    return ", ".join([value for key, value in pairs if key.lower() == name])


def by_name(pairs: Pairs) -> dict[str, str]:
    """By name in lower case; values of equal names are joined."""
    headers = {name.lower(): value for name, value in pairs}
    if len(headers) < len(pairs):
        headers = {name: value_of(pairs, name) for name in headers}
    return headers


def decoded(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    # Latin-1 takes any byte and gives it back.
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]


def encoded(pairs: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
