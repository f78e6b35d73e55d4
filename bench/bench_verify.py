"""Verifying logs beside a bare loop that decodes, encodes canonically and hashes each line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import msgspec

from bench import samples
from bench.figure import Figure, ShareOfSpeed, TimesAsLong, best_in_turns
from reenact import canonical
from reenact.check.findings import VerifyReport
from reenact.check.integrity.capture import check_capture
from reenact.check.integrity.replay_log import check_replay_log
from reenact.formats.capture import manifest_codec, write_manifest
from reenact.formats.hashes import params_hash
from reenact.trace.normalize import rfc3339

LINES = 10_000
LARGE_LINES = 400_000
TWO_CORES_AT_MOST = 0.8
"""Of the time of one; starting processes and handing lines over takes its part."""

Event = dict[str, Any]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode


def figures() -> Iterator[Figure]:
    """Per line; the last one for a whole log of some 100 MB."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "REPLAY.jsonl"
        _write_log(log, LINES)
        yield _beside_bare("verify REPLAY.jsonl", log, lambda: _verified(log))
        for what, uses in (("tool calls", _tool_use), ("model calls", _exchange)):
            run = Path(folder) / what
            _write_capture(run, LINES, uses)
            check = partial(check_capture, run)
            yield _beside_bare(
                f"verify a capture of {what}", run / "events.jsonl", lambda c=check: _good(c())
            )
        if len(os.sched_getaffinity(0)) > 1:
            _write_log(log, LARGE_LINES)
            yield _on_two_cores(log)


def _beside_bare(what: str, file: Path, verify: Callable[[], object]) -> Figure:
    # Both keep one core busy and wait for nothing, so its time is theirs.
    ours_s, beside_s = best_in_turns(verify, lambda: _bare(file), clock=process_time)
    size_bytes = file.stat().st_size // LINES
    name = f"{what}, {size_bytes} B a line"
    return Figure(name, ours_s / LINES, "decode, encode, SHA-256", beside_s / LINES, ShareOfSpeed(0.5))


def _on_two_cores(log: Path) -> Figure:
    times_s = {1: float("inf"), 2: float("inf")}
    for processes in (1, 2, 1, 2):
        started = perf_counter()
        _verified(log, processes)
        times_s[processes] = min(times_s[processes], perf_counter() - started)
    what = f"verify {log.stat().st_size // 10**6} MB on two cores"
    return Figure(what, times_s[2], "on one", times_s[1], TimesAsLong(TWO_CORES_AT_MOST))


def _bare(file: Path) -> None:
    with file.open("rb") as stream:
        for line in stream:
            sha256(_encode(_decode(line))).hexdigest()


def _verified(log: Path, processes: int = 1) -> None:
    _good(check_replay_log(lambda: log.open("rb"), file=str(log), processes=processes))


def _verified_capture(run: Path) -> None:
    _good(check_capture(run))


def _good(report: VerifyReport) -> None:
    assert not report.findings, report.findings[0]


def _write_log(log: Path, lines: int) -> None:
    with log.open("wb") as stream:
        for event in _log_events(lines):
            stream.write(_encode(event) + b"\n")


def _log_events(lines: int) -> Iterator[Event]:
    started = datetime(2026, 2, 15, tzinfo=UTC)
    session = {"session_id": "sess_7f3a"}
    yield {"type": "ReplayHeader", "replay_version": 1, "producer": "bench", "created_at": rfc3339(started)}
    yield {"type": "SessionStart", "policy_bundle_id": "none", "ts": rfc3339(started), **session}
    for number in range(lines // 2 - 1):
        time = rfc3339(started + timedelta(milliseconds=7 * number))
        use = {"step_id": f"step-{number}", "ts": time, **session}
        params = samples.tool_event(number)["data"]["args"]
        yield {
            "type": "ToolCall",
            "tool": "search",
            "params": params,
            "params_hash": params_hash(params),
        } | use
        told = {"output_hash": params_hash(number), "latency_ms": 1, "side_effects": []}
        yield {"type": "ToolResult", "ok": True} | told | use
    yield {"type": "SessionEnd", "status": "success", "confidence": 1.0, "ts": time, **session}


def _write_capture(run: Path, lines: int, use: Callable[[int], tuple[Event, Event]]) -> None:
    run.mkdir()
    events = b"".join(_encode(event) + b"\n" for event in _events(lines, use))
    (run / "events.jsonl").write_bytes(events)
    manifest = {
        "version": 1,
        "createdAt": 0,
        "mode": "capture",
        "eventLogPath": "events.jsonl",
        "status": "ok",
        **{name: samples.tool_event()[name] for name in ("captureId", "runId")},
        "eventCount": lines,
        "model": {"provider": "none", "model": "none"},
        "redaction": {"enabled": False, "profile": "none"},
        "integrity": {"algorithm": "sha256", "eventsHash": canonical.digest_of_bytes(events)},
    }
    (run / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(manifest)))


def _events(lines: int, use: Callable[[int], tuple[Event, Event]]) -> Iterator[Event]:
    yield samples.tool_event(1) | {"type": "run_start", "data": {}}
    for seq in range(2, lines, 2):
        yield from use(seq)
    yield samples.tool_event(lines) | {"type": "run_end", "data": {"status": "ok"}}


def _tool_use(seq: int) -> tuple[Event, Event]:
    made = samples.tool_event(seq)
    data = {"callId": made["data"]["callId"], "ok": True, "result": made["data"]["args"]}
    return made, samples.tool_event(seq + 1) | {"type": "tool_result", "data": data}


def _exchange(seq: int) -> tuple[Event, Event]:
    """With members that the format leaves to whoever records."""
    made = samples.model_event(seq)
    made["data"] |= {"headers": {"content-type": "application/json", "host": "127.0.0.1"}, "stream": False}
    response = {"status": 200, "body": _encode(made["data"]["request"]).decode()}
    named = {name: made["data"][name] for name in ("callId", "provider", "model")}
    data = {**named, "stopReason": "end", "usage": None, "response": response, "complete": True}
    return made, samples.tool_event(seq + 1) | {"type": "llm_response", "data": data}
