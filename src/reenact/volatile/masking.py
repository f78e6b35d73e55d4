"""Masks the volatile parts of requests, so that two can be compared, and holds the default rules."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final, TypeAlias

from reenact.comparing.differences import Difference, differences
from reenact.formats.json_paths import PathPattern, Positions
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule, describe_call

MASKED: Final = "\ufdd0"
"""Replaces a masked part of a text; a Unicode noncharacter, which exchanged text does not contain."""
LEFT_OUT: Final = {"$volatile": True}
"""Replaces a volatile value that cannot be dropped: an item, or the whole. No recorded object has it."""


class _CompiledRule:
    """A rule with its path and pattern compiled."""

    def __init__(self, rule: VolatileRule) -> None:
        self.call = rule.call
        self.path = PathPattern.parse(rule.path)
        self.is_whole = rule.mask is ABSENT
        self._mask = rule.mask or ""

    @cached_property
    def mask(self) -> Pattern:
        return Pattern(self._mask)


_Masks: TypeAlias = tuple[Pattern, ...]


class _Place:
    """The state of matching the rules' paths at one place of a request; equal states are shared."""

    def __init__(self, walk: list[tuple[_CompiledRule, Positions]]) -> None:
        met = [rule for rule, reached in walk if rule.path.is_met(reached)]
        self.is_left_out = any(rule.is_whole for rule in met)
        self.is_indifferent = not walk
        self._walk = walk
        self._met = met
        self._names = {step for rule, _ in walk for step in rule.path.steps}
        self._onward: dict[object, _Place] = {}

    @cached_property
    def masks(self) -> _Masks:
        return tuple(rule.mask for rule in self._met if not rule.is_whole)

    def descend(self, key: str | int) -> _Place:
        """The state at the member or item *key*."""
        # Keys that no path names lead to the same state.
        alike = key if key in self._names else type(key)
        found = self._onward.get(alike)
        if found is None:
            found = self._onward[alike] = self._reach(key)
        return found

    def _reach(self, key: str | int) -> _Place:
        stepped = [(rule, rule.path.descend(reached, key)) for rule, reached in self._walk]
        return _Place([(rule, reached) for rule, reached in stepped if reached])


class Masking:
    """Applies rules; calls that no rule is about cost nothing."""

    def __init__(self, rules: Iterable[VolatileRule]) -> None:
        self._rules = [_CompiledRule(rule) for rule in rules]
        self._roots: dict[tuple[str, str], _Place] = {}

    def may_apply(self, event_type: str, name: str) -> bool:
        """Whether a rule is about calls of that type and name."""
        return not self._root(event_type, name).is_indifferent

    def mask(self, event_type: str, name: str, request: object) -> object:
        """Return *request*, of a call of that type and name, without its volatile parts."""
        root = self._root(event_type, name)
        return LEFT_OUT if root.is_left_out else _mask_value(request, root, ())

    def differences(self, event_type: str, name: str, one: object, other: object) -> tuple[Difference, ...]:
        """The differences between two requests of a call of that type and name, except volatile parts."""
        places = differences(one, other)
        if not places or not self.may_apply(event_type, name):
            return places
        masked = (self.mask(event_type, name, request) for request in (one, other))
        remaining = {place.path for place in differences(*masked)}
        return tuple(place for place in places if place.path in remaining)

    def _root(self, event_type: str, name: str) -> _Place:
        found = self._roots.get((event_type, name))
        if found is None:
            call = describe_call(event_type, name)
            about = (ABSENT, call, call.partition(" ")[0])
            rules = [rule for rule in self._rules if rule.call in about]
            found = self._roots[event_type, name] = _Place([(rule, rule.path.start) for rule in rules])
        return found


def _mask_value(value: object, place: _Place, masks: _Masks) -> object:
    masks += place.masks
    if place.is_indifferent and not masks:
        return value
    if isinstance(value, str):
        for mask in masks:
            value = mask.replace(value, MASKED)
        return value
    if isinstance(value, dict):
        members = ((key, child, place.descend(key)) for key, child in value.items())
        return {
            key: _mask_value(child, onward, masks) for key, child, onward in members if not onward.is_left_out
        }
    if isinstance(value, list):
        items = ((child, place.descend(index)) for index, child in enumerate(value))
        return [
            LEFT_OUT if onward.is_left_out else _mask_value(child, onward, masks) for child, onward in items
        ]
    return value


DEFAULTS: Final = (
    # Routes to a machine that may have the prompt's prefix cached; agents put the session's id here.
    VolatileRule(call="llm", path="$.body.prompt_cache_key"),
    # Identifies the user for abuse detection; agents put installation, account and session ids here.
    VolatileRule(call="llm", path="$.body.user"),
    VolatileRule(call="llm", path="$.body.safety_identifier"),
    VolatileRule(call="llm", path="$.body.metadata.user_id"),
    # The client's installation and version.
    VolatileRule(call="llm", path="$.body.client_metadata"),
    # Ids that a client such as Codex gives the items of a conversation that it stores itself. Ids from the
    # provider, by which it may look an item up, are not UUIDs.
    VolatileRule(
        call="llm",
        path="$.body.input[*].id",
        mask=r"^[a-z]+_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    ),
    # The duration of an earlier command and a random id of its output: Codex writes both above the output,
    # which is compared.
    VolatileRule(
        call="llm",
        path="$.body.input[*].output",
        mask=r"(?m)^(?:Wall time: [0-9.]+ seconds|Chunk ID: [0-9a-f]+)$",
    ),
    VolatileRule(call="llm", path="$.body.input[*].output", mask=r'"duration_seconds":[0-9.]+'),
)
"""Parts of a model request that, by the provider's documentation, do not reach the model.

They are bookkeeping, never part of the conversation: two requests that differ only there have the same
answer. Dates, working directories and identifiers in prompts are not listed, because a question may be about
them; ``reenact doctor`` finds those that are noise.
"""
