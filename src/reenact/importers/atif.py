"""ATIF: trajectories of agents as one JSON document, subagents embedded."""

from __future__ import annotations

import re
from typing import Any, Final

from reenact.errors import FormatError
from reenact.importers.building import RunBuilder, ToolRequest, iso_ms, text_of, usage_counts
from reenact.importers.importing import ForeignSource, Importer, Runs
from reenact.importers.turns import TranscriptTurns

_TRAJECTORY: Final = frozenset({
    "schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
    "continued_trajectory_ref", "extra", "subagent_trajectories",
})  # fmt: skip
_STEP: Final = frozenset({
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content",
    "tool_calls", "observation", "metrics", "extra", "llm_call_count", "is_copied_context",
})  # fmt: skip
_CALL: Final = frozenset({"tool_call_id", "function_name", "arguments", "extra"})
_RESULT: Final = frozenset({"source_call_id", "content", "subagent_trajectory_ref", "extra"})
_USAGE: Final = {
    "prompt_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "cached_tokens": "cachedInputTokens",
}
_KNOWN: Final = re.compile(r"ATIF-v1\.[0-8]")


def _recognises(source: ForeignSource) -> bool:
    return (
        source.head.lstrip().startswith(b"{")
        and re.search(rb'"schema_version"\s*:\s*"ATIF-', source.head) is not None
    )


def _read(source: ForeignSource, runs: Runs) -> None:
    document = source.document()
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        raise FormatError("expected an object with steps", file=source.name)
    run = runs.open()
    run.missing("requests as they were sent")
    version = str(document.get("schema_version"))
    if _KNOWN.fullmatch(version) is None:
        run.lose(f"version {version!r} is not known; it was read as 1.8")
    turns = TranscriptTurns(run)
    _import_trajectory(run, turns, document, "0")
    turns.finish()


def _import_trajectory(run: RunBuilder, turns: TranscriptTurns, told: dict[str, Any], lane: str) -> None:
    run.check_fields("trajectory", told, _TRAJECTORY)
    agent = told.get("agent")
    named = {
        key: told[key] for key in ("agent", "session_id", "notes", "final_metrics", "extra") if key in told
    }
    run.note("trajectory", named, lane=lane)
    model = agent.get("model_name") if isinstance(agent, dict) else None
    for number, step in enumerate(told["steps"], 1):
        try:
            _import_step(run, turns, step, model, lane)
        except (LookupError, TypeError, AttributeError) as error:
            run.lose(f"step {number} of lane {lane} cannot be read: {error}")
    inner = told.get("subagent_trajectories")
    for number, each in enumerate(inner if isinstance(inner, list) else ()):
        if isinstance(each, dict) and isinstance(each.get("steps"), list):
            _import_trajectory(run, turns, each, f"{lane}.{number}")
        else:
            run.lose(f"trajectory {number + 1} below lane {lane} has no steps")


def _import_step(
    run: RunBuilder, turns: TranscriptTurns, step: dict[str, Any], model: Any, lane: str
) -> None:
    run.check_fields("step", step, _STEP)
    time_ms, source, message = iso_ms(step.get("timestamp")), step.get("source"), step.get("message")
    if source != "agent" or step.get("is_copied_context") is True:
        role = {"agent": "assistant", "system": "system"}.get(str(source), "user")
        turns.say(role, message, time_ms, lane)
        _import_results(run, turns, step, time_ms, lane)
        return
    calls = step.get("tool_calls") or []
    for call in calls:
        run.check_fields("tool_call", call, _CALL)
    tools = [
        ToolRequest(str(call["function_name"]), call.get("arguments"), str(call["tool_call_id"]))
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
            usage=usage_counts(step.get("metrics"), _USAGE),
            time_ms=time_ms,
            lane=lane,
        )
        if isinstance(step.get("llm_call_count"), int) and step["llm_call_count"] > 1:
            run.missing("single model calls of steps that made several")
    _import_results(run, turns, step, time_ms, lane)


def _import_results(
    run: RunBuilder, turns: TranscriptTurns, step: dict[str, Any], time_ms: float | None, lane: str
) -> None:
    observation = step.get("observation") or {}
    for result in observation.get("results") or []:
        run.check_fields("result", result, _RESULT)
        own = result.get("source_call_id")
        if own is None:
            turns.flush(lane)
            run.note("observation", result, time_ms=time_ms, lane=lane)
        else:
            turns.result(str(own), result.get("content"), time_ms=time_ms, lane=lane)


IMPORTER: Final = Importer(
    name="atif",
    title="ATIF trajectories",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)
