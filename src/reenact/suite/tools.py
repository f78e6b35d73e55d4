"""Assertions on which tools were called, how often and in what order."""

from __future__ import annotations

from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace
from reenact.suite.events import Selector, calls, first, select, tools_called
from reenact.suite.params import Params
from reenact.suite.verdict import Verdict, at, counted, verdict


class MustCallTool(Params, frozen=True, kw_only=True):
    tool: str
    min_calls: Count = 1


def must_call_tool(trace: Trace, params: MustCallTool) -> Verdict:
    """The tool was called at least *min_calls* times."""
    found = calls(trace, params.tool)
    passed = len(found) >= params.min_calls
    message = f"{params.tool}: expected {params.min_calls} or more calls, found {len(found)}{at(found)}"
    if not found and not passed:
        message += f"; {tools_called(trace)}"
    return verdict(passed, message, observed={"calls": len(found)}, events=found)


class MustNotCallTool(Params, frozen=True, kw_only=True):
    tool: str


def must_not_call_tool(trace: Trace, params: MustNotCallTool) -> Verdict:
    """The tool was not called at all."""
    found = calls(trace, params.tool)
    message = f"{params.tool}: expected no call, found {counted(len(found), 'call')}{at(found)}"
    return verdict(not found, message, observed={"calls": len(found)}, events=found)


class MaxToolCalls(Params, frozen=True, kw_only=True):
    tool: str | None = None
    max: Count | None = None
    max_total: Count | None = None


def max_tool_calls(trace: Trace, params: MaxToolCalls) -> Verdict:
    """One tool, or all together, were called no more often than allowed."""
    by_tool = params.tool is not None and params.max is not None and params.max_total is None
    in_total = params.max_total is not None and params.tool is None and params.max is None
    if not by_tool and not in_total:
        raise UsageError("params: give tool and max, or max_total alone")
    limit = params.max if by_tool else params.max_total
    assert limit is not None
    found = calls(trace, params.tool)
    what = params.tool or "all tools"
    message = f"{what}: expected {limit} or fewer calls, found {len(found)}{at(found)}"
    return verdict(len(found) <= limit, message, observed={"calls": len(found)}, events=found)


class ToolCallOrder(Params, frozen=True, kw_only=True):
    before: Selector
    after: Selector


def tool_call_order(trace: Trace, params: ToolCallOrder) -> Verdict:
    """The first event of one kind comes before the first of another; both must exist."""
    before, after = first(select(trace, params.before)), first(select(trace, params.after))
    observed = {"before": before.event_id if before else None, "after": after.event_id if after else None}
    wanted = f"expected {params.before} before {params.after}"
    if before is None or after is None:
        missing = " and ".join(
            str(selector)
            for selector, event in ((params.before, before), (params.after, after))
            if event is None
        )
        return verdict(False, f"{wanted}, found no {missing}", observed=observed)
    passed = before.seq < after.seq
    message = f"{wanted}, found the first at {before.event_id} and the other at {after.event_id}"
    return verdict(passed, message, observed=observed, events=[before, after])


class StopAfterSuccess(Params, frozen=True, kw_only=True):
    success_event: Selector
    forbid_following: Selector
    allowed_following_tools: tuple[str, ...] = ()


def stop_after_success(trace: Trace, params: StopAfterSuccess) -> Verdict:
    """Once the goal was reached, the agent did not go on with what is forbidden then."""
    success = first(select(trace, params.success_event))
    if success is None:
        message = f"expected {params.success_event}, after which to stop; found none"
        return verdict(False, message, observed={"success_event": None})
    following = [
        event
        for event in select(trace, params.forbid_following)
        if event.seq > success.seq and event.data.get("tool") not in params.allowed_following_tools
    ]
    message = (
        f"expected no {params.forbid_following} after the success at {success.event_id}, "
        f"found {len(following) or 'none'}{at(following)}"
    )
    observed = {"success_event": success.event_id, "following": [event.event_id for event in following]}
    return verdict(not following, message, observed=observed, events=[success, *following])
