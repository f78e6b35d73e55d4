"""The files of sealing: the seal, signed in a DSSE envelope; its secret; disclosures; proofs of lines.

The secret has the seed of the salts and the sealed log in the forms of all policies. It stays with the
sealer. The forms are stored because a later version may publish events differently, and then could no longer
publish the sealed log. A disclosure proves that an event belongs to a sealed run, and reveals some of its
fields; a published line has the same list of fields, with the values in the line itself.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal

from reenact.canonical import JsonField, JsonValue, read_json
from reenact.errors import FormatError
from reenact.formats.dialects.common import DialectName
from reenact.formats.lines import Line, read_lines
from reenact.formats.record import ABSENT, Absent, Codec, Count, Record, upgrade
from reenact.formats.rfc3339 import Time, verify_time

SEAL_VERSION: Final = 1
PAYLOAD_TYPE: Final = "application/vnd.reenact.seal+json"
HASH_BYTES: Final = 32
SALT_BYTES: Final = 16


class Tree(Record, frozen=True):
    """A Merkle tree with one leaf per event."""

    count: Count
    root: str
    """Lowercase hex."""


class SealedCapture(Record, frozen=True):
    """The capture that was sealed."""

    captureId: str  # noqa: N815 — the capture's own names, as all below
    runId: str  # noqa: N815
    manifestHash: str  # noqa: N815
    """Over the bytes of ``manifest.json``."""
    eventsHash: str  # noqa: N815
    """Over the bytes of ``events.jsonl``."""
    events: Tree


class SealedLog(Record, frozen=True):
    """The REPLAY.jsonl that was sealed, alone or as the log of a capture."""

    dialect: DialectName
    lines: Tree
    trajectoryHash: str | Absent = ABSENT  # noqa: N815
    """For a log that was sealed alone; the log of a capture need not exist as a file."""


class Seal(Record, frozen=True):
    """The statement that is signed."""

    version: Literal[1]
    sealedAt: Time  # noqa: N815
    producer: str
    log: SealedLog
    capture: SealedCapture | Absent = ABSENT


class Signature(Record, frozen=True):
    """One signature of an envelope."""

    keyid: str
    sig: str


class Envelope(Record, frozen=True):
    """A DSSE envelope: a payload, its type, and its signatures."""

    payload: str
    payloadType: str  # noqa: N815 — DSSE's own name
    signatures: list[Signature]


_seal_codec: Final[Codec[Seal]] = Codec(Seal)
_envelope_codec: Final[Codec[Envelope]] = Codec(Envelope)


def to_be_signed(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload, each after its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal_to_bytes(seal: Seal) -> bytes:
    """The payload that is signed."""
    return _seal_codec.to_bytes(seal)


def read_seal(payload: bytes, *, file: str) -> Seal:
    """The statement in a payload whose signature was checked."""
    try:
        value = _object(payload)
        current = upgrade(value, field="version", current=SEAL_VERSION, steps={}, what="seal")
        seal = _seal_codec.from_json(current)
        verify_time(seal.sealedAt, "$.sealedAt")
    except FormatError as error:
        raise error.at(file=file) from None
    return seal


def write_envelope(payload: bytes, keyid: str, signature: bytes) -> bytes:
    """The text of an envelope with one signature."""
    signed = Signature(keyid=keyid, sig=b64encode(signature).decode())
    envelope = Envelope(payload=b64encode(payload).decode(), payloadType=PAYLOAD_TYPE, signatures=[signed])
    return _envelope_codec.to_bytes(envelope) + b"\n"


def read_envelope(text: bytes, *, file: str) -> Envelope:
    """An envelope with a seal; the signature is not checked."""
    try:
        envelope = _envelope_codec.from_json(_object(text))
        if envelope.payloadType != PAYLOAD_TYPE:
            reason = f"the envelope holds {envelope.payloadType[:80]!r}, not {PAYLOAD_TYPE!r}; name a seal"
            raise FormatError(reason, json_path="$.payloadType")
        if not envelope.signatures:
            raise FormatError("the envelope is not signed; seal the run again", json_path="$.signatures")
        payload_of(envelope)
        for index, signature in enumerate(envelope.signatures):
            base64_bytes(signature.sig, f"$.signatures[{index}].sig")
    except FormatError as error:
        raise error.at(file=file) from None
    return envelope


def payload_of(envelope: Envelope) -> bytes:
    """The bytes that were signed."""
    return base64_bytes(envelope.payload, "$.payload")


def base64_bytes(text: str, json_path: str) -> bytes:
    """The bytes of a text in standard base64; :class:`FormatError` if it is not base64.

    Unused bits of the last character must be 0, so that equal bytes have one text.
    """
    try:
        found = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        found = None
    if found is None or b64encode(found).decode() != text:
        raise FormatError("not base64; copy the file again", json_path=json_path)
    return found


def hex_bytes(text: str, size_bytes: int, json_path: str) -> bytes:
    """The bytes of a text in lowercase hex; :class:`FormatError` if it is not."""
    if len(text) != 2 * size_bytes or set(text) - set("0123456789abcdef"):
        raise FormatError(f"not {2 * size_bytes} lowercase hex digits", json_path=json_path)
    return bytes.fromhex(text)


def _object(text: bytes) -> dict[str, JsonValue]:
    value = read_json(text)
    if not isinstance(value, dict):
        raise FormatError("expected an object", json_path="$")
    return value


SECRET_VERSION: Final = 1
SEED_BYTES: Final = 32


class SecretHead(Record, frozen=True):
    """The first line."""

    version: Literal[1]
    seed: str
    """Lowercase hex, 256 bits; with it every commitment can be opened."""

    @property
    def seed_bytes(self) -> bytes:
        return hex_bytes(self.seed, SEED_BYTES, "$.seed")


class SealedLine(Record, frozen=True):
    """One line of the sealed log, unchanged and as each policy publishes it."""

    original: dict[str, JsonField]
    open: dict[str, JsonField] | Absent = ABSENT
    """Absent, like those below, if the event must not be published."""
    private: dict[str, JsonField] | Absent = ABSENT
    paranoid: dict[str, JsonField] | Absent = ABSENT


_head_codec: Final[Codec[SecretHead]] = Codec(SecretHead)
_line_codec: Final[Codec[SealedLine]] = Codec(SealedLine)


def head_to_bytes(seed: bytes) -> bytes:
    """The first line of a secret, with its line end."""
    return _head_codec.to_bytes(SecretHead(version=SECRET_VERSION, seed=seed.hex())) + b"\n"


def line_to_bytes(line: SealedLine) -> bytes:
    """One of the other lines."""
    return _line_codec.to_bytes(line) + b"\n"


def read_seed(stream: BinaryIO, *, file: str) -> bytes:
    """Read only the seed; the position of the stream is undefined afterwards."""
    for line in read_lines(stream, file=file):
        try:
            value = read_json(line.text)
            if not isinstance(value, dict):
                raise FormatError("expected an object", json_path="$")
            current = upgrade(value, field="version", current=SECRET_VERSION, steps={}, what="seal secret")
            return _head_codec.from_json(current).seed_bytes
        except FormatError as error:
            raise error.at(file=file, line=line.number) from None
    raise FormatError("is empty; the secret of a seal begins with its seed", file=file)


def read_sealed_lines(stream: BinaryIO, *, file: str) -> Iterator[SealedLine]:
    """The sealed log, line by line, in constant memory."""
    lines = read_lines(stream, file=file)
    next(lines, None)
    return (_read(line, file) for line in lines)


def _read(line: Line, file: str) -> SealedLine:
    try:
        return _line_codec.from_bytes(line.text)
    except FormatError as error:
        raise error.at(file=file, line=line.number) from None


DISCLOSURE_VERSION: Final = 1


class Disclosure(Record, frozen=True):
    """The proof that one event belongs to a sealed run, with chosen fields."""

    disclosure: Literal[1]
    """The version of this format."""
    tree: Literal["events", "log"]
    position: Count
    """1-based: the event's ``seq``, or the line of the sealed log."""
    path: list[str]
    """Hashes from the leaf upwards."""
    leaf: str | Absent = ABSENT
    """Present if no field is disclosed."""
    fields: list[str | tuple[str, str, Any]] | Absent = ABSENT
    """All fields, sorted by name: a commitment, or the name, salt and value of a disclosed one."""


class LineProof(Record, frozen=True):
    """The member ``seal`` of a published line."""

    at: Count
    """1-based line number in the sealed log."""
    fields: list[str | tuple[str, str]] | Absent = ABSENT
    """All fields, sorted by name: a commitment, or the name and salt of a field in the line."""
    leaf: str | Absent = ABSENT
    """Present in a withheld line."""


disclosure_codec: Final[Codec[Disclosure]] = Codec(Disclosure)
line_proof_codec: Final[Codec[LineProof]] = Codec(LineProof)


def read_disclosure(text: bytes, *, file: str) -> Disclosure:
    """A disclosure, which must have either a leaf or fields."""
    try:
        value = read_json(text)
        if not isinstance(value, dict):
            raise FormatError("expected an object", json_path="$")
        current = upgrade(value, field="disclosure", current=DISCLOSURE_VERSION, steps={}, what="disclosure")
        disclosure = disclosure_codec.from_json(current)
        if (disclosure.leaf is ABSENT) == (disclosure.fields is ABSENT):
            raise FormatError("either leaf or fields is required", json_path="$")
    except FormatError as error:
        raise error.at(file=file) from None
    return disclosure


def write_disclosure(disclosure: Disclosure) -> bytes:
    """The text of a disclosure, canonical, with a line end."""
    return disclosure_codec.to_bytes(disclosure) + b"\n"
