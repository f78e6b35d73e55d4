"""How much two requests have in common."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.comparing.differences import Difference, common_prefix_length


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
    before = common_prefix_length(one, other)
    behind = common_prefix_length(one[before:][::-1], other[before:][::-1])
    return 1 - (before + behind) / max(len(one), len(other))
