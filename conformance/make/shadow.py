"""Shadow reports, of runs and of steps."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from conformance.make.case import Case, Change, Event, Found, as_it_is, document_case
from reenact.formats.shadow import Rate, RunPair, compare_pairs, pass_power_k

TOOL: Event = {"name": "forecast", "args": '{"city":"Bonn"}', "seq": 4}
RUN: Event = {"path": "runs/one", "captureId": "cap_0000000000000001", "output": "Sunny.", "tools": [TOOL]}


def _rate(count: int, total: int) -> Event:
    return dict(json.loads(msgspec.json.encode(Rate.of(count, total))))


def _compare(*pairs: RunPair) -> Event:
    return dict(json.loads(msgspec.json.encode(compare_pairs(pairs))))


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
    "comparison": _compare(RunPair(True, 1), RunPair(True, 0)),
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


def _three_samples(report: Event) -> None:
    """The first run passes twice of three times, the second never."""
    good, bad = (run["candidates"][0] for run in report["runs"][:2])
    report["runs"][0]["candidates"] = [good, bad, good]
    report["runs"][0]["difference"] = "tools"
    report["runs"][1]["candidates"] = [bad] * 3
    pairs = RunPair(True, 2, 3), RunPair(True, 0, 3)
    report |= {
        "samples": 3,
        "counts": {"same": 0, "words": 0, "tools": 2, "failed": 0},
        "comparison": _compare(*pairs),
        "passPower": {str(k): chance for k, chance in pass_power_k(pairs).items()},
    }


def _none_counts(report: Event) -> None:
    report |= {
        "runs": report["runs"][2:],
        "counts": {"same": 0, "words": 0, "tools": 0, "failed": 0},
        "comparison": _compare(),
        "passPower": {},
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
    ("difference-wrong", "Half of the runs are lost.", _compared(difference=0.0), "$.comparison.difference"),
    ("low-wrong", "It cannot say how bad it may be.", _compared(low=-0.6), "$.comparison.low"),
    ("high-wrong", "Nor how good.", _compared(high=0.0), "$.comparison.high"),
    ("p-value-wrong", "Two runs tell nothing.", _compared(pValue=0.01), "$.comparison.pValue"),
    ("pass-power-wrong", "Every second passes.", lambda r: r.update(passPower={"1": 1.0}), "$.passPower.1"),
    (
        "pass-power-long",
        "One sample says nothing of two.",
        lambda r: r["passPower"].update({"2": 0.5}),
        "$.passPower",
    ),
    (
        "not-made-again",
        "A run that counts was made again.",
        lambda r: r["runs"][0].pop("candidates"),
        "$.runs[0].candidates",
    ),
    ("good-samples", "Three samples of each run.", _three_samples, None),
    (
        "samples-p-value-wrong",
        "Of several samples the recorded one is any.",
        lambda r: (_three_samples(r), r["comparison"].update(pValue=0.25)),
        "$.comparison.pValue",
    ),
    ("good-none", "No run counts.", _none_counts, None),
)
STEP_REPORTS: tuple[tuple[str, str, Change, str | None], ...] = (
    ("good", "A request that was answered, and one that was not.", as_it_is, None),
    ("field-missing", "A required field is missing.", lambda r: r["steps"][0].pop("seq"), "$.steps[0].seq"),
    ("good-unknown", "Members that nobody knows are passed over.", lambda r: r.update(mood="calm"), None),
    ("schema-newer", "A later version.", lambda r: r.update(schema="reenact.shadow-steps.v2"), "$.schema"),
    ("steps-no-list", "Steps are a list.", lambda r: r.update(steps={}), "$.steps"),
    (
        "interval-wrong",
        "It is surer than it can be.",
        lambda r: r["tools"].update(low=0.9),
        "$.tools.low",
    ),
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
