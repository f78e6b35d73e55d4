"""RECEIPT.json in its two shapes."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.hashes import trajectory_hash
from reenact.formats.receipt import LegacyReceipt, Receipt, read_receipt, write_receipt

from .replay_log_strategies import of_kind, patient

GOLDEN = Path(__file__).parents[1] / "golden"
CURRENT = (GOLDEN / "receipt" / "current.json").read_bytes()
LEGACY = (GOLDEN / "receipt" / "legacy.json").read_bytes()
SHAPES = {"current": (CURRENT, Receipt), "legacy": (LEGACY, LegacyReceipt)}


@pytest.mark.parametrize(("data", "kind"), SHAPES.values(), ids=SHAPES)
def test_golden_receipt_is_read_and_written_back(data, kind):
    """One reader tells the shapes apart; what it read is written in the same bytes."""
    receipt = read_receipt(data, "RECEIPT.json")
    assert type(receipt) is kind
    assert write_receipt(receipt) == data


def test_golden_receipt_names_the_golden_log():
    """The trajectory hash of the receipt is that of the log beside it."""
    with (GOLDEN / "replay_log" / "current.jsonl").open("rb") as log:
        assert read_receipt(CURRENT, "f").trajectory_hash == trajectory_hash(log, file="current.jsonl")


def test_the_least_receipt():
    """Four fields are required, no more."""
    value = {
        "schema": "openagents.receipt.v1",
        "session_id": "s",
        "trajectory_hash": "h",
        "policy_bundle_id": "p",
    }
    assert write_receipt(read_receipt(json.dumps(value).encode(), "f")) == canonical.encode(value) + b"\n"


@patient
@given(st.data(), st.sampled_from([Receipt, LegacyReceipt]))
def test_reading_undoes_writing(data, kind):
    """Every receipt, with unknown fields at every level, comes back equal and in the same bytes."""
    value = data.draw(of_kind(kind).filter(lambda value: kind is Receipt or "schema" not in value))
    receipt = read_receipt(json.dumps(value).encode(), "f")
    assert type(receipt) is kind
    assert write_receipt(receipt) == canonical.encode(value) + b"\n"
    assert read_receipt(write_receipt(receipt), "f") == receipt


BAD = {
    "empty": (b"", None, "not JSON"),
    "binary": (b"\xff\x00", None, "not UTF-8"),
    "truncated": (CURRENT[:100], None, "not JSON"),
    "an array": (b"[]", "$", "`array`"),
    "empty object": (b"{}", "$.final_confidence", "required, but missing"),
    "foreign schema": (b'{"schema":"a.b"}', "$.schema", "expected openagents.receipt.v1"),
    "schema as number": (b'{"schema":1}', "$.schema", "expected openagents.receipt.v1"),
    "field missing": (CURRENT.replace(b'"session_id"', b'"session"'), "$.session_id", "required"),
    "wrong type below": (
        CURRENT.replace(b'"exit_code":0', b'"exit_code":"0"'),
        "$.verification[0].exit_code",
        "`str`",
    ),
    "bad time": (LEGACY.replace(b"2026-01-13T10:05", b"2026-01-13 10:05"), "$.completed_at", "RFC 3339"),
    "duplicate key": (b'{"schema":"x","schema":"y"}', "$", "'schema' appears twice"),
    "integer beyond 64 bits": (
        CURRENT.replace(b'"payments":[]', b'"payments":[{"a":%d}]' % 2**64),
        "$.payments[0].a",
        "64 bits",
    ),
    "nested 10,000 deep": (b"[" * 10_000, None, "nested deeper than 254 levels"),
}


@pytest.mark.parametrize(("data", "json_path", "reason"), BAD.values(), ids=BAD)
def test_bad_receipt_is_refused_with_its_place(data, json_path, reason):
    """The error names file and JSON path, and says on one line what is wrong."""
    with pytest.raises(FormatError) as caught:
        read_receipt(data, "RECEIPT.json")
    assert (caught.value.file, caught.value.json_path) == ("RECEIPT.json", json_path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_newer_version_is_refused_with_the_remedy():
    """A newer schema is not half-read."""
    with pytest.raises(UnknownVersion, match="install a newer reenact"):
        read_receipt(CURRENT.replace(b"receipt.v1", b"receipt.v2"), "RECEIPT.json")


def test_writer_refuses_what_could_not_be_read_again():
    """A receipt built by hand with a value outside its type is not written."""
    receipt = Receipt(
        schema="openagents.receipt.v1",
        session_id="s",
        trajectory_hash="h",
        policy_bundle_id="p",
        created_at="now",
    )
    with pytest.raises(FormatError, match=r"\$\.created_at: 'now' is not an RFC 3339 time"):
        write_receipt(receipt)


@patient
@given(st.binary(max_size=60), st.integers(0, len(CURRENT)))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data, place):
    """Whatever is spliced into a receipt, it is one or a FormatError."""
    for damaged in (data, CURRENT[:place] + data + CURRENT[place:], LEGACY[:place] + data):
        with suppress(FormatError):
            read_receipt(damaged, "f")
