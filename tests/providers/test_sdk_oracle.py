"""The providers' own SDKs as oracle: they talk to a server on loopback that answers with the samples.

What they send must be recognised, and what they make of a stream must be what we make of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import anthropic.types
import ollama
import openai
import openai.types.chat
import openai.types.responses
import pytest
from google import genai
from google.genai import types as genai_types

from reenact.providers import ModelRequest, ModelResponse, read_request, read_response, recognise

from .samples import ANTHROPIC, CHAT, EXCHANGES, GEMINI, OLLAMA, RESPONSES, Exchange


class ScriptedProvider(ThreadingHTTPServer):
    """Answers every model call with the sample of its wire format, streamed if it asks so."""

    daemon_threads = True
    seen: list[ModelRequest]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def asked(self) -> ModelRequest:
        return self.seen[-1]


class Handler(BaseHTTPRequestHandler):
    server: ScriptedProvider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        provider, request = recognise("POST", self.path, body), read_request(self.path, body)
        assert provider is not None
        assert request is not None
        self.server.seen.append(request)
        exchange = EXCHANGES[provider]
        kind = "application/x-ndjson" if provider == "ollama" else "text/event-stream"
        self.answer(exchange.stream if request.stream else exchange.whole, kind, streamed=request.stream)

    def answer(self, body: bytes, kind: str, *, streamed: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", kind if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silence."""


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(("127.0.0.1", 0), Handler) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def folded(exchange: Exchange) -> ModelResponse:
    return read_response(exchange.provider, 200, {}, exchange.stream)


def without_nulls(value: Any) -> Any:
    """SDKs add members that were not sent, as null."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


MODELS = {
    "anthropic": anthropic.types.Message,
    "openai_chat": openai.types.chat.ChatCompletion,
    "openai_responses": openai.types.responses.Response,
    "gemini": genai_types.GenerateContentResponse,
    "ollama": ollama.ChatResponse,
}


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES.keys())
def test_folded_body_is_valid(exchange: Exchange) -> None:
    """The SDK's strict model of a whole answer takes what we folded from a stream."""
    MODELS[exchange.provider].model_validate(folded(exchange).body)


def test_anthropic_stream(provider: ScriptedProvider) -> None:
    """The Anthropic SDK accumulates the same message."""
    with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
        arguments = {key: value for key, value in ANTHROPIC.request.items() if key != "stream"}
        with client.messages.stream(**arguments) as stream:
            message = stream.get_final_message()
    assert without_nulls(json.loads(message.model_dump_json())) == without_nulls(folded(ANTHROPIC).body)
    assert provider.asked == read_request(ANTHROPIC.path, ANTHROPIC.request)


def test_chat_stream(provider: ScriptedProvider) -> None:
    """The OpenAI SDK accumulates the same completion."""
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k") as client:
        arguments = {key: value for key, value in CHAT.request.items() if key != "stream"}
        arguments["tools"] = openai.omit  # the accumulator insists on strict tools
        with client.chat.completions.stream(**arguments) as stream:
            completion = stream.get_final_completion()
    message, ours = completion.choices[0].message, folded(CHAT)
    assert message.content == ours.text
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []] == [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in ours.body["choices"][0]["message"]["tool_calls"]
    ]
    assert without_nulls(completion.usage.model_dump()) == ours.body["usage"]
    assert provider.asked.params["max_tokens"] == 256


def test_responses_stream(provider: ScriptedProvider) -> None:
    """The OpenAI SDK receives the same response."""
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k") as client:
        *_, final = client.responses.create(**RESPONSES.request)
    assert final.type == "response.completed"
    assert without_nulls(final.response.model_dump(mode="json")) == without_nulls(folded(RESPONSES).body)
    assert provider.asked == read_request(RESPONSES.path, RESPONSES.request)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_gemini(provider: ScriptedProvider, stream: bool) -> None:
    """The Gemini SDK's requests are recognised and its chunks add up to the same parts."""
    options = genai_types.HttpOptions(base_url=provider.url)
    with genai.Client(api_key="k", vertexai=False, http_options=options) as client:
        config = {"system_instruction": "Be brief.", "max_output_tokens": 512}
        ask = client.models.generate_content_stream if stream else client.models.generate_content
        answer = ask(model="gemini-2.5-pro", contents="Weather?", config=config)
        chunks = list(answer) if stream else [answer]
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    ours = folded(GEMINI)
    assert "".join(part.text for part in parts if part.text and not part.thought) == ours.text
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.name, call.args) for call in calls] == [
        (call.name, call.arguments) for call in ours.tool_calls
    ]
    assert (provider.asked.model, provider.asked.system) == ("gemini-2.5-pro", "Be brief.")
    assert (provider.asked.stream, provider.asked.params) == (stream, {"max_tokens": 512})


def test_ollama(provider: ScriptedProvider) -> None:
    """The Ollama client's requests are recognised and its lines add up to the same message."""
    client = ollama.Client(host=provider.url)
    lines = list(client.chat(**OLLAMA.request, stream=True))
    ours = folded(OLLAMA)
    assert "".join(line.message.content or "" for line in lines) == ours.text
    assert "".join(line.message.thinking or "" for line in lines) == ours.thinking[0].text
    assert lines[-1].eval_count == ours.usage.output_tokens
    assert provider.asked.system == "Be brief."
    client._client.close()
