"""Assertions on runs that the scheduler started."""

from __future__ import annotations

from reenact.formats.record import Count
from reenact.formats.trace import Trace
from reenact.suite.events import calls
from reenact.suite.params import Params
from reenact.suite.sequence import bounds, within
from reenact.suite.verdict import Verdict, at, verdict


class OutboundCount(Params, frozen=True, kw_only=True):
    tool: str = "outbound_send"
    exact: Count | None = None
    min: Count | None = None
    max: Count | None = None


def scheduler_outbound_count(trace: Trace, params: OutboundCount) -> Verdict:
    """A scheduled run sent as many messages as it should."""
    found = calls(trace, params.tool)
    trigger = trace.scenario.trigger
    passed = within(len(found), params.exact, params.min, params.max) and trigger == "scheduler"
    wanted = f"{params.tool} in a scheduled run: expected {bounds(params.exact, params.min, params.max)}"
    message = f"{wanted}, found {len(found)}{at(found)} in a run started by {trigger}"
    return verdict(passed, message, observed={"calls": len(found), "trigger": trigger}, events=found)


class TaskRuns(Params, frozen=True, kw_only=True):
    task_id: str
    trigger_must_equal: str = "scheduler"


def scheduler_task_runs(trace: Trace, params: TaskRuns) -> Verdict:
    """The run was started as it should be, for this task, and did something for it."""
    scenario = trace.scenario
    in_context = (scenario.scheduler_context or {}).get("task_id")
    task_id = scenario.task_id if scenario.task_id is not None else in_context
    found = [event for event in trace.events if event.task_id == params.task_id]
    passed = scenario.trigger == params.trigger_must_equal and task_id == params.task_id and bool(found)
    message = (
        f"expected task {params.task_id} started by {params.trigger_must_equal}, "
        f"found task {task_id} started by {scenario.trigger} with {len(found)} events{at(found)}"
    )
    observed = {"trigger": scenario.trigger, "task_id": task_id, "events": len(found)}
    return verdict(passed, message, observed=observed, events=found)
