"""The policy file: which tools, models and budgets an agent's actions may use.

People write these files, so an unknown key is a mistake here, not an extension. Deciding by a policy is
not part of the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from reenact.canonical import child_path
from reenact.errors import FormatError
from reenact.formats.decision import PolicyVerdict
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT, Absent, Codec, Record, upgrade

SCHEMA_VERSION: Final = 1

Scalar: TypeAlias = str | int | float | bool | None
Globs: TypeAlias = Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Condition(Record, frozen=True, kw_only=True):
    """Conditions on an argument, all of which must hold; at least one is required."""

    equals: Scalar | Absent = ABSENT
    one_of: Annotated[list[Scalar], msgspec.Meta(min_length=1)] | Absent = ABSENT
    matches: str | Absent = ABSENT
    """A pattern in RE2's syntax that must match somewhere in the text."""
    at_least: int | float | Absent = ABSENT
    at_most: int | float | Absent = ABSENT
    above: int | float | Absent = ABSENT
    below: int | float | Absent = ABSENT


class Rule(Record, frozen=True, kw_only=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    verdict: PolicyVerdict
    tools: Globs
    """Names of tools; ``*`` matches any characters, ``?`` one."""
    arguments: dict[str, Condition] | Absent = ABSENT
    """By name of the argument, dotted for nested members; ``*`` means all arguments."""
    reason: str | Absent = ABSENT
    """An explanation for the reader of a decision."""


class Models(Record, frozen=True, kw_only=True):
    """Models as ``provider/name`` or ``provider/name/version``, with ``*`` and ``?``."""

    allow: Globs | Absent = ABSENT
    review: Globs | Absent = ABSENT
    deny: Globs | Absent = ABSENT


class Budgets(Record, frozen=True, kw_only=True):
    """The limits of one action."""

    tool_calls: Limit | Absent = ABSENT
    input_tokens: Limit | Absent = ABSENT
    output_tokens: Limit | Absent = ABSENT
    beyond: Literal["review", "deny"] | Absent = ABSENT
    """The verdict on an action that exceeds a limit; deny if absent."""


class PolicyFile(Record, frozen=True, kw_only=True):
    """A policy file."""

    schema_version: Literal[1]
    rules: list[Rule]
    default: PolicyVerdict | Absent = ABSENT
    """The verdict on tool calls and models that no rule matches; deny if absent."""
    models: Models | Absent = ABSENT
    """If absent, all models are allowed."""
    budgets: Budgets | Absent = ABSENT


CODEC: Final = Codec[PolicyFile](PolicyFile)


def read_policy(data: bytes, file: str) -> PolicyFile:
    """The policy in YAML or JSON *data*; :class:`FormatError` with line and JSON path of what is wrong."""
    from reenact.formats.yaml_text import read_yaml  # PyYAML is slow to import

    document = read_yaml(data, file)
    try:
        return policy_from_json(document.value)
    except FormatError as error:
        line = document.place(error.json_path or "$").line
        raise error.at(file=file, line=line) from None


def policy_from_json(value: object) -> PolicyFile:
    """The policy in a decoded value."""
    if isinstance(value, dict):
        value = upgrade(value, field="schema_version", current=SCHEMA_VERSION, steps={}, what="policy")
    policy = CODEC.from_json(value)
    for error in (*_unknown_keys(policy, "$"), *_unusable_rules(policy.rules)):
        raise error
    return policy


def _unknown_keys(value: object, path: str) -> Iterator[FormatError]:
    if isinstance(value, Record):
        known = [name for name in value.__struct_fields__ if name != "extra"]
        for key in value.extra:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            yield FormatError(f"unknown key; {hint}", json_path=child_path(path, key))
        for name in known:
            yield from _unknown_keys(getattr(value, name), child_path(path, name))
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _unknown_keys(child, child_path(path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _unknown_keys(child, child_path(path, index))


def _unusable_rules(rules: list[Rule]) -> Iterator[FormatError]:
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        path = child_path("$.rules", index)
        if rule.id in seen:
            yield FormatError(f"the id {rule.id!r} is used twice; rename one", json_path=f"{path}.id")
        seen.add(rule.id)
        for name, condition in ({} if rule.arguments is ABSENT else rule.arguments).items():
            yield from _unusable_condition(condition, child_path(f"{path}.arguments", name))


def _unusable_condition(condition: Condition, path: str) -> Iterator[FormatError]:
    if condition == Condition():
        yield FormatError(f"the condition is empty; give one of {', '.join(CONDITIONS)}", json_path=path)
    if condition.matches is not ABSENT:
        try:
            Pattern(condition.matches)
        except FormatError as error:
            yield FormatError(error.reason, json_path=f"{path}.matches")


CONDITIONS: Final = tuple(name for name in Condition.__struct_fields__ if name != "extra")
