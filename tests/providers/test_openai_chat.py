"""What only Chat Completions has, of OpenAI and of its imitators."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.providers import (
    Media,
    ModelResponse,
    Refusal,
    Text,
    Thinking,
    ToolResultPart,
    derive_tool_results,
    read_request,
    read_response,
)

from .samples import CHAT, CHAT_CHUNKS, chat_chunk, sse


def read(*chunks: dict[str, Any]) -> ModelResponse:
    return read_response("openai_chat", 200, {}, sse(*chunks))


def message(**members: Any) -> ModelResponse:
    """A stream of one delta that holds the whole message."""
    return read(chat_chunk({"role": "assistant", **members}), chat_chunk({}, "stop"))


def test_usage_only_chunk() -> None:
    """The last chunk, without choices, brings the usage."""
    usage = read(*CHAT_CHUNKS).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (82, 40)
    assert (usage.cached_input_tokens, usage.reasoning_tokens) == (64, 16)


def test_complete_without_usage() -> None:
    """A message is complete once it has its finish reason, even if the usage never came."""
    response = read(*CHAT_CHUNKS[:-1])
    assert response.complete
    assert response.usage is None


def test_first_chunk_without_choices() -> None:
    """Azure begins with its content filter's verdict."""
    verdict = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": "", "id": ""}
    assert read(verdict, *CHAT_CHUNKS).parts == read(*CHAT_CHUNKS).parts
    assert read(verdict, *CHAT_CHUNKS).model == "gpt-4.1-2025-04-14"


def test_no_choices() -> None:
    """An answer without choices says nothing and is not complete."""
    response = read_response(
        "openai_chat", 200, {}, b'{"id": "x", "object": "chat.completion", "choices": []}'
    )
    assert (response.complete, response.parts, response.id) == (False, (), "x")


def test_refusal() -> None:
    """A refusal is no text."""
    response = message(content=None, refusal="I cannot help with that.")
    assert response.parts == (Refusal(text="I cannot help with that."),)
    assert response.text == ""


def _deltas(*calls: dict[str, Any]) -> ModelResponse:
    return read(*(chat_chunk({"tool_calls": [call]}) for call in calls), chat_chunk({}, "tool_calls"))


WEATHER = {"name": "weather", "arguments": "{}"}
CALL_STREAMS: dict[str, list[dict[str, Any]]] = {
    "index and id": [
        {"index": 0, "id": "a", "function": WEATHER},
        {"index": 1, "id": "b", "function": WEATHER},
    ],
    "one index for all": [
        {"index": 0, "id": "a", "function": WEATHER},
        {"index": 0, "id": "b", "function": WEATHER},
    ],
    "no index": [{"id": "a", "function": WEATHER}, {"id": "b", "function": WEATHER}],
    "id and name repeated in every piece": [
        {"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{"}},
        {"index": 0, "id": "a", "function": {"name": "weather", "arguments": "}"}},
        {"index": 1, "id": "b", "function": {"name": "weather", "arguments": "{}"}},
        {"index": 1, "id": "", "function": {"name": "", "arguments": ""}},
    ],
    "index from seven on": [
        {"index": 7, "id": "a", "function": WEATHER},
        {"index": 9, "id": "b", "function": WEATHER},
    ],
}


@pytest.mark.parametrize("calls", CALL_STREAMS.values(), ids=CALL_STREAMS.keys())
def test_call_deltas(calls: list[dict[str, Any]]) -> None:
    """Servers number the pieces of parallel calls in their own ways; two calls are two calls."""
    found = _deltas(*calls).tool_calls
    assert [(call.id, call.name, call.arguments) for call in found] == [
        ("a", "weather", {}),
        ("b", "weather", {}),
    ]


BAD_ARGUMENTS = {"cut": '{"city": "Z', "empty": "", "free text": "Zürich, please"}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_arguments_that_are_not_json(arguments: str) -> None:
    """Models write broken JSON; the text is kept."""
    call = _deltas({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}).tool_calls[0]
    assert (call.arguments, call.arguments_text) == (None, arguments)


def test_null_arguments() -> None:
    """``null`` is JSON."""
    call = _deltas({"index": 0, "id": "a", "function": {"name": "f", "arguments": "null"}}).tool_calls[0]
    assert (call.arguments, call.arguments_text) == (None, None)


def test_custom_tool_call() -> None:
    """The input of a custom tool is free text, even where it looks like JSON."""
    call = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "1"}}
    found = message(tool_calls=[call]).tool_calls[0]
    assert (found.name, found.arguments, found.arguments_text) == ("sql", None, "1")


def test_older_function_call() -> None:
    """The calls before tools had ids."""
    response = read(
        chat_chunk({"function_call": {"name": "f", "arguments": ""}}),
        chat_chunk({"function_call": {"arguments": "{}"}}),
        chat_chunk({}, "function_call"),
    )
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [(None, "f", {})]


def test_reasoning_details() -> None:
    """OpenRouter's details keep signature and id; the plain text beside them is not counted twice."""
    details = [
        {"type": "reasoning.text", "text": "Let me", "index": 0, "format": "anthropic-claude-v1"},
        {"type": "reasoning.text", "text": " see", "signature": "sig", "index": 0},
        {"type": "reasoning.encrypted", "data": "abc", "id": "rs_1", "index": 1},
    ]
    chunks = (
        chat_chunk({"reasoning": detail.get("text"), "reasoning_details": [detail]}) for detail in details
    )
    assert read(*chunks).thinking == (
        Thinking(text="Let me see", signature="sig"),
        Thinking(text="", id="rs_1", sealed="abc"),
    )


def test_several_choices() -> None:
    """Choices grow apart; the first one is the answer, the body has them all."""
    other = chat_chunk({"content": "B"})
    other["choices"][0]["index"] = 1
    response = read(chat_chunk({"content": "A"}), other, chat_chunk({"content": "a"}, "stop"))
    assert response.text == "Aa"
    assert [choice["message"]["content"] for choice in response.body["choices"]] == ["Aa", "B"]


def test_logprobs_add_up() -> None:
    """Log probabilities come token by token."""
    chunks = [chat_chunk({"content": token}) for token in "ab"]
    for chunk, token in zip(chunks, "ab", strict=True):
        chunk["choices"][0]["logprobs"] = {"content": [{"token": token}], "refusal": None}
    body = read(*chunks).body
    assert body["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}


def test_error_in_stream_with_finish_reason() -> None:
    """OpenRouter ends a failed stream with both an error and a finish reason."""
    chunk = chat_chunk({"content": ""}, "error") | {"error": {"code": "server_error", "message": "gone"}}
    response = read(chat_chunk({"content": "A"}), chunk)
    assert response.error is not None
    assert (response.error.type, response.error.message) == ("server_error", "gone")
    assert (response.text, response.complete) == ("A", False)


def test_request_parts() -> None:
    """Leading system and developer messages are the system text; results go by their call id."""
    request = read_request(CHAT.path, CHAT.request)
    assert request is not None
    assert request.system == "Be brief.\n\nUse °C."
    text, image = request.messages[0].parts
    assert text == Text(text="Weather?")
    assert isinstance(image, Media)
    assert (image.media_type, image.url) == ("image/png", None)
    assert derive_tool_results(request) == [ToolResultPart(call_id="call_0", content="5 °C")]
    assert request.params == {"temperature": 0, "seed": 7, "max_tokens": 256, "stop": ["END"]}


def test_later_system_message_stays() -> None:
    """Only what leads the conversation is its system text."""
    body = {"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}
    request = read_request("/chat/completions", body)
    assert request is not None
    assert request.system is None
    assert [entry.role for entry in request.messages] == ["user", "system"]
