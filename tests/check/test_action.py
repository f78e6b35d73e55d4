"""The capsule ``agent.action.replay.v1``: field for field, rule for rule."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.check.actions.action import ACTION
from reenact.check.actions.schema import ProblemCode, walk
from reenact.errors import FormatError
from reenact.formats.action import action_from_json
from reenact.formats.record import ABSENT
from tests.check.strategies import damaged
from tests.formats import GOLDEN, json_values, law

SUBJECTS = [
    vector["subject"]
    for vector in json.loads((GOLDEN / "vectors" / "ai.agent.action-v0.json").read_bytes())["vectors"]
]
MINIMAL, FULL = SUBJECTS


def changed(path, value=ABSENT, original=FULL):
    """The full action with the member at *path* replaced, or removed."""
    action = copy.deepcopy(original)
    *parents, last = path.split(".")
    place = action
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return action


def found(value):
    return [(problem.code, problem.path) for problem in ACTION.execute(value).problems]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_published_subjects_are_accepted(subject):
    """Without a problem."""
    result = ACTION.execute(subject)
    assert (result.status, result.problems) == ("accepted", ())


def test_the_data_of_an_accepted_action():
    """All of it."""
    assert ACTION.execute(FULL).data == {
        "agent_id": "support-triage-agent",
        "action_id": "act-2026-05-19-001",
        "occurred_at_unix_ms": "1747700000000",
        "model_full_name": "anthropic/claude-3-5-sonnet/20250101",
        "summary": {
            "message_count": 2,
            "tool_calls_emitted": 1,
            "had_content": True,
            "had_tool_calls": True,
            "finish_reason": "tool_use",
        },
    }


def test_data_has_all_keys_even_of_nothing():
    """Null where something is missing, 0 and false where nothing was counted."""
    assert ACTION.execute(None).data == {
        "agent_id": None,
        "action_id": None,
        "occurred_at_unix_ms": None,
        "model_full_name": None,
        "summary": {
            "message_count": 0,
            "tool_calls_emitted": 0,
            "had_content": False,
            "had_tool_calls": False,
            "finish_reason": None,
        },
    }


REQUIRED = ("agent_id", "action_id", "occurred_at_unix_ms", "model", "input", "output")
NO_OUTPUT = ("empty_output", "output")

ONE_PROBLEM = {
    **{f"no {key}": (changed(key), [("missing_field", key)]) for key in REQUIRED if key != "output"},
    **{
        f"{key} empty": (changed(key, ""), [("empty_field", key)])
        for key in ("agent_id", "action_id", "occurred_at_unix_ms")
    },
    **{
        f"{key} null": (changed(key, None), [("invalid_type", key)])
        for key in (
            "agent_id",
            "action_id",
            "occurred_at_unix_ms",
            "model",
            "model.provider",
            "model.name",
            "model.version",
            "params",
            "params.temperature",
            "params.top_p",
            "params.max_tokens",
            "params.seed",
            "params.stop",
            "input",
            "input.messages",
            "input.tools",
            "output.content",
            "output.tool_calls",
            "output.finish_reason",
            "output.usage",
            "output.usage.input_tokens",
            "output.usage.output_tokens",
        )
    },
    "no output": (changed("output"), [("missing_field", "output"), NO_OUTPUT]),
    "output null": (changed("output", None), [("invalid_type", "output"), NO_OUTPUT]),
    "output empty": (changed("output", {}), [NO_OUTPUT]),
    "content empty, no calls": (changed("output", {"content": ""}), [NO_OUTPUT]),
    "content and calls empty": (changed("output", {"content": "", "tool_calls": []}), [NO_OUTPUT]),
    "content a number": (changed("output", {"content": 1}), [("invalid_type", "output.content"), NO_OUTPUT]),
    "time a number": (changed("occurred_at_unix_ms", 0), [("invalid_type", "occurred_at_unix_ms")]),
    "no provider": (changed("model.provider"), [("missing_field", "model.provider")]),
    "no name": (changed("model.name"), [("missing_field", "model.name")]),
    "no messages": (changed("input.messages"), [("missing_field", "input.messages")]),
    "messages empty": (changed("input.messages", []), [("array_too_small", "input.messages")]),
    "no role": (changed("input.messages.1.role"), [("missing_field", "input.messages[1].role")]),
    "no content": (changed("input.messages.0.content"), [("missing_field", "input.messages[0].content")]),
    "message content a list": (
        changed("input.messages.0.content", []),
        [("invalid_type", "input.messages[0].content")],
    ),
    "temperature below": (
        changed("params.temperature", -1),
        [("number_below_minimum", "params.temperature")],
    ),
    "temperature above": (
        changed("params.temperature", 2.1),
        [("number_above_maximum", "params.temperature")],
    ),
    "top_p below": (changed("params.top_p", -0.1), [("number_below_minimum", "params.top_p")]),
    "top_p above": (changed("params.top_p", 1.1), [("number_above_maximum", "params.top_p")]),
    "max_tokens below": (changed("params.max_tokens", -1), [("number_below_minimum", "params.max_tokens")]),
    "a stop that is no text": (changed("params.stop", ["a", 1]), [("invalid_type", "params.stop[1]")]),
    "tokens below": (
        changed("output.usage.output_tokens", -1),
        [("number_below_minimum", "output.usage.output_tokens")],
    ),
    "an extra at the root": (changed("extra", 1), [("unexpected_field", "extra")]),
    "an extra in the model": (changed("model.extra", 1), [("unexpected_field", "model.extra")]),
    "not an object": ([], [("invalid_type", ""), NO_OUTPUT]),
    "null": (None, [("invalid_type", ""), NO_OUTPUT]),
}


@pytest.mark.parametrize("name", ONE_PROBLEM)
def test_each_mistake_has_its_code_and_place(name):
    """And rejects the action."""
    value, expected = ONE_PROBLEM[name]
    assert found(value) == expected
    assert ACTION.execute(value).status == "rejected"


GOOD = {
    "temperature 0": changed("params.temperature", 0),
    "temperature 2": changed("params.temperature", 2),
    "top_p 1": changed("params.top_p", 1.0),
    "max_tokens 0": changed("params.max_tokens", 0),
    "a negative seed": changed("params.seed", -5),
    "no stops": changed("params.stop", []),
    "params empty": changed("params", {}),
    "an extra in params": changed("params.extra", 1),
    "an extra in input": changed("input.extra", 1),
    "an extra in a message": changed("input.messages.0.extra", 1),
    "an extra in output": changed("output.extra", 1),
    "an extra in usage": changed("output.usage.extra", 1),
    "context null": changed("context", None),
    "context a number": changed("context", 5),
    "tools of anything": changed("input.tools", [None, 1, "x"]),
    "calls of anything": changed("output.tool_calls", [None]),
    "a time that is not a number": changed("occurred_at_unix_ms", "yesterday"),
    "an empty message": changed("input.messages.0.content", ""),
    "content without calls": changed("output", {"content": "ok"}),
    "calls without content": changed("output", {"content": "", "tool_calls": [1]}),
    "no version": changed("model.version"),
    "an empty provider": changed("model.provider", ""),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_allowed_is_accepted(name):
    """The other side of every rule."""
    assert found(GOOD[name]) == []


def test_several_problems_come_in_order():
    """Schema order, depth first; then the unexpected, sorted; then the capsule's own."""
    value = {
        "zebra": 1,
        "alpha": 1,
        "output": {"usage": {"input_tokens": -1}},
        "input": {"messages": []},
        "params": {"top_p": 2, "temperature": 3},
        "model": {"version": None, "z": 1, "y": 1},
        "agent_id": "",
    }
    assert found(value) == [
        ("missing_field", "action_id"),
        ("missing_field", "occurred_at_unix_ms"),
        ("missing_field", "model.provider"),
        ("missing_field", "model.name"),
        ("invalid_type", "model.version"),
        ("unexpected_field", "model.y"),
        ("unexpected_field", "model.z"),
        ("number_above_maximum", "params.temperature"),
        ("number_above_maximum", "params.top_p"),
        ("array_too_small", "input.messages"),
        ("number_below_minimum", "output.usage.input_tokens"),
        ("unexpected_field", "alpha"),
        ("unexpected_field", "zebra"),
        ("empty_field", "agent_id"),
        ("empty_output", "output"),
    ]


MODELS = {
    "two names": ({"provider": "p", "name": "m"}, "p/m"),
    "three names": ({"provider": "p", "name": "m", "version": "1"}, "p/m/1"),
    "a version of the wrong type": ({"provider": "p", "name": "m", "version": 1}, "p/m"),
    "an extra": ({"provider": "p", "name": "m", "x": 1}, "p/m"),
    "no provider": ({"name": "m"}, None),
    "no name": ({"provider": "p"}, None),
    "not an object": ("p/m", None),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_in_one_word(name):
    """Read as far as it can be, also from a rejected action."""
    model, expected = MODELS[name]
    assert ACTION.execute(changed("model", model)).data["model_full_name"] == expected


def test_rejected_actions_are_summarised_as_far_as_they_go():
    """Messages of the wrong type are still counted."""
    data = ACTION.execute(
        {"input": {"messages": [1, 2]}, "output": {"tool_calls": [1]}, "agent_id": "a"}
    ).data
    assert (data["agent_id"], data["action_id"]) == ("a", None)
    assert (data["summary"]["message_count"], data["summary"]["tool_calls_emitted"]) == (2, 1)


values = json_values | damaged(SUBJECTS) | damaged(SUBJECTS, most=1)


@settings(law, max_examples=2000)
@given(values)
def test_every_value_gets_a_status_and_problems_with_known_codes(value):
    """Never an exception; rejected exactly when there is a problem; the data always keeps its shape."""
    result = ACTION.execute(value)
    assert (result.status == "rejected") is bool(result.problems)
    assert {problem.code for problem in result.problems} <= set(ProblemCode.__args__)
    assert set(result.data) == set(ACTION.execute(None).data)
    assert set(result.data["summary"]) == set(ACTION.execute(None).data["summary"])


@settings(law, max_examples=500)
@given(values)
def test_the_result_is_the_slow_ways_result(value):
    """The fast path changes nothing: schema problems by the walk, then the logic's own."""
    result, findings = ACTION.execute(value), ACTION.logic(value)
    assert list(result.problems) == [*walk(ACTION.manifest.input_schema, value), *findings.problems]
    assert result.data == findings.data


@settings(law, max_examples=300)
@given(values)
def test_what_the_typed_reader_takes_has_no_problem_of_type(value):
    """Two descriptions of one format, the record types and the schema, do not drift apart."""
    try:
        action_from_json(value)
        is_read = True
    except FormatError:
        is_read = False
    assert is_read is (not list(walk(ACTION.manifest.input_schema, value)))


def test_problems_of_two_numbers_come_in_one_order():
    """Those that no double holds are found while the value is searched."""
    value = {"action_id": 2**53 + 1, "occurred_at_unix_ms": [2**53 + 1]}
    assert ACTION.execute(value) == ACTION.execute(dict(reversed(value.items())))


@law
@given(values, st.randoms())
def test_the_same_value_always_gets_the_same_result(value, random):
    """Whatever the order of its members."""
    shuffled = value
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        shuffled = {key: value[key] for key in keys}
    assert ACTION.execute(shuffled) == ACTION.execute(value)


def test_the_schema_is_the_golden_one():
    """A change of the format is made on purpose only."""
    golden = GOLDEN / "capsules" / "agent.action.replay.v1.json"
    remedy = "if it was meant to change: reenact schema agent.action.replay.v1 > tests/golden/capsules/…"
    assert ACTION.json_schema() == json.loads(golden.read_bytes()), remedy


def test_the_manifest_says_what_it_is():
    """The fixed facts."""
    manifest = ACTION.manifest
    assert (manifest.id, manifest.version, manifest.profile) == (
        "agent.action.replay.v1",
        "1.0",
        "agent-replay",
    )
    assert (manifest.logic_version, manifest.tags) == ("1", ("agent", "replay", "audit"))
