"""REPLAY.jsonl in the current dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance.make.case import (
    FAILED,
    OK,
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    lines_of,
    set_fields,
)
from reenact import canonical
from reenact.formats.hashes import params_hash


def call(step: str, tool: str, params: Event, second: int) -> Event:
    time = f"2026-02-15T00:00:{second:02}.000Z"
    told = {"type": "ToolCall", "ts": time, "session_id": "sess_7f3a", "step_id": step, "tool": tool}
    return told | {"params": params, "params_hash": params_hash(params)}


def result(step: str, hashed: str, second: int, **more: Any) -> Event:
    time = f"2026-02-15T00:00:{second:02}.000Z"
    told = {"type": "ToolResult", "ts": time, "session_id": "sess_7f3a", "step_id": step, "ok": True}
    return told | {"output_hash": hashed, "latency_ms": 12, "side_effects": ["fs_read"]} | more


LOG: list[Event] = [
    {
        "type": "ReplayHeader",
        "replay_version": 1,
        "producer": "kit",
        "created_at": "2026-02-15T00:00:00.000Z",
    },
    {
        "type": "SessionStart",
        "ts": "2026-02-15T00:00:00.000Z",
        "session_id": "sess_7f3a",
        "policy_bundle_id": "policy-v1",
    },
    call("step-1", "read_file", {"path": "src/main.rs"}, 1),
    result("step-1", OK, 2, step_utility=0.800000011920929),
    call("step-2", "write_file", {"content": "café ☕\n", "path": "src/auth.rs"}, 3),
    result("step-2", FAILED, 4, ok=False, error={"name": "OSError", "message": "read-only file system"}),
    {
        "type": "Verification",
        "ts": "2026-02-15T00:00:10.000Z",
        "session_id": "sess_7f3a",
        "command": "make test",
        "exit_code": 0,
    },
    {
        "type": "SessionEnd",
        "ts": "2026-02-15T00:00:59.000Z",
        "session_id": "sess_7f3a",
        "status": "failure",
        "confidence": 0.25,
        "total_tool_calls": 2,
        "total_latency_ms": 24,
    },
]


def log_case(name: str, about: str, change: Change, *found: Found, **more: Any) -> Case:
    return Case(name, about, "REPLAY.jsonl", {"REPLAY.jsonl": lines_of(changed(LOG, change))}, found, **more)


def raw_log_case(
    name: str, about: str, change: Callable[[list[bytes]], object], *found: Found, **more: Any
) -> Case:
    lines = lines_of(LOG).splitlines(keepends=True)
    change(lines)
    return Case(name, about, "REPLAY.jsonl", {"REPLAY.jsonl": b"".join(lines)}, found, **more)


def put(index: int, line: bytes) -> Callable[[list[bytes]], object]:
    return lambda lines: lines.__setitem__(index, line)


def log_cases() -> Iterator[Case]:
    yield log_case("good", "A log in the current dialect.", as_it_is)
    yield log_case(
        "good-published",
        "A published log says so and has no parameters; their hashes stand alone.",
        lambda log: (log[0].update(published="open"), [event.pop("params", None) for event in log]),
    )
    yield log_case(
        "no-params",
        "A log that is not a published one has the parameters of its calls.",
        lambda log: log[2].pop("params"),
        Found("no_params", 3),
    )
    yield log_case(
        "no-start", "Nobody says whose session it is.", lambda log: log.pop(1), Found("no_start", 1)
    )
    yield log_case(
        "time-forms",
        "Times have an offset or none, and any number of digits of a fraction.",
        lambda log: (
            log[2].update(ts="2026-02-15T00:00:01.5Z"),
            log[3].update(ts="2026-02-15T01:00:02.1234567891+01:00"),
        ),
    )
    yield log_case(
        "good-unknown",
        "Events and fields that a reader does not know are no problem.",
        lambda log: (log.insert(3, {"type": "Thought", "x": [1]}), log[4].update(mood="calm")),
    )
    yield raw_log_case(
        "good-tolerated",
        "A byte order mark, CR LF, blank lines and a missing last line end are tolerated.",
        lambda lines: (
            lines.__setitem__(0, b"\xef\xbb\xbf" + lines[0].replace(b"\n", b"\r\n")),
            lines.insert(2, b"\n"),
            lines.__setitem__(-1, lines[-1].rstrip()),
        ),
    )
    yield log_case(
        "time-back-a-little",
        "A clock may be set back by up to a second.",
        set_fields(3, ts="2026-02-15T00:00:00.500Z"),
    )
    yield log_case(
        "time-back",
        "A time that goes back further is worth a word.",
        set_fields(4, ts="2026-02-14T23:59:00.000Z"),
        Found("time", 5, severity="warning"),
    )
    yield log_case(
        "params-changed",
        "The parameters of a call were changed after it was recorded.",
        set_fields(2, params={"path": "src/eve.rs"}),
        Found("params_hash", 3),
    )
    yield log_case(
        "output-hash-cut",
        "What should be a hash is none.",
        set_fields(3, output_hash="sha256:12"),
        Found("output_hash", 4),
    )
    yield log_case(
        "call-removed",
        "A call was cut out; its result is left behind.",
        lambda log: log.pop(4),
        Found("result_without_call", 5),
        Found("total_tool_calls", 7),
    )
    yield log_case(
        "result-removed",
        "A result was cut out.",
        lambda log: log.pop(3),
        Found("no_result", 3),
        Found("total_latency_ms", 7),
    )
    yield log_case(
        "result-twice",
        "A call has two results.",
        lambda log: log.insert(4, log[3]),
        Found("second_result", 5),
        Found("total_latency_ms", 9),
    )
    yield log_case(
        "call-twice",
        "Two calls have one step_id.",
        lambda log: log.insert(4, log[2]),
        Found("second_call", 5),
        Found("no_result", 5),
        Found("total_tool_calls", 9),
    )
    yield log_case(
        "result-before-call",
        "A result stands before its call.",
        lambda log: log.insert(2, log.pop(3)),
        Found("result_without_call", 3),
        Found("no_result", 4),
    )
    yield log_case(
        "totals-wrong",
        "The totals of SessionEnd are not the sums.",
        set_fields(7, total_tool_calls=3, total_latency_ms=25),
        Found("total_tool_calls", 8),
        Found("total_latency_ms", 8),
    )
    yield log_case(
        "cut-off",
        "The log ends without SessionEnd.",
        lambda log: log.pop(),
        Found("no_end", 7, severity="warning"),
    )
    yield log_case(
        "behind-the-end",
        "An event stands behind SessionEnd.",
        lambda log: log.append(log[6] | {"ts": log[7]["ts"]}),
        Found("after_end", 9),
    )
    yield log_case("no-header", "The header is missing.", lambda log: log.pop(0), Found("no_header", 1))
    yield log_case(
        "two-headers", "There are two headers.", lambda log: log.insert(1, log[0]), Found("second_header", 2)
    )
    yield log_case(
        "another-session",
        "A result of another session was put in the place of the right one.",
        set_fields(5, session_id="sess_other"),
        Found("foreign_event", 6),
    )
    yield log_case(
        "second-start",
        "A log is of one session.",
        lambda log: log.insert(2, log[1]),
        Found("second_start", 3),
    )
    for index, field, value, about in RANGES:
        kind = LOG[index]["type"].lower()
        yield log_case(
            f"range-{kind}-{field.replace('_', '-')}",
            f"3.3: {about}",
            set_fields(index, **{field: value}),
            Found("line_unreadable", index + 1, f"$.{field}"),
            Found("not_checked", index + 1, severity="warning"),
        )
    for name, time in NO_TIMES.items():
        yield log_case(
            f"no-time-{name}",
            f"3.1: {time} is no time.",
            set_fields(3, ts=time),
            Found("line_unreadable", 4, "$.ts"),
            Found("not_checked", 4, severity="warning"),
        )
    for name, (about, line) in BROKEN.items():
        yield raw_log_case(
            f"broken-{name}",
            f"A line that cannot be read: {about}.",
            put(3, line),
            Found("line_unreadable", 4, path=BROKEN_PATHS.get(name)),
            Found("not_checked", 4, severity="warning"),
        )
    yield raw_log_case(
        "broken-twice",
        "Every broken line is reported, also when the rest is not checked.",
        lambda lines: (put(3, b"{\n")(lines), put(6, b"{\n")(lines)),
        Found("line_unreadable", 4),
        Found("not_checked", 4, severity="warning"),
        Found("line_unreadable", 7),
    )
    yield raw_log_case(
        "broken-lenient",
        "With a lenient reading the rest is checked as if the broken line were not there.",
        put(3, b"{\n"),
        Found("line_unreadable", 4),
        Found("no_result", 3),
        Found("total_latency_ms", 8),
        options={"lenient": True},
    )
    yield log_case("newer-version", "A newer version is refused.", set_fields(0, replay_version=2), exit=2)
    yield Case("empty", "An empty file is no log.", "REPLAY.jsonl", {"REPLAY.jsonl": b""}, exit=2)


RANGES: tuple[tuple[int, str, Any, str], ...] = (
    (3, "step_utility", 1.5, "a utility is at most 1."),
    (3, "latency_ms", -1, "milliseconds are 0 or more."),
    (6, "exit_code", 0.5, "an exit code is whole."),
    (7, "confidence", 1.01, "a confidence is at most 1."),
    (7, "total_tool_calls", -1, "a count is 0 or more."),
)
NO_TIMES = {
    "space": "2026-02-15 00:00:01Z",
    "lower": "2026-02-15t00:00:01z",
    "local": "2026-02-15T00:00:01",
    "month": "2026-13-15T00:00:01Z",
    "leap-day": "2026-02-29T00:00:01Z",
    "hour": "2026-02-15T24:00:00Z",
    "offset": "2026-02-15T00:00:01+0100",
}
_RESULT = canonical.encode(LOG[3])
BROKEN: dict[str, tuple[str, bytes]] = {
    "half": ("it was cut in half", _RESULT[:40] + b"\n"),
    "bytes": ("its bytes are not UTF-8", _RESULT.replace(b"fs_read", b"fs_\xff") + b"\n"),
    "key-twice": ("a key appears twice", _RESULT[:-1] + b',"ok":true}\n'),
    "surrogate": ("a lone surrogate", _RESULT.replace(b"fs_read", b"\\ud800") + b"\n"),
    "not-a-number": (
        "NaN is no JSON number",
        _RESULT.replace(b'"latency_ms":12', b'"latency_ms":NaN') + b"\n",
    ),
    "missing-field": ("a required field is missing", _RESULT.replace(b'"ok":true,', b"") + b"\n"),
    "wrong-type": ("a field has a wrong type", _RESULT.replace(b'"ok":true', b'"ok":"yes"') + b"\n"),
    "no-time": ("a time is none", _RESULT.replace(b"2026-02-15T", b"2026-02-30T") + b"\n"),
    "no-object": ("it is no object", b"[1]\n"),
}
BROKEN_PATHS = {
    "key-twice": "$",
    "surrogate": "$.side_effects[0]",
    "missing-field": "$.ok",
    "wrong-type": "$.ok",
    "no-time": "$.ts",
    "no-object": "$",
}
