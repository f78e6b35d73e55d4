"""The current dialect of REPLAY.jsonl v1: events named by ``type``, timed by ``ts``."""

from __future__ import annotations

from typing import Any, Literal

from reenact.formats.dialects.common import Confidence, Dialect, Milliseconds, Utility
from reenact.formats.record import ABSENT, Absent, Count, Int64, Record
from reenact.formats.rfc3339 import Time


class Event(Record, frozen=True, tag_field="type", tag=True):
    """One line; the name of the class is the name of the event."""


class ReplayHeader(Event, frozen=True, kw_only=True):
    created_at: Time
    producer: str
    replay_version: Literal[1]


class Repo(Record, frozen=True, kw_only=True):
    branch: str | Absent = ABSENT
    commit: str | Absent = ABSENT
    dirty: Any = ABSENT
    """Whether tracked files differed from the commit; a boolean in logs of reenact."""
    remote: str | Absent = ABSENT


class SessionStart(Event, frozen=True, kw_only=True):
    lane: str | Absent = ABSENT
    policy_bundle_id: str
    repo: Repo | Absent = ABSENT
    session_id: str
    ts: Time | Absent = ABSENT


class ToolCall(Event, frozen=True, kw_only=True):
    params: dict[str, Any] | Absent = ABSENT
    """Absent in a published log."""
    params_hash: str
    session_id: str | Absent = ABSENT
    step_id: str
    """Shared by the call and its result, unique within the session."""
    tool: str
    ts: Time | Absent = ABSENT


class ToolError(Record, frozen=True, kw_only=True):
    message: str
    name: str
    stack: str | Absent = ABSENT


class ToolResult(Event, frozen=True, kw_only=True):
    error: ToolError | Absent = ABSENT
    latency_ms: Milliseconds
    ok: bool
    output_hash: str
    session_id: str | Absent = ABSENT
    side_effects: list[str]
    step_id: str
    step_utility: Utility | Absent = ABSENT
    ts: Time | Absent = ABSENT


class Verification(Event, frozen=True, kw_only=True):
    command: str
    cwd: str | Absent = ABSENT
    duration_ms: Milliseconds | Absent = ABSENT
    exit_code: Int64
    session_id: str | Absent = ABSENT
    ts: Time | Absent = ABSENT
    verification_delta: Int64 | Absent = ABSENT
    """Failing tests before minus after: positive is better."""


class SessionEnd(Event, frozen=True, kw_only=True):
    confidence: Confidence
    session_id: str | Absent = ABSENT
    status: Literal["success", "failure", "cancelled"]
    summary: str | Absent = ABSENT
    total_latency_ms: Milliseconds | Absent = ABSENT
    total_tool_calls: Count | Absent = ABSENT
    ts: Time | Absent = ABSENT


_Kinds = SessionStart | ToolCall | ToolResult | Verification | SessionEnd
AnyEvent = ReplayHeader | _Kinds

DIALECT = Dialect(
    "current",
    tag_field="type",
    time_field="ts",
    base=Event,
    header=ReplayHeader,
    kinds=_Kinds,
)
