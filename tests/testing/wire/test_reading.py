"""Each wire format's requests, understood."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.testing.request import Message, ToolResult
from reenact.testing.wire import WIRES, wire_for
from reenact.testing.wire.gemini import GENERATE
from reenact.testing.wire.openai_responses import RESPONSES

CONVERSATION = (
    Message("user", "hi"),
    Message("assistant", "hm"),
    Message("tool", "", (ToolResult("c1", "42"),)),
)
CONVERSATION_AS_USER = (*CONVERSATION[:2], Message("user", "", (ToolResult("c1", "42"),)))

READ: dict[str, tuple[str, dict[str, Any], tuple[Message, ...]]] = {
    "anthropic": (
        "/v1/messages",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "c1"}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]},
            ]
        },
        CONVERSATION_AS_USER,
    ),
    "openai_chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
                {"role": "assistant", "content": "hm", "tool_calls": []},
                {"role": "tool", "tool_call_id": "c1", "content": "42"},
            ]
        },
        CONVERSATION,
    ),
    "openai_responses": (
        "/v1/responses",
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [{"type": "input_text", "text": "42"}],
                },
            ]
        },
        CONVERSATION,
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"text": "hm"}, {"functionCall": {"name": "f"}}]},
                {"parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"result": 42}}}]},
            ]
        },
        CONVERSATION_AS_USER,
    ),
    "ollama": (
        "/api/chat",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "hm"},
                {"role": "tool", "tool_name": "c1", "content": "42"},
            ]
        },
        CONVERSATION,
    ),
}


@pytest.mark.parametrize(("path", "body", "expected"), READ.values(), ids=READ)
def test_a_conversation_is_understood(path: str, body: dict[str, Any], expected: tuple[Message, ...]) -> None:
    """Words, the model's own turns and tool results come out alike from every format."""
    wire = wire_for("POST", path)
    assert wire is not None
    assert wire.read(path, body).messages == expected


def test_reasoning_and_calls_are_the_models_own() -> None:
    """Items of the Responses format without a role belong to the model."""
    said = RESPONSES.read(
        "/responses", {"input": [{"type": "reasoning"}, {"type": "function_call"}]}
    ).messages
    assert [message.role for message in said] == ["assistant", "assistant"]


STREAMS = {
    "asked for": ("/v1/messages", {"stream": True}, True),
    "not mentioned": ("/v1/chat/completions", {}, False),
    "Ollama streams by default": ("/api/chat", {}, True),
    "Ollama, asked not to": ("/api/chat", {"stream": False}, False),
    "Gemini says it in the path": ("/v1beta/models/m:streamGenerateContent", {}, True),
    "Gemini, whole": ("/v1beta/models/m:generateContent", {}, False),
}


@pytest.mark.parametrize(("path", "body", "expected"), STREAMS.values(), ids=STREAMS)
def test_whether_to_stream(path: str, body: dict[str, Any], expected: bool) -> None:
    """Each format has its own way of asking for a stream."""
    wire = wire_for("POST", path)
    assert wire is not None
    assert wire.read(path, body).stream is expected


def test_anything_may_stand_before_a_path() -> None:
    """A base URL with a path of its own reaches the same formats."""
    wire = wire_for("POST", "/proxy/openai/v9/chat/completions")
    assert wire is not None
    assert wire.name == "openai_chat"


def test_only_a_post_is_a_model_call() -> None:
    """Reading the same path is something else."""
    assert wire_for("GET", "/v1/messages") is None


KEYS = st.sampled_from(
    [
        "messages",
        "input",
        "contents",
        "parts",
        "role",
        "content",
        "text",
        "type",
        "functionResponse",
        "response",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(body=st.dictionaries(KEYS, JSON, max_size=4))
def test_nonsense_is_read_without_complaint(body: dict[str, Any]) -> None:
    """A body of any shape is understood as something: a test of odd requests is the user's right."""
    for wire in WIRES:
        wire.read("/v1beta/models/m:generateContent", body)


def test_a_result_beyond_64_bits_is_read() -> None:
    """A tool may return an integer that fast JSON encoders refuse."""
    part = {"functionResponse": {"name": "f", "response": {"result": 2**70}}}
    asked = GENERATE.read("/models/m:generateContent", {"contents": [{"parts": [part]}]})
    assert asked.messages[0].tool_results == (ToolResult("f", str(2**70)),)
