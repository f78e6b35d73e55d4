"""Traces become one run each, with as many model calls and tools as there are spans of them."""

from __future__ import annotations

import json
import re
import struct
from itertools import count
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

import pytest

import reenact
from tests.importers.test_transcript_forms import events_of
from tests.importers.test_transcripts import counted, trace_of

FIXTURES = Path(__file__).parent / "fixtures"
TRACE_ID = "5b8efff798038103d269b633813fc60c"
CALL = {"id": "c1", "name": "look", "args": {"q": "x"}}


def imported(tmp_path: Path, source: Path) -> Any:
    report = reenact.import_runs(source, tmp_path / "runs")
    assert report.verdict == "whole"
    return report.runs


@pytest.mark.parametrize("form", ["json", "pb"])
@pytest.mark.parametrize("name", ["genai", "openinference"])
def test_what_instrumentations_export_can_be_judged(tmp_path, name, form):
    """Messages, answers, the tool with what it gave, tokens; protobuf says the same as JSON."""
    (run,) = imported(tmp_path, FIXTURES / f"otlp-{name}.{form}")
    assert (run.format, run.fidelity, counted(run)) == ("otlp", "judgeable", (2, 1, 1))
    events = trace_of(Path(run.path))
    answers = [event["data"] for event in events if event["type"] == "llm_response"]
    assert [answer["text"] for answer in answers] == ["I look.", "There is one file."]
    assert answers[0]["usage"]["output_tokens"] > 0
    assert [event["data"]["tool"] for event in events if event["type"] == "tool_call"] == ["look"]
    assert "How many files are here?" in Path(run.path, "transcript.md").read_text()
    assert reenact.verify(run.path).is_good


def test_lines_and_frames_are_read_too(tmp_path):
    """As the collector's exporter to files writes them: a request a line, or behind its length."""
    told = json.dumps(json.loads((FIXTURES / "otlp-genai.json").read_text()))
    data = (FIXTURES / "otlp-genai.pb").read_bytes()
    more, more_data = told, data
    for number, own in enumerate(sorted(set(re.findall(r'"spanId": "(\w+)"', told)))):
        other = f"{number:016x}"
        more, more_data = (
            more.replace(own, other),
            more_data.replace(bytes.fromhex(own), bytes.fromhex(other)),
        )
    (tmp_path / "it.jsonl").write_text(f"{told}\n{more}\n")
    (tmp_path / "it.pb").write_bytes(b"".join(struct.pack(">I", len(it)) + it for it in (data, more_data)))
    for name in ("it.jsonl", "it.pb"):
        report = reenact.import_runs(tmp_path / name, tmp_path / name.replace(".", "-"))
        assert (report.verdict, report.runs[0].counts.model_calls) == ("whole", 4)


def test_a_span_that_is_told_twice_is_read_once(tmp_path):
    """Pages of exports may overlap; the second one is a loss with its line."""
    told = json.dumps(json.loads((FIXTURES / "otlp-genai.json").read_text()))
    (tmp_path / "it.jsonl").write_text(f"{told}\n" * 2)
    (run,) = reenact.import_runs(tmp_path / "it.jsonl", tmp_path / "run").runs
    assert (run.counts.model_calls, {loss.line for loss in run.losses}) == (2, {2})
    assert all("is there twice" in loss.reason for loss in run.losses)


def test_a_frame_that_was_cut_off_is_a_loss(tmp_path):
    """Also where what is there of it can be read."""
    data = (FIXTURES / "otlp-genai.pb").read_bytes()
    (tmp_path / "it.pb").write_bytes(struct.pack(">I", len(data)) + data + struct.pack(">I", 900) + data[:0])
    report = reenact.import_runs(tmp_path / "it.pb", tmp_path / "run")
    assert (report.verdict, report.runs[0].counts.model_calls) == ("partly", 2)


def test_spans_without_ids_are_not_taken_for_each_other(tmp_path):
    told = json.loads((FIXTURES / "otlp-genai.json").read_text())
    for resource in told["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                del span["spanId"]
    (tmp_path / "it.json").write_text(json.dumps(told))
    (run,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    assert (counted(run), run.losses) == ((2, 1, 1), [])


SECOND = {"text": "Or not.", "message": {"role": "assistant", "content": "Or not."}}


@pytest.mark.parametrize("name", ["generations", "choices"])
def test_a_choice_that_the_run_did_not_go_on_with_is_named(tmp_path, name):
    """Where a model was asked for several answers."""
    told = json.loads(json.dumps(LANGSMITH))
    for record in told:
        listed = record["outputs"] and record["outputs"].get(name)
        if listed:
            (listed[0] if name == "generations" else listed).append(SECOND)
    (tmp_path / "it.json").write_text(json.dumps(told))
    (run,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    assert f"outputs.{name}, all but the first: left out" in run.missing
    assert counted(run) == (2, 2, 2)


def test_messages_in_several_lists_are_all_there(tmp_path):
    """And prompts of models that take only text."""
    told = json.loads(json.dumps(LANGSMITH))
    told[1]["inputs"] = {"messages": [[HUMAN], [{"role": "user", "content": "In another list."}]]}
    told[4]["inputs"] = {"prompts": ["As a prompt."]}
    (tmp_path / "it.json").write_text(json.dumps(told))
    (run,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    text = Path(run.path, "events.jsonl").read_text()
    assert ("In another list." in text, "As a prompt." in text) == (True, True)


def langsmith(own: str, kind: str, inputs: Any, outputs: Any, second: int, **more: Any) -> dict[str, Any]:
    return {
        "id": own, "trace_id": "t1", "name": own, "run_type": kind, "inputs": inputs, "outputs": outputs,
        "start_time": f"2026-01-01T00:00:0{second}", "end_time": f"2026-01-01T00:00:0{second}.5", **more,
    }  # fmt: skip


HUMAN = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "HumanMessage"],
    "kwargs": {"content": "Hi"},
}
AI = {"id": ["langchain", "schema", "AIMessage"], "kwargs": {"content": "I look.", "tool_calls": [CALL]}}
LANGSMITH = [
    langsmith("chain", "chain", {"a": 1}, {"b": 2}, 0),
    langsmith(
        "one",
        "llm",
        {"messages": [[HUMAN]]},
        {"generations": [[{"text": "I look.", "message": AI}]]},
        1,
        prompt_tokens=7,
        completion_tokens=2,
        extra={"metadata": {"ls_model_name": "m"}},
    ),
    langsmith("look", "tool", {"input": "x"}, {"output": "one.txt"}, 2),
    langsmith("broken", "tool", {"input": "y"}, None, 3, error="ValueError: no"),
    langsmith(
        "two",
        "llm",
        {"messages": [{"role": "user", "content": "Hi"}]},
        {"choices": [{"message": {"role": "assistant", "content": "Done"}}]},
        4,
        odd=1,
    ),
]

OBSERVATIONS = [
    {
        "id": "g1",
        "traceId": "t1",
        "type": "GENERATION",
        "name": "g",
        "model": "m",
        "startTime": "2026-01-01T00:00:01Z",
        "endTime": "2026-01-01T00:00:02Z",
        "input": [{"role": "user", "content": "Hi"}],
        "output": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        "usageDetails": {"input": 7, "output": 2},
    },
    {
        "id": "t",
        "traceId": "t1",
        "type": "TOOL",
        "name": "look",
        "startTime": "2026-01-01T00:00:03Z",
        "input": {"q": "x"},
        "output": "one.txt",
    },
    {
        "id": "b",
        "traceId": "t1",
        "type": "TOOL",
        "name": "broken",
        "startTime": "2026-01-01T00:00:04Z",
        "level": "ERROR",
        "statusMessage": "ValueError: no",
    },
    {
        "id": "g2",
        "traceId": "t1",
        "type": "GENERATION",
        "name": "g",
        "startTime": "2026-01-01T00:00:05Z",
        "input": "Hi",
        "output": "Done",
        "odd": 1,
    },
]
TRACE = {"id": "t1", "name": "trace", "timestamp": "2026-01-01T00:00:00Z", "observations": OBSERVATIONS}


@pytest.mark.parametrize("form", ["list", "lines", "trace", "page", "page on a line"])
@pytest.mark.parametrize(("name", "told"), [("langsmith", LANGSMITH), ("langfuse", OBSERVATIONS)])
def test_exports_can_be_judged(tmp_path, name, told, form):
    """Model calls with texts, tokens and tool calls; tools that gave something, and that failed."""
    text = json.dumps(told, indent=1)
    if form == "lines":
        text = "".join(json.dumps(each) + "\n" for each in told)
    elif form == "trace" and name == "langfuse":
        text = json.dumps(TRACE, indent=1)
    elif form.startswith("page"):
        page = {"runs" if name == "langsmith" else "data": told, "meta": {"page": 7001}}
        text = json.dumps(page, indent=1 if form == "page" else None)
    (tmp_path / "it.json").write_text(text)
    (run,) = imported(tmp_path, tmp_path / "it.json")
    assert (run.format, counted(run), run.unknown) == (name, (2, 2, 2), {"attribute.odd": 1})
    events = trace_of(Path(run.path))
    answers = [event["data"] for event in events if event["type"] == "llm_response"]
    assert [answer["text"] for answer in answers] == ["I look.", "Done"]
    assert answers[0]["usage"] == {"input_tokens": 7, "output_tokens": 2}
    results = [event["data"] for event in events if event["type"] == "tool_result"]
    assert [result["success"] for result in results] == [True, False]
    assert results[0]["result"] == "one.txt"
    assert ("7001" in Path(run.path, "events.jsonl").read_text()) == form.startswith("page")


def test_all_that_langfuse_says_of_a_trace_is_kept(tmp_path):
    """Also what nobody here knows."""
    (tmp_path / "it.json").write_text(json.dumps(TRACE | {"userId": "u-7001", "scores": [{"value": 7002}]}))
    (run,) = imported(tmp_path, tmp_path / "it.json")
    events = Path(run.path, "events.jsonl").read_text()
    assert "u-7001" in events
    assert "7002" in events


def test_each_trace_is_a_run(tmp_path):
    """Named by the trace."""
    told = [{**each, "trace_id": f"t{n}"} for n, each in enumerate(LANGSMITH)]
    (tmp_path / "it.json").write_text(json.dumps(told))
    runs = imported(tmp_path, tmp_path / "it.json")
    assert sorted(Path(run.path).name for run in runs) == ["t0", "t1", "t2", "t3", "t4"]


def test_of_protobuf_with_a_damaged_span_the_others_are_read(tmp_path):
    """The damaged one is a loss, wherever in it the damage is."""
    data = (FIXTURES / "otlp-genai.pb").read_bytes()
    (whole,) = reenact.import_runs(FIXTURES / "otlp-genai.pb", tmp_path / "whole").runs
    at = data.index(b"gen_ai.output.messages") - 2  # the tag of an attribute's name
    (tmp_path / "it.pb").write_bytes(data[:at] + b"\x0e" + data[at + 1 :])
    report = reenact.import_runs(tmp_path / "it.pb", tmp_path / "run")
    (run,) = report.runs
    assert run.counts.model_calls == whole.counts.model_calls - 1
    assert [loss.reason for loss in run.losses] == ["span 1 of its scope is not OTLP: a field of kind 6"]


@pytest.mark.parametrize("name", ["otlp-genai", "otlp-openinference"])
def test_of_protobuf_that_was_cut_off_the_spans_before_are_read(tmp_path, name):
    """As many as are whole, with a loss; none of them half."""
    data = (FIXTURES / f"{name}.pb").read_bytes()
    [whole] = reenact.import_runs(FIXTURES / f"{name}.pb", tmp_path / "whole").runs
    seen = set()
    for size in range(len(data) - 1, 0, -97):
        (tmp_path / "cut.pb").write_bytes(data[:size])
        report = reenact.import_runs(tmp_path / "cut.pb", tmp_path / f"cut-{size}", format="otlp")
        if report.runs:
            [run] = report.runs
            assert (report.verdict, "cut off" in run.losses[0].reason) == ("partly", True)
            assert run.counts.model_calls <= whole.counts.model_calls
            seen.add(run.counts.model_calls)
        else:
            assert report.verdict == "nothing"
            assert "cut off" in report.failed[0].reason
    assert len(seen) > 1
    assert whole.losses == []


def test_protobuf_and_json_tell_the_same_about_resources(tmp_path):
    """What made the spans, and by which library."""
    told = []
    for name in ("otlp-genai.json", "otlp-genai.pb"):
        [run] = reenact.import_runs(FIXTURES / name, tmp_path / name).runs
        lines = Path(run.path, "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        told.append(
            [each["data"]["details"] for each in events if each["data"].get("type") in ("resource", "scope")]
        )
    assert told[0] == told[1]
    assert any("service.name" in str(each) for each in told[0])


def test_a_field_of_tomorrow_in_protobuf_is_named(tmp_path):
    """By its number."""
    strange = b"\xfa\x01\x01x"  # number 31, one byte
    data = (FIXTURES / "otlp-genai.pb").read_bytes()
    (tmp_path / "it.pb").write_bytes(data + strange)
    [run] = reenact.import_runs(tmp_path / "it.pb", tmp_path / "runs", format="otlp").runs
    assert run.unknown["request.field 31"] == 1


def test_what_langfuse_puts_into_a_bucket_can_be_judged(tmp_path):
    """Its tables have names with underscores, inputs and outputs as texts, and times without a zone."""
    asked = {
        "id": "o1", "trace_id": "t1", "type": "GENERATION", "name": "g", "provided_model_name": "gpt",
        "start_time": "2026-01-01 00:00:00.000", "end_time": "2026-01-01 00:00:01", "status_message": "",
        "input": '[{"role": "user", "content": "How warm?"}]',
        "output": '{"role": "assistant", "content": "Warm."}', "usage_details": {"input": 3, "output": 2},
        "parent_observation_id": None, "project_id": "p", "of_tomorrow": 1,
    }  # fmt: skip
    used = asked | {"id": "o2", "type": "TOOL", "name": "look", "input": '{"a": 1}', "output": "21"}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (asked, used)))
    (run,) = reenact.import_runs(tmp_path / "rows.jsonl", tmp_path / "runs").runs
    assert (run.format, counted(run), run.losses) == ("langfuse", (1, 1, 1), [])
    assert run.unknown == {"attribute.of_tomorrow": 2}
    assert "Warm." in Path(run.path, "events.jsonl").read_text()


def test_a_tool_that_traceloop_tells_of_is_one(tmp_path):
    """Its instrumentations have names of their own for what a tool was given and gave."""
    told = {
        "traceloop.span.kind": "tool", "traceloop.entity.name": "look", "traceloop.entity.input": '{"a": 1}',
        "traceloop.entity.output": "21", "traceloop.workflow.name": "w", "traceloop.entity.path": "p",
    }  # fmt: skip
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
    span = {
        "traceId": "5b" * 16, "spanId": "5b" * 8, "name": "look.tool", "kind": 1, "attributes": attributes,
        "startTimeUnixNano": "1770000000000000000", "endTimeUnixNano": "1770000001000000000",
    }  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    (run,) = reenact.import_runs(tmp_path / "t.json", tmp_path / "runs").runs
    assert (counted(run), run.unknown) == ((0, 1, 1), {})


# Jaeger, the console exporter, and messages in logs

ATTRIBUTES = {
    "chat": {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", '
        '"name": "look", "arguments": {"q": "x"}}], "finish_reason": "tool_calls"}]',
        "gen_ai.usage.input_tokens": 3,
    },
    "look": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"q": "x"}',
    },
}
JAEGER = {
    "data": [
        {
            "traceID": TRACE_ID,
            "spans": [
                {
                    "traceID": TRACE_ID,
                    "spanID": f"{number:016x}",
                    "operationName": name,
                    "references": [
                        {"refType": "CHILD_OF", "traceID": TRACE_ID, "spanID": "00000000000000aa"}
                    ],
                    "startTime": 1772359200000000 + number,
                    "duration": 500,
                    "tags": [
                        {"key": key, "type": "string", "value": value}
                        for key, value in [
                            *attributes.items(),
                            *(
                                [("error", True), ("otel.status_description", "boom")]
                                if name == "look"
                                else []
                            ),
                        ]
                    ],
                    "logs": [
                        {
                            "timestamp": 1772359200000100,
                            "fields": [{"key": "event", "type": "string", "value": "exception"}],
                        }
                    ],
                    "processID": "p1",
                    "warnings": None,
                }
                for number, (name, attributes) in enumerate(ATTRIBUTES.items(), 1)
            ],
            "processes": {"p1": {"serviceName": "agent", "tags": []}},
        }
    ],
    "total": 0,
}
CONSOLE = [
    {
        "name": name,
        "context": {
            "trace_id": f"0x{TRACE_ID}",
            "span_id": f"0x{number:016x}",
            "trace_state": "[]",
        },
        "kind": "SpanKind.CLIENT",
        "parent_id": None,
        "start_time": f"2026-03-01T10:00:0{number}.000000Z",
        "end_time": f"2026-03-01T10:00:0{number}.500000Z",
        "status": {"status_code": "UNSET"}
        if name == "chat"
        else {"status_code": "ERROR", "description": "boom"},
        "attributes": attributes,
        "events": [{"name": "exception", "timestamp": "2026-03-01T10:00:00.000000Z", "attributes": {}}],
        "links": [],
        "resource": {"attributes": {"service.name": "agent"}, "schema_url": ""},
    }
    for number, (name, attributes) in enumerate(ATTRIBUTES.items(), 1)
]


def printed(*spans: Any) -> str:
    return "".join(json.dumps(span, indent=4) + "\n" for span in spans)


def says_what_the_agent_did(run: Any) -> bool:
    [call] = events_of(run, "tool_call")
    [result] = events_of(run, "tool_result")
    return (counted(run), call["args"], "boom" in str(result["error"])) == ((1, 1, 1), {"q": "x"}, True)


def test_a_trace_of_jaeger_is_read(tmp_path):
    """As its page saves it, and as a list of traces."""
    for number, value in enumerate([JAEGER, JAEGER["data"], JAEGER["data"][0]]):
        (tmp_path / f"{number}.json").write_text(json.dumps(value))
        report = reenact.import_runs(tmp_path / f"{number}.json", tmp_path / f"runs{number}")
        [run] = report.runs
        assert (report.verdict, run.format, run.fidelity) == ("whole", "jaeger", "judgeable")
        assert says_what_the_agent_did(run)


def test_what_the_console_exporter_prints_is_read(tmp_path):
    """With what the program printed between the spans, which is a loss."""
    (tmp_path / "it.txt").write_text(printed(*CONSOLE))
    report = reenact.import_runs(tmp_path / "it.txt", tmp_path / "runs")
    [run] = report.runs
    assert (report.verdict, run.format, run.fidelity) == ("whole", "otel-console", "judgeable")
    assert says_what_the_agent_did(run)
    first, second = CONSOLE
    (tmp_path / "more.txt").write_text(f"hello\n{printed(first)}\n{{it goes on\n{printed(second)}bye")
    [run] = reenact.import_runs(tmp_path / "more.txt", tmp_path / "more").runs
    assert says_what_the_agent_did(run)
    text = (tmp_path / "more.txt").read_text().splitlines()
    assert [text[loss.line - 1] for loss in run.losses] == ["hello", "{it goes on", "bye"]


@pytest.mark.parametrize("has_name", [True, False], ids=["event name", "attribute"])
def test_messages_in_logs_belong_to_their_spans(tmp_path, has_name):
    """As the collector writes them, before or after the spans; other signals are named."""
    told = {
        "gen_ai.user.message": {"content": "How warm?"},
        "gen_ai.choice": {"index": 0, "message": {"role": "assistant", "content": "Mild."}},
    }
    records = [
        {
            "traceId": TRACE_ID,
            "spanId": "0000000000000001",
            **({"eventName": name} if has_name else {}),
            "attributes": [] if has_name else [{"key": "event.name", "value": {"stringValue": name}}],
            "body": kvlist(body),
        }
        for name, body in told.items()
    ]
    other = {"body": {"stringValue": "started"}, "attributes": []}
    span = {
        "traceId": TRACE_ID,
        "spanId": "0000000000000001",
        "name": "chat m",
        "startTimeUnixNano": "1772359200000000000",
        "endTimeUnixNano": "1772359201000000000",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    }
    lines = [
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [*records, other]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
        {"resourceMetrics": []},
    ]
    for number, order in enumerate([lines, lines[::-1]]):
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in order))
        [run] = imported(tmp_path / str(number), tmp_path / f"{number}.jsonl")
        text = Path(run.path, "transcript.md").read_text()
        assert ("How warm?" in text, "Mild." in text) == (True, True)
        assert run.unknown == {"logRecord": 1, "request.resourceMetrics": 1}


def kvlist(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            "kvlistValue": {"values": [{"key": key, "value": kvlist(each)} for key, each in value.items()]}
        }
    return {"intValue": value} if isinstance(value, int) else {"stringValue": value}


def test_a_source_may_hold_more_traces_than_a_process_may_open_files(tmp_path, monkeypatch):
    """The first ones are complete before the last ones begin, and all name the same source."""
    limits = getrlimit(RLIMIT_NOFILE)
    monkeypatch.setattr("reenact.importers.importing._MOST_OPEN", 8)
    told = json.loads((FIXTURES / "otlp-genai.json").read_text())
    scope = told["resourceSpans"][0]["scopeSpans"][0]
    told["resourceSpans"][0]["scopeSpans"] = [scope]
    span = scope["spans"][0]
    scope["spans"] = [{**span, "traceId": f"{number:032x}"} for number in range(150)]
    (tmp_path / "it.json").write_text(json.dumps(told))
    setrlimit(RLIMIT_NOFILE, (100, limits[1]))
    try:
        report = reenact.import_runs(tmp_path / "it.json", tmp_path / "runs")
    finally:
        setrlimit(RLIMIT_NOFILE, limits)
    assert (report.verdict, len({run.path for run in report.runs})) == ("whole", 150)
    assert {run.source for run in report.runs} == {"it.json"}
    manifests = [json.loads(Path(run.path, "manifest.json").read_text()) for run in report.runs]
    assert len({manifest["captureId"] for manifest in manifests}) == 150
    assert len({manifest["imported"]["source"]["digest"] for manifest in manifests}) == 1


def test_a_large_file_of_lines_is_read_in_parts(tmp_path, monkeypatch):
    """A trace ends before a part without a span of it; a span that comes later is a loss with its line."""
    told = json.loads((FIXTURES / "otlp-genai.json").read_text())
    resource = told["resourceSpans"][0]
    scope = resource["scopeSpans"][0]
    numbers = count(1)

    def line(*traces: int) -> str:
        ids = [{"traceId": f"{trace:032x}", "spanId": f"{next(numbers):016x}"} for trace in traces]
        spans = [{**scope["spans"][0], **each} for each in ids]
        return json.dumps({"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": spans}]}]})

    lines = [line(1, 2, 3), "{", *(line(3, 4, 4, number) for number in (5, 6, 7)), line(9, 1)]
    (tmp_path / "it").write_text("\n".join(lines))
    monkeypatch.setattr("reenact.importers.source.LARGE_BYTES", 0)
    monkeypatch.setattr("reenact.importers.otlp.LARGE_BYTES", 0)
    report = reenact.import_runs(tmp_path / "it", tmp_path / "runs")
    counts = {int(Path(run.path).name, 16): run.counts.model_calls for run in report.runs}
    assert counts == {1: 1, 2: 1, 3: 4, 4: 6, 5: 1, 6: 1, 7: 1, 9: 1}
    losses = [(loss.reason, loss.line) for run in report.runs for loss in run.losses]
    late = next(reason for reason, line in losses if line == 6)
    assert ("comes long after the others of its trace" in late, sorted(line for _, line in losses)) == (
        True,
        [2, 6],
    )
    assert all(reenact.verify(run.path).is_good for run in report.runs)
