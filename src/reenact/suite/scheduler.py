"""Assertions on runs that the scheduler started."""

from __future__ import annotations

import msgspec

from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace
from reenact.suite.events import calls
from reenact.suite.params import Params
from reenact.suite.sequence import bounds, within
from reenact.suite.verdict import Verdict, at, verdict


class OutboundCount(Params, frozen=True, kw_only=True):
    tool: str = "outbound_send"
    exact: Count | msgspec.UnsetType | None = msgspec.UNSET
    """Null is a count that no run has: it is given, so the number of calls must equal it."""
    min: Count | None = None
    max: Count | None = None


def scheduler_outbound_count(trace: Trace, params: OutboundCount) -> Verdict:
    """A scheduled run sent as many messages as it should."""
    found = calls(trace, params.tool)
    trigger = trace.scenario.trigger
    exact = None if params.exact is msgspec.UNSET else params.exact
    if params.exact is None:
        raise UsageError(
            "params.exact: is null, which no number of calls equals; give a number, or leave it out"
        )
    is_scheduled = trigger == "scheduler"
    passed = within(len(found), exact, params.min, params.max) and is_scheduled
    wanted = f"{params.tool} in a scheduled run: expected {bounds(exact, params.min, params.max)}"
    message = f"{wanted}, found {len(found)}{at(found)} in a run started by {trigger}"
    observed = {"calls": len(found), "trigger": trigger}
    return verdict(passed, message, observed=observed, events=found if is_scheduled else [])


class TaskRuns(Params, frozen=True, kw_only=True):
    task_id: str | None = None
    """The scenario's own when absent."""
    trigger_must_equal: str = "scheduler"


def scheduler_task_runs(trace: Trace, params: TaskRuns) -> Verdict:
    """The run was started as it should be, for this task, and did something for it."""
    scenario = trace.scenario
    in_context = (scenario.scheduler_context or {}).get("task_id")
    task_id = scenario.task_id if scenario.task_id is not None else in_context
    wanted = params.task_id if params.task_id is not None else task_id
    is_meant = scenario.trigger == params.trigger_must_equal and task_id == wanted
    found = [event for event in trace.events if event.task_id == wanted] if is_meant else []
    message = (
        f"expected task {wanted} started by {params.trigger_must_equal}, "
        f"found task {task_id} started by {scenario.trigger} with {len(found)} events{at(found)}"
    )
    observed = {"trigger": scenario.trigger, "task_id": task_id, "events": len(found)}
    return verdict(bool(found), message, observed=observed, events=found)
