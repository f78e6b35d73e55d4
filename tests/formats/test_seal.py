"""Seals in their envelopes: what is signed, and what is refused."""

import base64
import json

import pytest

from reenact.check.seals.keys import key_id
from reenact.check.seals.sealing import sign_seal
from reenact.check.seals.verify import signature_problem
from reenact.cli import main
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.seal import (
    PAYLOAD_TYPE,
    head_to_bytes,
    line_to_bytes,
    payload_of,
    read_envelope,
    read_seal,
    read_sealed_lines,
    read_seed,
    seal_to_bytes,
    to_be_signed,
)
from tests.check.sealed_logs import KEY, SEED, golden_log, seal_of, sealed_lines
from tests.formats import GOLDEN, UNREADABLE, examples

SEAL = seal_of(golden_log("current"), "current")
TEXT = sign_seal(SEAL, KEY)
ENVELOPE = json.loads(TEXT)


def test_what_is_signed_is_dsses_encoding():
    """The example of DSSE's own protocol page."""
    encoded = to_be_signed("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_are_counted_in_bytes():
    """Not in characters."""
    assert to_be_signed("é", "ü".encode()) == "DSSEv1 2 é 2 ü".encode()


def test_a_seal_survives_its_envelope():
    """And the signature holds for its key."""
    envelope = read_envelope(TEXT, file="s")
    assert read_seal(payload_of(envelope), file="s") == SEAL
    assert signature_problem(envelope, KEY.public_key()) is None
    assert envelope.signatures[0].keyid == key_id(KEY.public_key())


def test_sealing_is_a_function_of_seal_and_key():
    """Ed25519 needs no chance, so the same seal gets the same envelope."""
    assert sign_seal(SEAL, KEY) == TEXT


def changed_payload(**members):
    payload = json.loads(base64.b64decode(ENVELOPE["payload"])) | members
    return ENVELOPE | {"payload": base64.b64encode(json.dumps(payload).encode()).decode()}


def test_a_changed_payload_breaks_the_signature():
    """The reason says so, because the key is right."""
    envelope = read_envelope(json.dumps(changed_payload(producer="else")).encode(), file="s")
    assert signature_problem(envelope, KEY.public_key()) == (
        "the signature does not hold: the seal was changed after it was signed"
    )


DAMAGED = {
    **{name: (text, "s.json: ") for name, text in UNREADABLE.items()},
    "another payload type": (
        json.dumps(ENVELOPE | {"payloadType": "application/vnd.in-toto+json"}).encode(),
        "s.json: $.payloadType: the envelope holds 'application/vnd.in-toto+json', not",
    ),
    "no signature": (
        json.dumps(ENVELOPE | {"signatures": []}).encode(),
        "s.json: $.signatures: the envelope is",
    ),
    "a payload that is no base64": (
        json.dumps(ENVELOPE | {"payload": "§"}).encode(),
        "s.json: $.payload: not base64",
    ),
    "a signature that is no base64": (
        json.dumps(ENVELOPE | {"signatures": [{"keyid": "k", "sig": "a"}]}).encode(),
        "s.json: $.signatures[0].sig: not base64",
    ),
    "half a file": (TEXT[:100], "s.json: not JSON"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_envelope_is_refused(name):
    """With the place and the reason, in one line."""
    text, message = DAMAGED[name]
    with pytest.raises(FormatError) as caught:
        read_envelope(text, file="s.json")
    assert str(caught.value).startswith(message)


def test_a_newer_seal_is_refused():
    """With the remedy."""
    with pytest.raises(UnknownVersion, match="seal version 2 is newer"):
        read_seal(
            payload_of(read_envelope(json.dumps(changed_payload(version=2)).encode(), file="s")), file="s"
        )


def test_the_payload_is_canonical_and_named():
    """Others can make the same bytes."""
    assert seal_to_bytes(SEAL) == base64.b64decode(ENVELOPE["payload"])
    assert ENVELOPE["payloadType"] == PAYLOAD_TYPE


def test_the_pages_example_is_a_seal():
    """What prose promises, a test checks."""
    (example,) = examples("seal.md", "seal")
    assert read_seal(example, file="seal.md").capture.runId == "run_9b4e6b58b9380df2"


PROVED = sorted(path for path in (GOLDEN / "seal").iterdir() if path.name.endswith(("l", "disclosure.json")))


@pytest.mark.parametrize("path", PROVED, ids=lambda path: path.name)
def test_golden_publications_verify_for_ever(path, capsys):
    """What was sealed and published once stays verifiable, whatever later versions publish."""
    dialect = path.name.partition("-")[0].partition(".")[0]
    options = [
        "--seal",
        str(GOLDEN / "seal" / f"{dialect}.seal.json"),
        "--key",
        str(GOLDEN / "seal" / "signer.pub"),
    ]
    main(["verify", str(path), *options, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert not [finding for finding in report["findings"] if finding["code"].startswith("seal")]
    assert report["facts"]["signedBy"] == key_id(KEY.public_key())


def test_a_secret_survives_its_file(tmp_path):
    """Seed and lines, whatever version words the forms."""
    lines = sealed_lines(golden_log("legacy"), "legacy")
    file = tmp_path / "secret"
    file.write_bytes(head_to_bytes(SEED) + b"".join(map(line_to_bytes, lines)))
    with file.open("rb") as stream:
        assert read_seed(stream, file="s") == SEED
    with file.open("rb") as stream:
        assert [*read_sealed_lines(stream, file="s")] == lines


@pytest.mark.parametrize(
    "text", [b"", b"5\n", b'{"version":1,"seed":"00"}\n', b'{"version":2,"seed":""}\n', b"{\n"]
)
def test_a_damaged_secret_is_refused(text, tmp_path):
    """With its file; a seed that is too short is none."""
    file = tmp_path / "secret"
    file.write_bytes(text)
    with file.open("rb") as stream, pytest.raises(FormatError, match=r"^s"):
        read_seed(stream, file="s")
