"""The report of an artifact, and whether it is what was sealed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from reenact.check.findings import Finding, Report
from reenact.check.keys import key_id, read_public_key
from reenact.check.published_check import check_published_log
from reenact.check.seal import (
    SealCheck,
    check_disclosure,
    check_sealed_capture,
    check_sealed_log,
    signature_problem,
)
from reenact.check.segments import Progress
from reenact.errors import UsageError
from reenact.formats.disclosure import read_disclosure
from reenact.formats.hashes import trajectory_hash
from reenact.formats.replay_log import is_published
from reenact.formats.seal import Seal, payload_of, read_envelope, read_seal
from reenact.store.rundir import MANIFEST, RunDir

_SEALABLE: Final = ("capture", "replay log", "seal", "disclosure")
_OF_WHOLE_LOGS: Final = frozenset(
    {"result_without_call", "no_result", "total_tool_calls", "total_latency_ms", "no_end"}
)
"""What cannot hold in a log of which lines are withheld."""


def with_seal(
    report: Report,
    seal_path: Path | None,
    key_path: Path | None,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> Report:
    """*report*, on what can be sealed, or on a seal, with whether it is what was signed."""
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
        return _joined(report, SealCheck([Finding("seal_signature", problem, str(seal_path))], {}))
    seal = read_seal(payload_of(envelope), file=str(seal_path))
    checked = _check(report, seal, processes, progress)
    return _joined(report, checked._replace(facts={**checked.facts, "signedBy": key_id(key)}))


def _check(report: Report, seal: Seal, processes: int, progress: Progress | None) -> SealCheck:
    path = Path(report.path)
    if report.what == "seal" or any(finding.code == "invalid" for finding in report.findings):
        return SealCheck([], {})
    if report.what == "disclosure":
        return check_disclosure(read_disclosure(path.read_bytes(), file=str(path)), seal, file=path.name)
    if report.what == "capture":
        manifest = RunDir.open(path).read_manifest()
        return check_sealed_capture(manifest, report.facts.get("eventsHash", ""), seal, file=MANIFEST)
    if is_published(lambda: path.open("rb"), file=path.name, under_seal=True):
        return check_published_log(
            lambda: path.open("rb"), seal, file=path.name, processes=processes, progress=progress
        )
    with path.open("rb") as stream:
        return check_sealed_log(trajectory_hash(stream, file=path.name), seal, file=path.name)


def _joined(report: Report, checked: SealCheck) -> Report:
    """One report of both; withheld lines explain what a log lacks."""
    findings = list(report.findings)
    if checked.facts.get("withheldLines"):
        findings = [
            msgspec.structs.replace(finding, severity="warning")
            if finding.code in _OF_WHOLE_LOGS
            else finding
            for finding in findings
        ]
    return Report(report.what, report.path, [*findings, *checked.findings], report.facts | checked.facts)
