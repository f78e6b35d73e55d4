"""Two logs side by side."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import (
    OK,
    OTHER,
    Case,
    Change,
    Found,
    changed,
    lines_of,
    set_fields,
)
from conformance.make.replay_log import LOG, call, result
from reenact.formats.hashes import params_hash


def against_case(name: str, about: str, change: Change, *found: Found) -> Case:
    files = {"REPLAY.jsonl": lines_of(changed(LOG, change)), "OTHER.jsonl": lines_of(LOG)}
    return Case(name, about, "REPLAY.jsonl", files, found, options={"against": "OTHER.jsonl"})


def against_cases() -> Iterator[Case]:
    yield against_case(
        "good",
        "The same calls and outputs, under other ids and latencies.",
        lambda log: (
            [event.update(step_id="s" + event["step_id"]) for event in log if "step_id" in event],
            log[3].update(latency_ms=13),
            log[7].update(total_latency_ms=25),
        ),
    )
    yield against_case(
        "output-differs",
        "A tool returned something else.",
        set_fields(3, output_hash=OTHER),
        Found("output_differs", 4),
    )
    yield against_case(
        "call-differs",
        "A tool was called with something else.",
        set_fields(2, params={"path": "src/lib.rs"}, params_hash=params_hash({"path": "src/lib.rs"})),
        Found("call_differs", 4),
    )
    yield against_case(
        "call-order",
        "The same calls were made in another order.",
        lambda log: log.__setitem__(slice(2, 6), [*log[4:6], *log[2:4]]),
        Found("call_order", 6, severity="warning"),
        Found("time", 5, severity="warning"),
    )
    yield against_case(
        "call-added",
        "A call was made that the other log does not have.",
        lambda log: (
            log.__setitem__(slice(6, 6), [call("step-3", "deploy", {}, 5), result("step-3", OK, 6)]),
            log[-1].update(total_tool_calls=3, total_latency_ms=36),
        ),
        Found("call_added", 8),
    )
    yield against_case(
        "call-missing",
        "A call was not made.",
        lambda log: (
            log.__delitem__(slice(4, 6)),
            log[-1].update(total_tool_calls=1, total_latency_ms=12),
        ),
        Found("call_missing"),
    )
