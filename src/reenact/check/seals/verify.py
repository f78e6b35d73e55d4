"""Compares an artifact with its seal; for a published log or a disclosure the original is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.check.findings import Finding, SealCheck, VerifyReport, unknown_member_findings
from reenact.check.seals.commitments import commitment, leaf_of, root_by_path
from reenact.check.seals.keys import is_signed_by, key_id, read_public_key
from reenact.check.seals.published_log import check_published_log
from reenact.errors import FormatError, UsageError
from reenact.formats.hashes import trajectory_hash
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import is_published
from reenact.formats.seal import (
    HASH_BYTES,
    SALT_BYTES,
    Disclosure,
    Envelope,
    Seal,
    base64_bytes,
    hex_bytes,
    payload_of,
    read_disclosure,
    read_envelope,
    read_seal,
    to_be_signed,
)
from reenact.progress import Progress
from reenact.store.rundir import MANIFEST, RunDir, read_ids


def signature_problem(envelope: Envelope, key: Ed25519PublicKey) -> str | None:
    """Why the envelope is not signed with the private key of *key*; ``None`` if it is."""
    message = to_be_signed(envelope.payloadType, payload_of(envelope))
    for signature in envelope.signatures:
        if is_signed_by(key, base64_bytes(signature.sig, "$.signatures"), message):
            return None
    named = sorted({signature.keyid for signature in envelope.signatures})
    if key_id(key) in named:
        return "the signature does not hold: the seal was changed after it was signed"
    return f"is signed with another key: {', '.join(named)}, not {key_id(key)}"


def check_sealed_capture(manifest: bytes, events_hash: str, seal: Seal, *, file: str) -> SealCheck:
    """Compare the manifest and the events of a capture with the sealed ones."""
    sealed = seal.capture
    if sealed is ABSENT:
        message = "the seal is that of a log, not of a capture; verify the log it was made for"
        return SealCheck([Finding("seal_foreign", message, file)], {})
    run_id = read_ids(manifest).run_id
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


def check_sealed_log(trajectory: str, seal: Seal, *, file: str) -> SealCheck:
    """Compare an unpublished log with the log that was sealed."""
    sealed = seal.log.trajectoryHash
    if sealed is ABSENT:
        message = "the seal is that of a capture; verify the capture, or a log published under the seal"
        return SealCheck([Finding("seal_foreign", message, file)], {})
    if trajectory != sealed:
        message = f"is not the log that was sealed: expected {sealed}, found {trajectory}"
        return SealCheck([Finding("seal_log", message, file)], {})
    return SealCheck([], {"sealedLines": seal.log.lines.count})


def check_disclosure(disclosure: Disclosure, seal: Seal, *, file: str) -> SealCheck:
    """Check that a disclosed event is in the sealed run, at its place, with the values it shows."""
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
    facts: dict[str, JsonValue] = {"tree": disclosure.tree, "position": disclosure.position, "of": tree.count}
    if root is None or root.hex() != tree.root:
        message = f"does not lead to the sealed root from position {disclosure.position} of {tree.count}"
        return SealCheck([Finding("seal_disclosure", message, file)], facts)
    return SealCheck([], facts | {"disclosed": disclosed_fields(disclosure)})


def disclosed_fields(disclosure: Disclosure) -> dict[str, JsonValue]:
    """The values that a disclosure reveals, by field name."""
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


_SEALABLE: Final = ("capture", "replay log", "seal", "disclosure")
_CAUSED_BY_WITHHELD_LINES: Final = frozenset(
    {"result_without_call", "no_result", "total_tool_calls", "total_latency_ms", "no_end"}
)
"""The codes of findings that withheld lines can cause."""


def with_seal(
    report: VerifyReport,
    seal_path: Path | None,
    key_path: Path | None,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> VerifyReport:
    """*report* on a sealed artifact or on a seal, with the findings of comparing it with the signed seal."""
    if report.what == "seal":
        seal_path = seal_path or Path(report.path)
    if seal_path is None or key_path is None:
        missing = "--seal FILE" if seal_path is None else "--key FILE, the signer's public key"
        raise UsageError(f"{report.path}: is verified with a seal and its key; add {missing}")
    if report.what not in _SEALABLE:
        raise UsageError(f"{report.path}: a {report.what} has no seal; captures and logs have")
    key = read_public_key(key_path.read_bytes(), file=str(key_path))
    envelope = read_envelope(seal_path.read_bytes(), file=str(seal_path))
    problem = signature_problem(envelope, key)
    if problem is not None:
        return _merge_reports(report, SealCheck([Finding("seal_signature", problem, str(seal_path))], {}))
    seal = read_seal(payload_of(envelope), file=str(seal_path))
    checked = _check(report, seal, processes, progress)
    findings = [*_unsigned_findings(report, envelope, key, str(seal_path)), *checked.findings]
    return _merge_reports(report, SealCheck(findings, {**checked.facts, "signedBy": key_id(key)}))


def _unsigned_findings(
    report: VerifyReport, envelope: Envelope, key: Ed25519PublicKey, file: str
) -> Iterator[Finding]:
    """Findings about the unsigned parts of the seal."""
    if key_id(key) not in {signature.keyid for signature in envelope.signatures}:
        message = f"the signature holds, but names another key than {key_id(key)}"
        yield Finding("seal_keyid", message, file, "warning", json_path="$.signatures")
    if report.what != "seal":  # the check of a seal has reported it already
        yield from unknown_member_findings(envelope, file)


def _check(report: VerifyReport, seal: Seal, processes: int, progress: Progress | None) -> SealCheck:
    path = Path(report.path)
    if report.what == "seal" or any(finding.code == "invalid" for finding in report.findings):
        return SealCheck([], {})
    if report.what == "disclosure":
        return check_disclosure(read_disclosure(path.read_bytes(), file=str(path)), seal, file=path.name)
    if report.what == "capture":
        manifest = RunDir(path).read_manifest()
        return check_sealed_capture(manifest, str(report.facts.get("eventsHash", "")), seal, file=MANIFEST)
    if is_published(lambda: path.open("rb"), file=path.name, under_seal=True):
        return check_published_log(
            lambda: path.open("rb"), seal, file=path.name, processes=processes, progress=progress
        )
    with path.open("rb") as stream:
        return check_sealed_log(trajectory_hash(stream, file=path.name), seal, file=path.name)


def _merge_reports(report: VerifyReport, checked: SealCheck) -> VerifyReport:
    """One report of both; findings that withheld lines explain become warnings."""
    findings = list(report.findings)
    if checked.facts.get("withheldLines"):
        findings = [
            msgspec.structs.replace(finding, severity="warning")
            if finding.code in _CAUSED_BY_WITHHELD_LINES
            else finding
            for finding in findings
        ]
    return VerifyReport(
        report.what, report.path, [*findings, *checked.findings], report.facts | checked.facts
    )
