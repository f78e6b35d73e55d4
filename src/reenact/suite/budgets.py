"""Assertions on time, tokens and money."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import of_type
from reenact.suite.params import Params, unknown_name
from reenact.suite.settings import Amount, Price, find_price
from reenact.suite.verdict import Verdict, verdict

_INPUT: Final = ("input_tokens", "prompt_tokens")
_OUTPUT: Final = ("output_tokens", "completion_tokens")


class LatencyBudget(Params, frozen=True, kw_only=True):
    max_total_ms: Amount | None = None
    max_call_ms: Amount | None = None
    tool: str | None = None
    """The tool that *max_call_ms* limits; every tool if absent."""


def latency_budget(trace: Trace, params: LatencyBudget) -> Verdict:
    """The run, and each tool call, took no longer than allowed."""
    if params.max_total_ms is None and params.max_call_ms is None:
        raise UsageError("params: give max_total_ms or max_call_ms")
    total_ms = trace.metrics.timing_ms_total
    problems = []
    if params.max_total_ms is not None and total_ms > params.max_total_ms:
        problems.append(f"the run took {total_ms:g} ms, more than {params.max_total_ms:g}")
    timed = [*_latencies(trace, params.tool)] if params.max_call_ms is not None else []
    limit_ms = params.max_call_ms or 0
    slow = [(event, ms) for event, ms in timed if ms > limit_ms]
    problems += [
        f"{event.data.get('tool')} at {event.event_id} took {ms:g} ms, more than {limit_ms:g}"
        for event, ms in slow
    ]
    message = "; ".join(problems) or f"in time: the run took {total_ms:g} ms{_describe_slowest(timed)}"
    observed = {"total_ms": total_ms, "slow_calls": {event.event_id: ms for event, ms in slow}}
    return verdict(not problems, message, observed=observed, events=[event for event, _ in slow or timed])


def _latencies(trace: Trace, tool: str | None) -> Iterator[tuple[TraceEvent, float]]:
    """Each tool outcome with its duration: the stated one, else the time between the two events."""
    began = {event.event_id: event for event in of_type(trace, "tool_call")}
    for event in of_type(trace, "tool_result"):
        call = began.get(event.parent_event_id or "")
        if tool not in (None, event.data.get("tool")):
            continue
        stated = event.data.get("latency_ms")
        if isinstance(stated, int | float):
            yield event, stated
        elif call is not None:
            yield event, (_moment(event) - _moment(call)).total_seconds() * 1000


def _moment(event: TraceEvent) -> datetime:
    try:
        return datetime.fromisoformat(event.ts)
    except ValueError:
        raise UsageError(f"{event.event_id}: {event.ts!r} is not a time, so its latency is unknown") from None


def _describe_slowest(timed: list[tuple[TraceEvent, float]]) -> str:
    return f", its slowest call {max(ms for _, ms in timed):g} ms" if timed else ""


class TokenBudget(Params, frozen=True, kw_only=True):
    max_total: Count | None = None
    max_input: Count | None = None
    max_output: Count | None = None


class _Tokens(NamedTuple):
    input: int
    output: int
    cached: int
    total: int


def token_budget(trace: Trace, params: TokenBudget) -> Verdict:
    """The run used no more tokens than allowed; fails if the usage is unknown."""
    limits = {"total": params.max_total, "input": params.max_input, "output": params.max_output}
    if all(limit is None for limit in limits.values()):
        raise UsageError("params: give max_total, max_input or max_output")
    used = _tokens(trace.metrics.token_usage)
    answers = of_type(trace, "llm_response")
    if used is None:
        return verdict(False, "expected token usage, found none recorded", events=answers)
    counts = used._asdict()
    over = [
        f"{counts[name]} {name} tokens, more than {limit}"
        for name, limit in limits.items()
        if limit is not None and counts[name] > limit
    ]
    message = "expected the run to keep its token budget, found "
    message += "; ".join(over) or f"{used.total} tokens ({used.input} in, {used.output} out)"
    return verdict(not over, message, observed=counts, events=answers)


def _tokens(usage: JsonValue) -> _Tokens | None:
    """Read token counts under any of their usual names; ``None`` without any."""
    if isinstance(usage, int) and not isinstance(usage, bool):
        return _Tokens(0, 0, 0, usage)
    if not isinstance(usage, dict):
        return None
    counts = [
        _count(usage, *names) for names in (_INPUT, _OUTPUT, ("cached_input_tokens",), ("total_tokens",))
    ]
    if counts[0] is counts[1] is counts[3] is None:
        return None
    read, written, cached, total = (count or 0 for count in counts)
    return _Tokens(read, written, cached, total or read + written)


def _count(usage: dict[str, Any], *names: str) -> int | None:
    return next((usage[name] for name in names if isinstance(usage.get(name), int)), None)


class CostBudget(Params, frozen=True, kw_only=True):
    max_cost: Amount
    prices: dict[str, Price]
    """By model; a name that ends in ``*`` matches all models with that prefix."""
    model: str | None = None
    """The model of a run that only states its total usage."""


def cost_budget(trace: Trace, params: CostBudget) -> Verdict:
    """The run cost no more than allowed at these prices; fails for a model without a price."""
    answers = of_type(trace, "llm_response")
    used = [*_token_use(trace, answers, params.model)]
    if not used:
        return verdict(False, "expected token usage to be priced, found none recorded", events=answers)
    costs: dict[str, float] = {}
    for model, tokens in used:
        cost = _price(model, params.prices).cost(
            input_tokens=tokens.input, output_tokens=tokens.output, cached_tokens=tokens.cached
        )
        costs[model] = costs.get(model, 0) + cost
    total = sum(costs.values())
    listed = ", ".join(f"{model} {cost:.6g}" for model, cost in costs.items())
    message = f"expected a cost of {params.max_cost:g} or less, found {total:.6g} ({listed})"
    return verdict(
        total <= params.max_cost, message, observed={"cost": total, "by_model": costs}, events=answers
    )


def _token_use(trace: Trace, answers: list[TraceEvent], model: str | None) -> Iterator[tuple[str, _Tokens]]:
    """The usage of each model call, or of the whole run if no calls are known."""
    for event in answers:
        tokens = _tokens(event.data.get("usage"))
        if tokens is not None:
            yield str(event.data.get("model")), tokens
    tokens = None if answers else _tokens(trace.metrics.token_usage)
    if tokens is not None:
        stated = (
            trace.metrics.token_usage.get("model") if isinstance(trace.metrics.token_usage, dict) else None
        )
        if model is None and not isinstance(stated, str):
            raise UsageError("params.model: required, because the run does not name its model")
        yield model or str(stated), tokens


def _price(model: str, prices: dict[str, Price]) -> Price:
    price = find_price(model, prices)
    if price is None:
        raise UsageError(
            f"params.prices: no price for {model!r}: {unknown_name(model, 'model', list(prices))}"
        )
    return price
