"""Deciding by a policy: the strictest verdict wins, and doubt counts against the action."""

import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.check.actions.policy import Policy
from tests.check.strategies import damaged, small_values
from tests.formats import GOLDEN, ROOT, json_values, law

FULL = json.loads((GOLDEN / "vectors" / "ai.agent.action-v0.json").read_bytes())["vectors"][1]["subject"]
EXAMPLE = Policy.load(ROOT / "examples" / "actions" / "policy.yaml")


def rule(verdict, *tools, arguments=None, rule_id=None, **fields):
    conditions = {} if arguments is None else {"arguments": arguments}
    return {"id": rule_id or verdict, "verdict": verdict, "tools": list(tools), **conditions, **fields}


def policy(*rules, **fields):
    return Policy.from_json({"schema_version": 1, "rules": list(rules), **fields})


def action(*calls, **output):
    made = copy.deepcopy(FULL)
    made["output"] = {"content": "ok", "tool_calls": list(calls), **output}
    return made


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


# Rules


def test_nothing_is_allowed_that_no_rule_names():
    """Unless the policy says otherwise."""
    assert policy().decide_call("x", {}).verdict == "deny"
    assert policy().decide_call("x", {}).rule == "default"
    assert policy(default="review").decide_call("x", {}).verdict == "review"
    assert policy(default="allow").decide_call("x", {}).verdict == "allow"


@pytest.mark.parametrize(
    "order", [("allow", "review", "deny"), ("deny", "review", "allow"), ("review", "allow", "deny")]
)
def test_the_strictest_rule_wins_in_any_order(order):
    """Deny over review over allow."""
    assert policy(*(rule(verdict, "*") for verdict in order)).decide_call("x", {}).verdict == "deny"
    mild = [rule(verdict, "*") for verdict in order if verdict != "deny"]
    assert policy(*mild).decide_call("x", {}).verdict == "review"


GLOBS = {
    "the name": (["search"], "search", True),
    "another name": (["search"], "searches", False),
    "other case": (["search"], "Search", False),
    "any ending": (["search_*"], "search_orders", True),
    "any name": (["*"], "x\ny", True),
    "one character": (["tool?"], "tool1", True),
    "the second of two": (["a", "b*"], "bc", True),
    "no regular expression": (["a.c"], "abc", False),
}


@pytest.mark.parametrize("name", GLOBS)
def test_tools_are_named_like_files_in_a_shell(name):
    """From the first character to the last."""
    globs, tool, expected = GLOBS[name]
    assert policy(rule("allow", *globs)).decide_call(tool, {}).is_allowed is expected


CONDITIONS = {
    "equal texts": ({"equals": "a"}, "a", True),
    "other texts": ({"equals": "a"}, "A", False),
    "equal numbers": ({"equals": 1}, 1.0, True),
    "true is not 1": ({"equals": 1}, True, False),
    "null": ({"equals": None}, None, True),
    "one of some": ({"one_of": ["a", 2]}, 2, True),
    "none of some": ({"one_of": ["a", 2]}, "2", False),
    "a pattern": ({"matches": "^/work/"}, "/work/a", True),
    "another pattern": ({"matches": "^/work/"}, "/etc/work/", False),
    "a pattern in a number": ({"matches": "^5$"}, 5, True),
    "a pattern in true": ({"matches": "true"}, True, True),
    "at least": ({"at_least": 5}, 5, True),
    "not at least": ({"at_least": 5}, 4.9, False),
    "at most": ({"at_most": 5}, 5, True),
    "not at most": ({"at_most": 5}, 6, False),
    "above": ({"above": 5}, 5.1, True),
    "not above": ({"above": 5}, 5, False),
    "below": ({"below": 5}, 4, True),
    "not below": ({"below": 5}, 5, False),
    "between": ({"above": 0, "at_most": 5}, 3, True),
    "not between": ({"above": 0, "at_most": 5}, 0, False),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_hold_or_not_alike_for_every_verdict(name):
    """Where they can be tested."""
    condition, value, expected = CONDITIONS[name]
    for verdict, default in (("allow", "deny"), ("deny", "allow"), ("review", "allow")):
        decision = policy(rule(verdict, "t", arguments={"a": condition}), default=default).decide_call(
            "t", {"a": value}
        )
        assert decision.verdict == (verdict if expected else default)


DOUBTFUL = {
    "a text where a number is compared": ({"a": {"above": 5}}, {"a": "9"}),
    "null where a number is compared": ({"a": {"above": 5}}, {"a": None}),
    "true where a number is compared": ({"a": {"above": 0}}, {"a": True}),
    "NaN": ({"a": {"above": 5}}, {"a": math.nan}),
    "a text too long for its pattern": ({"a": {"matches": "x" * 900}}, {"a": "y" * 1_000_000}),
    "a lone surrogate": ({"a": {"matches": "x"}}, {"a": "\ud800"}),
    "an integer of a thousand digits": ({"a": {"matches": "x"}}, {"a": 10**5000}),
    "a value that is no JSON": ({"a": {"equals": 1}}, {"a": object()}),
    "arguments that are a text": ({"a": {"equals": 1}}, "not json"),
    "arguments that are null": ({"a": {"equals": 1}}, None),
    "members of a text": ({"a.b": {"equals": 1}}, {"a": '{"b": 1}'}),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_cannot_be_tested_counts_against_the_call(name):
    """A rule that denies applies, a rule that allows does not."""
    conditions, arguments = DOUBTFUL[name]
    assert (
        policy(rule("deny", "t", arguments=conditions), default="allow").decide_call("t", arguments).verdict
        == "deny"
    )
    assert policy(rule("allow", "t", arguments=conditions)).decide_call("t", arguments).verdict == "deny"


def test_an_absent_argument_fulfils_no_condition():
    """Neither to allow nor to deny."""
    assert (
        policy(rule("deny", "t", arguments={"a": {"equals": 1}}), default="allow")
        .decide_call("t", {})
        .is_allowed
    )
    assert not policy(rule("allow", "t", arguments={"a": {"equals": 1}})).decide_call("t", {}).is_allowed
    assert (
        not policy(rule("allow", "t", arguments={"a": {"equals": 1}})).decide_call("t", {"a": []}).is_allowed
    )


def test_all_conditions_of_a_rule_must_hold():
    """On different arguments."""
    both = policy(rule("allow", "t", arguments={"a": {"equals": 1}, "b": {"equals": 2}}))
    assert both.decide_call("t", {"a": 1, "b": 2}).is_allowed
    assert not both.decide_call("t", {"a": 1, "b": 3}).is_allowed
    assert not both.decide_call("t", {"a": 1}).is_allowed


PLACES = {
    "a member": ("a", {"a": "x"}),
    "a member of a member": ("a.b", {"a": {"b": "x"}}),
    "a key with a dot": ("a.b", {"a.b": "x"}),
    "an item": ("a", {"a": ["x"]}),
    "members of items": ("a.b", {"a": [{"b": "x"}]}),
    "anything inside": ("a", {"a": {"b": [{"c": "x"}]}}),
    "anywhere": ("*", {"a": 1, "b": [{"c": "x"}]}),
}


@pytest.mark.parametrize("name", PLACES)
def test_arguments_are_found_by_name(name):
    """At any depth below it."""
    place, arguments = PLACES[name]
    strict = policy(rule("deny", "t", arguments={place: {"equals": "x"}}), default="allow")
    assert strict.decide_call("t", arguments).verdict == "deny"


def test_to_allow_every_item_must_pass_and_to_deny_one_is_enough():
    """One good path must not carry a bad one along."""
    paths = {"paths": ["/work/a", "/etc/passwd"]}
    inside = policy(rule("allow", "read", arguments={"paths": {"matches": "^/work/"}}))
    assert not inside.decide_call("read", paths).is_allowed
    assert inside.decide_call("read", {"paths": ["/work/a", "/work/b"]}).is_allowed
    outside = policy(rule("deny", "read", arguments={"paths": {"matches": "^/etc/"}}), default="allow")
    assert not outside.decide_call("read", paths).is_allowed


def test_two_arguments_that_a_name_could_mean_both_count():
    """A tool may read either."""
    inside = policy(rule("allow", "t", arguments={"a.b": {"equals": 1}}))
    assert not inside.decide_call("t", {"a.b": 1, "a": {"b": 2}}).is_allowed


def test_bounds_are_tested_on_one_leaf_together():
    """5 and 25 are not between 10 and 20 because each is on one side."""
    between = policy(rule("deny", "t", arguments={"a": {"at_least": 10, "at_most": 20}}), default="allow")
    assert between.decide_call("t", {"a": [5, 25]}).is_allowed
    assert not between.decide_call("t", {"a": [5, 15]}).is_allowed


def test_arguments_that_contain_themselves_are_doubtful():
    """Python can build them, JSON cannot."""
    endless = []
    endless.append(endless)
    strict = policy(rule("deny", "t", arguments={"*": {"equals": 1}}), default="allow")
    assert strict.decide_call("t", {"a": endless}).verdict == "deny"


def test_a_hostile_pattern_is_answered_in_time():
    """The test's own time limit would end it otherwise."""
    hostile = policy(rule("deny", "*", arguments={"*": {"matches": "(a+)+(a|aa)+$"}}), default="allow")
    assert hostile.decide_call("t", {"text": "a" * 200_000 + "!"}).is_allowed


def test_the_reason_names_tool_and_condition_but_no_argument():
    """Arguments may be secret; the policy's own words are not."""
    decision = policy(rule("deny", "*", arguments={"key": {"matches": "^sk-"}})).decide_call(
        "send", {"key": "sk-123"}
    )
    assert decision.reason == "send: key matches '^sk-'"
    explained = policy(rule("deny", "send", reason="nobody sends")).decide_call("send", {})
    assert explained.reason == "send: nobody sends"


# Tool calls as they are written

WRITTEN = {
    "arguments": {"name": "t", "arguments": {"a": 1}},
    "args": {"name": "t", "args": {"a": 1}},
    "input": {"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}},
    "a function": {"id": "1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}},
    "arguments as text": {"name": "t", "arguments": '{"a": 1}'},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_tool_calls_are_read_in_every_usual_shape(name):
    """Alone, and in an action."""
    rules = policy(rule("allow", "t", arguments={"a": {"equals": 1}}))
    assert rules.decide(WRITTEN[name]).is_allowed
    assert rules.decide(action(WRITTEN[name])).is_allowed


UNREADABLE = {
    "no name": {"arguments": {}},
    "a name that is no text": {"name": 5, "arguments": {}},
    "two names": {"name": "t", "function": {"name": "rm", "arguments": "{}"}},
    "two sets of arguments": {"name": "t", "arguments": {}, "input": {"a": 1}},
    "a function in a function": {"function": {"function": {"name": "t"}}},
    "a text": "t",
    "null": None,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_call_that_readers_could_see_differently_is_denied(name):
    """Whatever the rules say."""
    decision = policy(rule("allow", "*"), default="allow").decide(action(UNREADABLE[name]))
    assert (decision.verdict, decision.rule) == ("deny", "tool call")


def test_arguments_that_are_no_json_can_still_be_searched():
    """As a text."""
    strict = policy(rule("deny", "*", arguments={"*": {"matches": "rm -rf"}}), default="allow")
    assert strict.decide({"name": "sh", "arguments": "rm -rf /"}).verdict == "deny"
    assert strict.decide({"name": "sh", "arguments": "ls"}).verdict == "allow"


# Actions


def test_an_action_is_as_good_as_its_worst_call():
    """The rule that decided is named."""
    rules = policy(rule("allow", "a"), rule("review", "b"), rule("deny", "c"))
    assert rules.decide(action(call("a"), call("a"))).rule == "allow"
    assert rules.decide(action(call("a"), call("b"))).rule == "review"
    assert rules.decide(action(call("b"), call("c"), call("a"))).rule == "deny"


def test_an_action_without_calls_is_allowed():
    """There is nothing for the rules to judge."""
    assert policy().decide(action()).is_allowed


def test_a_value_that_is_no_action_is_denied():
    """Validation comes first."""
    decision = policy(rule("allow", "*"), default="allow").decide({**FULL, "extra": 1})
    assert (decision.verdict, decision.rule) == ("deny", "action")
    assert decision.reason == "not an acceptable action: extra: no such field; remove it (unexpected_field)"


def test_a_call_cannot_pass_as_an_action():
    """Whoever has a name is a call, whatever else it says of itself."""
    assert policy().decide({"name": "rm", **FULL}).rule == "default"


MODEL_LISTS = {
    "allowed": ({"allow": ["anthropic/*"]}, "allow", "models.allow"),
    "denied": ({"allow": ["anthropic/*"], "deny": ["*sonnet*"]}, "deny", "models.deny"),
    "for review": ({"allow": ["*"], "review": ["*/20250101"]}, "review", "models.review"),
    "named by no list": ({"allow": ["openai/*"]}, "deny", "default"),
    "not by its bare name": ({"allow": ["claude-3-5-sonnet"]}, "deny", "default"),
}


@pytest.mark.parametrize("name", MODEL_LISTS)
def test_models_are_judged_by_their_full_name(name):
    """provider/name/version, with the same wild cards."""
    models, verdict, deciding = MODEL_LISTS[name]
    decision = policy(models=models).decide(action())
    assert (decision.verdict, decision.rule) == (verdict, deciding)


USAGE = {"input_tokens": 100, "output_tokens": 10}
BUDGETS = {
    "within": ({"tool_calls": 1, "input_tokens": 100, "output_tokens": 10}, USAGE, None),
    "too many calls": ({"tool_calls": 0}, USAGE, "budgets.tool_calls"),
    "too many tokens in": ({"input_tokens": 99}, USAGE, "budgets.input_tokens"),
    "too many tokens out": ({"output_tokens": 9.0}, USAGE, "budgets.output_tokens"),
    "tokens not reported": ({"output_tokens": 9}, {}, "budgets.output_tokens"),
    "tokens as a float": ({"output_tokens": 9}, {"output_tokens": 9.5}, "budgets.output_tokens"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_bound_what_one_action_uses(name):
    """What is not reported counts as too much."""
    budgets, usage, deciding = BUDGETS[name]
    budgets = {key: int(limit) for key, limit in budgets.items()}
    for beyond in ("deny", "review"):
        limited = policy(rule("allow", "*"), budgets={**budgets, "beyond": beyond})
        decision = limited.decide(action(call("t"), usage=usage))
        assert decision.verdict == ("allow" if deciding is None else beyond)
        assert deciding is None or decision.rule == deciding
    assert policy(rule("allow", "*"), budgets=budgets).decide(action(call("t"), usage=usage)).is_allowed is (
        deciding is None
    )


def test_the_example_decides_as_its_comments_say():
    """Day by day."""
    lines = (ROOT / "examples" / "actions" / "day.jsonl").read_text().splitlines()
    decisions = [EXAMPLE.decide(json.loads(line)) for line in lines]
    assert [decision.rule for decision in decisions] == [
        "look-around",
        "small-refunds",
        "large-refunds",
        "default",
        "models.allow",
        "action",
        "default",
    ]
    assert EXAMPLE.decide_call("search_web", {"q": ["my api_key is"]}).rule == "no-secrets"


@law
@given(json_values | damaged([FULL, action(call("refund", amount=20))]))
def test_any_value_gets_a_decision(value):
    """Never an exception, and never an allowance for what validation rejects."""
    decision = EXAMPLE.decide(value)
    assert decision.verdict in ("allow", "review", "deny")
    assert decision.reason


verdicts = st.sampled_from(["allow", "review", "deny"])
conditions = st.sampled_from([{"equals": "a"}, {"above": 0}, {"matches": "^[ab]"}, {"one_of": [1, None]}])
rule_sets = st.lists(
    st.tuples(
        verdicts,
        st.sampled_from(["a", "b", "*"]),
        st.dictionaries(st.sampled_from(["a", "b.c", "*"]), conditions, max_size=2),
    ),
    max_size=4,
)


def numbered(rules):
    return [
        rule(verdict, tool, arguments=arguments, rule_id=str(index))
        for index, (verdict, tool, arguments) in enumerate(rules)
    ]


@law
@given(rule_sets, st.sampled_from(["a", "b"]), small_values, st.randoms())
def test_the_order_of_rules_never_matters(rules, tool, arguments, random):
    """Only the verdicts do."""
    made = numbered(rules)
    before = policy(*made).decide_call(tool, arguments).verdict
    random.shuffle(made)
    assert policy(*made).decide_call(tool, arguments).verdict == before


@law
@given(rule_sets, rule_sets, st.sampled_from(["a", "b"]), small_values)
def test_more_strict_rules_never_allow_more(rules, others, tool, arguments):
    """Adding deny and review rules cannot open anything."""
    strict = [entry for entry in others if entry[0] != "allow"]
    if policy(*numbered([*rules, *strict])).decide_call(tool, arguments).is_allowed:
        assert policy(*numbered(rules)).decide_call(tool, arguments).is_allowed
