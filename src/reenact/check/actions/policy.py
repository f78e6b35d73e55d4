"""Decisions of a policy about actions and tool calls; in doubt the stricter one.

The strictest verdict wins: deny over review over allow, whatever the order of the rules. A rule that denies
or asks for review also applies if its condition cannot be tested (a text instead of a number, a text too long
for its pattern); a rule that allows does not.

A condition tests the *leaves* of an argument, the scalars in it at any depth. The answer for a leaf is true,
false, or ``None`` if it cannot be tested. A rule that allows needs true for every leaf; a rule that denies or
asks for review applies if any leaf is not false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.canonical import JsonValue, read_json
from reenact.check.actions.action import ACTION
from reenact.check.actions.capsule import first_problem
from reenact.check.actions.schema import is_number
from reenact.errors import FormatError
from reenact.formats.decision import Decision, PolicyVerdict
from reenact.formats.pattern import Pattern
from reenact.formats.policy import CONDITIONS, Condition, PolicyFile, Rule, policy_from_json, read_policy
from reenact.formats.record import ABSENT

_ARGUMENTS: Final = ("arguments", "args", "input")


class NamedCall(NamedTuple):
    name: str
    arguments: Any
    """Not always an object: text that is not JSON is unchanged."""


def call_of(call: JsonValue) -> NamedCall | None:
    """The tool and arguments of *call*; ``None`` if it names no tool, or is ambiguous.

    Accepted are ``{"name", "arguments"}``, the same with ``args`` or ``input``, and OpenAI's
    ``{"function": {"name", "arguments"}}`` with the arguments as JSON text.
    """
    if type(call) is not dict:
        return None
    if "function" in call:
        return call_of(call["function"]) if "name" not in call and _is_flat(call["function"]) else None
    name, given = call.get("name"), [key for key in _ARGUMENTS if key in call]
    if type(name) is not str or len(given) > 1:
        return None
    arguments = call[given[0]] if given else {}
    return NamedCall(name, _decode_arguments(arguments) if type(arguments) is str else arguments)


def _is_flat(function: JsonValue) -> bool:
    return type(function) is dict and "function" not in function


def _decode_arguments(text: str) -> JsonValue:
    try:
        return read_json(text.encode()) if text else {}
    except (FormatError, UnicodeEncodeError):
        return text


ALL_ARGUMENTS: Final = "*"

Answers: TypeAlias = list[bool | None]
Test: TypeAlias = Callable[[list[Any]], Answers]
"""Returns one answer for each leaf."""


class CompiledRule(NamedTuple):
    id: str
    verdict: PolicyVerdict
    reason: str | None
    names: Callable[[str], bool]
    conditions: tuple[CompiledCondition, ...]

    def applies(self, name: str, arguments: object) -> str | None:
        """The reason why the rule applies to a call of the tool *name*; ``None`` if it does not."""
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
    """A function that tests whether a name matches one of *globs*, which are shell patterns."""
    if not globs:
        return lambda _: False
    matching = re.compile("|".join(map(translate, globs))).match
    return lambda name: matching(name) is not None


class CompiledCondition(NamedTuple):
    argument: str
    words: str
    """The condition in words, for the reason of a decision; never a value of the argument."""
    tests: tuple[Test, ...]

    def applies(self, arguments: object, *, is_strict: bool) -> bool:
        """Whether it is true for every leaf, or, if *is_strict*, is not false for one."""
        try:
            leaves = list(
                _leaves(arguments)
                if self.argument == ALL_ARGUMENTS
                else _find_argument(arguments, self.argument)
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


def _one_of(wanted: list[JsonValue]) -> Test:
    # True equals 1 in Python, but not in JSON.
    choices = [(type(choice) is bool, choice) for choice in wanted]
    return lambda leaves: [
        None if _text(leaf) is None else (type(leaf) is bool, leaf) in choices for leaf in leaves
    ]


def _matches(wanted: str) -> Test:
    pattern = Pattern(wanted)

    def test(leaves: list[JsonValue]) -> Answers:
        texts = [_text(leaf) for leaf in leaves]
        found = iter(pattern.search([text for text in texts if text is not None]))
        return [None if text is None else next(found) for text in texts]

    return test


def _compares(holds: Callable[[Any, Any], bool]) -> Callable[[object], Test]:
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
    """The text of a scalar that patterns are matched against; ``None`` if it is not a JSON value."""
    if type(leaf) is str:
        return leaf
    if leaf is None:
        return "null"
    if type(leaf) is bool:
        return "true" if leaf else "false"
    # Python refuses to print integers of thousands of digits.
    is_printable = is_number(leaf) and (type(leaf) is float or leaf.bit_length() <= 64)
    return repr(leaf) if is_printable else None


def _find_argument(arguments: object, name: str) -> Iterator[object]:
    """The leaves of the argument *name*, read as one key and as a dotted path, through arrays."""
    if isinstance(arguments, list | tuple):
        for item in arguments:
            yield from _find_argument(item, name)
    elif not isinstance(arguments, dict):
        yield _UNREADABLE
    else:
        if name in arguments:
            yield from _leaves(arguments[name])
        first, dot, rest = name.partition(".")
        if dot and first in arguments:
            yield from _find_argument(arguments[first], rest)


_UNREADABLE: Final = object()
"""A leaf that cannot be tested, because the path leads through a value that is not an object."""


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


_STRICTEST_FIRST: Final[tuple[PolicyVerdict, ...]] = ("deny", "review", "allow")


class Policy:
    """A compiled policy; a :class:`~reenact.formats.decision.CallGate`."""

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self._default: PolicyVerdict = "deny" if file.default is ABSENT else file.default
        self._rules = [compile_rule(rule) for rule in file.rules]
        self._rules.sort(key=lambda rule: _STRICTEST_FIRST.index(rule.verdict))
        self._models = {verdict: compile_globs(_models(file, verdict)) for verdict in _STRICTEST_FIRST}

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a YAML or JSON file; :class:`FormatError` with the line of what is wrong."""
        return cls.from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> Policy:
        """The policy in *data*, which *file* names in errors."""
        return cls(read_policy(data, file))

    @classmethod
    def from_json(cls, value: object) -> Policy:
        """The policy in a decoded value."""
        return cls(policy_from_json(value))

    def decide(self, value: Any) -> Decision:
        """Decide about an action, or about a tool call, which has a ``name``; anything else is denied."""
        if type(value) is dict and ("name" in value or "function" in value):
            return self._decide_written(value, "the tool call")
        result = ACTION.execute(value)
        if not result.is_accepted:
            return Decision("deny", "action", f"not an acceptable action: {first_problem(result)}")
        return self.decide_accepted(value, result.data["model_full_name"])

    def decide_accepted(self, action: dict[str, Any], model: str) -> Decision:
        """Decide about an action that the capsule accepted, with the full name *model*."""
        decisions = [
            *self._decide_calls(action["output"].get("tool_calls", [])),
            *self._decide_budgets(action["output"]),
            *self._decide_model(model),
        ]
        return _find_strictest(decisions) or Decision("allow", "no tool call", "the action calls no tool")

    def decide_call(self, name: str, arguments: object) -> Decision:
        """Decide about one call of the tool *name*."""
        for rule in self._rules:
            if (why := rule.applies(name, arguments)) is not None:
                return Decision(rule.verdict, rule.id, f"{name}: {rule.reason or why}")
        return Decision(self._default, "default", f"{name}: no rule names this call")

    def _decide_calls(self, calls: list[JsonValue]) -> Iterator[Decision]:
        for number, call in enumerate(calls, 1):
            yield self._decide_written(call, f"tool call {number}")

    def _decide_written(self, call: JsonValue, what: str) -> Decision:
        readable = call_of(call)
        if readable is None:
            return Decision("deny", "tool call", f"{what} names no tool, or several")
        return self.decide_call(*readable)

    def _decide_model(self, model: str) -> Iterator[Decision]:
        if self.file.models is ABSENT:
            return
        for verdict in _STRICTEST_FIRST:
            if self._models[verdict](model):
                yield Decision(verdict, f"models.{verdict}", f"model {model}")
                return
        yield Decision(self._default, "default", f"model {model}: no list names it")

    def _decide_budgets(self, output: dict[str, Any]) -> Iterator[Decision]:
        budgets = self.file.budgets
        if budgets is ABSENT:
            return
        verdict = "deny" if budgets.beyond is ABSENT else budgets.beyond
        usage = output.get("usage", {})
        used = {
            "tool_calls": len(output.get("tool_calls", [])),
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
        }
        for name, amount in used.items():
            limit = getattr(budgets, name)
            if limit is not ABSENT and (amount is None or amount > limit):
                spent = "not reported, against" if amount is None else "beyond"
                yield Decision(verdict, f"budgets.{name}", f"{name} {spent} the budget of {limit:,}")


def _models(file: PolicyFile, verdict: PolicyVerdict) -> list[str]:
    globs = ABSENT if file.models is ABSENT else getattr(file.models, verdict)
    return [] if globs is ABSENT else globs


def _find_strictest(decisions: list[Decision]) -> Decision | None:
    return min(decisions, key=lambda decision: _STRICTEST_FIRST.index(decision.verdict), default=None)
