"""The verifiable record: digests that anyone can recompute."""

import copy
import json
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError, UnknownVersion
from reenact.formats.verifiable import (
    CODEC,
    pack_digest,
    read_verifiable,
    receipt_for,
    verifiable_record,
    write_verifiable,
)
from tests.formats import GOLDEN, UNREADABLE, examples, golden_files, json_values, law, texts, unknown_fields

VECTORS = json.loads((GOLDEN / "action" / "vectors.json").read_text(encoding="utf-8"))["vectors"]
MINIMAL = VECTORS[0]["subject"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_vectors_hold(vector):
    """All four digests, as the reference engine computed them."""
    assert msgspec.to_builtins(receipt_for(vector["subject"], vector["profile"])) == vector["expected"]


COVERED = {
    "context": ("context", {"subject_digest", "record_digest"}),
    "model": ("model", {"subject_digest", "record_digest", "input_digest"}),
    "params": ("params", {"subject_digest", "record_digest", "input_digest"}),
    "input": ("input", {"subject_digest", "record_digest", "input_digest"}),
    "output": ("output", {"subject_digest", "record_digest", "output_digest"}),
}


@pytest.mark.parametrize("name", COVERED)
def test_each_digest_covers_its_part_and_no_other(name):
    """Changing one part of the subject changes exactly the digests over it."""
    key, expected = COVERED[name]
    before = msgspec.to_builtins(receipt_for(MINIMAL))
    after = msgspec.to_builtins(receipt_for({**MINIMAL, key: {"changed": True}}))
    assert {digest for digest in before if before[digest] != after[digest]} == expected


def test_absent_params_count_as_null_in_the_input_alone():
    """The input digest cannot tell them apart; the subject digest can."""
    absent, null = receipt_for(MINIMAL), receipt_for({**MINIMAL, "params": None})
    assert absent.input_digest == null.input_digest
    assert absent.subject_digest != null.subject_digest


def test_the_profile_is_part_of_the_record_digest_alone():
    """The same subject under another profile is another record."""
    one, other = receipt_for(MINIMAL), receipt_for(MINIMAL, "other")
    assert one.record_digest != other.record_digest
    assert one.subject_digest == other.subject_digest


@pytest.mark.parametrize("key", ["model", "input", "output"])
def test_a_subject_without_a_digested_part_has_no_receipt(key):
    """The error names the missing part instead of hashing a null."""
    subject = {name: value for name, value in MINIMAL.items() if name != key}
    with pytest.raises(FormatError) as caught:
        receipt_for(subject)
    assert caught.value.json_path == f"$.subject.{key}"


def test_anchor_and_producer_are_covered_by_no_digest():
    """They may be added after the fact."""
    bare = verifiable_record(MINIMAL)
    assert verifiable_record(MINIMAL, anchor={"log": 5}, producer=None).receipt == bare.receipt


DIGESTS = ["b" * 64, "a" * 64]


def test_a_pack_is_the_sorted_distinct_digests_one_line_each():
    """The rule spelt out."""
    expected = sha256(f"{'a' * 64}\n{'b' * 64}\n".encode()).hexdigest()
    assert pack_digest(DIGESTS) == pack_digest(iter([*DIGESTS, *DIGESTS])) == expected


def test_the_pack_of_the_golden_records_keeps_its_digest():
    """Pinned from outside: sort the record digests, one line each, and feed them to sha256sum."""
    records = [read_verifiable(path.read_bytes(), path.name) for path in golden_files("verifiable")]
    digest = "ce18393bf5ea21dd7ea113743efee4ef2178b736f14357b8b40c0c84d6d59679"
    assert pack_digest(record.receipt.record_digest for record in records) == digest


@law
@given(st.lists(st.binary(max_size=4).map(lambda data: sha256(data).hexdigest())), st.randoms())
def test_a_pack_does_not_depend_on_order_or_repetition(digests, random):
    """Only the set of records counts."""
    shuffled = digests + digests[:2]
    random.shuffle(shuffled)
    assert pack_digest(shuffled) == pack_digest(digests)


@pytest.mark.parametrize("digest", ["", "a" * 63, "A" * 64, f"{'a' * 64}\n", f"sha256:{'a' * 64}"])
def test_a_pack_takes_bare_lowercase_hex_only(digest):
    """Anything else would let two spellings of one record differ."""
    with pytest.raises(FormatError, match="64 lowercase hex"):
        pack_digest([digest])


RECORD = CODEC.to_json(verifiable_record(MINIMAL))


def changed(path, value):
    record = copy.deepcopy(RECORD)
    *parents, last = path
    place = record
    for key in parents:
        place = place[key]
    place[last] = value
    return json.dumps(record).encode()


BAD = {
    "version a number": (changed(["vdr_version"], 0), "$.vdr_version"),
    "subject a string": (changed(["subject"], "x"), "$.subject"),
    "receipt null": (changed(["receipt"], None), "$.receipt"),
    "other algorithm": (changed(["receipt", "alg"], "md5"), "$.receipt.alg"),
    "digest too short": (changed(["receipt", "input_digest"], "a" * 63), "$.receipt.input_digest"),
    "digest in capitals": (changed(["receipt", "input_digest"], "A" * 64), "$.receipt.input_digest"),
    "digest with prefix": (
        changed(["receipt", "input_digest"], f"sha256:{'a' * 64}"),
        "$.receipt.input_digest",
    ),
    "digest with line end": (changed(["receipt", "input_digest"], f"{'a' * 64}\n"), "$.receipt.input_digest"),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_named_by_its_path(name):
    """Types and spelling are checked on reading; digests are not recomputed."""
    data, path = BAD[name]
    with pytest.raises(FormatError) as caught:
        read_verifiable(data, "record.json")
    assert str(caught.value).startswith(f"record.json: {path}: ")


def test_another_version_is_refused():
    """Whatever its other fields are."""
    with pytest.raises(UnknownVersion, match="install a newer reenact"):
        read_verifiable(b'{"vdr_version": "1"}', "record.json")


def test_a_wrong_digest_reads():
    """A record that lies is still a record; verification is what finds it out."""
    record = read_verifiable(changed(["receipt", "input_digest"], "a" * 64), "record.json")
    assert record.receipt != receipt_for(record.subject)


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused(name):
    """Nothing that is no record gets through, and the error names the file on one line."""
    with pytest.raises(FormatError, match=r"\Arecord\.json: [^\n]+\Z"):
        read_verifiable(UNREADABLE[name], "record.json")


@pytest.mark.parametrize("path", golden_files("verifiable"), ids=lambda path: path.stem)
def test_golden_files_are_written_as_they_were_read_and_hold(path):
    """The same bytes and the same digests for ever."""
    record = read_verifiable(path.read_bytes(), path.name)
    assert write_verifiable(record) == path.read_bytes()
    assert receipt_for(record.subject, record.profile) == record.receipt


def test_the_page_shows_records_that_read_and_hold():
    """Every example of the format's page has the digests it claims."""
    records = examples("action.md", "verifiable")
    assert records
    for text in records:
        record = read_verifiable(text, "action.md")
        assert receipt_for(record.subject, record.profile) == record.receipt


@law
@given(
    st.dictionaries(texts, json_values, max_size=3),
    json_values,
    json_values,
    unknown_fields(),
    unknown_fields(),
)
def test_writing_and_reading_keep_every_field(subject, anchor, producer, in_record, in_receipt):
    """The subject is any object, and unknown fields survive beside it."""
    receipt = {**RECORD["receipt"], **in_receipt}
    value = {
        **RECORD,
        "subject": subject,
        "receipt": receipt,
        "anchor": anchor,
        "producer": producer,
        **in_record,
    }
    record = CODEC.from_json(value)
    assert read_verifiable(write_verifiable(record), "record.json") == record
    assert json.loads(write_verifiable(record)) == value


@law
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No record is that short, so every one is refused."""
    with pytest.raises(FormatError):
        read_verifiable(data, "record.json")
