"""Shadow reports, of runs and of steps."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from conformance.make.case import Case, Change, Event, Found, as_it_is, document_case
from reenact.formats.shadow import Rate

TOOL: Event = {"name": "forecast", "args": '{"city":"Bonn"}', "seq": 4}
RUN: Event = {"path": "runs/one", "captureId": "cap_0000000000000001", "output": "Sunny.", "tools": [TOOL]}


def _rate(count: int, total: int) -> Event:
    return dict(json.loads(msgspec.json.encode(Rate.of(count, total))))


REPORT: Event = {
    "schema": "reenact.shadow.v1",
    "runs": [
        {"path": "runs/one", "recorded": RUN, "candidates": [RUN]},
        {
            "path": "runs/two",
            "recorded": RUN | {"path": "runs/two"},
            "candidates": [{"path": "", "tools": [], "passed": False, "failedAssertions": ["no forecast"]}],
            "difference": "tools",
            "first": {"recorded": "forecast", "candidate": "the end", "seq": 4},
        },
        {"path": "runs/three", "recorded": RUN | {"path": "runs/three"}, "setApart": "it does not reproduce"},
    ],
    "samples": 1,
    "change": {"model": "m-2"},
    "test": "test.yaml",
    "baseline": "replayed",
    "counts": {"same": 1, "words": 0, "tools": 1, "failed": 0},
    "setApart": 1,
    "comparison": {
        "runs": 2,
        "recorded": _rate(2, 2),
        "candidate": _rate(1, 2),
        "difference": -0.5,
        "low": -1.0,
        "high": 0.5,
        "better": 0,
        "worse": 1,
        "pValue": 1.0,
    },
    "passPower": {"1": 0.5},
    "isInterrupted": False,
}
STEPS: Event = {
    "schema": "reenact.shadow-steps.v1",
    "steps": [
        {
            "path": "runs/one",
            "seq": 2,
            "recorded": "forecast",
            "candidate": "forecast",
            "sameTools": True,
            "sameArguments": True,
        },
        {"path": "runs/one", "seq": 6, "recorded": "Sunny.", "problem": "refused with 429"},
    ],
    "change": {"temperature": 0},
    "tools": _rate(1, 1),
    "arguments": _rate(1, 1),
    "words": _rate(0, 1),
    "failed": 1,
    "leftOut": 0,
    "isInterrupted": False,
}


def _compared(**fields: object) -> Change:
    return lambda report: report["comparison"].update(fields)


REPORTS: tuple[tuple[str, str, Change, str | None], ...] = (
    ("good", "A run that is the same, one with other tools, and one that does not count.", as_it_is, None),
    ("good-unknown", "Members that nobody knows are passed over.", lambda r: r.update(mood="calm"), None),
    ("field-missing", "A required field is missing.", lambda r: r.pop("comparison"), "$.comparison"),
    ("schema-newer", "A later version.", lambda r: r.update(schema="reenact.shadow.v2"), "$.schema"),
    (
        "difference-unknown",
        "No such difference.",
        lambda r: r["runs"][1].update(difference="mood"),
        "$.runs[1].difference",
    ),
    ("runs-no-list", "Runs are a list.", lambda r: r.update(runs={}), "$.runs"),
    ("run-taken-out", "A run was taken out.", lambda r: r["runs"].pop(1), "$.counts.tools"),
    (
        "set-apart-wrong",
        "It miscounts the runs that do not count.",
        lambda r: r.update(setApart=0),
        "$.setApart",
    ),
    ("counts-wrong", "It miscounts.", lambda r: r["counts"].update(same=2), "$.counts.same"),
    ("runs-wrong", "Fewer runs count.", _compared(runs=3), "$.comparison.runs"),
    ("rate-wrong", "Fewer pass.", _compared(candidate=_rate(2, 2)), "$.comparison.candidate.count"),
    (
        "interval-wrong",
        "It is surer than it can be.",
        lambda r: r["comparison"]["candidate"].update(low=0.45),
        "$.comparison.candidate.low",
    ),
    ("worse-wrong", "One run is worse.", _compared(worse=0), "$.comparison.worse"),
)
STEP_REPORTS: tuple[tuple[str, str, Change, str | None], ...] = (
    ("good", "A request that was answered, and one that was not.", as_it_is, None),
    ("field-missing", "A required field is missing.", lambda r: r["steps"][0].pop("seq"), "$.steps[0].seq"),
    ("failed-wrong", "One was not answered.", lambda r: r.update(failed=0), "$.failed"),
    ("rate-wrong", "The words differ.", lambda r: r.update(words=_rate(1, 1)), "$.words.count"),
)


def shadow_cases() -> Iterator[Case]:
    yield from _cases("shadow.json", REPORT, REPORTS)


def shadow_steps_cases() -> Iterator[Case]:
    yield from _cases("shadow-steps.json", STEPS, STEP_REPORTS)


def _cases(file: str, base: Event, table: tuple[tuple[str, str, Change, str | None], ...]) -> Iterator[Case]:
    for name, about, change, path in table:
        found = (Found("invalid", path=path),) if path else ()
        yield document_case(file, base, name, about, change, *found)
