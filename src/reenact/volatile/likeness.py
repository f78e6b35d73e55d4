"""How much two requests have in common."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from reenact.formats.differences import Difference


def distance(places: Iterable[Difference]) -> float:
    """How far two requests are apart: the number of places, those of similar texts counting for less."""
    return sum(map(_apart, places))


def family(name: str) -> str:
    """What is fixed of a call's name: an HTTP call's holds its address, which is in its request as well."""
    return name.partition(" ")[0] if name.startswith("network/") and "://" in name else name


def _apart(place: Difference) -> float:
    one, other = place.expected, place.observed
    if not isinstance(one, str) or not isinstance(other, str):
        return 1.0
    length = min(len(one), len(other))
    before = _agreeing(length, lambda count: one[:count] == other[:count])
    behind = _agreeing(length - before, lambda count: one[len(one) - count :] == other[len(other) - count :])
    return 1 - (before + behind) / max(len(one), len(other))


def _agreeing(length: int, do: Callable[[int], bool]) -> int:
    """The largest number up to *length* that does; all below it do as well."""
    return bisect_left(range(1, length + 1), True, key=lambda count: not do(count))
