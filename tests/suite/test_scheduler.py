"""Runs that the scheduler started."""

import pytest

from tests.suite.runs import call, check, table, trace_of

SCHEDULED = {"trigger": "scheduler", "task_id": "digest", "scheduler_context": {"task_id": "digest"}}
SENDS = (call("outbound_send", "c1"), call("outbound_send", "c2"), call("mail", "c3"))

COUNT = {
    "exact": (SCHEDULED, {"exact": 2}, "pass", ["evt-1", "evt-2"], "found 2"),
    "not exact": (
        SCHEDULED,
        {"exact": 1},
        "fail",
        ["evt-1", "evt-2"],
        "expected exactly 1, found 2 at evt-1, evt-2",
    ),
    "bounds": (SCHEDULED, {"min": 1, "max": 2}, "pass", ["evt-1", "evt-2"], "at least 1 and at most 2"),
    "too few": (SCHEDULED, {"min": 3}, "fail", ["evt-1", "evt-2"], ""),
    "too many": (SCHEDULED, {"max": 1}, "fail", ["evt-1", "evt-2"], ""),
    "another tool": (SCHEDULED, {"tool": "mail", "exact": 1}, "pass", ["evt-3"], ""),
    "not scheduled": ({}, {"exact": 2}, "fail", [], "in a run started by user_message"),
    "exactly null": (SCHEDULED, {"exact": None}, "fail", ["evt-1", "evt-2"], "exactly 0, found 2"),
    "bounds as text": (SCHEDULED, {"exact": "2"}, "pass", ["evt-1", "evt-2"], "found 2"),
    "a bound that is null": (SCHEDULED, {"max": None}, "fail", ["evt-1", "evt-2"], "at most 0"),
    "no bounds": (SCHEDULED, {}, "fail", [], "give exact, min or max"),
}


@pytest.mark.parametrize(("scenario", "params", "status", "refs", "said"), **table(COUNT))
def test_a_scheduled_run_sends_what_it_should(scenario, params, status, refs, said):
    """The tool is outbound_send unless named."""
    check("scheduler_outbound_count", params, trace_of(*SENDS, scenario=scenario), status, refs, said)


RUNS = {
    "runs": (SENDS[:1], SCHEDULED, {}, "pass", ["evt-1"], ""),
    "another task": (SENDS[:1], {**SCHEDULED, "task_id": "report"}, {}, "fail", ["evt-1"], "task report"),
    "task in the context alone": (
        *(({**SENDS[0], "task_id": "digest"},), {**SCHEDULED, "task_id": None}, {}, "pass", ["evt-1"], ""),
    ),
    "no event for it": ((), SCHEDULED, {}, "fail", [], "with no events"),
    "another trigger": (SENDS[:1], {"task_id": "digest"}, {}, "fail", ["evt-1"], "by user_message"),
    "another task, though an event carries it": (
        *([{**SENDS[0], "task_id": "digest"}], {**SCHEDULED, "task_id": "report"}, {}, "fail", []),
        "found task report",
    ),
    "the scenario's own task": (SENDS[:1], SCHEDULED, {"task_id": None}, "pass", ["evt-1"], "task digest"),
    "that trigger is meant": (
        *(SENDS[:1], {"task_id": "digest"}, {"trigger_must_equal": "user_message"}, "pass", ["evt-1"], ""),
    ),
}


@pytest.mark.parametrize(("script", "scenario", "params", "status", "refs", "said"), **table(RUNS))
def test_the_task_runs(script, scenario, params, status, refs, said):
    """Trigger and task match, and some event carries the task."""
    trace = trace_of(*script, scenario=scenario)
    check("scheduler_task_runs", {"task_id": "digest", **params}, trace, status, refs, said)
