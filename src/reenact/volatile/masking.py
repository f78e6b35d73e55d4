"""Requests without what rules name as volatile, so that two of them can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, TypeAlias

from reenact.formats.differences import Difference, differences
from reenact.formats.json_paths import PathPattern, Positions
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule, called

MASKED: Final = "\ufdd0"
"""Stands for a masked part of a text; Unicode keeps it out of all text that is exchanged."""
LEFT_OUT: Final = {"$volatile": True}
"""Stands for a value where something must stand: an item, or the whole. No recorded object has such a key."""


class _Compiled:
    """A rule ready for use."""

    def __init__(self, rule: VolatileRule) -> None:
        self.rule = rule
        self.path = PathPattern.parse(rule.path)

    @cached_property
    def mask(self) -> Pattern | None:
        return None if self.rule.mask is ABSENT else Pattern(self.rule.mask)


_Walk: TypeAlias = list[tuple[_Compiled, Positions]]
_Masks: TypeAlias = tuple[Pattern, ...]


class Masking:
    """The rules in force; what none of them is about costs nothing."""

    def __init__(self, rules: Iterable[VolatileRule]) -> None:
        self._rules = [_Compiled(rule) for rule in rules]
        self._applying: dict[tuple[str, str], list[_Compiled]] = {}

    def may_apply(self, event_type: str, name: str) -> bool:
        """Whether a rule is about calls of that type and name."""
        return bool(self._for(event_type, name))

    def masked(self, event_type: str, name: str, request: Any) -> Any:
        """*request*, of a call of that type and name, without its volatile parts."""
        walk: _Walk = [(rule, rule.path.start) for rule in self._for(event_type, name)]
        return LEFT_OUT if _is_left_out(walk) else _masked(request, walk, ())

    def differences(self, event_type: str, name: str, one: Any, other: Any) -> tuple[Difference, ...]:
        """Where two requests of such calls differ, volatile parts aside."""
        places = differences(one, other)
        if not places or not self.may_apply(event_type, name):
            return places
        masked = (self.masked(event_type, name, request) for request in (one, other))
        remaining = {place.path for place in differences(*masked)}
        return tuple(place for place in places if place.path in remaining)

    def _for(self, event_type: str, name: str) -> list[_Compiled]:
        found = self._applying.get((event_type, name))
        if found is None:
            call = called(event_type, name)
            about = (ABSENT, call, call.partition(" ")[0])
            found = [compiled for compiled in self._rules if compiled.rule.call in about]
            self._applying[event_type, name] = found
        return found


def _masked(value: Any, walk: _Walk, masks: _Masks) -> Any:
    masks += tuple(rule.mask for rule, reached in walk if rule.mask and rule.path.is_met(reached))
    if not walk and not masks:
        return value
    if isinstance(value, str):
        for mask in masks:
            value = mask.replaced(value, MASKED)
        return value
    if isinstance(value, dict):
        members = ((key, child, _onward(walk, key)) for key, child in value.items())
        return {key: _masked(child, on, masks) for key, child, on in members if not _is_left_out(on)}
    if isinstance(value, list):
        items = ((child, _onward(walk, index)) for index, child in enumerate(value))
        return [LEFT_OUT if _is_left_out(on) else _masked(child, on, masks) for child, on in items]
    return value


def _onward(walk: _Walk, key: str | int) -> _Walk:
    stepped = ((rule, rule.path.after(reached, key)) for rule, reached in walk)
    return [(rule, reached) for rule, reached in stepped if reached]


def _is_left_out(walk: _Walk) -> bool:
    return any(rule.mask is None and rule.path.is_met(reached) for rule, reached in walk)
