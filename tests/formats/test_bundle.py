"""The replay bundle: its clauses, its reader and its writer."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError, UnknownVersion
from reenact.formats.bundle import (
    CODEC,
    STEP_TYPES,
    Failure,
    MemoryRead,
    ToolCall,
    check_bundle,
    read_bundle,
    write_bundle,
)
from reenact.formats.record import ABSENT
from tests.formats import UNREADABLE, examples, golden_files, json_values, law, record, texts

VALID = {
    "schema_version": "0.1",
    "adapter": "nanoclaw-replay",
    "scenario": {"trigger": "user_message"},
    "input_messages": [{"role": "user", "content": "hi"}],
    "script": [
        {"type": "tool_call", "tool": "search", "call_id": "c1"},
        {"type": "tool_result", "tool": "search", "call_id": "c1", "success": True},
        {"type": "error", "call_id": "c1"},
        {"type": "final_output", "content": "done"},
    ],
    "final_output": {"content": "done"},
    "status": "success",
    "metrics": {"timing_ms_total": 5},
}


def changed(path, value=ABSENT):
    """``VALID`` with the member at *path* replaced, or removed."""
    bundle = copy.deepcopy(VALID)
    *parents, last = path
    place = bundle
    for key in parents:
        place = place[key]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return bundle


def found(value):
    """Code and place of every problem, warnings included."""
    return [(problem.code, problem.json_path) for problem in check_bundle(value)]


def test_a_valid_bundle_has_no_problems():
    """The bundle from which all the bad ones below are made is good."""
    assert found(VALID) == []


STEP = ("script", 0)
RESULT = ("script", 1)
ERROR = ("script", 2)
BAD = {
    "not an object": ([], ("wrong_type", "$")),
    "null": (None, ("wrong_type", "$")),
    "no schema_version": (changed(["schema_version"]), ("missing_field", "$.schema_version")),
    "schema_version an integer": (changed(["schema_version"], 1), ("unknown_version", "$.schema_version")),
    "schema_version a later number": (
        changed(["schema_version"], 1.0),
        ("unknown_version", "$.schema_version"),
    ),
    "schema_version not a version": (
        changed(["schema_version"], "v1"),
        ("unknown_version", "$.schema_version"),
    ),
    "later major version": (changed(["schema_version"], "1.0"), ("unknown_version", "$.schema_version")),
    "no scenario": (changed(["scenario"]), ("missing_field", "$.scenario")),
    "no input_messages": (changed(["input_messages"]), ("missing_field", "$.input_messages")),
    "no script": (changed(["script"]), ("missing_field", "$.script")),
    "no status": (changed(["status"]), ("missing_field", "$.status")),
    "no metrics": (changed(["metrics"]), ("missing_field", "$.metrics")),
    "scenario an array": (changed(["scenario"], []), ("wrong_type", "$.scenario")),
    "no trigger": (changed(["scenario", "trigger"]), ("missing_field", "$.scenario.trigger")),
    "unknown trigger": (changed(["scenario", "trigger"], "cron"), ("unknown_trigger", "$.scenario.trigger")),
    "trigger an array": (changed(["scenario", "trigger"], []), ("unknown_trigger", "$.scenario.trigger")),
    "scheduler without context": (
        changed(["scenario"], {"trigger": "scheduler"}),
        ("missing_field", "$.scenario.scheduler_context"),
    ),
    "scheduler with null context": (
        changed(["scenario"], {"trigger": "scheduler", "scheduler_context": None}),
        ("missing_field", "$.scenario.scheduler_context"),
    ),
    "script an object": (changed(["script"], {}), ("wrong_type", "$.script")),
    "script null": (changed(["script"], None), ("wrong_type", "$.script")),
    "step a string": (changed(["script"], ["tool_call"]), ("wrong_type", "$.script[0]")),
    "step without type": (changed([*ERROR, "type"]), ("missing_field", "$.script[2].type")),
    "step of unknown type": (changed([*ERROR, "type"], "thought"), ("unknown_type", "$.script[2].type")),
    "step type an object": (changed([*ERROR, "type"], {}), ("unknown_type", "$.script[2].type")),
    "call without tool": (changed([*STEP, "tool"]), ("missing_field", "$.script[0].tool")),
    "call with null tool": (changed([*STEP, "tool"], None), ("missing_field", "$.script[0].tool")),
    "call with a number as tool": (changed([*STEP, "tool"], 5), ("wrong_type", "$.script[0].tool")),
    "result without tool": (changed([*RESULT, "tool"]), ("missing_field", "$.script[1].tool")),
    "result without call_id": (changed([*RESULT, "call_id"]), ("missing_field", "$.script[1].call_id")),
    "result without success": (changed([*RESULT, "success"]), ("missing_field", "$.script[1].success")),
    "success a number": (changed([*RESULT, "success"], 1), ("wrong_type", "$.script[1].success")),
    "result of an unknown call": (
        changed([*RESULT, "call_id"], "c2"),
        ("unknown_call", "$.script[1].call_id"),
    ),
    "error of an unknown call": (changed([*ERROR, "call_id"], "c2"), ("unknown_call", "$.script[2].call_id")),
    "success without content": (
        changed(["final_output", "content"]),
        ("missing_field", "$.final_output.content"),
    ),
    "success with null content": (
        changed(["final_output", "content"], None),
        ("missing_field", "$.final_output.content"),
    ),
    "final_output a string": (changed(["final_output"], "done"), ("missing_field", "$.final_output.content")),
    "metrics an array": (changed(["metrics"], [5]), ("wrong_type", "$.metrics")),
    "no timing": (changed(["metrics", "timing_ms_total"]), ("missing_field", "$.metrics.timing_ms_total")),
    "timing a string": (
        changed(["metrics", "timing_ms_total"], "5"),
        ("wrong_type", "$.metrics.timing_ms_total"),
    ),
    "timing a boolean": (
        changed(["metrics", "timing_ms_total"], True),
        ("wrong_type", "$.metrics.timing_ms_total"),
    ),
    "input_messages an object": (changed(["input_messages"], {}), ("wrong_type", "$.input_messages")),
    "message without role": (
        changed(["input_messages", 0, "role"]),
        ("wrong_type", "$.input_messages[0].role"),
    ),
    "status a number": (changed(["status"], 1), ("wrong_type", "$.status")),
    "capability not a flag": (changed(["capabilities"], {"x": "yes"}), ("wrong_type", "$.capabilities[...]")),
    "event_id used twice": (
        changed(["script"], [{"type": "final_output", "event_id": "e"}] * 2),
        ("duplicate_event_id", "$.script[1].event_id"),
    ),
    "event_id of a later step": (
        changed(["script"], [{"type": "final_output", "event_id": "evt-2"}, {"type": "final_output"}]),
        ("duplicate_event_id", "$.script[1].event_id"),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_each_clause_is_checked(name):
    """One mistake gives one problem, with its code and place, and reading raises just that."""
    value, problem = BAD[name]
    assert [entry for entry in found(value) if entry[0] != "foreign_adapter"] == [problem]
    with pytest.raises(FormatError) as caught:
        read_bundle(json.dumps(value).encode(), "replay.json")
    assert str(caught.value).startswith(f"replay.json: {problem[1]}: ")


def test_all_problems_come_at_once_in_the_order_of_the_clauses():
    """Keys, trigger, context, steps as they stand, output, metrics; the warning last."""
    value = {
        "metrics": {},
        "status": "success",
        "script": [
            {"type": "tool_result", "success": True, "call_id": "late"},
            "step",
            {"type": "tool_call"},
            {"type": "dream"},
            {"type": "tool_call", "tool": "t", "call_id": "late"},
            {"type": "error", "call_id": "never"},
        ],
        "scenario": {"trigger": "scheduler"},
    }
    assert found(value) == [
        ("missing_field", "$.schema_version"),
        ("missing_field", "$.input_messages"),
        ("missing_field", "$.scenario.scheduler_context"),
        ("missing_field", "$.script[0].tool"),
        ("unknown_call", "$.script[0].call_id"),
        ("wrong_type", "$.script[1]"),
        ("missing_field", "$.script[2].tool"),
        ("missing_field", "$.script[2].call_id"),
        ("unknown_type", "$.script[3].type"),
        ("unknown_call", "$.script[5].call_id"),
        ("missing_field", "$.final_output.content"),
        ("missing_field", "$.metrics.timing_ms_total"),
        ("foreign_adapter", "$.adapter"),
    ]


GOOD = {
    "output in a step alone": changed(["final_output"]),
    "output null, in a step": changed(["final_output"], None),
    "empty output": changed(["final_output", "content"], ""),
    "failed without output": {
        **changed(["final_output"], {"role": "assistant"}),
        "status": "failed",
        "script": [],
    },
    "error without call": changed([*ERROR, "call_id"]),
    "error with null call": changed([*ERROR, "call_id"], None),
    "scheduler": changed(["scenario"], {"trigger": "scheduler", "scheduler_context": {}}),
    "no messages": changed(["input_messages"], []),
    "message in content blocks": changed(["input_messages", 0, "content"], [{"type": "text", "text": "hi"}]),
    "fractional timing": changed(["metrics", "timing_ms_total"], 0.5),
    "later minor version": changed(["schema_version"], "0.2"),
    "call_id used again": changed(["script"], [*VALID["script"], *VALID["script"]]),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_the_clauses_allow_is_read(name):
    """A valid bundle survives the round trip as the value it was."""
    bundle = read_bundle(json.dumps(GOOD[name]).encode(), "replay.json")
    assert json.loads(write_bundle(bundle)) == GOOD[name]


@pytest.mark.parametrize("adapter", [ABSENT, None, "other"])
def test_a_missing_or_foreign_adapter_is_a_warning(adapter):
    """It is reported, and the bundle is read all the same."""
    value = changed(["adapter"], adapter)
    (problem,) = check_bundle(value)
    assert (problem.code, problem.severity) == ("foreign_adapter", "warning")
    assert read_bundle(json.dumps(value).encode(), "replay.json").adapter == adapter


def test_a_later_major_version_is_refused_with_the_remedy():
    """Whatever else looks wrong in it is not judged by today's clauses."""
    with pytest.raises(UnknownVersion, match="install a newer reenact"):
        read_bundle(b'{"schema_version": "2.0"}', "replay.json")


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused(name):
    """Nothing that is no bundle gets through, and the error names the file on one line."""
    with pytest.raises(FormatError, match=r"\Areplay\.json: [^\n]+\Z"):
        read_bundle(UNREADABLE[name], "replay.json")


@pytest.mark.parametrize("variation", [lambda t: b"\xef\xbb\xbf" + t, lambda t: t.replace(b"\n", b"\r\n")])
def test_byte_order_mark_and_crlf_are_tolerated(variation):
    """Editors on other systems do no harm."""
    text = json.dumps(VALID, indent=1).encode()
    assert read_bundle(variation(text), "replay.json") == read_bundle(text, "replay.json")


def test_steps_are_told_apart_by_type():
    """Each type of step has its own record, absent fields are absent and null is null."""
    script = [
        {"type": "tool_call", "tool": "t", "call_id": "c", "args": None},
        {"type": "error", "message": "x"},
        {"type": "memory_read", "path": "p", "x": 1},
    ]
    call, error, read = read_bundle(json.dumps(changed(["script"], script)).encode(), "f").script
    assert call == ToolCall(tool="t", call_id="c", args=None)
    assert error == Failure(message="x")
    assert error.call_id is ABSENT
    assert read == MemoryRead(path="p", extra={"x": 1})


@pytest.mark.parametrize("path", golden_files("bundle"), ids=lambda path: path.stem)
def test_golden_files_are_written_as_they_were_read(path):
    """The writer gives the same bytes for ever."""
    assert write_bundle(read_bundle(path.read_bytes(), path.name)) == path.read_bytes()


def test_the_page_shows_bundles_that_read():
    """Every example of the format's page goes through the reader."""
    bundles = examples("bundle.md", "bundle")
    assert bundles
    for text in bundles:
        assert check_bundle(json.loads(text)) == []
        read_bundle(text, "bundle.md")


maybe_text = st.none() | texts
common = dict.fromkeys(("ts", "group_id", "session_id", "task_id", "agent_id"), maybe_text)
fields = {
    "message_received": ({}, {"role": maybe_text, "content": json_values}),
    "tool_call": ({"tool": texts}, {"args": json_values}),
    "tool_result": (
        {"tool": texts, "success": st.booleans()},
        {"result": json_values, "fixture_id": maybe_text},
    ),
    "memory_read": ({}, {"source": maybe_text, "path": maybe_text}),
    "memory_write": ({}, {"source": maybe_text, "change_summary": maybe_text}),
    "error": ({}, {"tool": maybe_text, "error_type": maybe_text, "retryable": st.booleans()}),
    "final_output": ({}, {"role": maybe_text, "content": maybe_text}),
}


@st.composite
def scripts(draw):
    """Scripts whose results and errors answer calls made before; ids of calls come again."""
    script, calls = [], []
    for kind in draw(st.lists(st.sampled_from(STEP_TYPES), max_size=8)):
        required, optional = fields[kind]
        if kind == "tool_call":
            calls.append(draw(st.sampled_from(["c1", "c2", "c3"])))
            link = {"call_id": calls[-1]}
        elif kind == "error" and (not calls or draw(st.booleans())):
            link = {}
        elif kind in ("tool_result", "error") and calls:
            link = {"call_id": draw(st.sampled_from(calls))}
        elif kind == "tool_result":
            continue
        else:
            link = {}
        script.append({"type": kind, **draw(record(required, {**optional, **common})), **link})
        if draw(st.booleans()):
            script[-1]["event_id"] = f"own-{len(script)}"
    return script


def bundles():
    """Valid bundles with unknown fields at every level."""
    scenario = record(
        {
            "trigger": st.just("scheduler"),
            "scheduler_context": st.dictionaries(texts, json_values, max_size=2),
        },
        {"group_id": maybe_text, "session_id": maybe_text, "task_id": maybe_text},
    )
    return record(
        {
            "schema_version": st.just("0.1"),
            "scenario": scenario,
            "input_messages": st.lists(record({"role": texts, "content": json_values}), max_size=2),
            "script": scripts(),
            "status": st.sampled_from(["success", "partial", "failed", "blocked"]),
            "metrics": record(
                {"timing_ms_total": st.integers(0, 2**53) | st.floats(0, 1e9)},
                {"retry_count": st.integers(0, 9), "token_usage": json_values},
            ),
            "final_output": record({"content": texts}, {"role": maybe_text}),
        },
        {"adapter": maybe_text, "capabilities": st.dictionaries(texts, st.booleans(), max_size=2)},
    )


@law
@given(bundles())
def test_writing_and_reading_keep_every_field(value):
    """Known or unknown, at every level, null apart from absent."""
    bundle = CODEC.from_json(value)
    assert read_bundle(write_bundle(bundle), "replay.json") == bundle
    assert repr(sorted_json(json.loads(write_bundle(bundle)))) == repr(sorted_json(value))


def sorted_json(value):
    """*value* with its keys in order, to compare by text and so tell 1 from 1.0."""
    if isinstance(value, dict):
        return {key: sorted_json(value[key]) for key in sorted(value)}
    return [sorted_json(item) for item in value] if isinstance(value, list) else value


@law
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No bundle is that short, so every one is refused."""
    with pytest.raises(FormatError):
        read_bundle(data, "replay.json")


@law
@given(bundles(), st.data())
def test_a_damaged_bundle_is_checked_without_raising_and_read_only_when_it_has_no_errors(value, data):
    """What the check lets pass the reader reads, and the other way round."""
    target, key = data.draw(st.sampled_from(list(places(value))))
    target[key] = data.draw(json_values)
    errors = [problem.json_path for problem in check_bundle(value) if problem.severity == "error"]
    text = json.dumps(value).encode()
    if errors:
        with pytest.raises(FormatError) as caught:
            read_bundle(text, "replay.json")
        assert caught.value.json_path in errors
    else:
        read_bundle(text, "replay.json")


def places(value):
    """Every container in *value* with each of its keys or indexes."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])
