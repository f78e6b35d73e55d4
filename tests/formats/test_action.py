"""The action record: strict by type, open where the format is open."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError
from reenact.formats.action import CODEC, read_action, write_action
from reenact.formats.record import ABSENT
from tests.formats import GOLDEN, UNREADABLE, examples, golden_files, json_values, law, record, texts

VECTORS = json.loads((GOLDEN / "action" / "vectors.json").read_text(encoding="utf-8"))["vectors"]
MINIMAL = VECTORS[0]["subject"]


def changed(path, value=ABSENT):
    """The smallest action with the member at *path* replaced, or removed."""
    action = copy.deepcopy(MINIMAL)
    *parents, last = path
    place = action
    for key in parents:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return action


BAD = {
    "no agent_id": (changed(["agent_id"]), "$.agent_id"),
    "no model": (changed(["model"]), "$.model"),
    "no provider": (changed(["model", "provider"]), "$.model.provider"),
    "no messages": (changed(["input", "messages"]), "$.input.messages"),
    "empty messages": (changed(["input", "messages"], []), "$.input.messages"),
    "message without content": (changed(["input", "messages", 0, "content"]), "$.input.messages[0].content"),
    "no output": (changed(["output"]), "$.output"),
    "time as a number": (changed(["occurred_at_unix_ms"], 0), "$.occurred_at_unix_ms"),
    "null params": (changed(["params"], None), "$.params"),
    "null version": (changed(["model", "version"], None), "$.model.version"),
    "null content": (changed(["output", "content"], None), "$.output.content"),
    "null usage": (changed(["output", "usage"], None), "$.output.usage"),
    "temperature below 0": (changed(["params", "temperature"], -0.1), "$.params.temperature"),
    "temperature above 2": (changed(["params", "temperature"], 3), "$.params.temperature"),
    "top_p above 1": (changed(["params", "top_p"], 1.01), "$.params.top_p"),
    "max_tokens below 0": (changed(["params", "max_tokens"], -1), "$.params.max_tokens"),
    "seed a string": (changed(["params", "seed"], "1"), "$.params.seed"),
    "temperature a boolean": (changed(["params", "temperature"], True), "$.params.temperature"),
    "stop of numbers": (changed(["params", "stop"], [1]), "$.params.stop[0]"),
    "tokens below 0": (changed(["output", "usage", "input_tokens"], -1), "$.output.usage.input_tokens"),
    "extra field at the root": (changed(["extra"], 1), "$.extra"),
    "extra field in the model": (changed(["model", "extra"], 1), "$.model.extra"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named_by_their_path(name):
    """An explicit null is a mistake where a field may only be absent."""
    value, path = BAD[name]
    with pytest.raises(FormatError) as caught:
        read_action(json.dumps(value).encode(), "action.json")
    assert str(caught.value).startswith(f"action.json: {path}: ")


GOOD = {
    "context null": changed(["context"], None),
    "context a list": changed(["context"], [1]),
    "whole-number temperature": changed(["params", "temperature"], 2),
    "top_p at its bound": changed(["params", "top_p"], 1.0),
    "negative seed": changed(["params", "seed"], -5),
    "extra in params": changed(["params", "extra"], 1),
    "extra in the input": changed(["input", "extra"], 1),
    "extra in a message": changed(["input", "messages", 0, "extra"], 1),
    "extra in the output": changed(["output", "extra"], 1),
    "extra in usage": changed(["output", "usage", "extra"], 1),
    "empty output": changed(["output"], {}),
    "empty agent_id": changed(["agent_id"], ""),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_the_types_allow_is_read_and_kept(name):
    """Whether such an action is accepted is not for the reader to say."""
    action = read_action(json.dumps(GOOD[name]).encode(), "action.json")
    assert repr(CODEC.to_json(action)) == repr(
        CODEC.to_json(read_action(write_action(action), "action.json"))
    )
    assert json.loads(write_action(action)) == GOOD[name]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_subjects_read(vector):
    """Both vectors are actions and come back as they were."""
    action = read_action(json.dumps(vector["subject"]).encode(), "vector")
    assert json.loads(write_action(action)) == vector["subject"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused(name):
    """Nothing that is no action gets through, and the error names the file on one line."""
    with pytest.raises(FormatError, match=r"\Aaction\.json: [^\n]+\Z"):
        read_action(UNREADABLE[name], "action.json")


GOLDEN_ACTIONS = [path for path in golden_files("action") if path.stem != "vectors"]


@pytest.mark.parametrize("path", GOLDEN_ACTIONS, ids=lambda path: path.stem)
def test_golden_files_are_written_as_they_were_read(path):
    """The writer gives the same bytes for ever."""
    assert write_action(read_action(path.read_bytes(), path.name)) == path.read_bytes()


def test_the_page_shows_actions_that_read():
    """Every example of the format's page goes through the reader."""
    actions = examples("action.md", "action")
    assert actions
    for text in actions:
        read_action(text, "action.md")


numbers = st.integers(0, 2**53) | st.floats(0, 1e9)
actions = st.fixed_dictionaries(
    {
        "agent_id": texts,
        "action_id": texts,
        "occurred_at_unix_ms": texts,
        "model": st.fixed_dictionaries({"provider": texts, "name": texts}, optional={"version": texts}),
        "input": record(
            {"messages": st.lists(record({"role": texts, "content": texts}), min_size=1, max_size=2)},
            {"tools": st.lists(json_values, max_size=2)},
        ),
        "output": record(
            {},
            {
                "content": texts,
                "tool_calls": st.lists(json_values, max_size=2),
                "finish_reason": texts,
                "usage": record({}, {"input_tokens": numbers, "output_tokens": numbers}),
            },
        ),
    },
    optional={
        "params": record(
            {},
            {
                "temperature": st.floats(0, 2) | st.integers(0, 2),
                "top_p": st.floats(0, 1) | st.integers(0, 1),
                "max_tokens": numbers,
                "stop": st.lists(texts, max_size=2),
            },
        ),
        "context": json_values,
    },
)


@law
@given(actions)
def test_writing_and_reading_keep_every_field(value):
    """Known or unknown, wherever the format is open."""
    action = CODEC.from_json(value)
    assert read_action(write_action(action), "action.json") == action
    assert json.loads(write_action(action)) == value


@law
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No action is that short, so every one is refused."""
    with pytest.raises(FormatError):
        read_action(data, "action.json")
