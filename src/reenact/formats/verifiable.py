"""The verifiable record: an action together with digests that anyone can recompute.

All digests are bare hex SHA-256 over RFC 8785. They cover JSON values, so the subject is kept as a plain JSON
value. No digest covers receipt, anchor and producer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.record import ABSENT, Codec, Record

VDR_VERSION: Final = "0"
PROFILE: Final = "ai.agent.action"

HexDigest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]


class Receipt(Record, frozen=True, kw_only=True):
    alg: Literal["sha-256"]
    subject_digest: HexDigest
    record_digest: HexDigest
    input_digest: HexDigest
    output_digest: HexDigest


class VerifiableRecord(Record, frozen=True, kw_only=True):
    vdr_version: str
    profile: str
    subject: dict[str, Any]
    receipt: Receipt
    anchor: Any = ABSENT
    producer: Any = ABSENT


CODEC: Final = Codec[VerifiableRecord](VerifiableRecord)


def subject_digest(subject: dict[str, JsonValue]) -> str:
    return canonical.digest(subject, "jcs")


def record_digest(subject: dict[str, JsonValue], profile: str = PROFILE) -> str:
    """The identity of the record: its subject under a version and a profile."""
    return canonical.digest({"vdr_version": VDR_VERSION, "profile": profile, "subject": subject}, "jcs")


def input_digest(subject: dict[str, JsonValue]) -> str:
    """The digest of model, parameters and input; absent ``params`` count as null."""
    covered = {
        "model": _part(subject, "model"),
        "params": subject.get("params"),
        "input": _part(subject, "input"),
    }
    return canonical.digest(covered, "jcs")


def output_digest(subject: dict[str, JsonValue]) -> str:
    return canonical.digest(_part(subject, "output"), "jcs")


def receipt_for(subject: dict[str, JsonValue], profile: str = PROFILE) -> Receipt:
    """The receipt of *subject*, which must have ``model``, ``input`` and ``output``."""
    return Receipt(
        alg="sha-256",
        subject_digest=subject_digest(subject),
        record_digest=record_digest(subject, profile),
        input_digest=input_digest(subject),
        output_digest=output_digest(subject),
    )


def verifiable_record(
    subject: dict[str, JsonValue], *, anchor: object = ABSENT, producer: object = ABSENT
) -> VerifiableRecord:
    """The record of an action; the caller must check that it is accepted."""
    return VerifiableRecord(
        vdr_version=VDR_VERSION,
        profile=PROFILE,
        subject=subject,
        receipt=receipt_for(subject),
        anchor=anchor,
        producer=producer,
    )


def pack_digest(record_digests: Iterable[str]) -> str:
    """The digest of a pack: over the sorted, distinct record digests, one line each."""
    distinct = sorted(set(record_digests))
    for digest in distinct:
        if not _HEX_DIGEST.fullmatch(digest):
            raise FormatError(f"{digest!r:.80} is not a record digest: 64 lowercase hex digits")
    return sha256("".join(f"{digest}\n" for digest in distinct).encode()).hexdigest()


_HEX_DIGEST = re.compile("[0-9a-f]{64}")


def read_verifiable(data: bytes, file: str) -> VerifiableRecord:
    """The record in *data*; its digests are not checked."""
    try:
        value = read_json(data, "jcs")
        _refuse_version(value)
        return CODEC.from_json(value)
    except FormatError as error:
        raise error.at(file=file) from None


def write_verifiable(record: VerifiableRecord) -> bytes:
    """The record as one line of canonical JSON."""
    return CODEC.to_bytes(record) + b"\n"


def _part(subject: dict[str, JsonValue], key: str) -> JsonValue:
    if key not in subject:
        raise FormatError("required, but missing", json_path=f"$.subject.{key}")
    return subject[key]


def _refuse_version(value: JsonValue) -> None:
    version = value.get("vdr_version") if isinstance(value, dict) else None
    if isinstance(version, str) and version != VDR_VERSION:
        raise UnknownVersion(
            f"record version {version!r:.40} is not {VDR_VERSION!r}, the only one this reenact reads; "
            "install a newer reenact",
            json_path="$.vdr_version",
        )
