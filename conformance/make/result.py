"""Results of tests, and summaries of suites."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import Case, Change, Event, Found, as_it_is, document_case

RESULT: Event = {
    "schema_version": "0.1",
    "test_case_id": "weather.asks",
    "test_file": "tests/weather/test.yaml",
    "test_run_id": "run-1",
    "status": "pass",
    "started_at": "2026-03-01T08:00:00.000Z",
    "finished_at": "2026-03-01T08:00:00.004Z",
    "duration_ms": 4.2,
    "assertions": [
        {
            "id": "asks",
            "type": "must_call_tool",
            "severity": "critical",
            "status": "pass",
            "message": "forecast was called once",
            "params": {"tool": "forecast"},
            "observed": {"calls": 1},
            "evidence": {"event_refs": ["evt-1"]},
        }
    ],
    "artifacts": {},
}
ENTRY: Event = {
    "test_case_id": "weather.asks",
    "test_file": "tests/weather/test.yaml",
    "status": "pass",
    "duration_ms": 4.2,
    "failed_assertions": [],
}
SUMMARY: Event = {
    "schema_version": "0.1",
    "test_run_id": "run-1",
    "started_at": "2026-03-01T08:00:00.000Z",
    "finished_at": "2026-03-01T08:00:00.005Z",
    "duration_ms": 5.2,
    "total": 3,
    "passed": 1,
    "failed": 1,
    "errors": 1,
    "tests": [
        ENTRY,
        ENTRY | {"status": "fail", "failed_assertions": ["asks"]},
        ENTRY | {"status": "error", "test_case_id": None},
    ],
}
ERROR: Event = {
    "message": "unknown key",
    "file": "tests/weather/test.yaml",
    "line": 3,
    "json_path": "$.titel",
}


def _asserted(**fields: str) -> Change:
    return lambda result: result["assertions"][0].update(fields)


RESULTS: tuple[tuple[str, str, Change, str | None], ...] = (
    ("good", "A test that passed.", as_it_is, None),
    (
        "good-warning",
        "A failed warning does not fail a test.",
        _asserted(status="fail", severity="warning"),
        None,
    ),
    ("good-skip", "Nor does a skipped assertion.", _asserted(status="skip"), None),
    ("good-error", "A test that could not be run.", lambda r: r.update(status="error", error=ERROR), None),
    ("good-unknown", "Members that nobody knows are kept.", lambda r: r.update(mood="calm"), None),
    ("field-missing", "A required field is missing.", lambda r: r.pop("test_file"), "$.test_file"),
    ("version-newer", "A later major version.", lambda r: r.update(schema_version="1.0"), "$.schema_version"),
    ("status-unknown", "No such status.", _asserted(status="maybe"), "$.assertions[0].status"),
    ("severity-unknown", "No such severity.", _asserted(severity="mild"), "$.assertions[0].severity"),
    ("verdict-wrong", "A critical assertion failed.", _asserted(status="fail"), "$.status"),
    ("fail-without-reason", "Nothing failed.", lambda r: r.update(status="fail"), "$.status"),
    ("error-without-reason", "No error is given.", lambda r: r.update(status="error"), "$.error"),
    ("error-that-passed", "With an error nothing passes.", lambda r: r.update(error=ERROR), "$.error"),
    (
        "refs-no-text",
        "References are ids of events.",
        lambda r: r["assertions"][0]["evidence"].update(event_refs=[1]),
        "$.assertions[0].evidence.event_refs[0]",
    ),
)
SUMMARIES: tuple[tuple[str, str, Change, str | None], ...] = (
    ("good", "A suite with one test of each status.", as_it_is, None),
    (
        "good-empty",
        "A suite without tests.",
        lambda s: s.update(tests=[], total=0, passed=0, failed=0, errors=0),
        None,
    ),
    (
        "field-missing",
        "A required field is missing.",
        lambda s: s["tests"][0].pop("status"),
        "$.tests[0].status",
    ),
    ("version-newer", "A later major version.", lambda s: s.update(schema_version="1.0"), "$.schema_version"),
    *(
        (f"{name}-wrong", f"It miscounts: {name}.", lambda s, name=name: s.update({name: 2}), f"$.{name}")
        for name in ("total", "passed", "failed", "errors")
    ),
)


def result_cases() -> Iterator[Case]:
    yield from _cases("result.json", RESULT, RESULTS)


def summary_cases() -> Iterator[Case]:
    yield from _cases("summary.json", SUMMARY, SUMMARIES)


def _cases(file: str, base: Event, table: tuple[tuple[str, str, Change, str | None], ...]) -> Iterator[Case]:
    for name, about, change, path in table:
        found = (Found("invalid", path=path),) if path else ()
        yield document_case(file, base, name, about, change, *found)
