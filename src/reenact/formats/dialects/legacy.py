"""The legacy dialect of REPLAY.jsonl v1: events named by ``event``, timed by ``t``."""

from __future__ import annotations

from typing import Any, Literal

from reenact.formats.dialects.common import Confidence, Dialect, Utility
from reenact.formats.record import ABSENT, Absent, Count, Int64, Record
from reenact.formats.rfc3339 import Time


class Event(Record, frozen=True, tag_field="event", tag=True):
    """One line; the name of the class is the name of the event."""


class ReplayHeader(Event, frozen=True, kw_only=True):
    created_at: Time
    producer: str
    replay_version: Literal[1]


class SessionStart(Event, frozen=True, kw_only=True):
    issue_number: Int64 | Absent | None = ABSENT
    """Written as null when there is no issue."""
    policy_bundle_id: str | Absent = ABSENT
    policy_version: str | Absent = ABSENT
    """The older name of the policy; one of the two is required."""
    session_id: str
    t: Time

    def __post_init__(self) -> None:
        if self.policy_bundle_id is ABSENT and self.policy_version is ABSENT:
            raise ValueError("policy_version or policy_bundle_id is required, but both are missing")


class PlanStart(Event, frozen=True, kw_only=True):
    plan_hash: str
    step_count: Count
    t: Time


class ToolCall(Event, frozen=True, kw_only=True):
    id: str
    """Shared by the call and its result."""
    params: Any = ABSENT
    """Absent in a published log."""
    params_hash: str
    step_id: str
    """The step of the plan that made the call."""
    t: Time
    tool: str


class ToolResult(Event, frozen=True, kw_only=True):
    exit_code: Int64 | Absent | None = ABSENT
    """Written as null unless the tool is a shell."""
    id: str
    latency_ms: Count
    output_hash: str
    step_utility: Utility
    t: Time


class StepComplete(Event, frozen=True, kw_only=True):
    iterations: Count
    status: Literal["Success", "Failed", "Skipped", "MaxIterationsReached"]
    step_id: str
    t: Time


class Verification(Event, frozen=True, kw_only=True):
    commands: list[str]
    exit_codes: list[Int64]
    t: Time
    verification_delta: Int64
    """Failing tests before minus after: positive is better."""


class SessionEnd(Event, frozen=True, kw_only=True):
    confidence: Confidence
    status: Literal["Success", "Failed", "Cancelled", "Timeout"]
    t: Time
    total_latency_ms: Count
    total_tool_calls: Count


_Kinds = SessionStart | PlanStart | ToolCall | ToolResult | StepComplete | Verification | SessionEnd
AnyEvent = ReplayHeader | _Kinds

DIALECT = Dialect(
    "legacy",
    tag_field="event",
    time_field="t",
    base=Event,
    header=ReplayHeader,
    kinds=_Kinds,
)
