"""The laws that hold for every wire format, over one exchange of each."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from reenact.providers import (
    ModelResponse,
    Text,
    Thinking,
    derive_tool_results,
    pair_tool_results,
    read_request,
    read_response,
    recognise,
    request_fields,
    response_fields,
)

from .samples import EXCHANGES, TEXT, THOUGHT, Exchange

every_exchange = pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES.keys())


def read(exchange: Exchange, body: bytes | list[bytes], status: int = 200, **headers: str) -> ModelResponse:
    return read_response(exchange.provider, status, headers, body)


@every_exchange
def test_recognised(exchange: Exchange) -> None:
    """A request is recognised as its own wire format, from path and body."""
    assert recognise("POST", exchange.path, exchange.request) == exchange.provider


@every_exchange
def test_stream_equals_whole(exchange: Exchange) -> None:
    """A stream folds into exactly the body that the answer has in one piece."""
    assert read(exchange, exchange.stream) == read(exchange, exchange.whole)
    assert read(exchange, exchange.stream).body == exchange.body


@every_exchange
def test_said(exchange: Exchange) -> None:
    """Text, thinking, stop reason and usage are read."""
    response = read(exchange, exchange.whole)
    assert response.complete
    assert response.error is None
    assert response.text == TEXT
    assert response.thinking[0].text == THOUGHT
    assert response.stop_reason in {"tool_use", "tool_calls", "completed", "STOP", "stop"}
    assert response.usage is not None
    assert (response.usage.input_tokens or 0) > 0
    assert (response.usage.output_tokens or 0) > 0


@every_exchange
def test_parallel_tool_calls(exchange: Exchange) -> None:
    """Both calls are there, in order, with decoded arguments."""
    calls = read(exchange, exchange.stream).tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("weather", {"city": "Zürich"}), ("now", {})]
    assert all(call.arguments_text is None for call in calls)


@every_exchange
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_chunk_boundaries(exchange: Exchange, size: int) -> None:
    """Chunks may be cut anywhere, also inside a character or between CR and LF."""
    chunks = [exchange.stream[at : at + size] for at in range(0, len(exchange.stream), size)]
    assert read(exchange, chunks) == read(exchange, exchange.stream)


@every_exchange
def test_cut_at_every_byte(exchange: Exchange) -> None:
    """A stream cut anywhere yields what came before the cut, and is complete only once the model stopped."""
    whole = read(exchange, exchange.stream)
    texts, completes = [], []
    for end in range(len(exchange.stream)):
        cut = read(exchange, exchange.stream[:end])
        assert whole.text.startswith(cut.text)
        assert cut.error is None
        assert cut.complete == (cut.stop_reason == whole.stop_reason)
        texts.append(cut.text)
        completes.append(cut.complete)
    assert texts == sorted(texts, key=len)
    assert len(set(texts)) > 2, "text arrives piece by piece"
    assert completes == sorted(completes), "once complete, complete for good"
    assert not completes[len(completes) // 2]


@every_exchange
def test_cut_body_is_incomplete(exchange: Exchange) -> None:
    """A body in one piece that was cut says nothing, and says that it is incomplete."""
    for end in range(len(exchange.whole)):
        cut = read(exchange, exchange.whole[:end])
        assert (cut.complete, cut.parts, cut.error) == (False, (), None)


@every_exchange
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends(exchange: Exchange, end: str) -> None:
    """Server-sent events and NDJSON may end their lines in any of the three ways."""
    lines = exchange.stream.decode().replace("\r\n", "\n").replace("\n", end)
    assert read(exchange, lines.encode()) == read(exchange, exchange.stream)


COMPRESSED = {"gzip": gzip.compress, "deflate": zlib.compress, "GZIP": gzip.compress}


@every_exchange
@pytest.mark.parametrize("coding", COMPRESSED)
def test_content_encoding(exchange: Exchange, coding: str) -> None:
    """Compressed bodies are inflated; a cut one as far as it goes."""
    packed = COMPRESSED[coding](exchange.stream)
    headers = {"Content-Encoding": coding}
    assert read_response(exchange.provider, 200, headers, packed) == read(exchange, exchange.stream)
    cut = read_response(exchange.provider, 200, headers, packed[: len(packed) // 2])
    assert not cut.complete
    assert TEXT.startswith(cut.text)


@every_exchange
def test_header_of_decoded_body(exchange: Exchange) -> None:
    """Clients hand over inflated bytes with the header of the deflated ones."""
    response = read_response(exchange.provider, 200, {"content-encoding": "gzip"}, exchange.stream)
    assert response == read(exchange, exchange.stream)


@every_exchange
def test_request(exchange: Exchange) -> None:
    """System text, messages, tools and parameters are read into the same neutral shape."""
    request = read_request(exchange.path, exchange.request)
    assert request is not None
    assert request.stream
    assert (request.system or "").startswith("Be brief.")
    assert request.messages[0].role == "user"
    assert request.messages[0].parts[0] == Text(text="Weather?")
    assert request.tools[0].name == "weather"
    assert request.tools[0].description == "Weather of a city"
    assert request.tools[0].schema["required"] == ["city"]
    assert request.params["max_tokens"] > 0
    assert not request.params.keys() & {"model", "messages", "stream", "tools", "input", "contents"}


@every_exchange
def test_media_is_a_reference(exchange: Exchange) -> None:
    """Inline images leave a digest, never their data."""
    request = read_request(exchange.path, exchange.request)
    assert request is not None
    assert "iVBORw0KGgo" not in json.dumps(request.to_json())


@every_exchange
def test_input_hash_ignores_transport(exchange: Exchange) -> None:
    """The same question has the same hash, streamed or not, whatever the order of its keys."""
    question = dict(reversed(exchange.request.items()))
    question.pop("stream", None)
    question.pop("stream_options", None)
    path = exchange.path.replace("streamGenerateContent?alt=sse", "generateContent")
    one, other = read_request(exchange.path, exchange.request), read_request(path, question)
    assert one is not None
    assert other is not None
    assert one.input_hash == other.input_hash
    assert one.tool_schema_hash == other.tool_schema_hash


@every_exchange
def test_input_hash_sees_changes(exchange: Exchange) -> None:
    """Another word, parameter, tool or model is another question."""
    one = read_request(exchange.path, exchange.request)
    assert one is not None
    hashes = {one.input_hash}
    for change in (
        {"model": "another"},
        {"temperature": 0.123},
        {"tools": []},
        {"messages": [], "contents": [], "input": []},
    ):
        other = read_request(exchange.path, exchange.request | change)
        assert other is not None
        hashes.add(other.input_hash)
    assert len(hashes) == 5


@every_exchange
def test_no_tools_no_hash(exchange: Exchange) -> None:
    """Without tools there is no tool schema hash."""
    for nothing in ({}, {"tools": []}, {"tools": None}):
        body = {key: value for key, value in exchange.request.items() if key != "tools"} | nothing
        request = read_request(exchange.path, body)
        assert request is not None
        assert request.tool_schema_hash is None
        assert "toolSchemaHash" not in request_fields(exchange.provider, exchange.path, body)


@every_exchange
def test_tool_results(exchange: Exchange) -> None:
    """The result in a request is found and goes with the call of the response before."""
    request = read_request(exchange.path, exchange.request)
    assert request is not None
    results = derive_tool_results(request)
    assert len(results) == 1
    calls = [
        part
        for message in request.messages
        for part in message.parts
        if part.to_json()["kind"] == "tool_call"
    ]
    assert pair_tool_results(calls, results) == [(calls[0], results[0])]
    assert results[0].is_error == (exchange.provider == "anthropic")


@every_exchange
def test_request_fields(exchange: Exchange) -> None:
    """An event carries the seed's fields under the seed's names."""
    request = read_request(exchange.path, exchange.request)
    assert request is not None
    assert request_fields(exchange.provider, exchange.path, exchange.request) == {
        "provider": exchange.provider,
        "model": request.model,
        "stream": True,
        "inputHash": request.input_hash,
        "toolSchemaHash": request.tool_schema_hash,
    }


@every_exchange
def test_response_fields(exchange: Exchange) -> None:
    """Usage, stop reason, and the ids that a replay has to keep."""
    response = read(exchange, exchange.stream)
    fields = response_fields(response)
    assert fields["provider"] == exchange.provider
    assert fields["model"] == response.model
    assert fields["stopReason"] == response.stop_reason
    assert fields["usage"]["inputTokens"] == response.usage.input_tokens
    assert fields["complete"] is True
    assert fields.get("toolCallIds", []) == [call.id for call in response.tool_calls if call.id]
    assert json.loads(json.dumps(fields)) == fields


IDS: dict[str, tuple[Any, Any]] = {
    "anthropic": (2, ["toolu_01A", "toolu_01B"]),
    "openai_chat": (0, ["call_A", "call_B"]),
    "openai_responses": (["rs_68af4030baa48193b0b43b4c2a176a1a"], ["call_A", "call_B"]),
    "gemini": (1, None),
    "ollama": (0, None),
}


@every_exchange
def test_ids_are_kept(exchange: Exchange) -> None:
    """Reasoning goes by its id, else by the digest of its signature; calls by their ids."""
    reasoning, calls = IDS[exchange.provider]
    fields = response_fields(read(exchange, exchange.stream))
    found = fields.get("reasoningIds", [])
    assert found == reasoning if isinstance(reasoning, list) else len(found) == reasoning
    assert fields.get("toolCallIds") == calls


@every_exchange
def test_to_json_is_plain(exchange: Exchange) -> None:
    """Every value has a JSON shape, parts tagged by kind."""
    response, request = read(exchange, exchange.stream), read_request(exchange.path, exchange.request)
    assert request is not None
    for value in (response.to_json(), request.to_json()):
        assert json.loads(json.dumps(value)) == value
    kinds = [part["kind"] for part in response.to_json()["parts"]]
    assert kinds[0] == "thinking"
    assert kinds[-2:] == ["tool_call", "tool_call"]


@every_exchange
def test_thinking_survives_the_cut(exchange: Exchange) -> None:
    """Half a thought is a thought."""
    place = exchange.stream.index(THOUGHT[-1].encode())
    thinking = read(exchange, exchange.stream[:place]).thinking
    assert isinstance(thinking[0], Thinking)
    assert THOUGHT.startswith(thinking[0].text)


ERROR_BODIES = {
    "anthropic": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "openai_chat": (
        429,
        {"error": {"message": "Overloaded", "type": "overloaded_error", "param": None, "code": "x"}},
    ),
    "openai_responses": (
        400,
        {"error": {"message": "Overloaded", "type": "overloaded_error", "param": "input", "code": None}},
    ),
    "gemini": (503, {"error": {"code": 503, "message": "Overloaded", "status": "overloaded_error"}}),
    "ollama": (404, {"error": "Overloaded"}),
}


@every_exchange
def test_http_error(exchange: Exchange) -> None:
    """An error status with the provider's error body."""
    status, body = ERROR_BODIES[exchange.provider]
    response = read(exchange, json.dumps(body).encode(), status=status)
    assert response.error is not None
    assert response.error.message == "Overloaded"
    assert response.error.status == status
    assert response.error.type == ("error" if exchange.provider == "ollama" else "overloaded_error")
    assert not response.complete
    assert response_fields(response)["error"] == response.error.to_json()


@every_exchange
def test_error_inside_a_stream(exchange: Exchange) -> None:
    """An error after the stream began keeps what was said before it."""
    _, body = ERROR_BODIES[exchange.provider]
    half = exchange.stream[: exchange.stream.index("日".encode())]
    half = half[: half.rindex(b"\n") + 1]
    error = json.dumps(body).encode()
    line = error if exchange.provider == "ollama" else b"event: error\ndata: " + error + b"\n\n"
    response = read(exchange, half + line)
    assert response.error is not None
    assert (response.error.message, response.error.status) == ("Overloaded", 200)
    assert response.thinking
    assert not response.complete
