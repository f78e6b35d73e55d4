"""Verifiable records of actions: building them, checking them one by one and as a pack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.check.actions.action import ACTION
from reenact.check.actions.capsule import Result, first_problem
from reenact.check.actions.schema import Problem, type_name
from reenact.check.findings import Finding
from reenact.errors import CheckFailed, FormatError
from reenact.formats import verifiable
from reenact.formats.record import ABSENT
from reenact.formats.verifiable import PROFILE, VDR_VERSION, VerifiableRecord

ALGORITHM: Final = "sha-256"


class ActionRejected(CheckFailed):
    """A rejected action has no record; *result* says why it was rejected."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(f"{first_problem(result)}; only accepted actions are recorded")


def record_action(action: Any, *, anchor: object = ABSENT, producer: object = ABSENT) -> VerifiableRecord:
    """The record of an accepted *action*; :class:`FormatError` for what RFC 8785 cannot hold."""
    result = ACTION.execute(action)
    if not result.is_accepted:
        raise ActionRejected(result)
    return verifiable.verifiable_record(action, anchor=anchor, producer=producer)


class RecordCheck(msgspec.Struct, frozen=True):
    """One claim of a record, and whether it is true."""

    name: str
    ok: bool
    reason: str = ""
    """Why it is false; for a true claim, what could not be checked, mostly empty."""


class RecordReport(msgspec.Struct, frozen=True, kw_only=True):
    checks: tuple[RecordCheck, ...]
    """Always the same ones, in the same order."""
    problems: tuple[Problem, ...]
    """What the profile's capsule found in the subject."""
    record_digest: str | None
    """As computed, whatever the record claims; ``None`` if it cannot be computed."""

    @property
    def is_ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def findings(self, file: str, line: int | None = None) -> list[Finding]:
        """A finding for each failed check of a record in *file*, and a warning for each remark."""
        return [
            Finding(check.name, check.reason, file, "warning" if check.ok else "error", line=line)
            for check in self.checks
            if check.reason or not check.ok
        ]


def check_record(value: JsonValue) -> RecordReport:
    """Check every claim of a record again; any JSON value is accepted."""
    record = _object(value)
    subject, receipt = record.get("subject"), _object(record.get("receipt"))
    result = ACTION.execute(subject)
    digests = {name: _compute(digest, subject) for name, digest in _digests(record).items()}
    record_digest = digests["record_digest"]
    return RecordReport(
        checks=(
            _check_equal("version", VDR_VERSION, record.get("vdr_version")),
            _check_equal("profile", PROFILE, record.get("profile")),
            _subject(result),
            _check_equal("algorithm", ALGORITHM, receipt.get("alg")),
            *(_digest(name, computed, receipt.get(name)) for name, computed in digests.items()),
            _capsule(record, receipt),
        ),
        problems=result.problems,
        record_digest=record_digest if isinstance(record_digest, str) else None,
    )


class RecordPackReport(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    """The number of records, including repeated ones."""
    digest: str | None
    """``None`` if a record failed."""
    failed: tuple[tuple[int, RecordReport], ...]
    """By position, from 0."""

    @property
    def is_ok(self) -> bool:
        return not self.failed


def check_pack(values: Iterable[JsonValue]) -> RecordPackReport:
    """Check each record of a pack; only their digests are kept in memory."""
    digests: set[str] = set()
    failed: list[tuple[int, RecordReport]] = []
    count = 0
    for index, value in enumerate(values):
        count += 1
        report = check_record(value)
        if report.is_ok and report.record_digest is not None:
            digests.add(report.record_digest)
        else:
            failed.append((index, report))
    digest = None if failed else verifiable.pack_digest(digests)
    return RecordPackReport(count=count, digest=digest, failed=tuple(failed))


_Digest = Callable[[dict[str, Any]], str]


def _digests(record: dict[str, JsonValue]) -> dict[str, _Digest]:
    profile = record.get("profile")
    claimed = profile if isinstance(profile, str) else PROFILE
    return {
        "subject_digest": verifiable.subject_digest,
        "record_digest": lambda subject: verifiable.record_digest(subject, claimed),
        "input_digest": verifiable.input_digest,
        "output_digest": verifiable.output_digest,
    }


def _compute(digest: _Digest, subject: JsonValue) -> str | FormatError:
    if type(subject) is not dict:
        return FormatError("the subject is not an object", json_path="$.subject")
    try:
        return digest(subject)
    except FormatError as error:
        return error


def _check_equal(name: str, wanted: str, claimed: JsonValue) -> RecordCheck:
    if claimed == wanted:
        return RecordCheck(name, True)
    return RecordCheck(name, False, f"is {_describe_claim(claimed)}, must be {_describe_claim(wanted)}")


def _subject(result: Result) -> RecordCheck:
    if result.is_accepted:
        return RecordCheck("subject", True)
    return RecordCheck("subject", False, f"rejected: {first_problem(result)}")


def _digest(name: str, computed: str | FormatError, claimed: JsonValue) -> RecordCheck:
    if isinstance(computed, FormatError):
        return RecordCheck(name, False, f"cannot be computed: {computed}")
    if computed == claimed:
        return RecordCheck(name, True)
    return RecordCheck(name, False, f"is {_describe_claim(claimed)}, but {computed} was computed")


def _capsule(record: dict[str, JsonValue], receipt: dict[str, JsonValue]) -> RecordCheck:
    """Check the capsule digest in the receipt or beside it, if the record has one."""
    name = "capsule_digest"
    claimed = receipt.get(name, record.get(name))
    if claimed is None or claimed == ACTION.digest:
        return RecordCheck(name, True)
    if not (isinstance(claimed, str) and re.fullmatch("[0-9a-f]{64}", claimed)):
        return RecordCheck(name, False, f"is {_describe_claim(claimed)}, must be 64 lowercase hex digits")
    return RecordCheck(
        name, True, f"{claimed} is another manifest than ours, {ACTION.digest}; it is not compared"
    )


def _describe_claim(claimed: JsonValue) -> str:
    if claimed is None:
        return "missing"
    return f"{claimed!r:.80}" if type(claimed) is str else type_name(claimed)


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if type(value) is dict else {}
