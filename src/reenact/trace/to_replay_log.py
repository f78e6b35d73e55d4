"""Converts a capture to REPLAY.jsonl: its tool calls, the hashes of their outcomes, start and end of the run.

If no tool calls were observed, because the agent's tools are plain functions or run elsewhere, those in the
model traffic are used, marked ``derived``. Every required field that the capture does not have, and every
event that a log cannot hold, is reported as a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.formats import capture
from reenact.formats.capture import CaptureEvent, CaptureManifest
from reenact.formats.dialects import current
from reenact.formats.dialects.common import REPLAY_VERSION, UnknownEvent
from reenact.formats.dialects.conversion import Conversion
from reenact.formats.dialects.losses import Loss
from reenact.formats.hashes import output_hash, params_hash
from reenact.formats.record import ABSENT, Absent
from reenact.formats.rfc3339 import rfc3339_of_ms
from reenact.lane_name import LaneName
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import DerivedEvents, as_text, error_of
from reenact.values.tags import strip_tags


def output_preview(text: str) -> str:
    """The output of a tool, shortened to its first and last 1000 characters."""
    return _shorten(text, 2_000)


def stream_preview(text: str) -> str:
    """The stdout or stderr of a command, shortened to its first and last 5000 characters."""
    return _shorten(text, 10_000)


def _shorten(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


NO_POLICY: Final = "none"
"""The policy bundle of a run that was recorded without one."""

_NO_SUCH_FIELD: Final = "a replay log has no such field"


def replay_log_of_capture(reader: CaptureReader) -> Iterator[Conversion]:
    """The log in the current dialect, one conversion per event of the capture, in constant memory."""
    projection = _Projection(reader)
    for event in reader.events():
        yield projection.take(event)


class _Projection:
    """The state of a conversion: facts from the events before the present one."""

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        self._manifest: CaptureManifest = reader.manifest
        self._open: dict[str, int | float] = {}
        """The time of each call without an outcome so far."""
        self._parents: dict[str, str | Absent] = {}
        """For each open call: the call inside which it was made."""
        self._effects: dict[str, dict[str, None]] = {}
        """For each open call: the tags of its declared and observed effects, in order."""
        self._steps: dict[str, str] = {}
        """By lane: the current step of the plan."""
        self._utilities = _step_utilities(reader)
        self._tool_calls = 0
        self._latency_ms: int | float = 0
        self._derived = DerivedEvents(reader)
        self._losses: list[Loss] = []
        self._event: CaptureEvent | None = None

    def take(self, event: CaptureEvent) -> Conversion:
        self._losses = []
        events: list[current.Event | UnknownEvent] = []
        if event.seq == 1:
            producer = "reenact" if self._manifest.producer is ABSENT else self._manifest.producer
            created_at = rfc3339_of_ms(event.ts)
            events = [
                current.ReplayHeader(created_at=created_at, producer=producer, replay_version=REPLAY_VERSION)
            ]
        for each in self._derived.add_to(event):
            events += self._convert_event(each)
        return Conversion(tuple(events), tuple(self._losses))

    def _convert_event(self, event: CaptureEvent) -> list[current.Event | UnknownEvent]:
        self._event = event
        # An event inside a call is an effect of it, and of the calls around it.
        tag, inside = _effect_of(event), getattr(event.data, "parent", ABSENT)
        while tag is not None and isinstance(inside, str):
            self._effects.setdefault(inside, {})[tag] = None
            inside = self._parents.get(inside, ABSENT)
        match event:
            case capture.RunStart():
                return [self._project_start(event)]
            case capture.ToolCall():
                return [self._project_call(event)]
            case capture.ToolResult():
                return [self._project_result(event)]
            case capture.RunEnd():
                return [self._project_end(event)]
            case capture.StateMutation() if event.data.type in _STATEMENTS:
                return self._project_statement(event)
            case _:
                self._lose(None, "a replay log has no such event")
                return []

    def _project_statement(self, event: capture.StateMutation) -> list[current.Event | UnknownEvent]:
        """What the agent reports about itself: its plan and steps, verifications and side effects."""
        facts = strip_tags(self._reader.resolve(event.data.details))
        lane = event.data.lane if isinstance(event.data.lane, str) else ""
        time = rfc3339_of_ms(event.ts)
        match event.data.type:
            case "verification":
                value = event.data.value
                timing = {} if value in (ABSENT, None) else strip_tags(self._reader.resolve(value))
                return [current.Verification(session_id=event.runId, ts=time, **facts, **timing)]
            case "plan_start":
                return [UnknownEvent({"type": "PlanStart", "ts": time, **facts})]
            case "step_start":
                self._steps[lane] = facts["step_id"]
            case "step_complete":
                self._steps.pop(lane, None)
                return [UnknownEvent({"type": "StepComplete", "ts": time, **facts})]
            case "side_effect":
                if not isinstance(event.data.parent, str):
                    self._lose(None, "no tool was running, and a replay log has the effects of tools alone")
                elif facts.keys() > {"tag"}:
                    self._lose("details", "of a side effect a replay log has the tag alone")
        return []

    def _plan_step(self, lane: str | Absent) -> dict[str, JsonValue]:
        """The step of the plan to which a call in *lane* belongs: that of the nearest lane above it."""
        within = [name for name in self._steps if isinstance(lane, str) and LaneName(lane).is_within(name)]
        return {"plan_step_id": self._steps[max(within, key=len)]} if within else {}

    def _lose(self, field: str | None, reason: str) -> None:
        assert self._event is not None
        name = str(type(self._event).__struct_config__.tag)
        self._losses.append(Loss(self._event.seq, name, field, reason))

    def _lose_present(self, data: Any, *fields: str) -> None:
        for field in fields:
            if getattr(data, field) is not ABSENT:
                self._lose(field, _NO_SUCH_FIELD)
        for field in data.extra:
            self._lose(field, _NO_SUCH_FIELD)

    def _project_start(self, event: capture.RunStart) -> current.Event:
        data = event.data
        policy = data.policyBundleId
        if policy is ABSENT:
            self._lose("policy_bundle_id", f"required, but not recorded: {NO_POLICY!r} is filled in")
        self._lose_present(data, "argv", "cwd", "python")
        repo: current.Repo | Absent = ABSENT
        if data.repo is not ABSENT:
            repo = current.Repo(
                branch=data.repo.branch,
                commit=data.repo.commit,
                dirty=data.repo.dirty,
                remote=data.repo.remote,
            )
        return current.SessionStart(
            policy_bundle_id=NO_POLICY if policy is ABSENT else policy,
            repo=repo,
            session_id=event.runId,
            ts=rfc3339_of_ms(event.ts),
            extra={} if data.issueNumber is ABSENT else {"issue_number": data.issueNumber},
        )

    def _project_call(self, event: capture.ToolCall) -> current.Event:
        data = event.data
        self._lose_present(data, "lane", "parent")
        params = self._plain("args", data.args)
        if not isinstance(params, dict):
            self._lose("args", "params are an object: the arguments are in its member `args`")
            params = {"args": params}
        self._tool_calls += 1
        self._open[data.callId] = event.ts
        self._parents[data.callId] = data.parent
        declared = [] if data.sideEffects is ABSENT else data.sideEffects
        self._effects.setdefault(data.callId, {}).update(dict.fromkeys(declared))
        return current.ToolCall(
            params=params,
            params_hash=params_hash(params),
            session_id=event.runId,
            step_id=data.callId,
            tool=data.tool,
            ts=rfc3339_of_ms(event.ts),
            extra=_mark(data.derived) | self._plan_step(data.lane),
        )

    def _project_result(self, event: capture.ToolResult) -> current.Event:
        data = event.data
        self._lose_present(data, "opened", "opening", "inline", "joined", "behind", "closed", "exact")
        self._lose("result", "a replay log has the hash of the output, and a preview of it")
        latency_ms = max(0, event.ts - self._open.pop(data.callId, event.ts))
        latency_ms = latency_ms if data.latencyMs is ABSENT else data.latencyMs
        self._latency_ms += latency_ms
        error = self._error(data)
        message = None if error is None else error.message
        content, previews = ("", {}) if error is not None else self._content(data)
        self._parents.pop(data.callId, None)
        effects = [*self._effects.pop(data.callId, ())]
        return current.ToolResult(
            error=ABSENT if error is None else error,
            latency_ms=latency_ms,
            ok=data.ok,
            output_hash=output_hash(success=data.ok, content=content, error=message),
            session_id=event.runId,
            side_effects=[] if error is not None and error.name in _NEVER_RAN else effects,
            step_id=data.callId,
            step_utility=self._utilities.get(data.callId, ABSENT),
            ts=rfc3339_of_ms(event.ts),
            extra=_mark(data.derived) | previews,
        )

    def _error(self, data: capture.ToolResultData) -> current.ToolError | None:
        if data.ok:
            return None
        if data.error is ABSENT:
            name = "cancelled" if data.cancelled is True else "error"
            return current.ToolError(name=name, message="")
        error = error_of(self._reader.resolve(data.error))
        return current.ToolError(name=error["error_type"], message=error["message"])

    def _content(self, data: capture.ToolResultData) -> tuple[str, dict[str, JsonValue]]:
        """The text that the output hash covers, and the members that show a preview of it."""
        stored = data.pieces if data.result is ABSENT else data.result
        value = None if stored is ABSENT else self._plain("result", stored)
        content = value if isinstance(value, str) else canonical.encode(value).decode()
        previews: dict[str, JsonValue] = {"output_preview": output_preview(content)}
        if isinstance(value, dict):
            streams = {name: value.get(name) for name in ("stdout", "stderr")}
            previews |= {
                name: stream_preview(text) for name, text in streams.items() if isinstance(text, str)
            }
            code = value.get("exit_code", value.get("returncode"))
            if type(code) is int:
                previews["exit_code"] = code
        return content, previews

    def _project_end(self, event: capture.RunEnd) -> current.Event:
        data = event.data
        is_ok = data.status == "ok"
        confidence = data.confidence
        if confidence is ABSENT or not 0 <= confidence <= 1:
            confidence = float(is_ok)
            self._lose("confidence", f"required, but not recorded: {confidence} is filled in")
        self._lose_present(data, "finalOutputHash", "error")
        output = None if data.finalOutput is ABSENT else self._plain("finalOutput", data.finalOutput)
        return current.SessionEnd(
            confidence=confidence,
            session_id=event.runId,
            status="success" if is_ok else "failure",
            summary=ABSENT if output is None else as_text(output),
            total_latency_ms=self._latency_ms,
            total_tool_calls=self._tool_calls,
            ts=rfc3339_of_ms(event.ts),
        )

    def _plain(self, field: str, stored: object) -> object:
        """A payload as plain JSON; losing its Python types is a loss."""
        resolved = self._reader.resolve(stored)
        value = strip_tags(resolved)
        if value != resolved:
            self._lose(field, "Python's own types are written as plain JSON")
        return value


_STATEMENTS: Final = frozenset(
    {"verification", "plan_start", "step_start", "step_complete", "step_utility", "side_effect"}
)
"""Events in which the agent reports about itself."""

_NEVER_RAN: Final = ("InvalidArguments", "CallRefused")
"""Errors of calls that were refused before their tool ran: they had no effect."""
_STATE_EFFECTS: Final = {"file_write": "fs_write", "file_read": "fs_read"}
_OUTSIDE_EFFECTS: Final = {"network": "network", "process": "process_spawn"}


def _effect_of(event: CaptureEvent) -> str | None:
    """The tag of the side effect of an event, if it has one."""
    match event:
        case capture.LlmRequest():
            return "network"
        case capture.Nondeterministic():
            return _OUTSIDE_EFFECTS.get(event.data.source)
        case capture.StateMutation() if event.data.type == "side_effect":
            tag = event.data.details.get("tag") if isinstance(event.data.details, dict) else None
            return tag if isinstance(tag, str) else None
        case capture.StateMutation():
            return _STATE_EFFECTS.get(event.data.type)
    return None


def _step_utilities(reader: CaptureReader) -> dict[str, float]:
    """The rating of each call; the event of a rating comes after the result."""
    found: dict[str, float] = {}
    for number, line in enumerate(reader.lines(), 1):
        if b'"type":"step_utility"' in line:
            event = reader.event(number)
            rated = event.data.details if isinstance(event, capture.StateMutation) else None
            match rated:
                case {"callId": str(call_id), "step_utility": int() | float() as utility}:
                    found[call_id] = utility
    return found


def _mark(derived: object) -> dict[str, JsonValue]:
    """The mark of a call that was derived from model traffic."""
    return {"derived": True} if derived is True else {}
