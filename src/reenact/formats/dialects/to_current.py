"""Converts each event of the legacy dialect to the current one.

Rules where the two do not match: ``id`` becomes ``step_id``; a result is ok unless its exit code is
neither null nor 0; each command of a verification is an event, the last of which has the delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from reenact.formats.dialects import current, legacy
from reenact.formats.dialects.losses import EventConverter, Losses, Seen, name_filled_session
from reenact.formats.record import ABSENT, Record

STATUS: Final[dict[str, Literal["success", "failure", "cancelled"]]] = {
    "Success": "success",
    "Failed": "failure",
    "Cancelled": "cancelled",
    "Timeout": "failure",
}


def _header(event: legacy.ReplayHeader, _seen: Seen, losses: Losses) -> Iterator[current.Event]:
    yield current.ReplayHeader(
        created_at=event.created_at,
        producer=event.producer,
        replay_version=event.replay_version,
        extra=losses.carry_extra(event, current.ReplayHeader),
    )


def _session_start(event: legacy.SessionStart, _seen: Seen, losses: Losses) -> Iterator[current.Event]:
    if event.issue_number is ABSENT:
        losses.add("issue_number", "absent, which is null in the legacy dialect")
    elif event.issue_number is not None:
        losses.add_present("issue_number")
    policy = event.policy_bundle_id
    if not isinstance(event.policy_version, str):
        assert isinstance(policy, str)  # one of the two is required
    elif isinstance(policy, str):
        losses.add_present("policy_version")
    else:
        policy = event.policy_version
        losses.add("policy_version", "the current dialect calls it policy_bundle_id")
    yield current.SessionStart(
        policy_bundle_id=policy,
        session_id=event.session_id,
        ts=event.t,
        extra=losses.carry_extra(event, current.SessionStart),
    )


def _tool_call(event: legacy.ToolCall, seen: Seen, losses: Losses) -> Iterator[current.Event]:
    name_filled_session(seen, losses)
    if event.step_id != event.id:
        losses.add("step_id", "the current dialect has no plan steps; its step_id ties call and result")
    params = event.params
    if params is not ABSENT and not isinstance(params, dict):
        losses.add("params", "in the current dialect params is an object")
        params = ABSENT
    yield current.ToolCall(
        params=params,
        params_hash=event.params_hash,
        session_id=seen.session_id,
        step_id=event.id,
        tool=event.tool,
        ts=event.t,
        extra=losses.carry_extra(event, current.ToolCall),
    )


def _tool_result(event: legacy.ToolResult, seen: Seen, losses: Losses) -> Iterator[current.Event]:
    name_filled_session(seen, losses)
    ok = event.exit_code in (None, ABSENT, 0)
    if event.exit_code is ABSENT:
        losses.add("exit_code", "absent, which is null in the legacy dialect: ok is true")
    elif event.exit_code not in (None, 1):
        losses.add("exit_code", f"the current dialect says only ok: {event.exit_code} becomes {ok}")
    yield current.ToolResult(
        latency_ms=event.latency_ms,
        ok=ok,
        output_hash=event.output_hash,
        session_id=seen.session_id,
        side_effects=[],
        step_id=event.id,
        step_utility=event.step_utility,
        ts=event.t,
        extra=losses.carry_extra(event, current.ToolResult),
    )


def _verification(event: legacy.Verification, seen: Seen, losses: Losses) -> Iterator[current.Event]:
    paired = min(len(event.commands), len(event.exit_codes))
    for field, count in (("commands", len(event.commands)), ("exit_codes", len(event.exit_codes))):
        if count > paired:
            losses.add(field, f"{count - paired} without a partner; commands and exit codes go in pairs")
    if paired == 0:
        losses.add(None, "in the current dialect a verification has a command")
    elif paired > 1:
        losses.add("commands", f"one event per command: {paired} events no longer belong together")
    if paired:
        name_filled_session(seen, losses)
    for index in range(paired):
        is_last = index == paired - 1
        yield current.Verification(
            command=event.commands[index],
            exit_code=event.exit_codes[index],
            session_id=seen.session_id,
            ts=event.t,
            verification_delta=event.verification_delta if is_last else ABSENT,
            extra=losses.carry_extra(event, current.Verification) if is_last else {},
        )


def _session_end(event: legacy.SessionEnd, seen: Seen, losses: Losses) -> Iterator[current.Event]:
    name_filled_session(seen, losses)
    if event.status == "Timeout":
        losses.add("status", "the current dialect has no Timeout: failure is written")
    yield current.SessionEnd(
        confidence=event.confidence,
        session_id=seen.session_id,
        status=STATUS[event.status],
        total_latency_ms=event.total_latency_ms,
        total_tool_calls=event.total_tool_calls,
        ts=event.t,
        extra=losses.carry_extra(event, current.SessionEnd),
    )


def _without_counterpart(_event: Record, _seen: Seen, losses: Losses) -> Iterator[current.Event]:
    losses.add(None, "the current dialect has no such event")
    return iter(())


TO_CURRENT: Final[dict[type[Record], EventConverter]] = {
    legacy.ReplayHeader: _header,
    legacy.SessionStart: _session_start,
    legacy.PlanStart: _without_counterpart,
    legacy.ToolCall: _tool_call,
    legacy.ToolResult: _tool_result,
    legacy.StepComplete: _without_counterpart,
    legacy.Verification: _verification,
    legacy.SessionEnd: _session_end,
}
