"""Assertions on the whole run: sequence of tools, number of steps, scheduling, divergences."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Final, Literal

import msgspec

from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import calls, of_type
from reenact.suite.params import Params
from reenact.suite.values import includes, is_same
from reenact.suite.verdict import Verdict, at, count_of, shorten, verdict
from reenact.trace.replayed import REPLAYED


class SequenceStep(Params, frozen=True, kw_only=True):
    """One expected call; without *args* any arguments match."""

    tool: str
    args: Any = msgspec.UNSET

    def __str__(self) -> str:
        return self.tool if self.args is msgspec.UNSET else f"{self.tool} {shorten(self.args)}"


class ToolSequence(Params, frozen=True, kw_only=True):
    steps: list[str | SequenceStep]
    mode: Literal["strict", "unordered", "subset", "superset"] = "strict"
    args_mode: Literal["exact", "partial"] = "exact"


def tool_sequence(trace: Trace, params: ToolSequence) -> Verdict:
    """The calls are the expected ones, as *mode* says: in order, in any order, a subset or a superset."""
    steps = [step if isinstance(step, SequenceStep) else SequenceStep(tool=step) for step in params.steps]
    found = calls(trace)
    taken = (_pair_in_order if params.mode == "strict" else _assign_calls)(found, steps, params)
    extra = [event for index, event in enumerate(found) if index not in taken]
    missing = [step for index, step in enumerate(steps) if index not in taken.values()]
    passed = not (extra and params.mode != "superset") and not (missing and params.mode != "subset")
    message = _sentence(params.mode, steps, found)
    if missing and params.mode != "subset":
        message += f"; missing {', '.join(map(str, missing))}"
    if extra and params.mode != "superset":
        message += f"; not expected{at(extra)}"
    observed = {
        "calls": [event.data.get("tool") for event in found],
        "missing": [str(step) for step in missing],
        "extra": [event.event_id for event in extra],
    }
    return verdict(passed, message, observed=observed, events=found)


_WANTED: Final = {
    "strict": "exactly {} in this order",
    "unordered": "exactly {} in any order",
    "subset": "no calls but {}",
    "superset": "at least {}",
}


def _sentence(mode: str, steps: list[SequenceStep], found: list[TraceEvent]) -> str:
    wanted = _WANTED[mode].format(", ".join(map(str, steps)) or "nothing")
    return (
        f"expected {wanted}, found {', '.join(str(event.data.get('tool')) for event in found) or 'no call'}"
    )


def _is_fitting(event: TraceEvent, step: SequenceStep, params: ToolSequence) -> bool:
    if event.data.get("tool") != step.tool:
        return False
    agrees = is_same if params.args_mode == "exact" else includes
    return step.args is msgspec.UNSET or agrees(event.data.get("args"), step.args)


def _pair_in_order(
    found: list[TraceEvent], steps: list[SequenceStep], params: ToolSequence
) -> dict[int, int]:
    """Pair calls and steps by position, up to the first difference."""
    pairs = zip(found, steps, strict=False)
    good = takewhile(lambda pair: _is_fitting(*pair, params), pairs)
    return {place: place for place, _ in enumerate(good)}


def _assign_calls(found: list[TraceEvent], steps: list[SequenceStep], params: ToolSequence) -> dict[int, int]:
    """Pair as many calls and steps as possible, each once (Kuhn's augmenting paths)."""
    owner: dict[int, int] = {}
    fitting = [
        [place for place, step in enumerate(steps) if _is_fitting(event, step, params)] for event in found
    ]

    def assign(call: int, seen: set[int]) -> bool:
        # Try a free step first: augmenting paths are long and seldom needed.
        for step in sorted(fitting[call], key=lambda step: step in owner):
            if step not in seen:
                seen.add(step)
                if step not in owner or assign(owner[step], seen):
                    owner[step] = call
                    return True
        return False

    for call in range(len(found)):
        assign(call, set())
    return {call: step for step, call in owner.items()}


class StepCount(Params, frozen=True, kw_only=True):
    event_type: str | list[str] = "tool_call"
    tool: str | None = None
    exact: Count | None = None
    min: Count | None = None
    max: Count | None = None


def step_count(trace: Trace, params: StepCount) -> Verdict:
    """The number of steps is within bounds; by default a step is a tool call."""
    types = [params.event_type] if isinstance(params.event_type, str) else params.event_type
    found = [
        event
        for event in trace.events
        if event.type in types and (params.tool is None or event.data.get("tool") == params.tool)
    ]
    what = f"{' or '.join(types)} events{f' of {params.tool}' if params.tool else ''}"
    passed = is_within(len(found), params.exact, params.min, params.max)
    wanted = bounds(params.exact, params.min, params.max)
    message = f"{what}: expected {wanted}, found {len(found)}{at(found)}"
    return verdict(passed, message, observed={"steps": len(found)}, events=found)


def is_within(number: int, exact: int | None, at_least: int | None, at_most: int | None) -> bool:
    """Whether *number* is within the bounds; :class:`UsageError` without bounds."""
    if exact is None and at_least is None and at_most is None:
        raise UsageError("params: give exact, min or max")
    return (
        (exact is None or number == exact)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
    )


def bounds(exact: int | None, at_least: int | None, at_most: int | None) -> str:
    """The bounds in words."""
    bounds = {"exactly": exact, "at least": at_least, "at most": at_most}
    return " and ".join(f"{word} {number}" for word, number in bounds.items() if number is not None)


class OutboundCount(Params, frozen=True, kw_only=True):
    tool: str = "outbound_send"
    exact: Count | msgspec.UnsetType | None = msgspec.UNSET
    min: Count | msgspec.UnsetType | None = msgspec.UNSET
    max: Count | msgspec.UnsetType | None = msgspec.UNSET
    """Null means 0, as in the other two."""


def scheduler_outbound_count(trace: Trace, params: OutboundCount) -> Verdict:
    """A scheduled run sent as many messages as it should."""
    found = calls(trace, params.tool)
    trigger = trace.scenario.trigger
    exact, at_least, at_most = (
        None if given is msgspec.UNSET else given or 0 for given in (params.exact, params.min, params.max)
    )
    is_scheduled = trigger == "scheduler"
    passed = is_within(len(found), exact, at_least, at_most) and is_scheduled
    wanted = f"{params.tool} in a scheduled run: expected {bounds(exact, at_least, at_most)}"
    message = f"{wanted}, found {len(found)}{at(found)} in a run started by {trigger}"
    observed = {"calls": len(found), "trigger": trigger}
    return verdict(passed, message, observed=observed, events=found if is_scheduled else [])


class TaskRuns(Params, frozen=True, kw_only=True):
    task_id: str | None = None
    """If absent, any task, also none."""
    trigger_must_equal: str = "scheduler"


def scheduler_task_runs(trace: Trace, params: TaskRuns) -> Verdict:
    """The run has the expected trigger and task; a scheduled task has at least one event."""
    scenario = trace.scenario
    in_context = (scenario.scheduler_context or {}).get("task_id")
    task_id = scenario.task_id if scenario.task_id is not None else in_context
    found = [event for event in trace.events if task_id is not None and event.task_id == task_id]
    is_meant = scenario.trigger == params.trigger_must_equal and params.task_id in (None, task_id)
    is_carried = bool(found) or task_id is None or params.trigger_must_equal != "scheduler"
    message = (
        f"expected {f'task {params.task_id}' if params.task_id else 'a task'} started by "
        f"{params.trigger_must_equal}, found {f'task {task_id}' if task_id else 'none'} "
        f"started by {scenario.trigger} with {count_of(len(found), 'event')}{at(found)}"
    )
    observed = {"trigger": scenario.trigger, "task_id": task_id, "events": len(found)}
    return verdict(is_meant and is_carried, message, observed=observed, events=found)


class DivergenceFree(Params, frozen=True, kw_only=True):
    allowed_codes: tuple[str, ...] = ()
    max_divergences: Count = 0


def divergence_free(trace: Trace, params: DivergenceFree) -> Verdict:
    """The replay reproduced the recorded run, and nothing tried to go live."""
    if not trace.capabilities.get(REPLAYED):
        raise UsageError("nothing was replayed; give adapter_input a command as well as its capture")
    refused = of_type(trace, "live_call_refused")
    found = [
        event for event in of_type(trace, "divergence") if event.data.get("code") not in params.allowed_codes
    ]
    problems = [*map(_headline, found), *(f"a live call: {_describe_live_call(event)}" for event in refused)]
    passed = len(found) <= params.max_divergences and not refused
    wanted = count_of(params.max_divergences, "divergence")
    message = f"expected {wanted}, found {'; '.join(problems[:5]) or 'none'}"
    observed = {"divergences": len(found), "live_calls_refused": len(refused)}
    return verdict(passed, message, observed=observed, events=[*found, *refused])


def _headline(event: TraceEvent) -> str:
    place = f" at event {event.data['eventSeq']}" if "eventSeq" in event.data else ""
    path = f", {event.data['jsonPath']}" if event.data.get("jsonPath") else ""
    return f"{event.data.get('code')}{place}{path}: {event.data.get('detail', '')}"


def _describe_live_call(event: TraceEvent) -> str:
    return f"{event.data.get('kind')} {event.data.get('target')}"
