"""Whether an artifact is what was sealed; of a published log or a disclosure no original is needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from reenact import canonical
from reenact.check.commitment import commitment, leaf_of
from reenact.check.findings import Finding
from reenact.check.keys import is_signed_by, key_id
from reenact.check.merkle import root_by_path
from reenact.errors import FormatError
from reenact.formats.disclosure import Disclosure
from reenact.formats.record import ABSENT
from reenact.formats.seal import (
    HASH_BYTES,
    SALT_BYTES,
    Envelope,
    Seal,
    base64_bytes,
    hex_bytes,
    payload_of,
    to_be_signed,
)


class SealCheck(NamedTuple):
    """What the comparison with a seal found, and what a summary says of it."""

    findings: list[Finding]
    facts: dict[str, Any]


def signature_problem(envelope: Envelope, key: Ed25519PublicKey) -> str | None:
    """Why the envelope is not signed with the other half of *key*; ``None`` where it is."""
    message = to_be_signed(envelope.payloadType, payload_of(envelope))
    for signature in envelope.signatures:
        if is_signed_by(key, base64_bytes(signature.sig, "$.signatures"), message):
            return None
    named = sorted({signature.keyid for signature in envelope.signatures})
    if key_id(key) in named:
        return "the signature does not hold: the seal was changed after it was signed"
    return f"is signed with another key: {', '.join(named)}, not {key_id(key)}"


class _RunId(msgspec.Struct):
    runId: str = ""  # noqa: N815 — the manifest's own name


def check_sealed_capture(manifest: bytes, events_hash: str, seal: Seal, *, file: str) -> SealCheck:
    """Whether a capture with this manifest and these events is the one that was sealed."""
    sealed = seal.capture
    if sealed is ABSENT:
        message = "the seal is that of a log, not of a capture; verify the log it was made for"
        return SealCheck([Finding("seal_foreign", message, file)], {})
    run_id = _run_id(manifest)
    if run_id not in ("", sealed.runId):
        message = f"the seal is for run {sealed.runId}, this is run {run_id}"
        return SealCheck([Finding("seal_foreign", message, file)], {})
    findings = []
    if canonical.digest_of_bytes(manifest) != sealed.manifestHash:
        findings.append(Finding("seal_manifest", "the manifest is not the one that was sealed", file))
    if events_hash != sealed.eventsHash:
        expected = f"expected {sealed.eventsHash}, found {events_hash or 'none'}"
        findings.append(
            Finding("seal_events", f"the events are not those that were sealed: {expected}", file)
        )
    return SealCheck(findings, {"sealedEvents": sealed.events.count})


def _run_id(manifest: bytes) -> str:
    """The run that a manifest says it is of, also where it is damaged otherwise."""
    try:
        return msgspec.json.decode(manifest, type=_RunId).runId
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def check_sealed_log(trajectory: str, seal: Seal, *, file: str) -> SealCheck:
    """Whether a log that is not published is the very log that was sealed alone."""
    sealed = seal.log.trajectoryHash
    if sealed is ABSENT:
        message = "the seal is that of a capture; verify the capture, or a log published under the seal"
        return SealCheck([Finding("seal_foreign", message, file)], {})
    if trajectory != sealed:
        message = f"is not the log that was sealed: expected {sealed}, found {trajectory}"
        return SealCheck([Finding("seal_log", message, file)], {})
    return SealCheck([], {"sealedLines": seal.log.lines.count})


def check_disclosure(disclosure: Disclosure, seal: Seal, *, file: str) -> SealCheck:
    """Whether a disclosed event stands in the sealed run, at its place, with the values it shows."""
    tree = seal.log.lines
    if disclosure.tree == "events":
        if seal.capture is ABSENT:
            message = "is about an event of a capture, but the seal is that of a log"
            return SealCheck([Finding("seal_foreign", message, file)], {})
        tree = seal.capture.events
    try:
        leaf = _leaf(disclosure)
        path = [hex_bytes(text, HASH_BYTES, f"$.path[{index}]") for index, text in enumerate(disclosure.path)]
    except FormatError as error:
        raise error.at(file=file) from None
    root = root_by_path(leaf, disclosure.position - 1, tree.count, path)
    facts = {"tree": disclosure.tree, "position": disclosure.position, "of": tree.count}
    if root is None or root.hex() != tree.root:
        message = f"does not lead to the sealed root from position {disclosure.position} of {tree.count}"
        return SealCheck([Finding("seal_disclosure", message, file)], facts)
    return SealCheck([], facts | {"disclosed": disclosed_fields(disclosure)})


def disclosed_fields(disclosure: Disclosure) -> dict[str, Any]:
    """What a disclosure says of its event, by the names of the fields."""
    entries = [] if disclosure.fields is ABSENT else disclosure.fields
    return {entry[0]: entry[2] for entry in entries if not isinstance(entry, str)}


def _leaf(disclosure: Disclosure) -> bytes:
    if disclosure.fields is ABSENT:
        assert disclosure.leaf is not ABSENT
        return hex_bytes(disclosure.leaf, HASH_BYTES, "$.leaf")
    return leaf_of(
        hex_bytes(entry, HASH_BYTES, f"$.fields[{index}]")
        if isinstance(entry, str)
        else commitment(entry[0], entry[2], hex_bytes(entry[1], SALT_BYTES, f"$.fields[{index}][1]"))
        for index, entry in enumerate(disclosure.fields)
    )
