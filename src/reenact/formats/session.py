"""The session of a REPLAY.jsonl in either dialect: start and end, tool calls, verifications.

Receipts are made from it and compared with it.
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
    """One tool call and its result, in the dialect of the log."""

    line: int
    """The line of the result, or of the call without a result."""
    call: ToolCall
    result: ToolResult | None
    """``None`` for a call without a result."""
    call_line: int


class VerificationRun(NamedTuple):
    """One command that verified the work."""

    command: str
    exit_code: int
    cwd: str | Absent = ABSENT
    duration_ms: int | float | Absent = ABSENT
    verification_delta: int | Absent = ABSENT
    line: int = 0


class Session(msgspec.Struct):
    """The facts about a session that :meth:`tool_uses` collects besides the tool calls."""

    start: current.SessionStart | legacy.SessionStart | None = None
    start_line: int = 1
    end: current.SessionEnd | legacy.SessionEnd | None = None
    end_line: int | None = None
    plan_hash: str | Absent = ABSENT
    has_plans: bool = False
    """Whether the dialect of the log has plans."""
    verification: list[VerificationRun] = []

    def tool_uses(self, lines: Lines) -> Iterator[ToolUse]:
        """The tool calls in the order of their results, then those without one; collects the other facts.

        A result without a call is ignored; only calls without a result so far are kept in memory.
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
                # The current dialect has no plans; reenact writes them as an additional event.
                plan_hash = event.value.get("plan_hash")
                self.plan_hash = plan_hash if isinstance(plan_hash, str) else ABSENT
            case current.Verification() | legacy.Verification():
                self.verification += _verification_runs(event, line)

    @property
    def policy(self) -> str | None:
        """The policy bundle, under the name of either dialect."""
        if self.start is None:
            return None
        older = getattr(self.start, "policy_version", ABSENT)
        policy = older if self.start.policy_bundle_id is ABSENT else self.start.policy_bundle_id
        return policy if isinstance(policy, str) else None

    @property
    def issue_number(self) -> Any:
        """``ABSENT`` if unknown; in the current dialect an additional field."""
        if isinstance(self.start, legacy.SessionStart):
            return self.start.issue_number
        return ABSENT if self.start is None else self.start.extra.get("issue_number", ABSENT)

    @property
    def verification_delta(self) -> int:
        """The sum over all verifications; one without a delta counts as 0."""
        return sum(
            run.verification_delta or 0 for run in self.verification if run.verification_delta is not ABSENT
        )


def call_key(event: ToolCall | ToolResult) -> str:
    """The key that a call shares with its result: ``id`` in the older dialect, ``step_id`` in the current."""
    return event.id if isinstance(event, legacy.ToolCall | legacy.ToolResult) else event.step_id


def time_of(event: Event) -> str | Absent:
    """The time of *event* in either dialect."""
    time: str | Absent = getattr(event, "ts", getattr(event, "t", ABSENT))
    return time


def side_effects_of(result: ToolResult) -> list[Any] | Absent:
    """The side effects of a result; in the older dialect an additional field."""
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
