"""One event of a sealed run can be proved and opened alone, and nothing else can be passed off as it."""

import json

import msgspec
import pytest

from reenact.check.publishing import fields_of
from reenact.check.seals.sealing import disclose, event_leaves, line_fields, log_leaves, prove, tree_of
from reenact.check.seals.verify import check_disclosure
from reenact.errors import FormatError, UsageError
from reenact.formats.seal import (
    Disclosure,
    SealedCapture,
    disclosure_codec,
    read_disclosure,
    write_disclosure,
)
from tests.check.sealed_logs import SEED, golden_log, seal_of, sealed_lines
from tests.formats import UNREADABLE

EVENTS = [
    b'{"captureId":"c","data":{"args":{"city":"Bern","days":3},"callId":"c%d","tool":"weather"},"runId":"r",'
    b'"seq":%d,"ts":2,"type":"tool_call","version":1}' % (seq, seq)
    for seq in range(1, 8)
]
LEAVES = [*event_leaves(EVENTS, SEED)]
LINES = sealed_lines(golden_log("current"), "current")
LOG_LEAVES = [*log_leaves(LINES, SEED)]
SEAL = msgspec.structs.replace(
    seal_of(golden_log("current"), "current"),
    capture=SealedCapture(
        captureId="c", runId="r", manifestHash="sha256:0", eventsHash="sha256:0", events=tree_of(LEAVES)
    ),
)


def opened(*names, position=3):
    fields = fields_of(json.loads(EVENTS[position - 1]))
    return disclose(LEAVES, "events", position, fields=fields, seed=SEED, names=names)


def codes(disclosure):
    return [finding.code for finding in check_disclosure(disclosure, SEAL, file="d.json").findings]


@pytest.mark.parametrize("position", range(1, 8))
def test_every_event_can_be_proved(position):
    """At its own place, without telling anything about it."""
    proof = prove(LEAVES, "events", position)
    found = check_disclosure(proof, SEAL, file="p.json")
    assert found.findings == []
    assert found.facts == {"tree": "events", "position": position, "of": 7, "disclosed": {}}
    assert b"Bern" not in write_disclosure(proof)


def test_chosen_fields_are_disclosed_and_no_others():
    """Values with their salts; the rest stays commitments."""
    disclosure = opened("$.data.args.city")
    assert check_disclosure(disclosure, SEAL, file="d").facts["disclosed"] == {"$.data.args.city": "Bern"}
    assert b"weather" not in write_disclosure(disclosure)
    assert b"days" not in write_disclosure(disclosure)


def test_a_path_stands_for_all_below_it():
    """The whole of the arguments, in one go."""
    disclosed = check_disclosure(opened("$.data.args"), SEAL, file="d").facts["disclosed"]
    assert disclosed == {"$.data.args.city": "Bern", "$.data.args.days": 3}


def test_a_line_of_the_log_can_be_opened_too():
    """As it was, and as a policy publishes it."""
    fields = line_fields(LINES[5]).committed
    names = ["$.error.message", "private:$.error.message"]
    found = disclose(LOG_LEAVES, "log", 6, fields=fields, seed=SEED, names=names)
    assert check_disclosure(found, SEAL, file="d").facts["disclosed"] == {
        "$.error.message": "read-only file system",
        "private:$.error.message": "<withheld>",
    }


def test_an_unknown_field_is_refused_with_those_there_are():
    """The user need not guess."""
    with pytest.raises(UsageError, match=r"no field '\$.data.arg'; it has \$.captureId, \$.data.args.city"):
        opened("$.data.arg")


def with_value(disclosure, value):
    fields = [entry if isinstance(entry, str) else (*entry[:2], value) for entry in disclosure.fields]
    return msgspec.structs.replace(disclosure, fields=fields)


GOOD = opened("$.data.args.city")
FORGED = {
    "another value": with_value(GOOD, "Basel"),
    "another type of value": with_value(opened("$.data.args.days"), 3.0),
    "another place": msgspec.structs.replace(GOOD, position=4),
    "the first place": msgspec.structs.replace(GOOD, position=0),
    "a place behind the end": msgspec.structs.replace(GOOD, position=8),
    "another tree": msgspec.structs.replace(GOOD, tree="log"),
    "a shorter path": msgspec.structs.replace(GOOD, path=GOOD.path[:-1]),
    "no path": msgspec.structs.replace(GOOD, path=[]),
    "a field dropped": msgspec.structs.replace(GOOD, fields=GOOD.fields[:-1]),
    "fields in another order": msgspec.structs.replace(GOOD, fields=GOOD.fields[::-1]),
    "a leaf of another run": prove([*event_leaves(EVENTS, SEED[::-1])], "events", 3),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_disclosure_is_found_out(name):
    """It does not lead to the root that was signed."""
    assert codes(FORGED[name]) == ["seal_disclosure"]


def test_a_seal_of_a_log_has_no_events():
    """A disclosure of an event belongs to another seal."""
    found = check_disclosure(GOOD, seal_of(golden_log("current"), "current"), file="d.json")
    assert [finding.code for finding in found.findings] == ["seal_foreign"]


BAD = {
    **UNREADABLE,
    "a newer version": b'{"disclosure":2}',
    "neither leaf nor fields": b'{"disclosure":1,"path":[],"position":1,"tree":"log"}',
    "both": b'{"disclosure":1,"fields":[],"leaf":"","path":[],"position":1,"tree":"log"}',
    "an unknown tree": b'{"disclosure":1,"leaf":"","path":[],"position":1,"tree":"oak"}',
    "a field of two": b'{"disclosure":1,"fields":[["a","b"]],"path":[],"position":1,"tree":"log"}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_disclosure_is_refused(name):
    """With its file."""
    with pytest.raises(FormatError, match=r"^d\.json: "):
        read_disclosure(BAD[name], file="d.json")


@pytest.mark.parametrize("change", [{"path": ["zz"]}, {"leaf": "00"}])
def test_a_hash_that_is_none_is_refused(change):
    """Fail closed, with the place."""
    proof = msgspec.structs.replace(prove(LEAVES, "events", 3), **change)
    with pytest.raises(FormatError, match=r"^d.json: \$.(path\[0\]|leaf): not 64 lowercase hex digits"):
        check_disclosure(proof, SEAL, file="d.json")


def test_a_disclosure_survives_its_file():
    """Unknown members included."""
    text = write_disclosure(GOOD)
    assert read_disclosure(text, file="d") == GOOD
    kept = read_disclosure(text.replace(b'{"dis', b'{"a":1,"dis'), file="d")
    assert disclosure_codec.to_json(kept)["a"] == 1
    assert isinstance(kept, Disclosure)
