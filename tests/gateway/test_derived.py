"""Tool calls and results of agents that are seen through their model traffic alone."""

import pytest

from reenact.formats.capture import ToolCall as CallEvent
from reenact.formats.capture import ToolResult as ResultEvent
from reenact.providers import read_response
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture
from tests.gateway.conftest import both, recording

CALLS = [ToolCall("weather", {"city": "Oslo"}), ToolCall("weather", {"city": "Rome"})]
RESULTS = ["4 °C", "19 °C"]
QUESTION = "Where is it warmer?"


def anthropic(stream, answer):
    messages = [{"role": "user", "content": QUESTION}]
    if answer:
        said = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in answer]
        came = [
            {"type": "tool_result", "tool_use_id": c.id, "content": [{"type": "text", "text": text}]}
            for c, text in zip(answer, RESULTS, strict=True)
        ]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": came}]
    return "/v1/messages", {"model": "m", "max_tokens": 9, "messages": messages, "stream": stream}


def openai_chat(stream, answer):
    messages = [{"role": "user", "content": QUESTION}]
    if answer:
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": "{}"}} for c in answer
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": c.id, "content": text}
            for c, text in zip(answer, RESULTS, strict=True)
        ]
    return "/chat/completions", {"model": "m", "messages": messages, "stream": stream}


def openai_responses(stream, answer):
    items = [{"role": "user", "content": QUESTION}]
    for call, text in zip(answer, RESULTS, strict=bool(answer)):
        items.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": call.id, "output": text})
    return "/responses", {"model": "m", "input": items, "stream": stream}


def gemini(stream, answer):
    contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
    if answer:
        calls = [{"functionCall": {"name": c.name, "args": c.arguments}} for c in answer]
        came = [
            {"functionResponse": {"name": c.name, "response": {"output": text}}}
            for c, text in zip(answer, RESULTS, strict=True)
        ]
        contents += [{"role": "model", "parts": calls}, {"role": "user", "parts": came}]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/m:{verb}", {"contents": contents}


def ollama(stream, answer):
    messages = [{"role": "user", "content": QUESTION}]
    if answer:
        calls = [{"function": {"name": c.name, "arguments": c.arguments}} for c in answer]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_name": "weather", "content": text} for text in RESULTS]
    return "/api/chat", {"model": "m", "messages": messages, "stream": stream}


FORMATS = {form.__name__: form for form in (anthropic, openai_chat, openai_responses, gemini, ollama)}
SERVICES = {"openai_chat": "openai", "openai_responses": "openai"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("form", FORMATS)
def test_calls_and_results_are_read_from_the_traffic(form, stream, client, tmp_path):
    """In every format; a replay passes them by, a trace has them with the mark."""
    service = SERVICES.get(form, form)
    request = FORMATS[form]

    def work(address):
        answer = ()
        for _ in range(2):
            path, body = request(stream, answer)
            response = client.post(f"{address}/{service}{path}", json=body)
            answer = read_response(form, response.status_code, {}, response.content).tool_calls
        return response.text

    with ScriptedProvider([Reply(tool_calls=CALLS), Reply("Rome.")]) as provider:
        upstreams = {service: provider.base_url(service)}
        first, again = both(tmp_path / "run", upstreams, work)
    assert first == again
    events = [*CaptureReader(tmp_path / "run").events()]
    calls = [event.data for event in events if isinstance(event, CallEvent)]
    results = [event.data for event in events if isinstance(event, ResultEvent)]
    assert [(call.tool, call.args, call.derived) for call in calls] == [
        ("weather", {"city": "Oslo"}, True),
        ("weather", {"city": "Rome"}, True),
    ]
    expected = [{"output": text} for text in RESULTS] if form == "gemini" else RESULTS
    assert [(one.callId, one.result, one.derived) for one in results] == [
        ("g1.1", expected[0], True),
        ("g1.2", expected[1], True),
    ]
    tags = [event.__struct_config__.tag for event in events]
    assert tags == [
        *("run_start", "llm_request", "llm_response", "tool_call", "tool_call"),
        *("tool_result", "tool_result", "llm_request", "llm_response", "run_end"),
    ]
    trace = trace_of_run(read_capture(CaptureReader(tmp_path / "run")), trace_id="t", test_run_id="r")
    marked = [event.type for event in trace.events if event.data.get("derived")]
    assert marked == ["tool_call", "tool_call", "tool_result", "tool_result"]
    assert trace.metrics.tool_call_count == 2
    assert trace.final_output.content == "Rome."


def test_a_result_that_is_told_twice_is_one_result(client, tmp_path):
    """An agent repeats its history, and tries again after an error."""
    with (
        ScriptedProvider([Reply(tool_calls=CALLS[:1]), Reply("One."), Reply("Two.")]) as provider,
        recording(tmp_path / "run", {"anthropic": provider.base_url("anthropic")}) as gateway,
    ):
        url = f"{gateway.address}/anthropic/v1/messages"
        _, body = anthropic(False, ())
        [call] = read_response("anthropic", 200, {}, client.post(url, json=body).content).tool_calls
        said = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        failed = {"type": "tool_result", "tool_use_id": call.id, "content": "no net", "is_error": True}
        body["messages"] += [{"role": "assistant", "content": [said]}, {"role": "user", "content": [failed]}]
        client.post(url, json=body)
        client.post(url, json=body)
    [result] = [
        event.data for event in CaptureReader(tmp_path / "run").events() if isinstance(event, ResultEvent)
    ]
    assert (result.ok, result.error["message"]) == (False, "no net")
