"""Policies as files, and what they decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.make.action import ACTION
from conformance.make.case import Case, Event, Found, changed

GOOD = """\
schema_version: 1
default: deny
models:
  allow: [anthropic/*]
budgets:
  tool_calls: 3
  beyond: review
rules:
  - id: look-around
    verdict: allow
    tools: [search_*]
    arguments:
      query: {matches: '^[a-z ]+$'}
"""
PATTERN = "'^[a-z ]+$'"
CONDITION = f"{{matches: {PATTERN}}}"
RULES = GOOD[GOOD.index("rules:") :]
RULE = "$.rules[0]"

FILES: tuple[tuple[str, str, str, str, Found | None], ...] = (
    ("good", "A policy.", "", "", None),
    ("good-no-rules", "Without rules the default decides.", RULES, "rules: []\n", None),
    ("rules-missing", "Rules are required.", RULES, "", Found("invalid", 1, "$.rules")),
    (
        "version-newer",
        "A newer version.",
        "schema_version: 1",
        "schema_version: 2",
        Found("invalid", 1, "$.schema_version"),
    ),
    (
        "key-unknown",
        "An unknown key is an error everywhere.",
        "verdict: allow",
        "verdict: allow\n    toolz: [x]",
        Found("invalid", 11, f"{RULE}.toolz"),
    ),
    ("null", "Nothing is ever null.", "default: deny", "default: null", Found("invalid", 2, "$.default")),
    (
        "verdict-unknown",
        "No such verdict.",
        "verdict: allow",
        "verdict: maybe",
        Found("invalid", 10, f"{RULE}.verdict"),
    ),
    (
        "budget-negative",
        "A budget is 0 or more.",
        "tool_calls: 3",
        "tool_calls: -1",
        Found("invalid", 6, "$.budgets.tool_calls"),
    ),
    (
        "beyond-allowed",
        "Beyond a budget nothing is allowed.",
        "beyond: review",
        "beyond: allow",
        Found("invalid", 7, "$.budgets.beyond"),
    ),
    ("tools-none", "A rule names tools.", "[search_*]", "[]", Found("invalid", 11, f"{RULE}.tools")),
    (
        "id-twice",
        "Ids differ.",
        RULES,
        f"{RULES}  - {{id: look-around, verdict: deny, tools: [x]}}\n",
        Found("invalid", 14, "$.rules[1].id"),
    ),
    (
        "condition-empty",
        "A condition has something that must hold.",
        CONDITION,
        "{}",
        Found("invalid", 13, f"{RULE}.arguments.query"),
    ),
    (
        "pattern-bad",
        "RE2 has no look-around.",
        PATTERN,
        "'(?=a)b'",
        Found("invalid", 13, f"{RULE}.arguments.query.matches"),
    ),
)


def policy_cases() -> Iterator[Case]:
    for name, about, before, after, found in FILES:
        yield _case(name, about, before, after, (found,) if found else ())
    twice = _case("key-twice", "A key appears twice.", "default: deny", "default: deny\ndefault: allow")
    yield twice._replace(exit=2)
    yield _case("alias", "Anchors are refused.", "default: deny", "default: &d deny")._replace(exit=2)


def _case(name: str, about: str, before: str, after: str, found: tuple[Found, ...] = ()) -> Case:
    text = GOOD.replace(before, after) if before else GOOD
    return Case(name, about, "policy.yaml", {"policy.yaml": text.encode()}, found)


def _rule(verdict: str, tools: str = "*", **more: Any) -> Event:
    return {"id": f"{verdict}-{tools}", "verdict": verdict, "tools": [tools], **more}


def _policy(*rules: Event, **more: Any) -> Event:
    return {"schema_version": 1, **more, "rules": list(rules)}


def _call(**arguments: Any) -> Event:
    return {"name": "refund", "arguments": arguments}


def _calling(*calls: Any, **output: Any) -> Event:
    return changed(ACTION, lambda action: action.update(output={"tool_calls": [*calls], **output}))


ALL = _rule("allow")
DECIDED: tuple[tuple[str, Event, Any, str, str], ...] = (
    ("2.1: the strictest wins", _policy(ALL, _rule("review"), _rule("deny")), _call(), "deny", "deny-*"),
    ("2.1: in any order", _policy(_rule("review"), ALL), _call(), "review", "review-*"),
    ("2.2: else the default, which is deny", _policy(_rule("allow", "search")), _call(), "deny", "default"),
    ("1.2: or what the policy says", _policy(default="review"), _call(), "review", "default"),
    ("1.4: a pattern covers the whole name", _policy(_rule("allow", "fund")), _call(), "deny", "default"),
    ("1.4: ? is one character", _policy(_rule("allow", "refun?")), _call(), "allow", "allow-refun?"),
    ("1.4: case counts", _policy(_rule("allow", "Refund")), _call(), "deny", "default"),
    ("2.3: no call, no objection", _policy(), ACTION, "allow", "no tool call"),
    (
        "2.3: one call of two is denied",
        _policy(_rule("allow", "a")),
        _calling({"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}),
        "deny",
        "default",
    ),
    (
        "2.3: the model is denied",
        _policy(ALL, models={"deny": ["anthropic/*"]}),
        _calling(_call()),
        "deny",
        "models.deny",
    ),
    ("2.3: no list names the model", _policy(models={"allow": ["openai/*"]}), ACTION, "deny", "default"),
    ("2.4: what is no action is denied", _policy(ALL), {"agent_id": "a"}, "deny", "action"),
    (
        "2.5: a call too many",
        _policy(ALL, budgets={"tool_calls": 1, "beyond": "review"}),
        _calling(_call(), _call()),
        "review",
        "budgets.tool_calls",
    ),
    (
        "2.5: tokens that are not reported count as more",
        _policy(ALL, budgets={"output_tokens": 10}),
        _calling(_call()),
        "deny",
        "budgets.output_tokens",
    ),
    (
        "2.5: within the budget",
        _policy(ALL, budgets={"output_tokens": 10}),
        _calling(_call(), usage={"output_tokens": 10}),
        "allow",
        "allow-*",
    ),
    ("2.6: a call that names no tool", _policy(ALL), _calling({"arguments": {}}), "deny", "tool call"),
    (
        "2.6: arguments as JSON text",
        _policy(_rule("allow", arguments={"amount": {"at_most": 50}})),
        _calling({"function": {"name": "refund", "arguments": '{"amount": 50}'}}),
        "allow",
        "allow-*",
    ),
    (
        "2.6: readers could take it for different calls",
        _policy(ALL),
        _calling({"name": "a", "function": {"name": "b", "arguments": {}}}),
        "deny",
        "tool call",
    ),
    (
        "3.1: all conditions must hold",
        _policy(_rule("allow", arguments={"a": {"equals": 1}, "b": {"equals": 2}})),
        _call(a=1, b=3),
        "deny",
        "default",
    ),
    (
        "3.1: members of members",
        _policy(_rule("allow", arguments={"to.city": {"one_of": ["Oslo", "Rome"]}})),
        _call(to={"city": "Rome"}),
        "allow",
        "allow-*",
    ),
    (
        "3.3: to allow, it must hold of every leaf",
        _policy(_rule("allow", arguments={"n": {"below": 5}})),
        _call(n=[1, 9]),
        "deny",
        "default",
    ),
    (
        "3.3: to deny, one leaf is enough",
        _policy(ALL, _rule("deny", arguments={"*": {"matches": "secret"}})),
        _call(a="x", b=["y", {"c": "a secret"}]),
        "deny",
        "deny-*",
    ),
    (
        "3.4: what cannot be tested counts against the call",
        _policy(ALL, _rule("review", arguments={"amount": {"above": 50}})),
        _call(amount="much"),
        "review",
        "review-*",
    ),
    (
        "3.4: an absent argument fulfils no condition",
        _policy(ALL, _rule("review", arguments={"amount": {"above": 50}})),
        _call(),
        "allow",
        "allow-*",
    ),
    (
        "3.5: a pattern is searched for",
        _policy(_rule("allow", arguments={"path": {"matches": "^/work/"}})),
        _call(path="/etc/work/"),
        "deny",
        "default",
    ),
)


def decisions() -> list[Event]:
    """What policies say of actions and of single tool calls."""
    return [
        {"about": about, "policy": policy, "value": value, "verdict": verdict, "rule": rule}
        for about, policy, value, verdict, rule in DECIDED
    ]
