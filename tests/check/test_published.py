"""A published log proves itself against the seal, and every way to tamper with it is found out."""

from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import canonical
from reenact.check.publishing import POLICIES
from reenact.check.seals.sealing import log_leaves
from reenact.formats.dialects import DIALECTS
from reenact.formats.replay_log import read_replay_log
from tests.check.sealed_logs import (
    DIALECT_NAMES,
    SEED,
    check,
    copy,
    golden_log,
    publish,
    seal_of,
    sealed_lines,
)
from tests.formats import law
from tests.formats.replay_log_strategies import json_values, of_kind, patient, texts

HEADER = {"created_at": "2026-02-15T00:00:00Z", "producer": "p", "replay_version": 1}
TEXT = golden_log("current")
SEAL = seal_of(TEXT, "current")
LINES = publish(TEXT, "current")
OTHER_SEED = SEED[::-1]
OTHER_TEXT = TEXT.replace(b"sess_7f3a", b"sess_0000")
OTHER_LINES = publish(OTHER_TEXT, "current", seed=OTHER_SEED)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_a_published_log_proves_itself(dialect, policy):
    """Under every policy, in both dialects, without the originals."""
    text = golden_log(dialect)
    found = check(publish(text, dialect, policy), seal_of(text, dialect))
    assert found.findings == []
    assert found.facts == {"sealedLines": len(text.splitlines()), "withheldLines": []}


@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_withheld_lines_are_named(dialect):
    """Nothing of them is shown, and the log still proves itself."""
    text = golden_log(dialect)
    lines = publish(text, dialect, withhold={3, 4})
    found = check(lines, seal_of(text, dialect))
    assert (found.findings, found.facts["withheldLines"]) == ([], [3, 4])
    assert lines[3].keys() == {DIALECTS[dialect].tag_field, "seal"}


def test_processes_change_nothing_but_the_time():
    """Proofs are followed apart and joined in order; progress is told of every byte."""
    lines, told = [*LINES[:4], LINES[6], LINES[5], *LINES[7:]], []
    one = check(lines, SEAL, progress=told.append)
    assert {finding.code for finding in one.findings} == {"seal_order", "seal_missing"}
    assert one == check(lines, SEAL, processes=2)
    assert sum(told) == sum(len(canonical.encode(line)) + 1 for line in lines)


def dropped(lines, at):
    return lines[: at - 1] + lines[at:]


def swapped(lines, at):
    return [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]


def changed(lines, at, **members):
    lines = copy(lines)
    lines[at - 1] |= members
    return lines


def replaced(lines, at, line):
    return [*lines[: at - 1], line, *lines[at:]]


def without(lines, at, member):
    lines = copy(lines)
    del lines[at - 1][member]
    return lines


def unsalted(lines, at):
    """A line that claims to be the leaf of another instead of opening its own fields."""
    lines = copy(lines)
    leaf = [*log_leaves(sealed_lines(TEXT, "current"), SEED)][at - 2]
    lines[at - 1]["seal"] = {"at": at - 1, "leaf": leaf.hex()}
    return lines


# Line 2 of the file lists the leaves, so line n of the sealed log stands on line n + 1 behind the header.
TAMPERED = {
    "truncation": (
        LINES[:-2],
        [("seal_missing", None, "lines 7 to 8 of the sealed log are missing (the end")],
    ),
    "truncation of the last line": (
        LINES[:-1],
        [("seal_missing", None, "line 8 of the sealed log is missing")],
    ),
    "deletion": (dropped(LINES, 5), [("seal_missing", None, "line 4 of the sealed log is missing")]),
    "deletion of the header": (dropped(LINES, 1), [("seal_missing", None, "line 1 of the sealed log")]),
    "reordering": (
        swapped(LINES, 4),
        [("seal_order", 5, "is line 3 of the sealed log but comes after line 4")],
    ),
    "repetition": (
        [*LINES[:5], LINES[4], *LINES[5:]],
        [("seal_repeated", 6, "is line 4 of the sealed log again")],
    ),
    "substitution of a value": (
        changed(LINES, 4, tool="rm"),
        [
            ("seal_line", 4, "is not a line of the sealed log"),
            ("seal_missing", None, "line 3 of the sealed log is"),
        ],
    ),
    "substitution by a line of the same run": (
        replaced(LINES, 4, LINES[5]),
        [
            ("seal_order", 5, "is line 4 of the sealed log but comes after line 5"),
            ("seal_repeated", 6, "is line 5 of the sealed log again"),
            ("seal_missing", None, "line 3 of the sealed log is missing"),
        ],
    ),
    "mixing two runs": (
        replaced(LINES, 5, OTHER_LINES[4]),
        [
            ("seal_line", 5, "changed, or is from another run"),
            ("seal_missing", None, "line 4 of the sealed log is"),
        ],
    ),
    "addition of a line of another run": (
        [*LINES, OTHER_LINES[4]],
        [("seal_line", 10, "is not a line of the sealed log")],
    ),
    "addition of a line without proof": (
        [*LINES, {"type": "Note", "text": "all is well"}],
        [("seal_proof", 10, "has no proof")],
    ),
    "addition of a member": (
        changed(LINES, 4, note="all is well"),
        [("seal_unproven", 4, "nothing proves this member")],
    ),
    "removal of a member": (
        without(LINES, 4, "tool"),
        [("seal_proof", 4, "opens $.tool, which the line does not have"), ("seal_missing", None, "line 3")],
    ),
    "a line that hides behind a leaf": (
        unsalted(LINES, 4),
        [("seal_proof", 4, "shows members without their salts"), ("seal_missing", None, "line 3")],
    ),
    "a proof that says more": (
        changed(LINES, 4, seal=LINES[3]["seal"] | {"note": "all is well"}),
        [("seal_proof", 4, "a proof has `at`"), ("seal_missing", None, "line 3")],
    ),
    "a proof that says another place": (
        changed(LINES, 4, seal=LINES[3]["seal"] | {"at": 4}),
        [
            ("seal_proof", 4, "says that it is line 4 of the sealed log, and is line 3"),
            ("seal_missing", None, "3"),
        ],
    ),
    "a list of leaves that starts elsewhere": (
        changed(LINES, 2, **{"from": 2}),
        [("seal_leaves", 2, "leaves from 1 on are expected here")],
    ),
    "half a list of leaves": (
        changed(LINES, 2, leaves=LINES[1]["leaves"][:-4]),
        [("seal_leaves", 2, "holds half a hash")],
    ),
    "a list of leaves that says more": (
        changed(LINES, 2, note="all is well"),
        [("seal_leaves", None, "lists no leaves")],
    ),
    "an event that poses as a list of leaves": (
        [*LINES, {"type": "ToolCall", "event": "SealLeaves", "from": 1, "leaves": ""}],
        [("seal_proof", 10, "has no proof")],
    ),
    "leaves of another run": (
        replaced(LINES, 2, OTHER_LINES[1]),
        [("seal_leaves", None, "the leaves it lists are not those of the seal")],
    ),
    "a list of leaves cut out": (dropped(LINES, 2), [("seal_leaves", None, "lists no leaves")]),
    "a log of another run": (
        OTHER_LINES,
        [("seal_leaves", None, "the seal of another run, or a changed list")],
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found_out(name):
    """Each way by its own finding, at its own line."""
    lines, expected = TAMPERED[name]
    found = check(lines, SEAL).findings
    assert [(finding.code, finding.line) for finding in found] == [(code, line) for code, line, _ in expected]
    for finding, (_, _, message) in zip(found, expected, strict=True):
        assert message in finding.message
        assert finding.severity == "error"


MEMBERS = [
    (at, name) for at, line in enumerate(LINES) for name in line if name not in ("seal", "leaves", "from")
]


@law
@given(st.sampled_from(MEMBERS), st.text(max_size=4) | st.integers(-9, 9) | st.booleans() | st.none())
def test_no_member_can_be_changed(place, value):
    """Whatever it is changed to."""
    at, name = place
    lines = copy(LINES)
    same = repr(lines[at][name]) == repr(value)
    lines[at][name] = value
    assert bool(check(lines, SEAL).findings) is not same


@law
@given(st.lists(st.sampled_from(range(len(LINES))), max_size=12))
def test_only_the_whole_log_in_its_order_is_good(order):
    """Any other selection of its lines, with repetition or without, has a finding."""
    is_whole = [at for at in order if at != 1] == [0, *range(2, len(LINES))] and 1 in order
    found = check([LINES[at] for at in order], SEAL).findings
    assert (not found) is (is_whole and order.count(1) == 1)


@st.composite
def logs(draw):
    """A log of any events, known and unknown, with unknown members at every level."""
    dialect = DIALECTS[draw(st.sampled_from(DIALECT_NAMES))]
    header = {dialect.tag_field: "ReplayHeader", **HEADER}
    odd = st.dictionaries(texts, json_values, max_size=2).map(
        lambda value: value | {dialect.tag_field: "Odd"}
    )
    events = draw(st.lists(of_kind(dialect.kind) | odd, max_size=4))
    lines = [header, *(line for line in events if line[dialect.tag_field] != "ReplayHeader")]
    return dialect.name, b"".join(canonical.encode(line) + b"\n" for line in lines)


@settings(patient, max_examples=40)
@given(logs(), st.sampled_from(POLICIES), st.sets(st.integers(2, 5)))
def test_every_log_can_be_sealed_published_and_verified(log, policy, withhold):
    """Whatever is in it; and what is published is a log."""
    dialect, text = log
    lines = publish(text, dialect, policy, withhold=withhold)
    assert check(lines, seal_of(text, dialect)).findings == []
    published = b"".join(canonical.encode(line) + b"\n" for line in lines)
    assert len([*read_replay_log(BytesIO(published), file="published")]) == len(lines)


DAMAGED = {
    "no object": 5,
    "no position": {"fields": []},
    "both": {"at": 3, "fields": [], "leaf": "00"},
    "neither": {"at": 3},
    "a short salt": {"at": 3, "fields": [["$.tool", "00"]]},
    "a long commitment": {"at": 3, "fields": ["00" * 33]},
    "capital letters": {"at": 3, "fields": ["AA" * 32]},
    "a field of three": {"at": 3, "fields": [["$.tool", "00" * 16, 1]]},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_proof_is_a_finding_of_its_line(name):
    """With the place inside it."""
    found = check(changed(LINES, 4, seal=DAMAGED[name]), SEAL).findings[0]
    assert (found.code, found.line) == ("seal_proof", 4)
    assert found.json_path.startswith("$.seal")
