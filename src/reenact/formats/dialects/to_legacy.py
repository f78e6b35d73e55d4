"""Converts each event of the current dialect to the legacy one.

Rules where the two do not match: ``step_id`` becomes ``id``, and also the plan step unless there is a
``plan_step_id``; a failed result gets exit code 1, a successful one null, unless it has an ``exit_code``; a
missing required value is filled in and reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeVar

from reenact.formats.dialects import current, legacy
from reenact.formats.dialects.common import Milliseconds
from reenact.formats.dialects.losses import EventConverter, Losses, Seen
from reenact.formats.record import ABSENT, Absent, Record

STATUS: Final[dict[str, Literal["Success", "Failed", "Cancelled"]]] = {
    "success": "Success",
    "failure": "Failed",
    "cancelled": "Cancelled",
}

_MAX_COUNT: Final = 2**63 - 1
_T = TypeVar("_T")


def _header(event: current.ReplayHeader, _seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    yield legacy.ReplayHeader(
        created_at=event.created_at,
        producer=event.producer,
        replay_version=event.replay_version,
        extra=losses.carry_extra(event, legacy.ReplayHeader),
    )


def _session_start(event: current.SessionStart, seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    losses.add_present("lane", "repo")
    issue, held = _read_additional(event, "issue_number", int)
    yield legacy.SessionStart(
        issue_number=issue,
        policy_bundle_id=event.policy_bundle_id,
        session_id=event.session_id,
        t=_fill(event.ts, seen.time, "ts", losses),
        extra=losses.carry_extra(event, legacy.SessionStart, but=held),
    )


def _tool_call(event: current.ToolCall, seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    _leave_session(event, seen, losses)
    step, held = _read_additional(event, "plan_step_id", str)
    yield legacy.ToolCall(
        id=event.step_id,
        params=event.params,
        params_hash=event.params_hash,
        step_id=event.step_id if step is None else step,
        t=_fill(event.ts, seen.time, "ts", losses),
        tool=event.tool,
        extra=losses.carry_extra(event, legacy.ToolCall, but=held),
    )


def _tool_result(event: current.ToolResult, seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    _leave_session(event, seen, losses)
    losses.add_present("error")
    if event.side_effects:
        losses.add_present("side_effects")
    code, held = _read_additional(event, "exit_code", int)
    if code is None and not event.ok:
        code = 1
    yield legacy.ToolResult(
        exit_code=code,
        id=event.step_id,
        latency_ms=_whole(event.latency_ms, "latency_ms", losses),
        output_hash=event.output_hash,
        step_utility=_fill(event.step_utility, 0.0, "step_utility", losses),
        t=_fill(event.ts, seen.time, "ts", losses),
        extra=losses.carry_extra(event, legacy.ToolResult, but=held),
    )


def _verification(event: current.Verification, seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    _leave_session(event, seen, losses)
    losses.add_present("cwd", "duration_ms")
    yield legacy.Verification(
        commands=[event.command],
        exit_codes=[event.exit_code],
        t=_fill(event.ts, seen.time, "ts", losses),
        verification_delta=_fill(event.verification_delta, 0, "verification_delta", losses),
        extra=losses.carry_extra(event, legacy.Verification),
    )


def _session_end(event: current.SessionEnd, seen: Seen, losses: Losses) -> Iterator[legacy.Event]:
    _leave_session(event, seen, losses)
    losses.add_present("summary")
    counted_ms = int(seen.latency_ms) if float(seen.latency_ms).is_integer() else seen.latency_ms
    latency_ms = _fill(event.total_latency_ms, counted_ms, "total_latency_ms", losses)
    yield legacy.SessionEnd(
        confidence=event.confidence,
        status=STATUS[event.status],
        t=_fill(event.ts, seen.time, "ts", losses),
        total_latency_ms=_whole(latency_ms, "total_latency_ms", losses),
        total_tool_calls=_fill(event.total_tool_calls, seen.tool_calls, "total_tool_calls", losses),
        extra=losses.carry_extra(event, legacy.SessionEnd),
    )


def _read_additional(event: Record, name: str, kind: type[_T]) -> tuple[_T | None, str | None]:
    """The value and name of a field that only logs of reenact have in the current dialect, if present."""
    value = event.extra.get(name)
    if type(value) is not kind or (isinstance(value, int) and abs(value) > _MAX_COUNT):
        return None, None
    return value, name


def _fill(value: _T | Absent, otherwise: _T, field: str, losses: Losses) -> _T:
    if not isinstance(value, Absent):
        return value
    losses.add(field, f"missing, but required in the legacy dialect: {otherwise} is filled in")
    return otherwise


def _whole(duration_ms: Milliseconds, field: str, losses: Losses) -> int:
    whole = min(round(duration_ms), _MAX_COUNT)
    if isinstance(duration_ms, float) or whole != duration_ms:
        losses.add(field, f"the legacy dialect counts whole milliseconds: {duration_ms} becomes {whole}")
    return whole


def _leave_session(event: Any, seen: Seen, losses: Losses) -> None:
    # All events belong to the session of SessionStart; only another id would be lost.
    if event.session_id not in (ABSENT, seen.session_id):
        losses.add("session_id", "in the legacy dialect SessionStart alone names the session")


TO_LEGACY: Final[dict[type[Record], EventConverter]] = {
    current.ReplayHeader: _header,
    current.SessionStart: _session_start,
    current.ToolCall: _tool_call,
    current.ToolResult: _tool_result,
    current.Verification: _verification,
    current.SessionEnd: _session_end,
}
