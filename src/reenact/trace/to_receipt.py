"""Converts a REPLAY.jsonl to the receipt of its session: the hashes of all tool calls and verifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from reenact.errors import FormatError
from reenact.formats.dialects import DIALECTS, Event, current, legacy
from reenact.formats.dialects.common import DialectName, UnknownEvent
from reenact.formats.dialects.losses import Loss
from reenact.formats.lines import Line
from reenact.formats.receipt import (
    LegacyReceipt,
    LegacyToolReceipt,
    LegacyVerification,
    Receipt,
    ToolReceipt,
    VerificationReceipt,
)
from reenact.formats.record import ABSENT, or_none
from reenact.formats.replay_log import ToolCall, ToolResult
from reenact.formats.session import Session, ToolUse, call_key, side_effects_of, time_of

_Lose: TypeAlias = Callable[[Loss], None]

_ALWAYS_HELD: Final = frozenset(
    {"session_id", "step_id", "id", "ts", "t", "extra", "producer", "created_at", "replay_version"}
)
"""Members that are no loss: a receipt is of one session, lists its calls in order, and names the log."""
_IN_BOTH: Final = frozenset(
    {"policy_bundle_id", "policy_version", "params_hash", "tool", "latency_ms", "output_hash", "side_effects"}
    | {"command", "exit_code", "commands", "exit_codes", "verification_delta"}
)
_HELD: Final[Mapping[DialectName, frozenset[str]]] = {
    "current": _IN_BOTH | {"repo", "error", "ok", "cwd", "duration_ms"},
    "legacy": _IN_BOTH | {"issue_number", "plan_hash", "step_utility", "confidence"},
}
"""The members of log events that each form of receipt has."""


def receipt_of_log(
    events: Iterable[tuple[Line, Event]],
    *,
    shape: DialectName,
    trajectory_hash: str,
    file: str,
    on_loss: _Lose,
) -> Receipt | LegacyReceipt:
    """The receipt of a log's *events*, of either dialect, in either form.

    *trajectory_hash* is the hash of the log as written. A receipt lists calls in the order of their results;
    a call without a result is a loss.
    """
    session = Session()
    uses: list[tuple[ToolUse, ToolResult]] = []
    for use in session.tool_uses(_with_losses(events, shape, on_loss)):
        if use.result is None:
            name, reason = "ToolCall", "it has no result, so a receipt has no hash for it"
            on_loss(Loss(use.line, name, None, reason))
        else:
            uses.append((use, use.result))
    if session.start is None:
        raise FormatError("there is no SessionStart, whose session the receipt would name", file=file)
    if shape == "legacy":
        return _legacy_receipt(session, uses, file, on_loss)
    return Receipt(
        created_at=ABSENT if session.end is None else time_of(session.end),
        policy_bundle_id=session.policy or "",
        repo=getattr(session.start, "repo", ABSENT),
        schema="openagents.receipt.v1",
        session_id=session.start.session_id,
        tool_calls=[_tool_receipt(use.call, result) for use, result in uses],
        trajectory_hash=trajectory_hash,
        verification=[
            VerificationReceipt(
                command=run.command,
                cwd=run.cwd,
                duration_ms=run.duration_ms,
                exit_code=run.exit_code,
                verification_delta=run.verification_delta,
            )
            for run in session.verification
        ],
    )


def _with_losses(
    events: Iterable[tuple[Line, Event]], shape: DialectName, on_loss: _Lose
) -> Iterator[tuple[Line, Event]]:
    """The same *events*; *on_loss* is called for everything that a receipt cannot hold."""
    held = _HELD[shape] | _ALWAYS_HELD
    for line, event in events:
        if isinstance(event, UnknownEvent):
            name = next(name for each in DIALECTS.values() if (name := each.name_in(event.value)))
            if not (shape == "legacy" and name == legacy.PlanStart.__name__):
                on_loss(Loss(line.number, name, None, "a receipt has no such event"))
        else:
            present = {name for name in event.__struct_fields__ if getattr(event, name) is not ABSENT}
            for field in sorted((present | event.extra.keys()) - held):
                on_loss(Loss(line.number, type(event).__name__, field, "a receipt has no such field"))
        yield line, event


def _tool_receipt(call: ToolCall, result: ToolResult) -> ToolReceipt:
    effects = side_effects_of(result)
    return ToolReceipt(
        error=getattr(result, "error", ABSENT),
        latency_ms=result.latency_ms,
        ok=result.ok if isinstance(result, current.ToolResult) else result.exit_code in (None, ABSENT, 0),
        output_hash=result.output_hash,
        params_hash=call.params_hash,
        side_effects=[] if effects is ABSENT else effects,
        tool=call.tool,
    )


def _legacy_receipt(
    session: Session, uses: list[tuple[ToolUse, ToolResult]], file: str, on_loss: _Lose
) -> LegacyReceipt:
    start, end = session.start, session.end
    assert start is not None
    if end is None:
        reason = "there is no SessionEnd, whose confidence the older receipt needs"
        raise FormatError(reason, file=file)
    started_at = time_of(start)
    if started_at is ABSENT:
        raise FormatError("SessionStart has no time, which the older receipt needs", file=file)
    return LegacyReceipt(
        completed_at=or_none(time_of(end)),
        final_confidence=end.confidence,
        issue_number=or_none(session.issue_number),
        plan_hash=or_none(session.plan_hash),
        policy_bundle_id=session.policy or "",
        session_id=start.session_id,
        signature=None,
        started_at=str(started_at),
        tool_calls=[_legacy_tool_receipt(use, result, on_loss) for use, result in uses],
        verification=LegacyVerification(
            commands_run=[run.command for run in session.verification],
            exit_codes=[run.exit_code for run in session.verification],
            verification_delta=session.verification_delta,
        ),
    )


def _legacy_tool_receipt(use: ToolUse, result: ToolResult, on_loss: _Lose) -> LegacyToolReceipt:
    utility = result.step_utility
    if utility is ABSENT:
        utility = 0.0
        reason = "required in the older receipt, but not in the log: 0.0 is filled in"
        on_loss(Loss(use.line, "ToolResult", "step_utility", reason))
    effects = side_effects_of(result)
    return LegacyToolReceipt(
        id=call_key(use.call),
        latency_ms=result.latency_ms,
        output_hash=result.output_hash,
        params_hash=use.call.params_hash,
        side_effects=[] if effects is ABSENT else effects,
        step_utility=utility,
        tool=use.call.tool,
    )
