"""The rules of a policy, compiled: globs over names, conditions over arguments.

A condition is about the *leaves* of an argument, the scalars in it at any depth. Testing a leaf answers
true, false, or ``None`` where it cannot be told. A rule that allows wants true of every leaf; a rule that
denies or asks for review applies as soon as one leaf is not false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.check.schema_walk import is_number
from reenact.formats.decision import Verdict
from reenact.formats.pattern import Pattern
from reenact.formats.policy import CONDITIONS, Condition, Rule
from reenact.formats.record import ABSENT

ALL_ARGUMENTS: Final = "*"

Answers: TypeAlias = list[bool | None]
Test: TypeAlias = Callable[[list[Any]], Answers]
"""From leaves to one answer each."""


class CompiledRule(NamedTuple):
    id: str
    verdict: Verdict
    reason: str | None
    names: Callable[[str], bool]
    conditions: tuple[CompiledCondition, ...]

    def applies(self, name: str, arguments: Any) -> str | None:
        """Why the rule applies to a call of the tool *name*; ``None`` when it does not."""
        is_strict = self.verdict != "allow"
        if not self.names(name):
            return None
        if not all(condition.applies(arguments, is_strict=is_strict) for condition in self.conditions):
            return None
        return " and ".join(condition.words for condition in self.conditions) or "any call"


def compile_rule(rule: Rule) -> CompiledRule:
    """*rule*, ready to be applied."""
    conditions = {} if rule.arguments is ABSENT else rule.arguments
    return CompiledRule(
        id=rule.id,
        verdict=rule.verdict,
        reason=None if rule.reason is ABSENT else rule.reason,
        names=compile_globs(rule.tools),
        conditions=tuple(_compile_condition(name, condition) for name, condition in conditions.items()),
    )


def compile_globs(globs: list[str]) -> Callable[[str], bool]:
    """Whether a name is like one of *globs*, in the spelling of shells."""
    if not globs:
        return lambda _: False
    matching = re.compile("|".join(map(translate, globs))).match
    return lambda name: matching(name) is not None


class CompiledCondition(NamedTuple):
    argument: str
    words: str
    """For the reason of a decision; the policy's words, never the argument's."""
    tests: tuple[Test, ...]

    def applies(self, arguments: Any, *, is_strict: bool) -> bool:
        """Whether it holds of every leaf, or, when *is_strict*, is not false of one."""
        try:
            leaves = list(
                _leaves(arguments) if self.argument == ALL_ARGUMENTS else _named(arguments, self.argument)
            )
        except RecursionError:
            leaves = [_UNREADABLE]
        answers = [_all_of(of_leaf) for of_leaf in zip(*(test(leaves) for test in self.tests), strict=True)]
        if is_strict:
            return any(answer is not False for answer in answers)
        return bool(answers) and all(answers)


def _all_of(answers: tuple[bool | None, ...]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def _compile_condition(argument: str, condition: Condition) -> CompiledCondition:
    given = {word: getattr(condition, word) for word in CONDITIONS if getattr(condition, word) is not ABSENT}
    words = " and ".join(f"{word.replace('_', ' ')} {wanted!r}" for word, wanted in given.items())
    tests = tuple(_TESTS[word](wanted) for word, wanted in given.items())
    return CompiledCondition(argument, f"{argument} {words}", tests)


def _one_of(wanted: list[Any]) -> Test:
    # True is 1 for Python, but not for JSON.
    choices = [(type(choice) is bool, choice) for choice in wanted]
    return lambda leaves: [
        None if _text(leaf) is None else (type(leaf) is bool, leaf) in choices for leaf in leaves
    ]


def _matches(wanted: str) -> Test:
    pattern = Pattern(wanted)

    def test(leaves: list[Any]) -> Answers:
        texts = [_text(leaf) for leaf in leaves]
        found = iter(pattern.search([text for text in texts if text is not None]))
        return [None if text is None else next(found) for text in texts]

    return test


def _compares(holds: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    return lambda wanted: lambda leaves: [holds(leaf, wanted) if is_number(leaf) else None for leaf in leaves]


_TESTS: Final[Mapping[str, Callable[[Any], Test]]] = {
    "equals": lambda wanted: _one_of([wanted]),
    "one_of": _one_of,
    "matches": _matches,
    "at_least": _compares(operator.ge),
    "at_most": _compares(operator.le),
    "above": _compares(operator.gt),
    "below": _compares(operator.lt),
}


def _text(leaf: Any) -> str | None:
    """What a pattern sees of a scalar; ``None`` for what is no JSON."""
    if type(leaf) is str:
        return leaf
    if leaf is None:
        return "null"
    if type(leaf) is bool:
        return "true" if leaf else "false"
    # Python refuses to print integers of thousands of digits.
    is_printable = is_number(leaf) and (type(leaf) is float or leaf.bit_length() <= 64)
    return repr(leaf) if is_printable else None


def _named(arguments: Any, name: str) -> Iterator[Any]:
    """The leaves of the argument *name*, as one key and as a dotted path; the items of arrays count."""
    if isinstance(arguments, list | tuple):
        for item in arguments:
            yield from _named(item, name)
    elif not isinstance(arguments, dict):
        yield _UNREADABLE
    else:
        if name in arguments:
            yield from _leaves(arguments[name])
        first, dot, rest = name.partition(".")
        if dot and first in arguments:
            yield from _named(arguments[first], rest)


_UNREADABLE: Final = object()
"""A leaf of which nothing can be told: something other than an object stands where members are named."""


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
