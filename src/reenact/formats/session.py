"""What a REPLAY.jsonl of either dialect says of its session: its frame, its tool calls, its verifications.

Receipts are written from it and compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.dialects.common import UnknownEvent
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT, Absent
from reenact.formats.replay_log import ToolCall, ToolResult

Lines: TypeAlias = Iterable[tuple[Line, Event]]


class ToolUse(NamedTuple):
    """One call and what came of it; both of one dialect."""

    line: int
    """Where the result stands; where there is none, the call."""
    call: Any
    result: Any
    """``None`` for a call that the log leaves without one."""
    call_line: int


class VerificationRun(NamedTuple):
    """One command that was run to check the work."""

    command: str
    exit_code: int
    cwd: str | Absent = ABSENT
    duration_ms: int | float | Absent = ABSENT
    verification_delta: int | Absent = ABSENT
    line: int = 0


class Session(msgspec.Struct):
    """What the log says beside its tool calls, once :meth:`tool_uses` has gone over its lines."""

    start: current.SessionStart | legacy.SessionStart | None = None
    start_line: int = 1
    end: current.SessionEnd | legacy.SessionEnd | None = None
    end_line: int | None = None
    plan_hash: str | Absent = ABSENT
    has_plans: bool = False
    """Whether the log is of a dialect that has plans."""
    verification: list[VerificationRun] = []

    def tool_uses(self, lines: Lines) -> Iterator[ToolUse]:
        """The uses in the order of their results, then the calls without one; the rest is noted in passing.

        A result without a call is no use; only what waits for a result is kept in memory.
        """
        waiting: dict[str, tuple[int, ToolCall]] = {}
        for line, event in lines:
            if isinstance(event, ToolCall):
                waiting[call_key(event)] = (line.number, event)
            elif isinstance(event, ToolResult):
                number, call = waiting.pop(call_key(event), (0, None))
                if call is not None:
                    yield ToolUse(line.number, call, event, number)
            else:
                self._note(line.number, event)
        for number, call in waiting.values():
            yield ToolUse(number, call, None, number)

    def _note(self, line: int, event: Event) -> None:
        match event:
            case current.SessionStart() | legacy.SessionStart() if self.start is None:
                self.start, self.start_line = event, line
                self.has_plans = isinstance(event, legacy.SessionStart)
            case current.SessionEnd() | legacy.SessionEnd() if self.end is None:
                self.end, self.end_line = event, line
            case legacy.PlanStart():
                self.plan_hash = event.plan_hash
            case UnknownEvent() if event.value.get("type") == legacy.PlanStart.__name__:
                # The current dialect has no plans of its own; what reenact writes there has them.
                plan_hash = event.value.get("plan_hash")
                self.plan_hash = plan_hash if isinstance(plan_hash, str) else ABSENT
            case current.Verification() | legacy.Verification():
                self.verification += _verification_runs(event, line)

    @property
    def policy(self) -> str | None:
        """The policy bundle, under whichever of its names."""
        if self.start is None:
            return None
        older = getattr(self.start, "policy_version", ABSENT)
        policy = older if self.start.policy_bundle_id is ABSENT else self.start.policy_bundle_id
        return policy if isinstance(policy, str) else None

    @property
    def issue_number(self) -> Any:
        """``ABSENT`` where the log does not say; the current dialect has it only as an additional field."""
        if isinstance(self.start, legacy.SessionStart):
            return self.start.issue_number
        return ABSENT if self.start is None else self.start.extra.get("issue_number", ABSENT)

    @property
    def verification_delta(self) -> int:
        """Over all verifications; one that does not say it changed nothing."""
        return sum(
            run.verification_delta or 0 for run in self.verification if run.verification_delta is not ABSENT
        )


def call_key(event: ToolCall | ToolResult) -> str:
    """What ties a call and its result: ``id`` in the older dialect, ``step_id`` in the current one."""
    return event.id if isinstance(event, legacy.ToolCall | legacy.ToolResult) else event.step_id


def time_of(event: Event) -> str | Absent:
    """When *event* happened, in whichever dialect."""
    time: str | Absent = getattr(event, "ts", getattr(event, "t", ABSENT))
    return time


def side_effects_of(result: ToolResult) -> list[Any] | Absent:
    """What a result says of its effects; the older dialect has them only as an additional field."""
    if isinstance(result, current.ToolResult):
        return result.side_effects
    effects: list[JsonValue] | Absent = result.extra.get("side_effects", ABSENT)
    return effects


def _verification_runs(
    event: current.Verification | legacy.Verification, line: int
) -> Iterator[VerificationRun]:
    if isinstance(event, current.Verification):
        yield VerificationRun(
            event.command, event.exit_code, event.cwd, event.duration_ms, event.verification_delta, line
        )
        return
    pairs = list(zip(event.commands, event.exit_codes, strict=False))
    for number, (command, exit_code) in enumerate(pairs, 1):
        delta = event.verification_delta if number == len(pairs) else ABSENT
        yield VerificationRun(command, exit_code, verification_delta=delta, line=line)
