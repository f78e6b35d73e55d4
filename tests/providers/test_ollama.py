"""What only Ollama has."""

from __future__ import annotations

from reenact.providers import Text, Thinking, ToolResultPart, derive_tool_results, read_request, read_response

from .samples import OLLAMA, ndjson

GENERATE = {"model": "m", "prompt": "Why?", "system": "Be brief.", "stream": False}


def test_streams_by_default() -> None:
    """Only ``stream: false`` turns streaming off."""
    assert read_request("/api/chat", OLLAMA.request).stream
    assert not read_request("/api/chat", OLLAMA.request | {"stream": False}).stream


def test_generate_request() -> None:
    """A prompt is a user's message."""
    request = read_request("/api/generate", GENERATE)
    assert request is not None
    assert (request.system, request.stream) == ("Be brief.", False)
    assert request.messages[0].parts == (Text(text="Why?"),)


def test_generate_stream() -> None:
    """The texts of a completion add up."""
    lines = [
        {"model": "m", "response": "", "thinking": "Hm", "done": False},
        {"model": "m", "response": "Be", "done": False},
        {"model": "m", "response": "cause", "done": False},
        {
            "model": "m",
            "response": "",
            "done": True,
            "done_reason": "length",
            "context": [1],
            "eval_count": 3,
        },
    ]
    response = read_response("ollama", 200, {}, ndjson(*lines))
    assert response.parts == (Thinking(text="Hm"), Text(text="Because"))
    assert (response.stop_reason, response.complete) == ("length", True)
    assert response.body["response"] == "Because"


def test_done_without_a_reason() -> None:
    """Older servers only say that they are done."""
    response = read_response("ollama", 200, {}, b'{"message": {"content": "a"}, "done": true}')
    assert (response.stop_reason, response.complete, response.usage) == ("done", True, None)


def test_results_by_name() -> None:
    """Results go by name, or by id where the client sends one."""
    request = read_request(OLLAMA.path, OLLAMA.request)
    assert request is not None
    assert derive_tool_results(request) == [ToolResultPart(name="weather", content="5 °C")]


def test_options_are_params() -> None:
    """The options are flattened into the common names."""
    request = read_request(OLLAMA.path, OLLAMA.request)
    assert request is not None
    assert request.params == {
        "think": True,
        "temperature": 0.2,
        "max_tokens": 128,
        "seed": 7,
        "stop": ["END"],
    }
