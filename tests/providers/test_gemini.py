"""What only Gemini has."""

from __future__ import annotations

import json
from typing import Any

from reenact.providers import (
    ModelResponse,
    Other,
    Text,
    ToolResultPart,
    derive_tool_results,
    read_request,
    read_response,
)

from .samples import GEMINI, GEMINI_CHUNKS, SIGNATURE, TEXT, gemini_chunk, sse

PATH = "/v1beta/models/m:generateContent"


def read(*chunks: dict[str, Any]) -> ModelResponse:
    return read_response("gemini", 200, {}, sse(*chunks))


def test_array_stream() -> None:
    """Without ``alt=sse`` the stream is one JSON array."""
    array = json.dumps(GEMINI_CHUNKS, indent=1, ensure_ascii=False).encode()
    assert read_response("gemini", 200, {}, array) == read(*GEMINI_CHUNKS)


def test_array_stream_cut_at_every_byte() -> None:
    """A cut array yields the chunks before the cut."""
    array = json.dumps(GEMINI_CHUNKS, indent=1, ensure_ascii=False).encode()
    texts = [read_response("gemini", 200, {}, array[:end]).text for end in range(len(array))]
    assert sorted(set(texts), key=len) == ["", TEXT[:10], TEXT]
    assert texts == sorted(texts, key=len)


def test_late_signature() -> None:
    """A signature that comes with an empty last piece belongs to the text before it."""
    response = read(
        gemini_chunk({"text": "a"}),
        gemini_chunk({"text": "b"}),
        gemini_chunk({"text": "", "thoughtSignature": SIGNATURE}, finishReason="STOP"),
    )
    assert response.parts == (Text(text="ab", signature=SIGNATURE),)


def test_signature_of_a_call() -> None:
    """Calls are signed, and the signature has to go back."""
    assert read(*GEMINI_CHUNKS).tool_calls[0].signature == SIGNATURE


def test_usage() -> None:
    """The counts of the last chunk."""
    usage = read(*GEMINI_CHUNKS).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (30, 22)
    assert (usage.cached_input_tokens, usage.reasoning_tokens) == (8, 18)


def test_blocked_prompt() -> None:
    """A blocked prompt has no candidate; the reason is why it stopped."""
    response = read({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"})
    assert (response.stop_reason, response.complete, response.parts) == ("SAFETY", True, ())


def test_executed_code_is_other() -> None:
    """Code that Gemini ran itself is no tool call."""
    part = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert read(gemini_chunk(part)).parts == (
        Other(type="executableCode", value={"type": "executableCode", **part}),
    )


def test_snake_case_request() -> None:
    """Protobuf's own spelling means the same."""
    snake = {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"function_response": {"name": "f", "response": {"error": "no"}, "id": "7"}}],
            }
        ],
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
        "generation_config": {"max_output_tokens": 5},
    }
    request = read_request(PATH, snake)
    assert request is not None
    assert request.system == "Be brief."
    assert request.params == {"max_tokens": 5}
    assert request.tools[0].schema == {"type": "object"}
    assert derive_tool_results(request) == [
        ToolResultPart(call_id="7", name="f", content={"error": "no"}, is_error=True)
    ]


def test_params() -> None:
    """The generation config is flattened into the common names."""
    request = read_request(GEMINI.path, GEMINI.request)
    assert request is not None
    assert request.params == {"temperature": 0.5, "top_p": 0.9, "max_tokens": 512, "stop": ["END"], "seed": 7}
    assert [tool.name for tool in request.tools] == ["weather", "googleSearch"]


def test_model_of_the_path_is_hashed() -> None:
    """The same contents for another model are another question."""
    hashes = {
        read_request(f"/v1beta/models/{model}:generateContent", {"contents": []}).input_hash for model in "ab"
    }
    assert len(hashes) == 2
