"""Assertions on the whole path of a run: its tools in sequence, its number of steps."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Final, Literal

import msgspec

from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import calls
from reenact.suite.params import Params
from reenact.suite.values import includes, same
from reenact.suite.verdict import Verdict, at, shown, verdict


class Step(Params, frozen=True, kw_only=True):
    """One expected call; without *args* any arguments do."""

    tool: str
    args: Any = msgspec.UNSET

    def __str__(self) -> str:
        return self.tool if self.args is msgspec.UNSET else f"{self.tool} {shown(self.args)}"


class ToolSequence(Params, frozen=True, kw_only=True):
    steps: list[str | Step]
    mode: Literal["strict", "unordered", "subset", "superset"] = "strict"
    args_mode: Literal["exact", "partial"] = "exact"


def tool_sequence(trace: Trace, params: ToolSequence) -> Verdict:
    """The calls are the expected ones: in order, in any order, none beyond them, or at least them."""
    steps = [step if isinstance(step, Step) else Step(tool=step) for step in params.steps]
    found = calls(trace)
    taken = (_in_order if params.mode == "strict" else _assigned)(found, steps, params)
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


def _sentence(mode: str, steps: list[Step], found: list[TraceEvent]) -> str:
    wanted = _WANTED[mode].format(", ".join(map(str, steps)) or "nothing")
    return (
        f"expected {wanted}, found {', '.join(str(event.data.get('tool')) for event in found) or 'no call'}"
    )


def _fits(event: TraceEvent, step: Step, params: ToolSequence) -> bool:
    if event.data.get("tool") != step.tool:
        return False
    agrees = same if params.args_mode == "exact" else includes
    return step.args is msgspec.UNSET or agrees(event.data.get("args"), step.args)


def _in_order(found: list[TraceEvent], steps: list[Step], params: ToolSequence) -> dict[int, int]:
    """Calls to steps, place by place, up to the first that differs."""
    pairs = zip(found, steps, strict=False)
    good = takewhile(lambda pair: _fits(*pair, params), pairs)
    return {place: place for place, _ in enumerate(good)}


def _assigned(found: list[TraceEvent], steps: list[Step], params: ToolSequence) -> dict[int, int]:
    """As many calls to steps as fit, each once: Kuhn's augmenting paths."""
    owner: dict[int, int] = {}
    fitting = [[place for place, step in enumerate(steps) if _fits(event, step, params)] for event in found]

    def assign(call: int, seen: set[int]) -> bool:
        # A free step first: chains of exchanges are long, and seldom needed.
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
    """The run took a number of steps within bounds; a step is a tool call unless said otherwise."""
    types = [params.event_type] if isinstance(params.event_type, str) else params.event_type
    found = [
        event
        for event in trace.events
        if event.type in types and (params.tool is None or event.data.get("tool") == params.tool)
    ]
    what = f"{' or '.join(types)} events{f' of {params.tool}' if params.tool else ''}"
    passed = within(len(found), params.exact, params.min, params.max)
    wanted = bounds(params.exact, params.min, params.max)
    message = f"{what}: expected {wanted}, found {len(found)}{at(found)}"
    return verdict(passed, message, observed={"steps": len(found)}, events=found)


def within(number: int, exact: int | None, at_least: int | None, at_most: int | None) -> bool:
    """Whether *number* keeps the bounds; :class:`UsageError` where there are none."""
    if exact is None and at_least is None and at_most is None:
        raise UsageError("params: give exact, min or max")
    return (
        (exact is None or number == exact)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
    )


def bounds(exact: int | None, at_least: int | None, at_most: int | None) -> str:
    """The bounds in words."""
    said = {"exactly": exact, "at least": at_least, "at most": at_most}
    return " and ".join(f"{word} {number}" for word, number in said.items() if number is not None)
