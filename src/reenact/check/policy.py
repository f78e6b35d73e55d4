"""Deciding about actions and tool calls by a policy; what cannot be decided counts against them.

The strictest verdict wins: deny over review over allow, in whatever order the rules stand. A rule that
denies or asks for review also applies where its condition cannot be tested (a text where a number is
expected, a text too long for its pattern); a rule that allows does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from reenact.check.action import ACTION
from reenact.check.capsule import first_problem
from reenact.check.rules import compile_globs, compile_rule
from reenact.check.tool_call import call_of
from reenact.formats.decision import Decision, Verdict
from reenact.formats.policy import PolicyFile, policy_from_json, read_policy
from reenact.formats.record import ABSENT

_STRICTEST_FIRST: Final[tuple[Verdict, ...]] = ("deny", "review", "allow")


class Policy:
    """A policy ready to decide; a :class:`~reenact.formats.decision.CallGate`."""

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self._default: Verdict = "deny" if file.default is ABSENT else file.default
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
    def from_json(cls, value: Any) -> Policy:
        """The policy in a decoded value."""
        return cls(policy_from_json(value))

    def decide(self, value: Any) -> Decision:
        """About an action, or about a tool call, which has a ``name``; anything else is denied."""
        if type(value) is dict and ("name" in value or "function" in value):
            return self._decide_written(value, "the tool call")
        result = ACTION.execute(value)
        if not result.is_accepted:
            return Decision("deny", "action", f"not an acceptable action: {first_problem(result)}")
        return self.decide_accepted(value, result.data["model_full_name"])

    def decide_accepted(self, action: dict[str, Any], model: str) -> Decision:
        """About an action that was found acceptable, whose full model name is *model*."""
        decisions = [
            *self._decide_calls(action["output"].get("tool_calls", [])),
            *self._decide_budgets(action["output"]),
            *self._decide_model(model),
        ]
        return _strictest(decisions) or Decision("allow", "no tool call", "the action calls no tool")

    def decide_call(self, name: str, arguments: Any) -> Decision:
        """About one call of the tool *name*."""
        for rule in self._rules:
            if (why := rule.applies(name, arguments)) is not None:
                return Decision(rule.verdict, rule.id, f"{name}: {rule.reason or why}")
        return Decision(self._default, "default", f"{name}: no rule names this call")

    def _decide_calls(self, calls: list[Any]) -> Iterator[Decision]:
        for number, call in enumerate(calls, 1):
            yield self._decide_written(call, f"tool call {number}")

    def _decide_written(self, call: Any, what: str) -> Decision:
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


def _models(file: PolicyFile, verdict: Verdict) -> list[str]:
    globs = ABSENT if file.models is ABSENT else getattr(file.models, verdict)
    return [] if globs is ABSENT else globs


def _strictest(decisions: list[Decision]) -> Decision | None:
    return min(decisions, key=lambda decision: _STRICTEST_FIRST.index(decision.verdict), default=None)
