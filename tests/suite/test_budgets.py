"""What a run may cost."""

import msgspec
import pytest

from tests.suite.runs import call, check, result, table, trace_of

T0, T1 = "2026-03-01T08:00:00.000Z", "2026-03-01T08:00:00.250Z"
TIMED = trace_of(
    call("slow") | {"ts": T0}, result("slow", ts=T1), call("fast", "c2"), result("fast", "c2", latency_ms=5)
)

LATENCY = {
    "in time": ({"max_total_ms": 1000}, "pass", [], "the run took 1000 ms"),
    "too long": ({"max_total_ms": 999}, "fail", [], "the run took 1000 ms, more than 999"),
    "each call": ({"max_call_ms": 250}, "pass", ["evt-2", "evt-4"], "slowest call 250 ms"),
    "one too slow": ({"max_call_ms": 100}, "fail", ["evt-2"], "slow at evt-2 took 250 ms, more than 100"),
    "of one tool": ({"max_call_ms": 100, "tool": "fast"}, "pass", ["evt-4"], ""),
    "none allowed": ({"max_call_ms": 0, "tool": "fast"}, "fail", ["evt-4"], "took 5 ms, more than 0"),
    "nothing asked": ({}, "fail", [], "give max_total_ms or max_call_ms"),
}


@pytest.mark.parametrize(("params", "status", "refs", "said"), **table(LATENCY))
def test_time(params, status, refs, said):
    """The run by its metrics, calls by what they state or by their times."""
    check("latency_budget", params, TIMED, status, refs, said)


def test_a_time_that_is_none_is_said():
    """Nothing is guessed."""
    trace = trace_of(call("x") | {"ts": "yesterday"}, result("x"))
    check("latency_budget", {"max_call_ms": 1}, trace, "fail", [], "evt-1: 'yesterday' is not a time")


TOKENS = {
    "enough": (
        {"input_tokens": 10, "output_tokens": 5},
        {"max_total": 15},
        "pass",
        "15 tokens (10 in, 5 out)",
    ),
    "too many": (
        {"input_tokens": 10, "output_tokens": 5},
        {"max_total": 14},
        "fail",
        "15 total tokens, more than 14",
    ),
    "older names": (
        {"prompt_tokens": 10, "completion_tokens": 5},
        {"max_output": 4},
        "fail",
        "5 output tokens",
    ),
    "stated total": ({"input_tokens": 1, "total_tokens": 99}, {"max_total": 50}, "fail", "99 total tokens"),
    "a bare number": (30, {"max_total": 20}, "fail", "30 total tokens"),
    "unknown": (None, {"max_total": 20}, "fail", "found none recorded"),
    "nothing asked": (30, {}, "fail", "give max_total, max_input or max_output"),
}


@pytest.mark.parametrize(("usage", "params", "status", "said"), **table(TOKENS))
def test_tokens(usage, params, status, said):
    """Under any of their usual names; unknown use is not no use."""
    check("token_budget", params, trace_of(metrics={"token_usage": usage}), status, [], said)


PRICES = {"big": {"input": 2, "output": 10, "cached_input": 1}, "small-*": {"input": 1, "output": 1}}
MILLION = {"input_tokens": 1_000_000, "output_tokens": 100_000}
COSTS = {
    "cheap enough": ({**MILLION, "model": "big"}, {"max_cost": 3}, "pass", "found 3 (big 3)"),
    "too dear": (
        {**MILLION, "model": "big"},
        {"max_cost": 2.99},
        "fail",
        "expected a cost of 2.99 or less, found 3",
    ),
    "cached": ({**MILLION, "model": "big", "cached_input_tokens": 500_000}, {"max_cost": 2.5}, "pass", "2.5"),
    "by a family's price": ({**MILLION, "model": "small-7"}, {"max_cost": 1.1}, "pass", "small-7 1.1"),
    "named by the test": (MILLION, {"max_cost": 3, "model": "big"}, "pass", ""),
    "named by nobody": (MILLION, {"max_cost": 3}, "fail", "params.model: required"),
    "no price": (
        {**MILLION, "model": "bigg"},
        {"max_cost": 3},
        "fail",
        "no price for 'bigg': unknown model; did you mean 'big'?",
    ),
    "unknown use": (None, {"max_cost": 3}, "fail", "found none recorded"),
}


@pytest.mark.parametrize(("usage", "params", "status", "said"), **table(COSTS))
def test_cost(usage, params, status, said):
    """At the author's prices for a million tokens."""
    params = {"prices": PRICES, **params}
    check("cost_budget", params, trace_of(metrics={"token_usage": usage}), status, [], said)


def test_the_cost_of_each_model_call_is_added():
    """Where the calls are known, each has its own model."""
    trace = trace_of({"type": "memory_read"}, {"type": "memory_read"})
    models = ("big", "small-1")
    events = [
        msgspec.structs.replace(event, type="llm_response", data={"model": model, "usage": MILLION})
        for event, model in zip(trace.events, models, strict=True)
    ]
    trace = msgspec.structs.replace(trace, events=events)
    params = {"prices": PRICES, "max_cost": 4}
    said = ("found 4.1", "big 3, small-1 1.1")
    check("cost_budget", params, trace, "fail", ["evt-1", "evt-2"], said)
