"""ATIF: agent trajectories as one JSON document with embedded subagents."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    Line,
    RunBuilder,
    ToolRequest,
    text_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, JsonObject, Losses, expect_list, type_mismatch
from reenact.importers.turns import TranscriptTurns

_STEPS: Final = ("steps",)
_ROLES: Final = {"user": "user", "agent": "assistant", "system": "system"}
_INNER: Final = ("subagent_trajectories",)
_TRAJECTORY: Final = frozenset({
    "schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
    "continued_trajectory_ref", "extra", "subagent_trajectories",
})  # fmt: skip
_STEP: Final = KnownFields(
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content",
    "tool_calls", "observation", "metrics", "llm_call_count", "is_copied_context", extra=None,
)  # fmt: skip
_CALL: Final = KnownFields("tool_call_id", "function_name", "arguments", extra=None)
_RESULT: Final = KnownFields("source_call_id", "content", extra=None, subagent_trajectory_ref=None)
_METRICS: Final = KnownFields(
    "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "prompt_token_ids",
    "completion_token_ids", extra=None, logprobs=None,
)  # fmt: skip
_USAGE: Final = {
    "prompt_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "cached_tokens": "cachedInputTokens",
}
_KNOWN: Final = re.compile(r"ATIF-v1\.[0-8]")


_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-')


def _recognises(source: ForeignSource) -> bool:
    return source.head.lstrip().startswith(b"{") and _VERSION.search(source.head) is not None


def _version_line(source: ForeignSource) -> int | None:
    stated = _VERSION.search(source.head)
    return source.head.count(b"\n", 0, stated.start()) + 1 if stated else None


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing("requests as they were sent")
    turns = TranscriptTurns(run)
    lost: Losses = []
    document: JsonValue
    if source.is_large:
        document = _read_stream(source, run, turns, lost)
    else:
        document = source.document(lost)
        if isinstance(document, dict) and isinstance(document.get("steps"), list):
            _import_trajectory(run, turns, document, "0", partial(source.line_of, _STEPS))
            for number, each in enumerate(expect_list(_INNER[0], document.get(_INNER[0]))):
                _import_inner(run, turns, each, "0", number, source.line_of(_INNER, number + 1))
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        reason, line = lost[0] if lost else ("expected an object with steps", None)
        raise FormatError(reason, file=source.name, line=line)
    for reason, line in lost:
        run.note_loss(reason, line)
    version = str(document.get("schema_version"))
    if _KNOWN.fullmatch(version) is None:
        run.note_loss(f"version {version!r} is not known; it was read as 1.8", _version_line(source))
    turns.finish()


def _read_stream(source: ForeignSource, run: RunBuilder, turns: TranscriptTurns, lost: Losses) -> JsonObject:
    """Import a large document step by step; members after the steps are noted after them."""
    document: JsonObject = {}
    steps = inner = 0
    for path, line, value, is_item in source.members([_STEPS, _INNER], lost):
        if not is_item:
            document |= {path[0]: value} if path else {}
            if path == _STEPS:
                run.note("trajectory", _about(document))
        elif path == _STEPS:
            steps += 1
            _try_step(run, turns, value, _model_of(document), "0", steps, line)
        else:
            _import_inner(run, turns, value, "0", inner, line)
            inner += 1
    run.check_fields("trajectory", document, _TRAJECTORY)
    run.note("end of the trajectory", _about(document))
    return document


def _about(trajectory: JsonObject) -> JsonObject:
    names = ("agent", "session_id", "notes", "final_metrics", "extra")
    return {key: trajectory[key] for key in names if key in trajectory}


def _model_of(trajectory: JsonObject) -> JsonValue:
    agent = trajectory.get("agent")
    return agent.get("model_name") if isinstance(agent, dict) else None


def _import_trajectory(
    run: RunBuilder,
    turns: TranscriptTurns,
    trajectory: JsonObject,
    lane: str,
    line_of: Callable[[int], int | None],
) -> None:
    run.check_fields("trajectory", trajectory, _TRAJECTORY)
    run.note("trajectory", _about(trajectory), lane=lane)
    for number, step in enumerate(expect_list("steps", trajectory.get("steps")), 1):
        _try_step(run, turns, step, _model_of(trajectory), lane, number, partial(line_of, number))


def _import_inner(
    run: RunBuilder, turns: TranscriptTurns, trajectory: JsonValue, lane: str, number: int, line: int | None
) -> None:
    """Import an embedded trajectory; its losses are reported with the line on which it begins."""
    if not isinstance(trajectory, dict) or not isinstance(trajectory.get("steps"), list):
        run.note_loss(f"trajectory {number + 1} below task {lane} has no steps", line)
        return
    below = f"{lane}.{number}"
    turns.begin_aside(below)
    _import_trajectory(run, turns, trajectory, below, lambda _: line)
    for inner, each in enumerate(run.objects(_INNER[0], trajectory.get(_INNER[0]), line)):
        _import_inner(run, turns, each, below, inner, line)


def _try_step(
    run: RunBuilder,
    turns: TranscriptTurns,
    step: JsonValue,
    model: JsonValue,
    lane: str,
    number: int,
    line: Line = None,
) -> None:
    run.attempt(line, _import_step, run, turns, step, model, lane, line, what=f"step {number} of task {lane}")


def _import_step(
    run: RunBuilder, turns: TranscriptTurns, step: JsonObject, model: JsonValue, lane: str, line: Line
) -> None:
    run.check_fields("step", step, _STEP)
    time_ms, source, message = run.time_ms(step.get("timestamp")), step.get("source"), step.get("message")
    if source != "agent" or step.get("is_copied_context") is True:
        role = _ROLES.get(str(source), "user")
        run.count_unknown("step", [] if str(source) in _ROLES else [f"source={source}"])
        turns.say(role, message, time_ms, lane)
        _import_results(run, turns, step, time_ms, lane, line)
        return
    if isinstance(metrics := step.get("metrics"), dict):
        run.check_fields("metrics", metrics, _METRICS)
    listed = expect_list("tool_calls", step.get("tool_calls"))
    calls = [run.check_fields("tool_call", call, _CALL) for call in listed]
    for call in calls:
        for name in ("function_name", "tool_call_id"):
            if call.get(name) is None:
                raise type_mismatch(f"tool_call.{name}", "a text", None)
    tools = [
        ToolRequest(str(call["function_name"]), call.get("arguments"), str(call["tool_call_id"]), line)
        for call in calls
    ]
    if step.get("llm_call_count") == 0:
        turns.flush(lane)
        for tool in tools:
            run.tool_call(str(tool.id), tool.name, tool.arguments, time_ms=time_ms, lane=lane)
        if message:
            run.note("message without a model", {"message": message}, time_ms=time_ms, lane=lane)
    else:
        turns.answer(
            f"{lane}-{step.get('step_id')}",
            text=text_of(message),
            reasoning=str(step.get("reasoning_content") or ""),
            tools=tools,
            model=step.get("model_name") or model,
            usage=usage_counts(metrics, _USAGE),
            time_ms=time_ms,
            lane=lane,
        )
        if isinstance(count := step.get("llm_call_count"), int) and count > 1:
            run.note_missing("single model calls of steps that made several")
    _import_results(run, turns, step, time_ms, lane, line)


def _import_results(
    run: RunBuilder,
    turns: TranscriptTurns,
    step: JsonObject,
    time_ms: float | None,
    lane: str,
    line: Line,
) -> None:
    observation = run.check_fields("observation", step.get("observation") or {}, {"results"})
    for each in expect_list("observation.results", observation.get("results")):
        result = run.check_fields("result", each, _RESULT)
        own = result.get("source_call_id")
        if own is None:
            turns.flush(lane)
            run.note("observation", result, time_ms=time_ms, lane=lane)
        else:
            turns.result(str(own), result.get("content"), time_ms=time_ms, line=line, lane=lane)


IMPORTER: Final = Importer(
    name="atif",
    title="ATIF trajectories",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)
