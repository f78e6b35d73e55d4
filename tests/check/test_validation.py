"""Streams of values: lines or a whole, judged one by one, counted."""

import io
import json
import tracemalloc

import pytest

import reenact
from reenact.check.actions.action import ACTION
from reenact.check.actions.policy import Policy
from reenact.check.actions.validation import ValidationTally, validate_stream
from tests.formats import GOLDEN, UNREADABLE

MINIMAL, FULL = (
    vector["subject"]
    for vector in json.loads((GOLDEN / "vectors" / "ai.agent.action-v0.json").read_bytes())["vectors"]
)
GOOD = json.dumps(MINIMAL).encode()
BAD = json.dumps({**MINIMAL, "agent_id": ""}).encode()


def judge(text, file="actions.jsonl", **options):
    return list(validate_stream(io.BytesIO(text), file, ACTION, **options))


def outcomes(text, file="actions.jsonl"):
    return [
        (judged.place, judged.result.status if judged.result else "unreadable")
        for judged in judge(text, file)
    ]


def test_each_line_is_a_value():
    """Named by its number; empty lines count, but hold nothing."""
    assert outcomes(GOOD + b"\n\n" + BAD + b"\r\n" + GOOD) == [
        ("actions.jsonl:1", "accepted"),
        ("actions.jsonl:3", "rejected"),
        ("actions.jsonl:4", "accepted"),
    ]


def test_an_unreadable_line_does_not_hide_the_others():
    """Its error has line and column."""
    text = GOOD + b'\n{"a": }\n' + GOOD
    assert [status for _, status in outcomes(text)] == ["accepted", "unreadable", "accepted"]
    assert str(judge(text)[1].error) == "actions.jsonl:2: not JSON: Expecting value at column 7"


def test_a_whole_file_is_one_value():
    """However many lines it has."""
    text = json.dumps(FULL, indent=2).encode()
    assert outcomes(text, "action.json") == [("action.json", "accepted")]


@pytest.mark.parametrize("file", ["actions.json", "-", "actions"])
def test_lines_are_recognised_by_the_first_of_them(file):
    """A name that says nothing does not matter."""
    assert [status for _, status in outcomes(GOOD + b"\n" + BAD + b"\n", file)] == ["accepted", "rejected"]


PLACES = {
    "in the only line": (b'{"a": }', "a.json:1: not JSON: Expecting value at column 7"),
    "in the first line": (b'{"a": }\n{}\n', "a.json:1: not JSON: Expecting value at column 7"),
    "in a later line": (b'{\n"a": }', "a.json: not JSON: Expecting value at line 2 column 6"),
    "a repeated key": (b'{"a": [{"b": 1,\n"b": 2}]}', "a.json: $.a[0]: the key 'b' appears twice"),
    "no text": (b"\xff", "a.json: not UTF-8 at byte 0"),
    "nothing": (b"", "a.json:1: not JSON: Expecting value at column 1"),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_json_is_named_by_its_place(name):
    """Line and column, or the path of what repeats."""
    text, expected = PLACES[name]
    (judged,) = judge(text, "a.json")
    assert str(judged.error) == expected


@pytest.mark.parametrize("name", UNREADABLE)
def test_bytes_of_any_kind_are_judged(name):
    """Never an exception."""
    for file in ("a.json", "a.jsonl"):
        assert not any(judged.is_good for judged in judge(UNREADABLE[name], file))


@pytest.mark.parametrize("text", [b"", b"\n\n"])
def test_a_file_of_no_lines_is_unreadable(text):
    """An empty file is no proof that all is well."""
    (judged,) = judge(text)
    assert str(judged.error) == "actions.jsonl: holds nothing to validate; put one action on each line"


def test_a_policy_decides_about_accepted_actions_only():
    """The others are rejected already."""
    policy = Policy.from_json({"schema_version": 1, "rules": [], "models": {"allow": ["anthropic/*"]}})
    text = b"\n".join([GOOD, BAD, json.dumps(FULL).encode()])
    judged = judge(text, policy=policy)
    assert [entry.decision and entry.decision.verdict for entry in judged] == ["deny", None, "deny"]
    assert not any(entry.is_good for entry in judged)


def count(text, policy=None):
    tally = ValidationTally()
    for judged in judge(text, policy=policy):
        tally.add(judged)
    return tally


def test_a_tally_counts_by_status_code_and_model():
    """One value may have several problems."""
    text = b"\n".join([GOOD, GOOD, BAD, b'{"model": {"provider": "q", "name": "n"}}', b"[]", b"{"])
    assert count(text).to_json() == {
        "count": 6,
        "accepted": 2,
        "rejected": 3,
        "unreadable": 1,
        "problems": {"missing_field": 5, "empty_output": 2, "empty_field": 1, "invalid_type": 1},
        "models": {"p/m": 3, "q/n": 1},
    }


def test_a_tally_is_good_when_everything_is():
    """A verdict other than allow is as bad as a rejection."""
    allow = Policy.from_json({"schema_version": 1, "rules": []})
    review = Policy.from_json(
        {"schema_version": 1, "rules": [], "default": "review", "models": {"deny": ["x"]}}
    )
    assert count(GOOD).is_good
    assert count(GOOD, allow).is_good
    assert count(GOOD, allow).to_json()["verdicts"] == {"allow": 1}
    assert not count(GOOD, review).is_good
    assert not count(GOOD + b"\n" + BAD).is_good
    assert not count(GOOD + b"\n{").is_good


class Endless(io.RawIOBase):
    """Many good lines, none of which is kept."""

    def __init__(self, lines):
        self.left = lines

    def readline(self, size=-1):
        self.left -= 1
        return GOOD + b"\n" if self.left >= 0 else b""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream():
    """Forty thousand lines cost no more than a thousand."""

    def peak_bytes(lines):
        tracemalloc.start()
        tally = ValidationTally()
        for judged in validate_stream(Endless(lines), "a.jsonl", ACTION):
            tally.add(judged)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert tally.accepted == lines
        return peak

    peak_bytes(10)
    # One kept pointer per line would be 312,000; what other threads of the process allocate is counted too.
    assert peak_bytes(40_000) < peak_bytes(1_000) + 60_000


def test_files_folders_and_streams_are_validated_together(tmp_path):
    """Each value is handed over as it comes, with its record; what cannot be read stops nothing."""
    (tmp_path / "good.json").write_bytes(GOOD)
    (tmp_path / "bad.jsonl").write_bytes(BAD + b"\n{")
    seen = []
    report = reenact.validate(
        tmp_path,
        tmp_path / "nowhere.json",
        io.BytesIO(GOOD),
        records=True,
        on_judged=lambda judged, record: seen.append((judged.place, record is not None)),
    )
    assert seen == [
        (f"{tmp_path}/bad.jsonl:1", False),
        (f"{tmp_path}/bad.jsonl:2", False),
        (f"{tmp_path}/good.json:1", True),
        (f"{tmp_path}/nowhere.json", False),
        ("-:1", True),
    ]
    assert (report.count, report.accepted, report.rejected, report.unreadable) == (5, 2, 1, 2)
    assert (report.is_good, report.unrecorded, bool(report.pack_digest)) == (False, 0, True)


def test_records_and_policies_are_for_actions():
    """Other capsules have neither."""
    with pytest.raises(reenact.UsageError, match="records and policies are for actions"):
        reenact.validate(io.BytesIO(GOOD), capsule="test.other.v1", records=True)
