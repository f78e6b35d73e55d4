"""From a capture to a trace: every kind of event, and where it came from."""

import contextlib
import json

import anthropic
import pytest

import reenact
from reenact.formats.bundle import check_bundle, read_bundle, write_bundle
from reenact.formats.testcase import read_test_case
from reenact.formats.trace import read_trace, write_trace
from reenact.store.reader import CaptureReader
from reenact.testing import Fail, Reply, ScriptedProvider, ToolCall
from reenact.trace.from_run import trace_of_run
from reenact.trace.normalize import normalize
from reenact.trace.sources.capture import read_capture
from reenact.trace.to_bundle import bundle_of_trace
from reenact.values.tags import strip_tags
from tests.trace.test_normalize import START

SCHEDULED = """\
schema_version: "0.1"
id: digest
title: x
adapter: own
mode: replay
scenario: {trigger: scheduler, group_id: team, task_id: daily, scheduler_context: {at: noon}}
tools: {}
adapter_input: {capture: x}
assertions: [{id: a, type: t}]
"""


def trace_in(path, case=None):
    return trace_of_run(read_capture(CaptureReader(path)), trace_id="t", test_run_id="r", case=case)


@pytest.fixture
def captured(tmp_path):
    """A run with tools, a failure, memory, state, chance and an output."""

    @reenact.tool
    def search(q):
        return {"hits": (q, q)}

    @reenact.tool
    def send(to):
        raise TimeoutError("slow")

    with reenact.capture(tmp_path / "one") as run:
        run.rng.random()
        search("tea")
        with pytest.raises(TimeoutError):
            send(to="ann")
        run.memory_read("a.md", lambda: "x", group_id="home", source="notes")
        run.memory_write("a.md", "y")
        run.state_mutation("file_write", path="out.txt")
        run.final_output = "tea it is"
    return tmp_path / "one"


def test_events_are_named_after_their_lines(captured):
    """Chance is left out; a failure is a result and an error."""
    events = trace_in(captured).events
    assert [(event.event_id, event.type, event.parent_event_id) for event in events] == [
        ("evt-3", "tool_call", None),
        ("evt-4", "tool_result", "evt-3"),
        ("evt-5", "tool_call", None),
        ("evt-6", "tool_result", "evt-5"),
        ("evt-6.error", "error", "evt-5"),
        ("evt-7", "memory_read", None),
        ("evt-8", "memory_write", None),
        ("evt-9", "state_mutation", None),
        ("evt-10", "final_output", None),
    ]
    assert [event.seq for event in events] == list(range(1, 10))


def test_data_is_plain_and_whole(captured):
    """Tags of Python's types are off; latencies are there."""
    trace = trace_in(captured)
    data = {event.event_id: event.data for event in trace.events}
    assert data["evt-3"] == {"tool": "search", "call_id": "c1", "args": {"q": "tea"}}
    assert data["evt-4"]["result"] == {"hits": ["tea", "tea"]}
    assert data["evt-4"]["latency_ms"] >= 0
    assert data["evt-6.error"] == {
        "scope": "tool",
        "tool": "send",
        "call_id": "c2",
        "error_type": "TimeoutError",
        "message": "slow",
    }
    assert data["evt-9"] == {"kind": "file_write", "path": "out.txt", "value": None}
    assert trace.final_output.content == "tea it is"
    assert trace.status == "success"


def test_groups_are_the_events_own(captured):
    """Else the test's; the session is the run."""
    trace = trace_in(captured, read_test_case(SCHEDULED.encode(), "test.yaml"))
    groups = {event.event_id: event.group_id for event in trace.events}
    assert (groups["evt-7"], groups["evt-8"]) == ("home", "team")
    assert {event.task_id for event in trace.events} == {"daily"}
    assert trace.scenario.session_id == CaptureReader(captured).manifest.runId
    assert (trace.scenario.trigger, trace.adapter.name, trace.test_case_id) == ("scheduler", "own", "digest")


def test_capabilities_are_what_was_recorded(captured, tmp_path):
    """Memory events prove that they are supported."""
    with reenact.capture(tmp_path / "empty"):
        pass
    assert trace_in(captured).capabilities["supports_memory_events"] is True
    empty = trace_in(tmp_path / "empty")
    assert empty.capabilities["supports_memory_events"] is False
    assert (empty.events, empty.final_output.content) == ([], "")


def test_a_run_that_raised_has_failed(tmp_path):
    """With the error as an event."""
    with pytest.raises(KeyError), reenact.capture(tmp_path / "one"):
        raise KeyError("x")
    trace = trace_in(tmp_path / "one")
    assert trace.status == "failed"
    assert (trace.events[0].type, trace.events[0].data["error_type"]) == ("error", "KeyError")


def test_a_trace_of_a_capture_is_a_trace(captured):
    """It can be written and read, and says the same every time."""
    trace = trace_in(captured)
    assert read_trace(write_trace(trace), "trace.json") == trace == trace_in(captured)


def test_an_output_that_is_no_text_is_json(tmp_path):
    """So that assertions on JSON apply."""
    with reenact.capture(tmp_path / "one") as run:
        run.final_output = {"a": 1}
    assert json.loads(trace_in(tmp_path / "one").final_output.content) == {"a": 1}


def test_tags_come_off():
    """Whatever Python's values were recorded as."""
    tagged = {"$py": "dict", "value": [[1, {"$py": "tuple", "value": [2]}], {"$$a": 3}]}
    assert strip_tags(
        [tagged, {"$py": "opaque", "type": "x"}, {"a": {"$py": "Decimal", "value": "1.5"}}]
    ) == [
        {"1": [2], "$a": 3},
        None,
        {"a": "1.5"},
    ]


def test_a_bundle_holds_what_bundles_can(captured):
    """It is valid, gives the same events again, and what it leaves out is counted."""
    trace = trace_in(captured)
    bundled = bundle_of_trace(trace)
    assert bundled.left_out == {"state_mutation": 1}
    data = write_bundle(bundled.bundle)
    assert check_bundle(json.loads(data)) == []
    again = normalize(read_bundle(data, "replay.json"), trace_id="t", test_run_id="r", started_at=START)
    kept = [event for event in trace.events if event.type != "state_mutation"]
    assert [(event.event_id, event.type, event.data) for event in again.events] == [
        (event.event_id, event.type, event.data) for event in kept
    ]
    assert again.final_output == trace.final_output
    assert again.scenario == trace.scenario


# Model calls: a real client, a provider that really listens


def asked(path, *turns, stream=False, max_retries=0):
    """The trace of a run that asks the scripted *turns* one question, through Anthropic's own client."""
    with ScriptedProvider(list(turns)) as provider, reenact.capture(path):
        base_url = provider.base_url("anthropic")
        with anthropic.Anthropic(base_url=base_url, api_key="unused", max_retries=max_retries) as client:
            question = {"model": "m-1", "max_tokens": 50, "system": "Be brief."}
            question["messages"] = [{"role": "user", "content": "Hi"}]
            try:
                if stream:
                    with client.messages.stream(**question) as answer:
                        answer.get_final_message()
                else:
                    client.messages.create(**question)
            except anthropic.APIStatusError:
                pass
    return trace_in(path)


@pytest.mark.parametrize("stream", [False, True])
def test_model_calls_have_usage_text_and_messages(tmp_path, stream):
    """Whole or streamed; the last text is the output of a run that states none."""
    trace = asked(tmp_path / "one", Reply("Hello there"), stream=stream)
    assert [message.content for message in trace.input_messages] == ["Be brief.", "Hi"]
    request, answer, output = trace.events
    assert (request.type, request.data["model"]) == ("llm_request", "m-1")
    assert (answer.type, answer.actor, answer.parent_event_id) == ("llm_response", "model", request.event_id)
    assert (answer.data["text"], output.data["content"]) == ("Hello there", "Hello there")
    assert answer.data["latency_ms"] >= 0
    usage = answer.data["usage"]
    assert trace.metrics.token_usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert trace.capabilities["supports_model_trace"] is True


def test_a_failed_model_call_is_an_error(tmp_path):
    """Of the model's scope, with its status."""
    trace = asked(tmp_path / "one", Fail(429))
    request, answer, error = trace.events
    assert (error.event_id, error.type) == (f"{answer.event_id}.error", "error")
    assert error.parent_event_id == request.event_id
    assert (error.data["scope"], error.data["status"]) == ("model", 429)


def test_a_retried_model_call_gives_a_valid_bundle(tmp_path):
    """The error is held without its call, which has no step; the retry is counted."""
    trace = asked(tmp_path / "one", Fail(429), Reply("Hello"), max_retries=1)
    assert trace.metrics.retry_count == 1
    bundled = bundle_of_trace(trace)
    value = json.loads(write_bundle(bundled.bundle))
    assert check_bundle(value) == []
    (error,) = [step for step in value["script"] if step["type"] == "error"]
    assert (error["scope"], "call_id" in error, "model_call_id" in error) == ("model", False, True)
    assert value["metrics"]["retry_count"] == 1


def test_only_the_same_call_is_a_retry(tmp_path):
    """A failed tool that is called with something else, or again after it succeeded, is not retried."""

    @reenact.tool
    def fetch(n: int) -> int:
        if n < 0 or tries.pop(0):
            raise ValueError(n)
        return n

    tries = [True, False, False]
    with reenact.capture(tmp_path / "one"):
        for n in (-1, 5, 5, 5):
            with contextlib.suppress(ValueError):
                fetch(n)
    assert trace_in(tmp_path / "one").metrics.retry_count == 1


def test_tools_that_are_plain_functions_are_read_from_the_model_traffic(tmp_path):
    """Nobody saw them at work, but the model asked for them and was told what came of it."""
    used = [ToolCall("weather", {"city": city}) for city in ("Oslo", "Rome")]
    with (
        ScriptedProvider([Reply(tool_calls=used), Reply("Mild.")]) as provider,
        reenact.capture(tmp_path / "run"),
    ):
        base_url = provider.base_url("anthropic")
        with anthropic.Anthropic(base_url=base_url, api_key="unused") as client:
            messages = [{"role": "user", "content": "How warm is it?"}]
            first = client.messages.create(model="m-1", max_tokens=50, messages=messages)
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": f"{block.input['city']}: 9"}
                for block in first.content
            ]
            messages += [
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": results},
            ]
            client.messages.create(model="m-1", max_tokens=50, messages=messages)
    trace = trace_in(tmp_path / "run")
    assert [(event.event_id, event.type) for event in trace.events] == [
        ("evt-2", "llm_request"),
        ("evt-3", "llm_response"),
        ("evt-3.tool1", "tool_call"),
        ("evt-3.tool2", "tool_call"),
        ("evt-4.tool1", "tool_result"),
        ("evt-4.tool2", "tool_result"),
        ("evt-4", "llm_request"),
        ("evt-5", "llm_response"),
        ("evt-6", "final_output"),
    ]
    oslo, rome = (event for event in trace.events if event.type == "tool_result")
    assert (oslo.parent_event_id, rome.parent_event_id) == ("evt-3.tool1", "evt-3.tool2")
    assert (rome.data["tool"], rome.data["result"], rome.data["derived"]) == ("weather", "Rome: 9", True)
    assert trace.metrics.tool_call_count == 2
