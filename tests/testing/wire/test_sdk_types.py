"""What goes over the wire has every field that the SDKs' own types require.

The SDKs take what they get without checking it, so a missing field would only show in a user's code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic.types import Message as ClaudeMessage
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from ollama import ChatResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from reenact.testing import Message, Reply, Request, ToolCall
from reenact.testing.answer import Answer, Voice, answer_with
from reenact.testing.wire import WIRES, Wire

REPLIES = {
    "text": Reply("Two words"),
    "nothing": Reply(),
    "tool call": Reply(tool_calls=[ToolCall("look", {"at": {"x": 1.5}})]),
    "two tool calls": Reply(tool_calls=[ToolCall("a"), ToolCall("b", id="mine")]),
    "thinking": Reply("So it is", thinking="Is it so?"),
    "everything": Reply("Hm", [ToolCall("a", {"b": None})], "Well …", "length", (1, 2), chunks=4),
}
WHOLE: dict[str, Any] = {
    "anthropic": ClaudeMessage,
    "openai_chat": ChatCompletion,
    "openai_responses": Response,
    "gemini": GenerateContentResponse,
    "ollama": ChatResponse,
}
PART: dict[str, Any] = {
    "anthropic": RawMessageStreamEvent,
    "openai_chat": ChatCompletionChunk,
    "openai_responses": ResponseStreamEvent,
    "gemini": GenerateContentResponse,
    "ollama": ChatResponse,
}


def render(wire: Wire, reply: Reply, *, stream: bool, body: dict[str, Any] | None = None) -> Answer:
    request = Request(
        number=0,
        provider=wire.service.name,
        wire=wire.name,
        method="POST",
        path="/",
        headers={},
        raw=b"{}",
        body=body or {},
        time=0,
        model="m",
        stream=stream,
        messages=(Message("user", "?"),),
    )
    return answer_with(reply, wire, Voice(wire.service, request, "seed", 1_767_225_600))


def parts(chunks: tuple[bytes, ...]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        line = chunk.decode().rstrip("\n").rpartition("\n")[2].removeprefix("data: ")
        if line != "[DONE]":
            yield json.loads(line)


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_whole_answer_is_valid(wire: Wire, reply: Reply) -> None:
    """The body passes validation by the SDK's type for it."""
    [body] = render(wire, reply, stream=False).chunks
    TypeAdapter(WHOLE[wire.name]).validate_json(body)


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_every_part_of_a_stream_is_valid(wire: Wire, reply: Reply) -> None:
    """Each part passes validation by the SDK's type for it."""
    adapter = TypeAdapter(PART[wire.name])
    for part in parts(render(wire, reply, stream=True).chunks):
        if part.get("type") != "ping":
            adapter.validate_python(part)


def test_responses_events_are_numbered_without_gaps() -> None:
    """The Responses stream counts its events from zero."""
    responses = next(wire for wire in WIRES if wire.name == "openai_responses")
    events = parts(render(responses, REPLIES["everything"], stream=True).chunks)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("wanted", [True, False])
def test_chat_usage_is_streamed_only_when_asked_for(wanted: bool) -> None:
    """``include_usage`` adds a last chunk with the usage; without it no chunk has any."""
    chat = next(wire for wire in WIRES if wire.name == "openai_chat")
    body = {"stream_options": {"include_usage": wanted}}
    chunks = render(chat, REPLIES["text"], stream=True, body=body).chunks
    assert [bool(part.get("usage")) for part in parts(chunks)] == [False] * 4 + [True] * wanted


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_scripted_id_is_kept(wire: Wire) -> None:
    """A tool call's own id is used as it is; the others are minted."""
    [body] = render(wire, REPLIES["two tool calls"], stream=False).chunks
    assert b'"mine"' in body
    assert wire.call_prefix.encode() in body
