"""From bundle to trace: the rules one by one, and the laws over all bundles."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats import bundle as bundles
from reenact.formats.testcase import read_test_case
from reenact.formats.trace import CODEC, read_trace, write_trace
from reenact.trace.normalize import normalize
from tests.formats import GOLDEN, law
from tests.formats.test_bundle import bundles as bundle_values
from tests.formats.test_bundle import changed

START = datetime(2026, 2, 24, 17, tzinfo=UTC)


def trace_of(value, case=None, started_at=START, **more):
    return normalize(
        bundles.CODEC.from_json(value),
        trace_id="t",
        test_run_id="r",
        started_at=started_at,
        case=case,
        **more,
    )


def case_of(scenario):
    text = f"""\
schema_version: "0.1"
id: some.test
title: x
adapter: nanoclaw
mode: replay
scenario: {scenario}
tools: {{}}
adapter_input: {{replay_file: replay.json}}
assertions: [{{id: a, type: t}}]
"""
    return read_test_case(text.encode(), "test.yaml")


@pytest.mark.parametrize("name", ["current-news", "every-step", "scheduler"])
def test_golden_bundles_give_their_golden_traces(name):
    """The same bundle gives the same trace for ever."""
    bundle = bundles.read_bundle((GOLDEN / "bundle" / f"{name}.json").read_bytes(), name)
    trace = normalize(
        bundle, trace_id=f"trace-{name}", test_run_id="run-1", started_at=START, adapter_version="0.1.0"
    )
    assert write_trace(trace) == (GOLDEN / "trace" / f"{name}.json").read_bytes()


MIXED = {
    "behind one that is given": (
        ["2026-03-01T08:00:00Z", None, None],
        ["2026-03-01T08:00:00Z", "2026-03-01T08:00:00.001Z", "2026-03-01T08:00:00.002Z"],
    ),
    "before one that is given": (
        [None, None, "2030-01-01T00:00:00+02:00"],
        ["2029-12-31T21:59:59.998Z", "2029-12-31T21:59:59.999Z", "2030-01-01T00:00:00+02:00"],
    ),
    "between two that are close": (
        ["2026-03-01T08:00:00.000Z", None, None, "2026-03-01T08:00:00.001Z"],
        [
            "2026-03-01T08:00:00.000Z",
            "2026-03-01T08:00:00.001Z",
            "2026-03-01T08:00:00.001Z",
            "2026-03-01T08:00:00.001Z",
        ],
    ),
    "between two that are finer": (
        ["2026-03-01T08:00:00.000200Z", None, "2026-03-01T08:00:00.000500Z"],
        ["2026-03-01T08:00:00.000200Z", "2026-03-01T08:00:00.000200Z", "2026-03-01T08:00:00.000500Z"],
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_times_do_not_run_back_beside_given_ones(name):
    """A step without a time stands between those around it, whenever the test is run."""
    given, expected = MIXED[name]
    script = [{"type": "error", "ts": ts} for ts in given]
    assert [event.ts for event in trace_of(changed(["script"], script)).events] == expected


@given(st.lists(st.none() | st.integers(0, 5_000_000)))
def test_times_are_ordered_where_the_given_ones_are(offsets_us):
    """Down to the microsecond."""
    steps = iter(sorted(offset for offset in offsets_us if offset is not None))
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    times = [
        None if o is None else (begin + timedelta(microseconds=next(steps))).isoformat() for o in offsets_us
    ]
    script = [{"type": "error", "ts": ts} for ts in times]
    found = [datetime.fromisoformat(event.ts) for event in trace_of(changed(["script"], script)).events]
    assert found == sorted(found)


def test_steps_without_a_time_count_milliseconds_from_the_start():
    """Written in UTC, whatever zone the start has; a given time is kept to the letter."""
    script = [{"type": "error"}, {"type": "error", "ts": "yesterday"}, {"type": "error", "ts": None}]
    start = datetime(2026, 2, 24, 19, 0, 0, 999_500, tzinfo=timezone(timedelta(hours=2)))
    events = trace_of(changed(["script"], script), started_at=start).events
    assert [event.ts for event in events] == [
        "2026-02-24T17:00:00.999Z",
        "yesterday",
        "2026-02-24T17:00:01.001Z",
    ]


def test_a_start_without_a_time_zone_is_refused():
    """Otherwise the trace would depend on the machine."""
    with pytest.raises(ValueError, match="time zone"):
        trace_of(changed(["script"], [{"type": "error"}]), started_at=datetime(2026, 2, 24))  # noqa: DTZ001


def test_every_step_type_has_its_actor():
    """Who did it, by type."""
    script = [
        {"type": "message_received"},
        {"type": "tool_call", "tool": "t", "call_id": "c"},
        {"type": "tool_result", "tool": "t", "call_id": "c", "success": True},
        {"type": "memory_read"},
        {"type": "memory_write"},
        {"type": "error"},
        {"type": "final_output"},
    ]
    assert [event.actor for event in trace_of(changed(["script"], script)).events] == [
        "user",
        "agent",
        "tool",
        "agent",
        "agent",
        "system",
        "agent",
    ]


def test_an_outcome_belongs_to_the_nearest_earlier_call_with_its_id():
    """Ids come again when a call is retried; outcomes without an id have no parent."""
    call = {"type": "tool_call", "tool": "t", "call_id": "c"}
    error = {"type": "error", "call_id": "c"}
    script = [call, error, call, error, {**call, "call_id": "d"}, error, {"type": "error"}]
    parents = [event.parent_event_id for event in trace_of(changed(["script"], script)).events]
    assert parents == [None, "evt-1", None, "evt-3", None, "evt-3", None]


def test_ids_come_from_the_step_then_the_bundle_then_the_test():
    """Null counts as missing, an empty id does not."""
    value = changed(["scenario"], {"trigger": "user_message", "group_id": None, "session_id": ""})
    value["script"] = [
        {"type": "error"},
        {"type": "error", "group_id": "own", "session_id": None, "agent_id": "b"},
    ]
    case = case_of("{trigger: scheduler, group_id: planned, session_id: planned, task_id: planned}")
    trace = trace_of(value, case)
    assert (trace.scenario.group_id, trace.scenario.session_id, trace.scenario.task_id) == (
        "planned",
        "",
        "planned",
    )
    assert [(event.group_id, event.session_id, event.agent_id) for event in trace.events] == [
        (None, "", "agent-main"),
        ("own", "", "b"),
    ]


def test_the_trigger_is_the_bundles_and_the_context_may_be_the_tests():
    """The task is found in the test's scheduler context as well."""
    value = changed(["scenario"], {"trigger": "user_message"})
    trace = trace_of(value, case_of("{trigger: scheduler, scheduler_context: {task_id: digest}}"))
    assert trace.scenario.trigger == "user_message"
    assert trace.scenario.scheduler_context == {"task_id": "digest"}
    assert trace.scenario.task_id == "digest"


def test_the_test_names_the_trace():
    """Id and adapter are the test's; without one, the adapter is the bundle's."""
    named, plain = (
        trace_of(changed(["adapter"], "own"), case_of("{trigger: scheduler}")),
        trace_of(changed(["adapter"])),
    )
    assert (named.test_case_id, named.adapter.name) == ("some.test", "nanoclaw")
    assert (plain.test_case_id, plain.adapter.name) == (None, "nanoclaw-replay")
    assert trace_of(changed(["adapter"], "own"), adapter_version="9").adapter == type(plain.adapter)(
        name="own", version="9"
    )


def test_capabilities_are_the_defaults_and_what_the_bundle_says():
    """Flags nobody knows are kept."""
    trace = trace_of(
        changed(["capabilities"], {"supports_replay": False, "supports_memory_events": True, "x": True})
    )
    assert trace.capabilities == {
        "supports_tool_trace": True,
        "supports_memory_events": True,
        "supports_scheduler_context": False,
        "supports_container_metadata": False,
        "supports_live_run": False,
        "supports_replay": False,
        "x": True,
    }


STEPS = [
    {"type": "final_output", "content": "first"},
    {"type": "final_output", "role": "bot", "content": "last"},
]
OUTPUTS = {
    "explicit": ({"content": "given", "role": "r"}, STEPS, ("r", "given")),
    "explicit without role": ({"content": "given"}, STEPS, ("assistant", "given")),
    "last step": (None, STEPS, ("bot", "last")),
    "step without content": (None, [{"type": "final_output"}], ("assistant", "")),
    "none at all": (None, [], ("assistant", "")),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_output_is_the_explicit_one_or_that_of_the_last_step(name):
    """A run without any has an empty one."""
    explicit, script, expected = OUTPUTS[name]
    output = trace_of({**changed(["final_output"], explicit), "script": script}).final_output
    assert (output.role, output.content) == expected


def test_unknown_fields_of_the_output_are_passed_on():
    """They belong to the explicit output alone; those of a step are in its event."""
    output = {"content": "x", "lang": "en"}
    explicit = trace_of(changed(["final_output"], output))
    step = trace_of({**changed(["final_output"]), "script": [{"type": "final_output", **output}]})
    assert explicit.final_output.extra == {"lang": "en"}
    assert step.final_output.extra == {}
    assert step.events[0].data == output


def test_tool_calls_are_counted_whatever_the_bundle_claims():
    """Other metrics are passed on, and a missing retry count is 0."""
    trace = trace_of(changed(["metrics"], {"timing_ms_total": 1.5, "tool_call_count": 99, "cost": 2}))
    assert CODEC.to_json(trace)["metrics"] == {
        "timing_ms_total": 1.5,
        "tool_call_count": 1,
        "retry_count": 0,
        "token_usage": None,
        "cost": 2,
    }


def test_artifacts_are_passed_through():
    """The caller knows the files; the function knows none."""
    assert trace_of(changed(["adapter"]), artifacts={"replay_file": "replay.json"}).artifacts == {
        "replay_file": "replay.json"
    }


@law
@given(bundle_values())
def test_laws(value):
    """Order is kept, parents exist and are earlier, call ids link the same, no field is lost."""
    trace = trace_of(value)
    assert [event.seq for event in trace.events] == list(range(1, len(value["script"]) + 1))
    calls = {}
    for event, step in zip(trace.events, value["script"], strict=True):
        assert event.type == step["type"]
        assert event.event_id == step.get("event_id", f"evt-{event.seq}")
        assert event.data.get("call_id") == step.get("call_id")
        if event.type in ("tool_result", "error"):
            assert event.parent_event_id == calls.get(step.get("call_id"))
        else:
            assert event.parent_event_id is None
        if event.type == "tool_call":
            calls[step["call_id"]] = event.event_id
        envelope = {"type", "event_id", "ts", "group_id", "session_id", "task_id", "agent_id"}
        assert event.data == {key: field for key, field in step.items() if key not in envelope}
    assert trace.metrics.tool_call_count == sum(step["type"] == "tool_call" for step in value["script"])
    assert read_trace(write_trace(trace), "trace.json") == trace


@law
@given(bundle_values())
def test_normalizing_leaves_the_bundle_as_it_is(value):
    """The same bundle gives the same trace twice and is written as before."""
    bundle = bundles.CODEC.from_json(value)
    before = bundles.write_bundle(bundle)
    traces = [normalize(bundle, trace_id="t", test_run_id="r", started_at=START) for _ in range(2)]
    assert traces[0] == traces[1]
    assert bundles.write_bundle(bundle) == before
