"""A streamed answer is one message; a message becomes a stream that the formats' own clients read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

import reenact
from reenact.providers import read_response, read_stream, write_stream
from reenact.providers.meaning import Provider
from reenact.testing import Reply, ScriptedProvider, ToolCall

REPLIES = [
    Reply("Good morning, Überlingen."),
    Reply("Let me see.", tool_calls=[ToolCall("find", {"order": "A-1", "deep": {"list": [1, None]}})]),
    Reply(tool_calls=[ToolCall("find", {}), ToolCall("tell", {"text": "x"})], thinking="Hm."),
]
PATHS: dict[Provider, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(lambda request: REPLIES[int(request.headers["x-number"])]) as provider:
        yield provider


def streamed(provider: ScriptedProvider, wire: Provider, number: int) -> bytes:
    body: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    if wire == "openai_responses":
        body = {"model": "m", "stream": True, "input": "hi"}
    if wire == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    if wire == "openai_chat":
        body["stream_options"] = {"include_usage": True}
    answer = httpx2.post(provider.url + PATHS[wire], json=body, headers={"x-number": str(number)})
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.parametrize("number", range(len(REPLIES)))
@pytest.mark.parametrize("wire", PATHS)
def test_a_message_survives_its_stream(provider: ScriptedProvider, wire: Provider, number: int) -> None:
    """Read, written and read again it is the same message, and says the same."""
    stream = streamed(provider, wire, number)
    message = read_stream(wire, stream)
    assert message is not None
    again = write_stream(wire, message, stream)
    assert read_stream(wire, again) == message
    said, said_again = (read_response(wire, 200, {}, [each]) for each in (stream, again))
    assert (said_again.text, said_again.parts) == (said.text, said.parts)
    assert (said_again.stop_reason, said_again.usage) == (said.stop_reason, said.usage)


@pytest.mark.parametrize("wire", PATHS)
def test_what_is_no_stream_is_none(wire: Provider) -> None:
    for body in (b"", b"{}", b'{"id": "x"}', b"\x00\x00\x00\x10", b"<html>", b"data: [DONE]\n\n"):
        assert read_stream(wire, body) is None
    array = write_stream("gemini", {"candidates": []}, b'[{"candidates": []}]')
    assert json.loads(array) == [{"candidates": []}]


def ask_anthropic(url: str) -> tuple[str, list[Any]]:
    client = anthropic.Anthropic(api_key="any", base_url=url, max_retries=0)
    messages: Any = [{"role": "user", "content": "hi"}]
    with client.messages.stream(
        model="m", max_tokens=9, messages=messages, extra_headers={"x-number": "1"}
    ) as stream:
        message = stream.get_final_message()
    calls = [block.input for block in message.content if block.type == "tool_use"]
    return "".join(block.text for block in message.content if block.type == "text"), calls


def ask_chat(url: str) -> tuple[str, list[Any]]:
    client = openai.OpenAI(api_key="any", base_url=url, max_retries=0)
    messages: Any = [{"role": "user", "content": "hi"}]
    with client.chat.completions.stream(
        model="m", messages=messages, extra_headers={"x-number": "1"}
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    return message.content or "", [json.loads(call.function.arguments) for call in message.tool_calls or ()]


def ask_responses(url: str) -> tuple[str, list[Any]]:
    client = openai.OpenAI(api_key="any", base_url=url, max_retries=0)
    with client.responses.stream(model="m", input="hi", extra_headers={"x-number": "1"}) as stream:
        response = stream.get_final_response()
    calls = [json.loads(item.arguments) for item in response.output if item.type == "function_call"]
    return response.output_text, calls


SDKS: dict[str, tuple[Any, str, str, Any]] = {
    "anthropic": (ask_anthropic, "anthropic", "$.content[1].input.order", "B-2"),
    "chat": (ask_chat, "openai", "$.choices[0].message.content", "Let me guess."),
    "responses": (ask_responses, "openai", "$.output[0].content[0].text", "Let me guess."),
}


@pytest.mark.parametrize("sdk", SDKS)
def test_a_streamed_answer_is_changed_by_path(provider: ScriptedProvider, tmp_path: Path, sdk: str) -> None:
    """The provider's own client reads the changed stream, and a replay of the fork reads it again."""
    ask, service, path, new = SDKS[sdk]
    url = provider.base_url(service)
    with reenact.capture(tmp_path / "run"):
        text, calls = ask(url)
    assert (text, calls[0]["order"]) == ("Let me see.", "A-1")
    asked = len(provider.requests)
    with reenact.fork(tmp_path / "run", at=2, change={"set": {path: new}}, output=tmp_path / "fork"):
        changed = ask(url)
    assert changed == (("Let me see.", [calls[0] | {"order": new}]) if sdk == "anthropic" else (new, calls))
    assert reenact.verify(tmp_path / "fork").is_good
    with reenact.replay(tmp_path / "fork"):
        assert ask(url) == changed
    assert len(provider.requests) == asked
    whole = {"error": "429"}
    with (
        pytest.raises((anthropic.RateLimitError, openai.RateLimitError)),
        reenact.fork(tmp_path / "run", at=2, change=whole, on_miss="nearest", output=tmp_path / "busy"),
    ):
        ask(url)


def test_every_line_of_ollama_has_a_message() -> None:
    """Its own client asks for one in each, also in the last, which only ends the answer."""
    body = {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True}
    lines = list(map(json.loads, write_stream("ollama", body, b"").splitlines()))
    assert [line["message"]["content"] for line in lines] == ["Hi", ""]
    generated = write_stream("ollama", {"model": "m", "response": "Hi", "done": True}, b"").splitlines()
    assert [json.loads(line)["response"] for line in generated] == ["Hi", ""]
