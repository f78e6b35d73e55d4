"""Which tools were called, how often and in what order."""

import pytest

from tests.suite.runs import call, check, judged, memory, result, table, trace_of

TWICE = trace_of(call("search", "c1"), result("search", "c1"), call("search", "c2"), call("send", "c3"))
NOTHING = trace_of()

CALLS = {
    "called": ("must_call_tool", {"tool": "search"}, TWICE, "pass", ["evt-1", "evt-3"], "found 2"),
    "often enough": (
        "must_call_tool",
        {"tool": "search", "min_calls": 2},
        TWICE,
        "pass",
        ["evt-1", "evt-3"],
        "",
    ),
    "too seldom": (
        *("must_call_tool", {"tool": "search", "min_calls": 3}, TWICE, "fail", ["evt-1", "evt-3"]),
        ("search: expected 3 or more calls, found 2", "evt-1, evt-3"),
    ),
    "never": (
        *("must_call_tool", {"tool": "fetch"}, TWICE, "fail", []),
        ("fetch: expected 1 or more calls, found 0", "the tools called were search, send"),
    ),
    "no calls at all": ("must_call_tool", {"tool": "fetch"}, NOTHING, "fail", [], "no tool was called"),
    "asked for none": ("must_call_tool", {"tool": "fetch", "min_calls": 0}, NOTHING, "pass", [], ""),
    "not called": ("must_not_call_tool", {"tool": "fetch"}, TWICE, "pass", [], "found no calls"),
    "called all the same": (
        *("must_not_call_tool", {"tool": "search"}, TWICE, "fail", ["evt-1", "evt-3"]),
        "search: expected no call, found 2 calls at evt-1, evt-3",
    ),
    "within the limit": (
        "max_tool_calls",
        {"tool": "search", "max": 2},
        TWICE,
        "pass",
        ["evt-1", "evt-3"],
        "",
    ),
    "beyond the limit": (
        *("max_tool_calls", {"tool": "search", "max": 1}, TWICE, "fail", ["evt-1", "evt-3"]),
        "search: expected 1 or fewer calls, found 2",
    ),
    "all within": ("max_tool_calls", {"max_total": 3}, TWICE, "pass", ["evt-1", "evt-3", "evt-4"], ""),
    "all beyond": (
        *("max_tool_calls", {"max_total": 2}, TWICE, "fail", ["evt-1", "evt-3", "evt-4"]),
        "all tools: expected 2 or fewer calls, found 3",
    ),
    "a tool without limit": ("max_tool_calls", {"tool": "search"}, TWICE, "fail", [], "go together"),
    "a limit without tool": ("max_tool_calls", {"max": 3, "max_total": 3}, TWICE, "fail", [], "go together"),
    "no limit": ("max_tool_calls", {}, TWICE, "fail", [], "give tool and max, or max_total"),
    "two limits": (
        *("max_tool_calls", {"tool": "search", "max": 2, "max_total": 3}, TWICE, "pass", ["evt-1", "evt-3"]),
        "search: expected 2 or fewer",
    ),
    "two limits, the second broken": (
        *("max_tool_calls", {"tool": "search", "max": 2, "max_total": 2}, TWICE),
        *("fail", ["evt-1", "evt-3", "evt-4"], "all tools: expected 2 or fewer"),
    ),
}


@pytest.mark.parametrize(("kind", "params", "trace", "status", "refs", "said"), **table(CALLS))
def test_calls_are_counted(kind, params, trace, status, refs, said):
    """Counts decide, and the calls are the evidence, also of a pass."""
    check(kind, params, trace, status, refs, said)


ORDERED = trace_of(
    call("search"),
    result("search", success=False),
    result("search"),
    call("send", "c2"),
    memory("read", "home"),
)

ORDER = {
    "in order": (
        *({"event_type": "tool_call", "tool": "search"}, {"event_type": "tool_call", "tool": "send"}),
        *("pass", ["evt-1", "evt-4"], ""),
    ),
    "by success": (
        *({"event_type": "tool_result", "success": True}, {"event_type": "memory_read"}),
        *("pass", ["evt-3", "evt-5"], "tool_result (success true) before memory_read"),
    ),
    "by call id": (
        *({"event_type": "tool_call", "call_id": "c1"}, {"event_type": "tool_call", "call_id": "c2"}),
        *("pass", ["evt-1", "evt-4"], ""),
    ),
    "the wrong way round": (
        *({"event_type": "tool_call", "tool": "send"}, {"event_type": "tool_result", "tool": "search"}),
        *("fail", ["evt-4", "evt-2"], ("found the first at evt-4", "other at evt-2")),
    ),
    "the same event": (
        *({"event_type": "tool_call", "tool": "send"}, {"event_type": "tool_call", "tool": "send"}),
        *("fail", ["evt-4", "evt-4"], "evt-4"),
    ),
    "no before": (
        *({"event_type": "tool_call", "tool": "fetch"}, {"event_type": "tool_call", "tool": "send"}),
        *("fail", [], "found no tool_call of fetch"),
    ),
    "neither": (
        *({"event_type": "error"}, {"event_type": "tool_call", "tool": "fetch"}),
        *("fail", [], "found no error and tool_call of fetch"),
    ),
}


@pytest.mark.parametrize(("before", "after", "status", "refs", "said"), **table(ORDER))
def test_the_first_of_each_decides_the_order(before, after, status, refs, said):
    """Both must exist; the evidence is before, then after."""
    check("tool_call_order", {"before": before, "after": after}, ORDERED, status, refs, said)


SENT = {"event_type": "tool_result", "tool": "send", "success": True}
STOP = {
    "stops": (*(trace_of(call("send"), result("send")), {}, "pass", ["evt-2"], "found none"),),
    "goes on": (
        *(trace_of(call("send"), result("send"), call("send", "c2")), {}, "fail", ["evt-2", "evt-3"]),
        "expected no tool_call after the success at evt-2, found 1 at evt-3",
    ),
    "goes on with what is allowed": (
        *(trace_of(call("send"), result("send"), call("log", "c2")), {"allowed_following_tools": ["log"]}),
        *("pass", ["evt-2"], ""),
    ),
    "went on before": (trace_of(call("send"), call("x", "c2"), result("send")), {}, "pass", ["evt-3"], ""),
    "never succeeds": (
        *(trace_of(call("send"), result("send", success=False)), {}, "fail", []),
        "expected tool_result of send (success true), after which to stop; found none",
    ),
}


@pytest.mark.parametrize(("trace", "more", "status", "refs", "said"), **table(STOP))
def test_after_the_first_success_the_agent_stops(trace, more, status, refs, said):
    """Only what is forbidden and comes after it counts; without success the assertion fails."""
    params = {"success_event": SENT, "forbid_following": {"event_type": "tool_call"}, **more}
    check("stop_after_success", params, trace, status, refs, said)


def test_a_selector_with_a_typo_is_named():
    """Nested parameters are as strict as others."""
    found = judged("tool_call_order", {"before": {"event_typ": "x"}, "after": {"event_type": "y"}}, NOTHING)
    assert found.status == "fail"
    assert found.message.startswith("params.before")
