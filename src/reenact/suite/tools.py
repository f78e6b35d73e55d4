"""Assertions on which tools were called, how often, in what order and with which arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import Selector, calls, first, select, tools_called
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.values import (
    has_key,
    includes,
    is_same,
    matcher_problem,
    schema_problems,
    values_at,
)
from reenact.suite.verdict import Verdict, at, count_of, quote, shorten, verdict
from reenact.trace.model_calls import as_text


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
    message = f"{params.tool}: expected no call, found {count_of(len(found), 'call')}{at(found)}"
    return verdict(not found, message, observed={"calls": len(found)}, events=found)


class MaxToolCalls(Params, frozen=True, kw_only=True):
    tool: str | None = None
    max: Count | msgspec.UnsetType | None = msgspec.UNSET
    max_total: Count | msgspec.UnsetType | None = msgspec.UNSET
    """Null means 0, as in *max*."""


def max_tool_calls(trace: Trace, params: MaxToolCalls) -> Verdict:
    """One tool, or all together, were called no more often than allowed."""
    if (params.tool is None) != (params.max is msgspec.UNSET):
        raise UsageError("params: tool and max go together; max_total is for all tools")
    if params.max is msgspec.UNSET and params.max_total is msgspec.UNSET:
        raise UsageError("params: give tool and max, or max_total")
    limits = [(params.tool, params.max), (None, params.max_total)]
    counts = [
        (tool or "all tools", limit or 0, calls(trace, tool))
        for tool, limit in limits
        if limit is not msgspec.UNSET
    ]
    broken = [each for each in counts if len(each[2]) > each[1]]
    what, limit, found = (broken or counts)[0]
    message = f"{what}: expected {limit} or fewer calls, found {len(found)}{at(found)}"
    return verdict(not broken, message, observed={"calls": len(found)}, events=found)


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
    refs = (before.event_id, after.event_id)  # one event may be both
    return Verdict(passed=passed, message=message, observed=observed, event_refs=refs)


class StopAfterSuccess(Params, frozen=True, kw_only=True):
    success_event: Selector
    forbid_following: Selector
    allowed_following_tools: tuple[str, ...] = ()


def stop_after_success(trace: Trace, params: StopAfterSuccess) -> Verdict:
    """After the goal was reached, the agent made no forbidden call."""
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


class ArgsMatch(Params, frozen=True, kw_only=True):
    """Conditions for one call."""

    required_keys: tuple[str, ...] = ()
    """Member names; a name that begins with ``$`` is a path."""
    args_contains: dict[str, Any] = msgspec.field(default_factory=dict)
    regex: dict[str, str] = msgspec.field(default_factory=dict)


class ToolArgsMatch(Params, frozen=True, kw_only=True):
    tool: str
    match: ArgsMatch


def tool_args_match(trace: Trace, params: ToolArgsMatch) -> Verdict:
    """One call of the tool satisfies all conditions."""
    searcher = Searcher()
    return _any_call(trace, params.tool, lambda args: _find_mismatches(args, params.match, searcher))


def _find_mismatches(args: Any, match: ArgsMatch, searcher: Searcher) -> Iterator[str]:
    for key in match.required_keys:
        if not has_key(args, key):
            yield f"{key} is missing"
    for key, expected in match.args_contains.items():
        if not any(_agrees(value, expected, searcher) for value in _values(args, key)):
            yield f"{key} should contain {shorten(expected)}, is {_is(args, key)}"
    for key, pattern in match.regex.items():
        if not any(searcher.search(pattern, as_text(value)) for value in _values(args, key)):
            yield f"{key} should match {quote(pattern)}, is {_is(args, key)}"


def _values(args: Any, path: str) -> list[JsonValue]:
    """The values at a path, without nulls, and without ``false`` unless the path is a plain name."""
    if isinstance(args, dict) and path in args:
        return [] if args[path] is None else [args[path]]
    return [value for value in values_at(args, path) if value is not None and value is not False]


def _agrees(value: JsonValue, expected: JsonValue, searcher: Searcher) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return searcher.contains(value, expected)
    return is_same(value, expected)


def _is(args: JsonValue, key: str) -> str:
    found = " and ".join(shorten(value) for value in values_at(args, key)) or "missing"
    is_missing = found != "missing" and not _values(args, key)
    return f"{found}, which counts as missing; ask for it with tool_args" if is_missing else found


class ToolArgs(Params, frozen=True, kw_only=True):
    tool: str
    args: Any = msgspec.UNSET
    mode: Literal["exact", "partial"] = "partial"
    schema: Any = msgspec.UNSET
    matchers: dict[str, Any] = msgspec.field(default_factory=dict)
    calls: Literal["any", "all", "first", "last"] = "any"


def tool_args(trace: Trace, params: ToolArgs) -> Verdict:
    """The arguments of one call, or of all, are as described: by value, by schema, by matchers."""
    if params.args is msgspec.UNSET and params.schema is msgspec.UNSET and not params.matchers:
        raise UsageError("params: give args, schema or matchers")
    searcher = Searcher()

    def problems(args: object) -> Iterator[str]:
        return _problems(args, params, searcher)

    if params.calls == "any":
        return _any_call(trace, params.tool, problems)
    return _judge_calls(trace, params, problems)


def _problems(args: Any, params: ToolArgs, searcher: Searcher) -> Iterator[str]:
    if params.args is not msgspec.UNSET:
        agrees = is_same if params.mode == "exact" else includes
        if not agrees(args, params.args):
            how = "be" if params.mode == "exact" else "include"
            yield f"the arguments should {how} {shorten(params.args)}, are {shorten(args)}"
    if params.schema is not msgspec.UNSET:
        yield from schema_problems(args, params.schema)
    for path, matcher in params.matchers.items():
        problem = matcher_problem(values_at(args, path), matcher, f"params.matchers.{path}", searcher)
        if problem:
            yield f"{path} {problem}"


def _any_call(trace: Trace, tool: str, problems: Callable[[object], Iterable[str]]) -> Verdict:
    """Pass if one call has no problem."""
    found = calls(trace, tool)
    judged = [(event, [*problems(event.data.get("args"))]) for event in found]
    good = next((event for event, wrong in judged if not wrong), None)
    if good is not None:
        observed = {"call": good.event_id, "args": good.data.get("args")}
        return verdict(True, f"{tool}: the call at {good.event_id} matches", observed=observed, events=[good])
    if not judged:
        return _never_called(trace, tool)
    message = f"{tool}: expected one call that matches, found none of {len(judged)}: {_list_problems(judged)}"
    return verdict(False, message, observed=_observation(judged), events=found)


def _judge_calls(trace: Trace, params: ToolArgs, problems: Callable[[object], Iterable[str]]) -> Verdict:
    found = calls(trace, params.tool)
    if not found:
        return _never_called(trace, params.tool)
    chosen = {"all": found, "first": found[:1], "last": found[-1:]}[params.calls]
    judged = [(event, [*problems(event.data.get("args"))]) for event in chosen]
    bad = [(event, wrong) for event, wrong in judged if wrong]
    wanted = "every call" if params.calls == "all" else f"the {params.calls} call"
    message = f"{params.tool}: expected {wanted} to match, "
    message += f"found otherwise: {_list_problems(bad)}" if bad else f"{len(judged)} did"
    return verdict(not bad, message, observed=_observation(judged), events=chosen)


def _never_called(trace: Trace, tool: str) -> Verdict:
    message = f"{tool}: expected a call that matches, found no call; {tools_called(trace)}"
    return verdict(False, message, observed={"calls": []})


def _list_problems(judged: list[tuple[TraceEvent, list[str]]]) -> str:
    return "; ".join(f"{event.event_id}: {', '.join(wrong)}" for event, wrong in judged[:3])


def _observation(judged: list[tuple[TraceEvent, list[str]]]) -> dict[str, object]:
    return {
        "calls": [
            {"call": event.event_id, "args": event.data.get("args"), "problems": wrong}
            for event, wrong in judged
        ]
    }
