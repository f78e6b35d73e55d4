"""The test case: what authors may write, and how their mistakes are named."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError, UnknownVersion
from reenact.formats import testcase
from reenact.formats.record import ABSENT
from reenact.formats.testcase import check_test_case, read_test_case, read_with_warnings, write_test_case
from reenact.formats.yaml_text import read_yaml
from tests.formats import examples, golden_files, json_values, law, texts

VALID = """\
schema_version: "0.1"
id: a
title: A test
adapter: nanoclaw
mode: replay
scenario:
  trigger: user_message
tools: {}
adapter_input:
  replay_file: replay.json
assertions:
  - id: one
    type: must_call_tool
    params: {tool: search, anything: [goes]}
"""


def problems(text):
    return [
        (problem.code, problem.line, problem.json_path)
        for problem in check_test_case(read_yaml(text.encode(), "test.yaml"))
    ]


def test_a_valid_test_case_reads():
    """The file from which all the bad ones below are made is good."""
    assert problems(VALID) == []
    case = read_test_case(VALID.encode(), "test.yaml")
    assert (case.id, case.mode, case.scenario.trigger) == ("a", "replay", "user_message")
    assert case.assertions[0].params == {"tool": "search", "anything": ["goes"]}
    assert case.description is ABSENT


def replaced(old, new):
    assert VALID.count(old) == 1, old
    return VALID.replace(old, new)


BAD = {
    "no id": (replaced("id: a\n", ""), ("missing_field", 1, "$.id"), "required"),
    "a list as id": (replaced("id: a\n", "id: [5]\n"), ("wrong_type", 2, "$.id"), "expected `str`"),
    "odd version": (replaced('"0.1"', "one"), ("unknown_version", 1, "$.schema_version"), '"0.1"'),
    "later version": (
        replaced("0.1", "1.0"),
        ("unknown_version", 1, "$.schema_version"),
        "install a newer reenact",
    ),
    "unknown mode": (
        replaced("mode: replay", "mode: relay"),
        ("wrong_type", 5, "$.mode"),
        "use replay or live",
    ),
    "misspelt trigger": (
        replaced("user_message", "user_mesage"),
        ("wrong_type", 7, "$.scenario.trigger"),
        "use user_message or scheduler",
    ),
    "no trigger": (
        replaced("trigger: user_message", "group_id: g"),
        ("missing_field", 6, "$.scenario.trigger"),
        "required",
    ),
    "no source": (
        replaced("\n  replay_file: replay.json", " {}"),
        ("ambiguous_source", 9, "$.adapter_input"),
        "give one of",
    ),
    "two sources": (
        replaced("replay.json", "replay.json\n  replay_log: r.jsonl"),
        ("ambiguous_source", 9, "$.adapter_input"),
        "replay_file and replay_log",
    ),
    "empty command": (
        replaced("replay_file: replay.json", "command: []"),
        ("wrong_type", 10, "$.adapter_input.command"),
        "length >= 1",
    ),
    "command of numbers": (
        replaced("replay_file: replay.json", "command: [run, 5]"),
        ("wrong_type", 10, "$.adapter_input.command[1]"),
        "expected `str`",
    ),
    "no assertions": (VALID[: VALID.index("assertions")], ("missing_field", 1, "$.assertions"), "required"),
    "empty assertions": (
        VALID[: VALID.index("assertions")] + "assertions: []",
        ("no_assertions", 11, "$.assertions"),
        "at least one",
    ),
    "null assertions": (
        VALID[: VALID.index("assertions")] + "assertions:",
        ("wrong_type", 11, "$.assertions"),
        "expected `array`",
    ),
    "assertion a string": (VALID + "  - text\n", ("wrong_type", 15, "$.assertions[1]"), "expected `object`"),
    "assertion without type": (
        VALID + "  - id: two\n",
        ("missing_field", 15, "$.assertions[1].type"),
        "required",
    ),
    "unknown severity": (
        VALID + "    severity: fatal\n",
        ("wrong_type", 15, "$.assertions[0].severity"),
        "use critical or warning",
    ),
    "params a list": (
        VALID + "  - {id: two, type: t, params: [1]}\n",
        ("wrong_type", 15, "$.assertions[1].params"),
        "expected `object",
    ),
    "a list": ("- a\n", ("wrong_type", 1, "$"), "expected `object`"),
    "text": ("hello", ("wrong_type", 1, "$"), "expected `object`"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_mistake_is_named_at_its_line(name):
    """One mistake gives one problem with code, line, path and remedy; reading raises just that."""
    text, problem, remedy = BAD[name]
    assert problems(text) == [problem]
    with pytest.raises(FormatError, match=re.escape(remedy)) as caught:
        read_test_case(text.encode(), "test.yaml")
    assert str(caught.value).startswith(f"test.yaml:{problem[1]}: {problem[2]}: ")


UNKNOWN = {
    "misspelt top key": (VALID + "tag: [x]\n", ("unknown_key", 15, "$.tag"), "did you mean 'tags'?"),
    "far-off top key": (VALID + "zzz: 1\n", ("unknown_key", 15, "$.zzz"), "known are schema_version"),
    "odd top key": (VALID + "'a key': 1\n", ("unknown_key", 15, '$["a key"]'), "unknown key"),
    "misspelt scenario key": (
        replaced("user_message\n", "user_message\n  groupid: g\n"),
        ("unknown_key", 8, "$.scenario.groupid"),
        "did you mean 'group_id'?",
    ),
    "misspelt tools key": (
        replaced("{}", "{fixture: []}"),
        ("unknown_key", 8, "$.tools.fixture"),
        "did you mean 'fixtures'?",
    ),
    "misspelt source": (
        replaced("replay_file", "capture: c\n  replayfile"),
        ("unknown_key", 11, "$.adapter_input.replayfile"),
        "did you mean 'replay_file'?",
    ),
    "misspelt severity key": (
        VALID + "  - id: two\n    type: t\n    severty: warning\n",
        ("unknown_key", 17, "$.assertions[1].severty"),
        "did you mean 'severity'?",
    ),
    "unknown reporting key": (
        VALID + "reporting: {save_traces: true}\n",
        ("unknown_key", 15, "$.reporting.save_traces"),
        "did you mean 'save_trace'?",
    ),
    "unknown expected key": (
        VALID + "expected: {outcomes: pass}\n",
        ("unknown_key", 15, "$.expected.outcomes"),
        "did you mean 'outcome'?",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_key_nobody_knows_is_a_warning(name):
    """With its line and the nearest known name; it is kept, and an error only for who asks."""
    text, problem, remedy = UNKNOWN[name]
    case, warnings = read_with_warnings(text.encode(), "test.yaml")
    assert case.id == "a"
    assert [(w.code, w.line, w.json_path, w.severity) for w in warnings] == [(*problem, "warning")]
    with pytest.raises(FormatError, match=re.escape(remedy)):
        read_test_case(text.encode(), "test.yaml", strict=True)


FORMS = {
    "a number for a name": (replaced("id: a\n", "id: 5\n"), lambda case: case.id, "5"),
    "a number for a task": (
        replaced("user_message\n", "user_message\n  task_id: 42\n"),
        *(lambda case: case.scenario.task_id, "42"),
    ),
    "no title": (replaced("title: A test\n", ""), lambda case: case.name, "a"),
    "no tools": (replaced("tools: {}\n", ""), lambda case: case.tools, ABSENT),
    "a version without quotes": (replaced('"0.1"', "0.1"), lambda case: case.schema_version, "0.1"),
    "one tag": (VALID + "tags: smoke", lambda case: case.tags, ["smoke"]),
    "a number for a description": (VALID + "description: 5", lambda case: case.description, "5"),
    "a number for a tag": (VALID + "tags: [5]", lambda case: case.tags, ["5"]),
    "one field": (VALID + "reporting: {redact_fields: a}", lambda case: case.reporting.redact_fields, ["a"]),
    "one capability": (
        VALID + "    requires_capabilities: supports_replay",
        *(lambda case: case.assertions[0].requires_capabilities, ["supports_replay"]),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_the_original_is_read(name):
    """Without a word."""
    text, part, expected = FORMS[name]
    case, warnings = read_with_warnings(text.encode(), "test.yaml")
    assert (part(case), warnings) == (expected, [])


def test_a_live_test_is_judged_on_its_recording():
    """With a warning; nothing is run live here."""
    case, warnings = read_with_warnings(replaced("mode: replay", "mode: live").encode(), "test.yaml")
    assert (case.mode, [(w.code, w.line) for w in warnings]) == ("live", [("live_mode", 5)])


def test_all_problems_come_at_once_from_top_to_bottom():
    """An author corrects the file in one go."""
    text = "id: []\ntitel: x\nscenario: {triger: scheduler}\nassertions:\n- {id: a, type: 2, bad: 3}\n- 4\n"
    assert problems(text) == [
        ("missing_field", 1, "$.schema_version"),
        ("wrong_type", 1, "$.id"),
        ("missing_field", 1, "$.adapter"),
        ("missing_field", 1, "$.mode"),
        ("missing_field", 1, "$.adapter_input"),
        ("unknown_key", 2, "$.titel"),
        ("missing_field", 3, "$.scenario.trigger"),
        ("unknown_key", 3, "$.scenario.triger"),
        ("wrong_type", 5, "$.assertions[0].type"),
        ("unknown_key", 5, "$.assertions[0].bad"),
        ("wrong_type", 6, "$.assertions[1]"),
    ]


@pytest.mark.parametrize("line", ["tags: {}", "description: [x]", "reporting: {save_trace: 1}"])
def test_quotes_are_suggested_only_where_they_help(line):
    """A remedy that leads to the next error is none."""
    with pytest.raises(FormatError) as caught:
        read_test_case((VALID + line).encode(), "test.yaml")
    assert "quotes" not in caught.value.reason


def test_a_repeated_assertion_id_is_a_warning():
    """The test runs; its results are hard to tell apart."""
    text = VALID + "  - {id: one, type: must_call_tool}\n"
    assert problems(text) == [("duplicate_id", 15, "$.assertions[1].id")]
    assert len(read_test_case(text.encode(), "test.yaml").assertions) == 2


def test_a_later_major_version_is_refused_before_all_else():
    """Its other keys are not judged by today's clauses."""
    with pytest.raises(UnknownVersion, match=r"\Atest\.yaml:2: \$\.schema_version: test case version 3\.1"):
        read_test_case(b'novelty: 1\nschema_version: "3.1"\n', "test.yaml")


SOURCES = {
    "replay_file: ./replay.json": {"replay_file": "./replay.json"},
    "capture: runs/a": {"capture": "runs/a"},
    "replay_log: REPLAY.jsonl": {"replay_log": "REPLAY.jsonl"},
    "command: python agent.py": {"command": "python agent.py"},
    "command: [python, agent.py]\n  capture: runs/a": {
        "command": ["python", "agent.py"],
        "capture": "runs/a",
    },
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_comes_from_one_of_four_sources(source):
    """A command may name the capture it is replayed from."""
    case = read_test_case(replaced("replay_file: replay.json", source).encode(), "test.yaml")
    assert msgspec.to_builtins(case.adapter_input) == SOURCES[source]


@pytest.mark.parametrize(("severity", "critical"), [("", True), ("critical", True), ("warning", False)])
def test_an_assertion_is_critical_unless_it_is_a_warning(severity, critical):
    """Leaving the severity out, or its value empty, means critical."""
    case = read_test_case((VALID + f"    severity: {severity}\n").encode(), "test.yaml")
    assert case.assertions[0].is_critical is critical
    assert read_test_case(VALID.encode(), "test.yaml").assertions[0].is_critical


def test_recorded_material_takes_any_key():
    """Only what the format itself defines is closed."""
    text = replaced(
        "user_message\n",
        "scheduler\n  scheduler_context: {x: 1}\n  input_messages: [{role: user, content: hi, x: 1}]\n",
    )
    assert problems(text) == []
    assert read_test_case(text.encode(), "test.yaml").scenario.input_messages[0].extra == {"x": 1}


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"a: &a [*a]", b"a: !!set {x}", b"a: 1\na: 2", b"\xff", b"a: 1\n---\nb: 2", b"[" * 5000],
    ids=["empty", "binary", "alias", "tag", "duplicate", "not UTF-8", "two documents", "deep"],
)
def test_what_is_no_plain_yaml_is_refused(data):
    """The file is named, whatever is wrong with it."""
    with pytest.raises(FormatError, match=r"\Atest\.yaml:1: |\Atest\.yaml:2: "):
        read_test_case(data, "test.yaml")


@pytest.mark.parametrize("path", golden_files("testcase", "*.yaml"), ids=lambda path: path.stem)
def test_golden_files_mean_what_they_meant(path):
    """The same text gives the same value for ever, and so does what is written from it."""
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    case = read_test_case(path.read_bytes(), path.name)
    assert testcase.CODEC.to_json(case) == expected
    assert read_test_case(write_test_case(case), path.name) == case


def test_the_page_shows_test_cases_that_read():
    """Every example of the format's page goes through the reader."""
    cases = examples("test-case.md", "test-case")
    assert cases
    for text in cases:
        assert check_test_case(read_yaml(text, "test-case.md")) == []
        read_test_case(text, "test-case.md")


def optional(**fields):
    return st.fixed_dictionaries({}, optional={key: st.none() | value for key, value in fields.items()})


def merged(required, rest):
    return st.builds(lambda one, other: {**one, **other}, st.fixed_dictionaries(required), rest)


free = st.dictionaries(texts, json_values, max_size=2)
text_lists = st.lists(texts, max_size=2)
messages = st.lists(merged({"role": texts, "content": json_values}, free), max_size=2).map(
    lambda found: [{**message, "role": "user"} for message in found]
)
cases = merged(
    {
        "schema_version": st.just("0.1"),
        "id": texts,
        "title": texts,
        "adapter": texts,
        "mode": st.sampled_from(["replay", "live"]),
        "scenario": merged(
            {"trigger": st.sampled_from(["user_message", "scheduler"])},
            optional(
                group_id=texts,
                task_id=texts,
                scheduler_context=free,
                input_messages=messages,
                mounts=json_values,
            ),
        ),
        "tools": optional(available=st.lists(json_values, max_size=2), fixtures=json_values),
        "adapter_input": st.fixed_dictionaries({"capture": texts}, optional={"command": texts}),
        "assertions": st.lists(
            merged(
                {"id": texts, "type": texts},
                optional(
                    severity=st.sampled_from(["critical", "warning"]),
                    params=free,
                    requires_capabilities=text_lists,
                ),
            ),
            min_size=1,
            max_size=2,
        ),
    },
    optional(
        description=texts,
        tags=text_lists,
        expected=optional(outcome=texts, failure_categories=text_lists),
        reporting=optional(save_trace=st.booleans(), redact_fields=text_lists),
    ),
)


@law
@given(cases)
def test_writing_and_reading_keep_every_field(value):
    """Known fields, null apart from absent, and whatever stands where anything may."""
    case = testcase.CODEC.from_json(value)
    assert read_test_case(write_test_case(case), "test.yaml") == case
    assert testcase.CODEC.to_json(case) == value


@law
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No test case is that short, so every one is refused."""
    with pytest.raises(FormatError):
        read_test_case(data, "test.yaml")
