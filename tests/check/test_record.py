"""Verifiable records: built from accepted actions, checked claim by claim, packed."""

import copy
import json

import msgspec
import pytest
from hypothesis import given

from reenact import canonical
from reenact.canonical import read_json
from reenact.check.actions.action import ACTION
from reenact.check.actions.record import ActionRejected, check_pack, check_record, record_action
from reenact.formats.verifiable import CODEC, pack_digest
from tests.check.strategies import damaged
from tests.formats import GOLDEN, json_values, law

VECTORS = json.loads((GOLDEN / "vectors" / "ai.agent.action-v0.json").read_bytes())["vectors"]
RECORDS = [CODEC.to_json(record_action(vector["subject"])) for vector in VECTORS]
CHECKS = (
    "version",
    "profile",
    "subject",
    "algorithm",
    "subject_digest",
    "record_digest",
    "input_digest",
    "output_digest",
    "capsule_digest",
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_vectors_hold(vector):
    """Built from the subject, all four digests are the reference's, and checking agrees."""
    record = record_action(vector["subject"], producer={"name": "us"})
    assert msgspec.to_builtins(record.receipt) == vector["expected"]
    report = check_record(CODEC.to_json(record))
    assert report.is_ok
    assert report.record_digest == vector["expected"]["record_digest"]


def test_every_claim_is_a_named_check():
    """Always the same names, in the same order, whatever the value."""
    assert tuple(check.name for check in check_record(RECORDS[0]).checks) == CHECKS
    assert tuple(check.name for check in check_record(None).checks) == CHECKS


def changed(path, value):
    record = copy.deepcopy(RECORDS[1])
    *parents, last = path.split(".")
    place = record
    for key in parents:
        place = place[key]
    place[last] = value
    return record


DIGESTS = {"subject_digest", "record_digest"}
FAILING = {
    "another version": (changed("vdr_version", "1"), {"version"}),
    "another profile": (changed("profile", "ai.agent.other"), {"profile", "record_digest"}),
    "another algorithm": (changed("receipt.alg", "md5"), {"algorithm"}),
    "a wrong subject digest": (changed("receipt.subject_digest", "0" * 64), {"subject_digest"}),
    "a wrong record digest": (changed("receipt.record_digest", "0" * 64), {"record_digest"}),
    "a wrong input digest": (changed("receipt.input_digest", "0" * 64), {"input_digest"}),
    "a wrong output digest": (changed("receipt.output_digest", "0" * 64), {"output_digest"}),
    "a digest in capitals": (
        changed("receipt.output_digest", RECORDS[1]["receipt"]["output_digest"].upper()),
        {"output_digest"},
    ),
    "a digest that is no text": (changed("receipt.input_digest", 5), {"input_digest"}),
    "another model": (changed("subject.model.name", "x"), DIGESTS | {"input_digest"}),
    "other params": (changed("subject.params.temperature", 0.1), DIGESTS | {"input_digest"}),
    "another question": (changed("subject.input.extra", "x"), DIGESTS | {"input_digest"}),
    "another answer": (changed("subject.output.content", "x"), DIGESTS | {"output_digest"}),
    "another context": (changed("subject.context", "x"), DIGESTS),
    "another time": (changed("subject.occurred_at_unix_ms", "1"), DIGESTS),
    "a rejected subject": (changed("subject.extra", 1), DIGESTS | {"subject"}),
    "no receipt": (changed("receipt", None), {"algorithm", *CHECKS[4:8]}),
    "no subject": (changed("subject", None), {"subject", *CHECKS[4:8]}),
    "nothing": (None, set(CHECKS[:8])),
}


@pytest.mark.parametrize("name", FAILING)
def test_each_change_fails_its_own_checks(name):
    """And no other; each failed check says why."""
    record, expected = FAILING[name]
    report = check_record(record)
    assert {check.name for check in report.checks if not check.ok} == expected
    assert all(bool(check.reason) is not check.ok for check in report.checks)
    assert not report.is_ok


@pytest.mark.parametrize("path", ["anchor", "producer", "receipt.note", "note"])
def test_what_no_digest_covers_may_change(path):
    """An anchor can be added later."""
    assert check_record(changed(path, {"log": 5})).is_ok


def test_a_wrong_digest_is_shown_beside_the_computed_one():
    """Enough to look for the difference."""
    (failed,) = [
        check for check in check_record(changed("receipt.input_digest", "0" * 64)).checks if not check.ok
    ]
    assert failed.reason == f"is {'0' * 64!r}, but {VECTORS[1]['expected']['input_digest']} was computed"


def test_failed_checks_are_findings_of_a_file():
    """For those who verify many kinds of artifacts."""
    (finding,) = check_record(changed("vdr_version", "1")).findings("records.jsonl", 3)
    assert finding.describe() == "records.jsonl:3: is '1', must be '0' [version]"


def test_the_problems_of_a_rejected_subject_are_listed():
    """By code and path."""
    problems = check_record(changed("subject.extra", 1)).problems
    assert [(problem.code, problem.path) for problem in problems] == [("unexpected_field", "extra")]


@pytest.mark.parametrize("number", [1e16, 10**16, 2**53, 123456789012345680000.0, 5e-324, -0.0, 1e-6])
def test_a_record_survives_javascript(number):
    """Which writes 1e16 as 10000000000000000; read again, the digests are the same."""
    record = record_action({**VECTORS[0]["subject"], "params": {"seed": number}})
    text = canonical.encode(CODEC.to_json(record), "jcs")
    again = read_json(text, "jcs")
    assert check_record(again).is_ok
    assert record_action(again["subject"]).receipt == record.receipt


def test_a_capsule_digest_is_recognised():
    """Ours is compared, another is told of, and what is none fails."""
    receipt = RECORDS[0]["receipt"]
    cases = {ACTION.digest: [], "0" * 64: ["warning"], "ABC": ["error"], 5: ["error"]}
    for claimed, severities in cases.items():
        for record in (
            {**RECORDS[0], "receipt": {**receipt, "capsule_digest": claimed}},
            {**RECORDS[0], "capsule_digest": claimed},
        ):
            found = check_record(record).findings("record.json")
            assert [(f.code, f.severity) for f in found] == [("capsule_digest", s) for s in severities]


def test_a_rejected_action_is_not_recorded():
    """The error carries the result."""
    with pytest.raises(ActionRejected, match=r"\Aoutput: .* \(empty_output\); only accepted") as caught:
        record_action({**VECTORS[0]["subject"], "output": {}})
    assert caught.value.result.problems[0].code == "empty_output"


def test_a_number_that_rfc_8785_cannot_hold_has_no_record():
    """It is refused as an action already; a record that claims to hold it fails."""
    subject = {**VECTORS[0]["subject"], "context": [2**53 + 1]}
    with pytest.raises(ActionRejected, match=r"context\[0\]: is an integer that no double holds"):
        record_action(subject)
    report = check_record({**RECORDS[0], "subject": subject})
    reasons = {check.name: check.reason for check in report.checks if not check.ok}
    assert set(reasons) - {"subject"} == DIGESTS
    assert reasons["subject_digest"].startswith("cannot be computed: $.context[0]: integer")
    assert report.record_digest is None


@law
@given(json_values | damaged(RECORDS))
def test_any_value_gets_a_report(value):
    """Never an exception; and only what is unchanged, but for uncovered fields, is good."""
    report = check_record(value)
    assert tuple(check.name for check in report.checks) == CHECKS
    if report.is_ok:
        assert report.record_digest in {record["receipt"]["record_digest"] for record in RECORDS} or (
            report.record_digest == value["receipt"]["record_digest"]
        )


def test_a_pack_of_good_records_has_a_digest():
    """Over their distinct record digests."""
    report = check_pack([*RECORDS, RECORDS[0]])
    digests = [vector["expected"]["record_digest"] for vector in VECTORS]
    assert (report.is_ok, report.count, report.digest) == (True, 3, pack_digest(digests))


def test_a_bad_record_spoils_the_pack():
    """It is named by its position."""
    report = check_pack([RECORDS[0], FAILING["another answer"][0], {}])
    assert (report.is_ok, report.count, report.digest) == (False, 3, None)
    assert [index for index, _ in report.failed] == [1, 2]


def test_the_empty_pack_has_the_digest_of_nothing():
    """As the format's page says."""
    assert check_pack([]).digest == pack_digest([])
