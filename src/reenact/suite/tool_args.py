"""Assertions on what tools were called with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from reenact.errors import UsageError
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import calls, tools_called
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.text import contains
from reenact.suite.values import has_key, includes, matcher_problem, same, schema_problems, values_at
from reenact.suite.verdict import Verdict, quoted, shown, verdict


class ArgsMatch(Params, frozen=True, kw_only=True):
    """What one call has to satisfy."""

    required_keys: tuple[str, ...] = ()
    """Names as they are; one that begins with ``$`` is a path."""
    args_contains: dict[str, Any] = msgspec.field(default_factory=dict)
    regex: dict[str, str] = msgspec.field(default_factory=dict)


class ToolArgsMatch(Params, frozen=True, kw_only=True):
    tool: str
    match: ArgsMatch


def tool_args_match(trace: Trace, params: ToolArgsMatch) -> Verdict:
    """One single call of the tool satisfies every condition."""
    searcher = Searcher()
    return _any_call(trace, params.tool, lambda args: _unmatched(args, params.match, searcher))


def _unmatched(args: Any, match: ArgsMatch, searcher: Searcher) -> Iterator[str]:
    for key in match.required_keys:
        if not has_key(args, key):
            yield f"{key} is missing"
    for key, expected in match.args_contains.items():
        if not any(_holds(value, expected) for value in _values(args, key)):
            yield f"{key} should contain {shown(expected)}, is {_is(args, key)}"
    for key, pattern in match.regex.items():
        if not any(searcher.search(pattern, _text(value)) for value in _values(args, key)):
            yield f"{key} should match {quoted(pattern)}, is {_is(args, key)}"


def _values(args: Any, path: str) -> list[Any]:
    """What a path that may be dotted leads to; false counts as nothing, as where the format comes from."""
    return [value for value in values_at(args, path) if value is not False]


def _holds(value: Any, expected: Any) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return contains(value, expected)
    return same(value, expected)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is(args: Any, key: str) -> str:
    found = " and ".join(shown(value) for value in values_at(args, key)) or "missing"
    return f"{found}, which counts as missing; ask for it with tool_args" if found == "false" else found


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

    def problems(args: Any) -> Iterator[str]:
        return _problems(args, params, searcher)

    if params.calls == "any":
        return _any_call(trace, params.tool, problems)
    return _chosen_calls(trace, params, problems)


def _problems(args: Any, params: ToolArgs, searcher: Searcher) -> Iterator[str]:
    if params.args is not msgspec.UNSET:
        agrees = same if params.mode == "exact" else includes
        if not agrees(args, params.args):
            how = "be" if params.mode == "exact" else "include"
            yield f"the arguments should {how} {shown(params.args)}, are {shown(args)}"
    if params.schema is not msgspec.UNSET:
        yield from schema_problems(args, params.schema)
    for path, matcher in params.matchers.items():
        problem = matcher_problem(values_at(args, path), matcher, f"params.matchers.{path}", searcher)
        if problem:
            yield f"{path} {problem}"


def _any_call(trace: Trace, tool: str, problems: Any) -> Verdict:
    """Passes with the first call that has no problem."""
    found = calls(trace, tool)
    judged = [(event, [*problems(event.data.get("args"))]) for event in found]
    good = next((event for event, wrong in judged if not wrong), None)
    if good is not None:
        observed = {"call": good.event_id, "args": good.data.get("args")}
        return verdict(True, f"{tool}: the call at {good.event_id} matches", observed=observed, events=[good])
    if not judged:
        return _never_called(trace, tool)
    message = f"{tool}: expected one call that matches, found none of {len(judged)}: {_listed(judged)}"
    return verdict(False, message, observed=_observed(judged), events=found)


def _chosen_calls(trace: Trace, params: ToolArgs, problems: Any) -> Verdict:
    found = calls(trace, params.tool)
    if not found:
        return _never_called(trace, params.tool)
    chosen = {"all": found, "first": found[:1], "last": found[-1:]}[params.calls]
    judged = [(event, [*problems(event.data.get("args"))]) for event in chosen]
    bad = [(event, wrong) for event, wrong in judged if wrong]
    wanted = "every call" if params.calls == "all" else f"the {params.calls} call"
    message = f"{params.tool}: expected {wanted} to match, "
    message += f"found otherwise: {_listed(bad)}" if bad else f"{len(judged)} did"
    return verdict(not bad, message, observed=_observed(judged), events=chosen)


def _never_called(trace: Trace, tool: str) -> Verdict:
    message = f"{tool}: expected a call that matches, found no call; {tools_called(trace)}"
    return verdict(False, message, observed={"calls": []})


def _listed(judged: list[tuple[TraceEvent, list[str]]]) -> str:
    return "; ".join(f"{event.event_id}: {', '.join(wrong)}" for event, wrong in judged[:3])


def _observed(judged: list[tuple[TraceEvent, list[str]]]) -> dict[str, Any]:
    return {
        "calls": [
            {"call": event.event_id, "args": event.data.get("args"), "problems": wrong}
            for event, wrong in judged
        ]
    }
