"""Rules made from differences: what would have to be volatile for two requests to be equal."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reenact.comparing.differences import Difference
from reenact.formats.json_paths import PathPattern, Wild
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.volatile.shapes import Masks, line_masks_for, masks_for


def suggested(call: str, places: Iterable[Difference]) -> tuple[VolatileRule, ...]:
    """The rules for *places* if all of them look volatile; none where one may well be a real difference."""
    rules: list[VolatileRule] = []
    for place in places:
        masks = _masks_of_texts(place)
        if masks is None or not masks.is_strong:
            return ()
        rules += _mask(call, place, masks)
    return _distinct(rules)


def covering(call: str, place: Difference) -> tuple[VolatileRule, ...]:
    """The rules for a place known to be volatile; none where no rule can cover it: an item more or less."""
    if _is_item(place) and msgspec.UNSET in (place.expected, place.observed):
        return ()
    masks = _masks_of_texts(place)
    if masks is None and isinstance(place.expected, str) and isinstance(place.observed, str):
        masks = line_masks_for(place.expected, place.observed)
    if masks is not None:
        return _distinct(_mask(call, place, masks))
    is_number = _is_number(place.expected) and _is_number(place.observed)
    return (VolatileRule(call=about(call), path=any_item(place.path) if is_number else place.path),)


def any_item(path: str) -> str:
    """*path* with ``[*]`` for every index: the same thing may stand elsewhere in another request."""
    steps = PathPattern.parse(path).steps
    return str(PathPattern([Wild.ANY if isinstance(step, int) else step for step in steps]))


def about(call: str) -> str:
    """What a rule for *call* names: not the address in a network call's name, which may differ as well."""
    return "network" if call.startswith("network ") else call


def _masks_of_texts(place: Difference) -> Masks | None:
    if not isinstance(place.expected, str) or not isinstance(place.observed, str):
        return None
    return masks_for(place.expected, place.observed)


def _mask(call: str, place: Difference, masks: Masks) -> list[VolatileRule]:
    patterns = masks.patterns or (ABSENT,)
    return [VolatileRule(call=about(call), path=any_item(place.path), mask=mask) for mask in patterns]


def _is_item(place: Difference) -> bool:
    steps = PathPattern.parse(place.path).steps
    return bool(steps) and isinstance(steps[-1], int)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _distinct(rules: list[VolatileRule]) -> tuple[VolatileRule, ...]:
    return tuple({str(rule): rule for rule in rules}.values())
