"""The results of tests: one result per test, one summary per suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from reenact.canonical import JsonField, read_json
from reenact.errors import FormatError
from reenact.formats.bundle import SCHEMA_VERSION, StepText, refuse_version
from reenact.formats.record import ABSENT, Absent, Codec, Count, Record
from reenact.formats.testcase import Severity

AssertionStatus: TypeAlias = Literal["pass", "fail", "skip"]
TestStatus: TypeAlias = Literal["pass", "fail", "error"]
R = TypeVar("R")


class Evidence(Record, frozen=True, kw_only=True):
    event_refs: list[str]
    """The ids of the relevant events, also of a passed assertion."""


class AssertionResult(Record, frozen=True, kw_only=True):
    id: str
    type: str
    severity: Severity
    status: AssertionStatus
    message: str
    params: dict[str, JsonField]
    observed: JsonField
    evidence: Evidence


class TestError(Record, frozen=True, kw_only=True):
    """Why a test could not be run, with the place of the error."""

    __test__ = False  # its name makes pytest take it for a class of tests

    message: str
    file: StepText = ABSENT
    line: Count | Absent | None = ABSENT
    json_path: StepText = ABSENT


class TestWarning(Record, frozen=True, kw_only=True):
    """An unknown key or parameter, which does not prevent running the test."""

    __test__ = False  # its name makes pytest take it for a class of tests

    message: str
    line: Count
    json_path: str


class TestResult(Record, frozen=True, kw_only=True):
    __test__ = False  # its name makes pytest take it for a class of tests

    schema_version: str
    test_case_id: str | None
    """``None`` if the test file could not be read."""
    test_file: str
    test_run_id: str
    status: TestStatus
    started_at: str
    finished_at: str
    duration_ms: int | float
    assertions: list[AssertionResult]
    artifacts: dict[str, str]
    """Paths by kind: ``trace``, ``result``, ``replay_file`` and others."""
    error: TestError | Absent | None = ABSENT
    warnings: list[TestWarning] | Absent | None = ABSENT


class SummaryEntry(Record, frozen=True, kw_only=True):
    test_case_id: str | None
    test_file: str
    status: TestStatus
    duration_ms: int | float
    failed_assertions: list[str]


class SuiteSummary(Record, frozen=True, kw_only=True):
    schema_version: str
    test_run_id: str
    started_at: str
    finished_at: str
    duration_ms: int | float
    total: Count
    passed: Count
    failed: Count
    errors: Count
    tests: list[SummaryEntry]


RESULT_CODEC: Final = Codec[TestResult](TestResult)
SUMMARY_CODEC: Final = Codec[SuiteSummary](SuiteSummary)


def verdict(assertions: Iterable[AssertionResult]) -> Literal["pass", "fail"]:
    """A test fails when a critical assertion fails; warnings and skips do not fail it."""
    failed = any(found.status == "fail" and found.severity == "critical" for found in assertions)
    return "fail" if failed else "pass"


def summarize(
    results: Iterable[TestResult],
    *,
    test_run_id: str,
    started_at: str,
    finished_at: str,
    duration_ms: int | float,
) -> SuiteSummary:
    """The summary of a suite, with its tests in the given order."""
    tests = [_entry(result) for result in results]
    counts = Counter(entry.status for entry in tests)
    return SuiteSummary(
        schema_version=SCHEMA_VERSION,
        test_run_id=test_run_id,
        started_at=started_at,
        finished_at=finished_at,
        duration_ms=duration_ms,
        total=len(tests),
        passed=counts["pass"],
        failed=counts["fail"],
        errors=counts["error"],
        tests=tests,
    )


def _entry(result: TestResult) -> SummaryEntry:
    return SummaryEntry(
        test_case_id=result.test_case_id,
        test_file=result.test_file,
        status=result.status,
        duration_ms=result.duration_ms,
        failed_assertions=[found.id for found in result.assertions if found.status == "fail"],
    )


def read_result(data: bytes, file: str) -> TestResult:
    """The result in *data*; raises if its status does not follow from its assertions."""
    return _read(data, file, "test result", RESULT_CODEC, _refuse_false_status)


def read_summary(data: bytes, file: str) -> SuiteSummary:
    """The summary in *data*; raises if its counts do not follow from its tests."""
    return _read(data, file, "suite summary", SUMMARY_CODEC, _refuse_false_counts)


def _read(data: bytes, file: str, what: str, codec: Codec[R], refuse_false: Callable[[R], None]) -> R:
    try:
        value = read_json(data)
        refuse_version(value, what)
        record = codec.from_json(value)
        refuse_false(record)
        return record
    except FormatError as error:
        raise error.at(file=file) from None


def write_result(result: TestResult) -> bytes:
    """The result as an indented file, keys in order."""
    return msgspec.json.format(RESULT_CODEC.to_bytes(result), indent=2) + b"\n"


def write_summary(summary: SuiteSummary) -> bytes:
    """The summary as an indented file, keys in order."""
    return msgspec.json.format(SUMMARY_CODEC.to_bytes(summary), indent=2) + b"\n"


def _refuse_false_status(result: TestResult) -> None:
    if (result.status == "error") != bool(result.error):
        raise FormatError("a test has an error exactly when its status is error", json_path="$.error")
    if result.status != "error" and result.status != verdict(result.assertions):
        reason = f"must be {verdict(result.assertions)!r} by its assertions, not {result.status!r}"
        raise FormatError(reason, json_path="$.status")


def _refuse_false_counts(summary: SuiteSummary) -> None:
    counts = Counter(entry.status for entry in summary.tests)
    expected = {"total": len(summary.tests), "passed": counts["pass"], "failed": counts["fail"]}
    for name, count in {**expected, "errors": counts["error"]}.items():
        if getattr(summary, name) != count:
            raise FormatError(f"must be {count} by its tests", json_path=f"$.{name}")
