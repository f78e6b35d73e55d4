"""The policy file: read exactly, refused with line and path."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reenact.errors import FormatError, UnknownVersion
from reenact.formats.decision import CallRefused, Decision
from reenact.formats.policy import CODEC, policy_from_json, read_policy
from reenact.formats.schemas import json_schema
from tests.formats import ROOT, examples, json_values, law

RULE = {"id": "r", "verdict": "allow", "tools": ["*"]}
SMALL = {"schema_version": 1, "rules": [RULE]}


def test_the_example_reads():
    """With everything it says."""
    file = ROOT / "examples" / "actions" / "policy.yaml"
    policy = read_policy(file.read_bytes(), file.name)
    assert [rule.id for rule in policy.rules] == [
        "look-around",
        "small-refunds",
        "large-refunds",
        "no-secrets",
    ]
    assert policy.budgets.output_tokens == 4000


def test_the_page_shows_policies_that_read():
    """Every example of the format's page."""
    pages = examples("policy.md", "policy")
    assert pages
    for text in pages:
        read_policy(text, "policy.md")


def with_rule(**fields):
    return {**SMALL, "rules": [{**RULE, **fields}]}


BAD = {
    "not an object": ([], "$: "),
    "no version": ({"rules": []}, "$.schema_version: schema_version is missing"),
    "version a text": (
        {**SMALL, "schema_version": "1"},
        "$.schema_version: schema_version must be an integer",
    ),
    "no rules": ({"schema_version": 1}, "$.rules: required, but missing"),
    "an unknown key": ({**SMALL, "budget": {}}, "$.budget: unknown key; did you mean 'budgets'?"),
    "an unknown key in a rule": (with_rule(tool="x"), "$.rules[0].tool: unknown key; did you mean 'tools'?"),
    "an unknown condition": (
        with_rule(arguments={"a": {"regex": "x"}}),
        "$.rules[0].arguments.a.regex: unknown key; known are equals, one_of, matches",
    ),
    "an unknown verdict": (with_rule(verdict="maybe"), "$.rules[0].verdict: "),
    "an unknown default": ({**SMALL, "default": "ask"}, "$.default: "),
    "a budget that allows": ({**SMALL, "budgets": {"beyond": "allow"}}, "$.budgets.beyond: "),
    "a negative budget": ({**SMALL, "budgets": {"tool_calls": -1}}, "$.budgets.tool_calls: "),
    "no tools": (with_rule(tools=[]), "$.rules[0].tools: "),
    "tools a text": (with_rule(tools="*"), "$.rules[0].tools: "),
    "an empty name": (with_rule(tools=[""]), "$.rules[0].tools[0]: "),
    "an empty condition": (
        with_rule(arguments={"a": {}}),
        "$.rules[0].arguments.a: the condition is empty; give",
    ),
    "a bad pattern": (
        with_rule(arguments={"a.b": {"matches": "("}}),
        '$.rules[0].arguments["a.b"].matches: not a pattern of RE2\'s syntax: missing ): (',
    ),
    "two rules of one id": ({**SMALL, "rules": [RULE, RULE]}, "$.rules[1].id: the id 'r' is used twice"),
    "null for absent": ({**SMALL, "models": None}, "$.models: "),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named_by_line_and_path(name):
    """People write these files."""
    value, expected = BAD[name]
    with pytest.raises(FormatError) as caught:
        read_policy(json.dumps(value, indent=1).encode(), "policy.yaml")
    assert caught.value.line is not None
    assert f": {expected}" in str(caught.value)


def test_the_line_is_that_of_the_mistake():
    """Counted from 1."""
    text = b"schema_version: 1\nrules:\n- id: a\n  verdict: allow\n  tools: ['*']\n  arguments:\n    x: {}\n"
    with pytest.raises(
        FormatError, match=r"\Apolicy\.yaml:7: \$\.rules\[0\]\.arguments\.x: the condition is empty"
    ):
        read_policy(text, "policy.yaml")


def test_a_newer_version_is_refused():
    """With the remedy."""
    with pytest.raises(UnknownVersion, match="install a newer reenact"):
        read_policy(b"schema_version: 2\nanything: 1\n", "policy.yaml")


@law
@given(json_values | st.fixed_dictionaries({"schema_version": st.just(1), "rules": json_values}))
def test_any_value_is_read_or_refused(value):
    """Nothing but a FormatError comes out; what is read is written as it was."""
    try:
        policy = policy_from_json(value)
    except FormatError:
        return
    assert CODEC.to_json(policy) == value


@pytest.mark.parametrize(
    "name",
    [name for name in BAD if name not in ("an empty condition", "a bad pattern", "two rules of one id")],
)
def test_the_json_schema_refuses_the_same(name):
    """But for what only the reader can see."""
    assert not Draft202012Validator(json_schema("policy")).is_valid(BAD[name][0])


def test_the_json_schema_takes_the_small_one():
    """A schema that refused everything would pass the test above."""
    assert Draft202012Validator(json_schema("policy")).is_valid(SMALL)


@pytest.mark.parametrize(("verdict", "words"), [("deny", "denied"), ("review", "not approved")])
def test_a_refusal_carries_its_decision(verdict, words):
    """And says it in one line."""
    error = CallRefused(Decision(verdict, "no-shell", "shell: any call"))
    assert str(error) == f"shell: any call: {words} by the policy's rule 'no-shell'"
    assert error.decision.rule == "no-shell"
