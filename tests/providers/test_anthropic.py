"""What only Anthropic Messages has."""

from __future__ import annotations

import base64
import json
from typing import Any

from reenact.providers import (
    Media,
    ModelResponse,
    Other,
    Text,
    Thinking,
    ToolResultPart,
    read_request,
    read_response,
)

from .samples import ANTHROPIC, ANTHROPIC_BODY, ANTHROPIC_EVENTS, SIGNATURE, THOUGHT, sse
from .test_frames import aws_message


def read(*events: dict[str, Any]) -> ModelResponse:
    return read_response("anthropic", 200, {}, sse(*events, named=True))


def test_thinking_keeps_its_signature() -> None:
    """Signed and redacted thinking can be handed back exactly."""
    assert read(*ANTHROPIC_EVENTS).thinking == (
        Thinking(text=THOUGHT, signature=SIGNATURE),
        Thinking(text="", sealed="EmwKAhgBEgy3va3pzix"),
    )


def test_usage() -> None:
    """Counts of the last event win, a null does not; the sent object is kept."""
    usage = read(*ANTHROPIC_EVENTS).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (412, 96)
    assert (usage.cached_input_tokens, usage.cache_write_tokens) == (2048, 0)
    assert usage.sent == ANTHROPIC_BODY["usage"]


def test_cut_arguments_stay_text() -> None:
    """A tool input that was cut is kept as the text that came."""
    place = next(place for place, event in enumerate(ANTHROPIC_EVENTS) if '{\\"city' in json.dumps(event))
    call = read(*ANTHROPIC_EVENTS[: place + 1]).tool_calls[0]
    assert (call.id, call.arguments, call.arguments_text) == ("toolu_01A", None, '{"city": "Z')


def test_server_tools_are_not_the_agents() -> None:
    """A search that Anthropic ran itself is no tool call of the agent."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    body = ANTHROPIC_BODY | {"content": [use]}
    response = read_response("anthropic", 200, {}, json.dumps(body).encode())
    assert response.tool_calls == ()
    assert response.parts == (Other(type="server_tool_use", value=use),)


def test_citations() -> None:
    """Citations of a streamed text are collected in its block."""
    citation = {"type": "char_location", "cited_text": "x"}
    response = read(
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": citation},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
    )
    assert response.body["content"] == [{"type": "text", "text": "x", "citations": [citation]}]


def test_refusal_stop_reason() -> None:
    """A refusal is a complete answer with its own stop reason."""
    body = ANTHROPIC_BODY | {"content": [], "stop_reason": "refusal"}
    response = read_response("anthropic", 200, {}, json.dumps(body).encode())
    assert (response.complete, response.stop_reason) == (True, "refusal")


def test_bedrock_stream() -> None:
    """Bedrock's binary framing carries the same events."""
    wrapped = (
        aws_message({"bytes": base64.b64encode(json.dumps(event).encode()).decode()})
        for event in ANTHROPIC_EVENTS
    )
    assert read_response("anthropic", 200, {}, wrapped) == read(*ANTHROPIC_EVENTS)


def test_bedrock_streams_by_its_path() -> None:
    """Bedrock's requests do not say stream; their path does."""
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1, "messages": []}
    assert read_request("/model/m/invoke-with-response-stream", body).stream
    assert not read_request("/model/m/invoke", body).stream


def test_request_parts() -> None:
    """Tool results, images and system blocks of a request."""
    request = read_request(ANTHROPIC.path, ANTHROPIC.request)
    assert request is not None
    assert request.system == "Be brief.\n\nUse °C."
    assert request.messages[2].parts == (
        ToolResultPart(call_id="toolu_00", content=[{"type": "text", "text": "no such city"}], is_error=True),
        Text(text="And in Zürich?"),
    )
    assert request.params == {"max_tokens": 1024, "metadata": {"user_id": "u"}, "stop": ["END"]}
    assert request.tools[1].schema is None


def test_images() -> None:
    """An image is a URL, a file or the digest of its data."""
    sources = [
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "file", "file_id": "file_1"},
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    ]
    content = [{"type": "image", "source": source} for source in sources]
    body = ANTHROPIC.request | {"messages": [{"role": "user", "content": content}]}
    url, file, data = read_request("/v1/messages", body).messages[0].parts
    assert url == Media(url="https://example.org/a.png")
    assert file == Media(file_id="file_1")
    assert data.digest.startswith("sha256:")
    assert data.media_type == "image/png"
