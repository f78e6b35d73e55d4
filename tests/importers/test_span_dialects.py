"""Spans by the conventions of other instrumentations say the same as those of OpenTelemetry."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.importers.building import ImportedRun
from tests.importers.test_transcripts import counted

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "5fb397be34d26b51"


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    return {"stringValue": value}


def span(name: str, attributes: dict[str, Any], number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE, "spanId": f"{number:016x}", "name": name, "kind": 3, "status": {},
        "startTimeUnixNano": str(1770000000000000000 + number * 10**9),
        "endTimeUnixNano": str(1770000000500000000 + number * 10**9),
        "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()], **more,
    }  # fmt: skip


def resources(*spans: dict[str, Any], service: str = "s") -> list[dict[str, Any]]:
    about = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return [{"resource": about, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]


def import_value(tmp_path: Path, value: Any) -> ImportedRun:
    (tmp_path / "it.json").write_text(json.dumps(value))
    [run] = reenact.import_runs(tmp_path / "it.json", tmp_path / "runs").runs
    return run


def events_of(run: ImportedRun, kind: str) -> list[dict[str, Any]]:
    lines = Path(run.path, "events.jsonl").read_text().splitlines()
    return [event["data"] for event in map(json.loads, lines) if event["type"] == kind]


ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "How warm?"}]},
]
AI_SDK = {
    "operation.name": "ai.generateText.doGenerate", "ai.operationId": "ai.generateText.doGenerate",
    "ai.model.id": "m", "ai.model.provider": "openai.chat", "ai.prompt.messages": json.dumps(ASKED),
    "ai.response.finishReason": "tool-calls", "ai.response.text": "I look.",
    "ai.usage.promptTokens": 10, "ai.usage.completionTokens": 5, "gen_ai.request.model": "m",
    "gen_ai.system": "openai.chat",
    "ai.response.toolCalls": json.dumps([
        {"type": "tool-call", "toolCallType": "function", "toolCallId": "c1", "toolName": "look",
         "args": '{"city": "Rome"}'},
    ]),
}  # fmt: skip
AI_SDK_TOOL = {
    "operation.name": "ai.toolCall", "ai.operationId": "ai.toolCall", "ai.toolCall.name": "look",
    "ai.toolCall.id": "c1", "ai.toolCall.args": '{"city": "Rome"}', "ai.toolCall.result": '{"t": 20}',
}  # fmt: skip
AI_SDK_OUTER = {"operation.name": "ai.generateText", "ai.operationId": "ai.generateText", "ai.model.id": "m"}

LOGFIRE_EVENTS = [
    {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
    {"event.name": "gen_ai.user.message", "role": "user", "content": "How warm?"},
    {"event.name": "gen_ai.choice", "index": 0, "message": {
        "role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}},
        ]}},
]  # fmt: skip
LOGFIRE = {
    "gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "events": json.dumps(LOGFIRE_EVENTS),
}  # fmt: skip
LOGFIRE_TOOL = {
    "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1", "tool_arguments": '{"city": "Rome"}',
    "tool_response": '{"t": 20}',
}  # fmt: skip
LOGFIRE_REQUEST = {
    "gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
    "request_data": json.dumps({"model": "m", "messages": ASKED}),
    "response_data": json.dumps({"message": LOGFIRE_EVENTS[-1]["message"]}),
}  # fmt: skip
OPENINFERENCE = {
    "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.provider": "openai",
    "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": "How warm?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "text",
    "llm.output_messages.0.message.contents.0.message_content.text": "I look.",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "look",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
    "llm.token_count.prompt": 10, "llm.token_count.completion": 5,
}  # fmt: skip
OPENINFERENCE_TOOL = {
    "openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"city": "Rome"}',
    "output.value": '{"t": 20}',
}  # fmt: skip
DIALECTS = {
    "AI SDK": [AI_SDK_OUTER, AI_SDK, AI_SDK_TOOL],
    "Logfire's events": [LOGFIRE, LOGFIRE_TOOL],
    "Logfire's requests": [LOGFIRE_REQUEST, LOGFIRE_TOOL],
    "OpenInference's contents": [OPENINFERENCE, OPENINFERENCE_TOOL],
}


@pytest.mark.parametrize("name", DIALECTS)
def test_what_was_asked_answered_and_called_is_there(tmp_path: Path, name: str) -> None:
    """Messages, the answer with its calls, tokens, and the tool with what it was given and gave."""
    spans = [span("x", each, number) for number, each in enumerate(DIALECTS[name], 1)]
    run = import_value(tmp_path, {"resourceSpans": resources(*spans)})
    assert (counted(run), run.losses, run.unknown) == ((1, 1, 1), [], {})
    [asked] = events_of(run, "llm_request")
    said = [(each["role"], each["content"]) for each in asked["request"]["messages"]]
    assert said == [("system", "Be brief."), ("user", "How warm?")]
    [answer] = events_of(run, "llm_response")
    call = {"arguments": {"city": "Rome"}, "id": "c1", "name": "look"}
    assert answer["response"] == {"text": "I look.", "tool_calls": [call]}
    assert (answer["usage"]["inputTokens"], answer["usage"]["outputTokens"]) == (10, 5)
    assert [(each["tool"], each["args"]) for each in events_of(run, "tool_call")] == [
        ("look", {"city": "Rome"})
    ]
    assert [each["result"] for each in events_of(run, "tool_result")] == [{"t": 20}]


@pytest.mark.parametrize("results", [
    [{"type": "tool_result", "tool_use_id": "a", "content": "1"},
     {"type": "tool_result", "tool_use_id": "b", "content": "2"}, {"type": "text", "text": "Go on."}],
    [{"type": "tool_call_response", "id": "a", "response": "1"},
     {"type": "tool_call_response", "id": "b", "response": "2"}, {"type": "text", "content": "Go on."}],
    [{"type": "tool-result", "toolCallId": "a", "toolName": "look", "result": "1"},
     {"type": "tool-result", "toolCallId": "b", "toolName": "look", "output": "2"},
     {"type": "text", "text": "Go on."}],
])  # fmt: skip
def test_all_results_in_one_message_are_there(tmp_path: Path, results: list[dict[str, Any]]) -> None:
    """Calls that were made at once have their results in one message; each becomes one of its own."""
    messages = [{"role": "user", "parts" if "response" in results[0] else "content": results}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)}
    run = import_value(tmp_path, {"resourceSpans": resources(span("x", attributes))})
    [asked] = events_of(run, "llm_request")
    said = [
        (each["role"], each["content"], each.get("tool_call_id")) for each in asked["request"]["messages"]
    ]
    assert said == [("tool", "1", "a"), ("tool", "2", "b"), ("user", "Go on.", None)]


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def test_ids_in_base64_are_those_in_hexadecimal(tmp_path: Path) -> None:
    """Generic writers of protobuf as JSON use base64, and each id names the same span."""
    root, below = span("root", {}, 1), span("chat", CHAT, 2, parentSpanId=f"{1:016x}")
    for each in (root, below):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in each:
                each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    run = import_value(tmp_path, {"resourceSpans": resources(root, below)})
    assert (Path(run.path).name, run.counts.model_calls, run.losses) == (TRACE, 1, [])


@pytest.mark.parametrize("form", ["list", "batches", "trace"])
def test_other_envelopes_are_opened(tmp_path: Path, form: str) -> None:
    """A list of documents, and what Tempo answers."""
    one, two = resources(span("chat", CHAT, 1)), resources(span("chat", CHAT, 2), service="other")
    value: Any = {
        "list": [{"resourceSpans": one}, {"resourceSpans": two}],
        "batches": {"batches": one + two},
        "trace": {"trace": {"resourceSpans": one + two}},
    }[form]
    run = import_value(tmp_path, value)
    assert (run.counts.model_calls, run.losses, run.unknown) == (2, [], {})


def test_reasoning_of_an_answer_is_kept(tmp_path: Path) -> None:
    """Apart from its text, in whatever place it is told."""
    told = {"role": "assistant", "content": "21.", "reasoning_content": "Hm."}
    for number, attributes in enumerate([
        {**CHAT, "gen_ai.output.messages": json.dumps([told])},
        {**AI_SDK, "ai.response.text": "21.", "ai.response.reasoning": "Hm.", "ai.response.toolCalls": "[]"},
    ]):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        run = import_value(folder, {"resourceSpans": resources(span("x", attributes))})
        assert events_of(run, "llm_response")[0]["response"] == {"text": "21.", "reasoning": "Hm."}
