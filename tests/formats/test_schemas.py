"""JSON Schemas: generated from the types, frozen in golden files, and true to what readers take."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reenact.errors import FormatError, UsageError
from reenact.formats import capture
from reenact.formats.record import ABSENT, Absent, Codec, Count, Record
from reenact.formats.schemas import SCHEMAS, Format, describe, json_schema

GOLDEN = Path(__file__).parents[1] / "golden" / "schemas"


class Address(Record, frozen=True):
    """Where somebody lives."""

    street: str
    number: Count | Absent = ABSENT


class Moved(Record, frozen=True, tag_field="type", tag="moved"):
    """Somebody moved.

    The second paragraph is part of the description.
    """

    to: Address
    discriminator: str | None
    earlier: list[Address] | Absent = ABSENT


class Left(Record, frozen=True, tag_field="type", tag="left"):
    """Somebody left."""

    why: Any


FORMAT = Format("nowhere", "Nothing", "A line of the moving log.", version=3)
SCHEMA = describe("moving", Moved | Left, FORMAT)
OPEN_SCHEMA = describe("moving", Moved | Left, FORMAT._replace(keeps_unknown_tags=True))
CODEC: Codec[Moved | Left] = Codec(Moved | Left)

GOOD = {
    "all there": {"type": "moved", "to": {"street": "A", "number": 1}, "discriminator": None, "earlier": []},
    "optional ones absent": {"type": "moved", "to": {"street": "A"}, "discriminator": "x"},
    "unknown fields": {"type": "left", "why": {"a": 1}, "new": True},
    "unknown fields inside": {"type": "moved", "to": {"street": "A", "new": 1}, "discriminator": "x"},
}
BAD = {
    "not an object": [],
    "no tag": {"why": 1},
    "unknown tag": {"type": "flew", "why": 1},
    "missing field": {"type": "left"},
    "wrong type inside": {"type": "moved", "to": {"street": 1}, "discriminator": "x"},
    "below the minimum": {"type": "moved", "to": {"street": "A", "number": -1}, "discriminator": "x"},
    "null where it may only be absent": {
        "type": "moved",
        "to": {"street": "A", "number": None},
        "discriminator": "x",
    },
}


def is_valid(schema, value):
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("value", GOOD.values(), ids=GOOD)
def test_schema_and_reader_take_the_same_values(value):
    """What the codec reads, the schema allows."""
    CODEC.from_json(value)
    assert is_valid(SCHEMA, value)


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_schema_and_reader_refuse_the_same_values(value):
    """What the codec refuses, the schema forbids."""
    with pytest.raises(FormatError):
        CODEC.from_json(value)
    assert not is_valid(SCHEMA, value)


def test_the_internal_field_shows_nowhere():
    """How unknown fields are kept is not part of a format."""
    assert "\u2061" not in json.dumps(SCHEMA, ensure_ascii=False)
    assert "extra" not in json.dumps(SCHEMA)


def test_head_names_the_format():
    """Identity, title and description come from the registry, with the format's own version."""
    assert SCHEMA["$id"] == "urn:reenact:schema:moving:3"
    assert (SCHEMA["title"], SCHEMA["description"]) == ("moving", "A line of the moving log.")


def test_descriptions_are_the_docstrings():
    """Docstrings are taken without their indentation."""
    assert SCHEMA["$defs"]["Moved"]["description"] == (
        "Somebody moved.\n\nThe second paragraph is part of the description."
    )


def test_a_field_may_have_the_name_of_a_keyword_we_remove():
    """OpenAPI's discriminator is dropped from the unions only."""
    assert "discriminator" not in SCHEMA
    assert "discriminator" in SCHEMA["$defs"]["Moved"]["properties"]


def test_formats_that_keep_unknown_tags_allow_them():
    """Only a foreign tag opens the door: a known one is still checked."""
    assert is_valid(OPEN_SCHEMA, {"type": "flew", "why": 1})
    assert not is_valid(OPEN_SCHEMA, {"type": "left"})
    assert not is_valid(OPEN_SCHEMA, {"type": 7})


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_registered_schema_is_a_schema(name):
    """It is valid itself, and every reference in it resolves."""
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    references = {part["$ref"] for part in objects(schema) if "$ref" in part}
    assert references <= {f"#/$defs/{defined}" for defined in schema["$defs"]}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_registered_schema_is_the_golden_one(name):
    """A change of a format shows in its golden schema."""
    golden = GOLDEN / f"{name}.json"
    remedy = f"if the format was meant to change: reenact schema {name} > tests/golden/schemas/{name}.json"
    assert golden.exists(), remedy
    assert json_schema(name) == json.loads(golden.read_bytes()), remedy


def test_no_golden_schema_is_left_over():
    """A format that is gone takes its schema with it."""
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SCHEMAS)


def test_an_unknown_name_is_answered_with_the_known_ones():
    """The message is the remedy."""
    with pytest.raises(UsageError, match="capture-event"):
        json_schema("captureevent")


def objects(value):
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(child)


EVENT = {"version": 1, "captureId": "c", "runId": "r", "seq": 1, "ts": 1.5, "type": "tool_call"}
CALL = {"callId": "1", "tool": "search", "args": {"q": "x"}}


def test_capture_events_follow_their_schema():
    """A written event is valid; one without its call's id is not."""
    good = EVENT | {"data": CALL}
    assert json.loads(capture.event_codec.to_bytes(capture.event_codec.from_json(good))) == good
    assert is_valid(json_schema("capture-event"), good)
    assert not is_valid(json_schema("capture-event"), EVENT | {"data": {"tool": "search", "args": {}}})


EXAMPLES = {
    "action": ["action/triage.json", "action/tool-calls.json"],
    "bundle": ["bundle/current-news.json", "bundle/scheduler.json", "bundle/every-step.json"],
    "receipt": ["receipt/current.json"],
    "receipt-legacy": ["receipt/legacy.json"],
    "replay-log": ["replay_log/current.jsonl", "replay_log/current-unknown.jsonl"],
    "replay-log-legacy": ["replay_log/legacy.jsonl", "replay_log/legacy-unsorted.jsonl"],
    "result": ["result/passed.json", "result/failed.json", "result/error.json"],
    "suite-summary": ["result/summary.json"],
    "test-case": ["testcase/current-news.json", "testcase/every-field.json"],
    "trace": ["trace/current-news.json", "trace/scheduler.json", "trace/every-step.json"],
    "verifiable-record": ["verifiable/triage.json", "verifiable/tool-calls.json"],
}


def golden_values(name):
    for file in EXAMPLES[name]:
        text = (GOLDEN.parent / file).read_text(encoding="utf-8")
        yield from map(json.loads, text.splitlines() if file.endswith(".jsonl") else [text])


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_files_follow_their_schema(name):
    """What the readers' own golden files hold, the published schema allows."""
    for value in golden_values(name):
        Draft202012Validator(json_schema(name)).validate(value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_files_without_a_required_field_do_not(name):
    """Each required member of each golden value is really required."""
    schema = json_schema(name)
    for value in golden_values(name):
        for required in required_members(schema, value):
            broken = {key: member for key, member in value.items() if key != required}
            assert not is_valid(schema, broken), required


def required_members(schema, value):
    for definition in schema["$defs"].values():
        alone = definition | {"$defs": schema["$defs"]}
        tags = [
            part for part in definition.get("properties", {}).values() if "enum" in part or "const" in part
        ]
        if tags and len(schema.get("anyOf", [])) > 1 and is_valid(alone, value):
            return definition["required"]
    root = schema["$defs"].get(schema.get("$ref", "").rpartition("/")[2], {})
    return root.get("required", [])


@pytest.mark.parametrize(("name", "place"), [("test-case", "assertions"), ("action", "model")])
def test_closed_formats_forbid_unknown_fields(name, place):
    """Where readers refuse unknown fields, so does the schema."""
    value = next(golden_values(name))
    assert not is_valid(json_schema(name), value | {"unheard_of": 1})
    inner = value[place]
    strange = (
        [*inner[:-1], inner[-1] | {"unheard_of": 1}] if isinstance(inner, list) else inner | {"unheard_of": 1}
    )
    assert not is_valid(json_schema(name), value | {place: strange})
