"""Which requests are model calls."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.providers import read_request, recognise

CHAT = {"model": "m", "messages": []}
CLAUDE: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
CLOUD_CLAUDE: dict[str, Any] = {"anthropic_version": "x", "max_tokens": 9, "messages": []}
GEMINI: dict[str, Any] = {"contents": []}
VERTEX = "/v1/projects/p/locations/eu/publishers"
AZURE = "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"

MODEL_CALLS: dict[str, tuple[str, dict[str, Any], str, str | None]] = {
    "anthropic": ("/v1/messages", CLAUDE, "anthropic", "m"),
    "anthropic behind a prefix": (
        "/gateway/team-a/anthropic/v1/messages?beta=true",
        CLAUDE,
        "anthropic",
        "m",
    ),
    "anthropic trailing slash": ("/v1/messages/", CLAUDE, "anthropic", "m"),
    "anthropic on vertex": (
        f"{VERTEX}/anthropic/models/claude-4@2025:streamRawPredict",
        CLOUD_CLAUDE,
        "anthropic",
        "claude-4@2025",
    ),
    "anthropic on bedrock": (
        "/model/eu.anthropic.claude-v1%3A0/invoke",
        CLOUD_CLAUDE,
        "anthropic",
        "eu.anthropic.claude-v1:0",
    ),
    "chat": ("/v1/chat/completions", CHAT, "openai_chat", "m"),
    "chat without version": ("/chat/completions", CHAT, "openai_chat", "m"),
    "chat on openrouter": ("/api/v1/chat/completions", CHAT, "openai_chat", "m"),
    "chat on azure": (AZURE, {"messages": []}, "openai_chat", "my-gpt"),
    "chat on azure, model in the body": (AZURE, CHAT, "openai_chat", "m"),
    "chat on gemini": ("/v1beta/openai/chat/completions", CHAT, "openai_chat", "m"),
    "chat with max_tokens": ("/v1/chat/completions", CLAUDE, "openai_chat", "m"),
    "responses": ("/v1/responses", {"model": "m", "input": "hi"}, "openai_responses", "m"),
    "responses of a subscription": (
        "/backend-api/codex/responses",
        {"model": "m", "input": []},
        "openai_responses",
        "m",
    ),
    "responses that go on": ("/v1/responses", {"previous_response_id": "resp_1"}, "openai_responses", None),
    "responses from a stored prompt": ("/v1/responses", {"prompt": {"id": "p"}}, "openai_responses", None),
    "gemini": ("/v1beta/models/gemini-2.5-pro:generateContent", GEMINI, "gemini", "gemini-2.5-pro"),
    "gemini stream": (
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        GEMINI,
        "gemini",
        "gemini-2.5-pro",
    ),
    "gemini on vertex": (
        f"{VERTEX}/google/models/gemini-2.5-pro:generateContent",
        GEMINI,
        "gemini",
        "gemini-2.5-pro",
    ),
    "ollama": ("/api/chat", CHAT, "ollama", "m"),
    "ollama generate": ("/api/generate", {"model": "m", "prompt": "hi"}, "ollama", "m"),
}


@pytest.mark.parametrize(("path", "body", "provider", "model"), MODEL_CALLS.values(), ids=MODEL_CALLS.keys())
def test_model_call(path: str, body: dict[str, Any], provider: str, model: str | None) -> None:
    """Path and body tell the wire format, and the model where one is named."""
    assert recognise("POST", path, body) == provider
    request = read_request(path, body)
    assert request is not None
    assert (request.provider, request.model) == (provider, model)


OTHER_CALLS: dict[str, tuple[str, str, Any]] = {
    "not a POST": ("GET", "/v1/messages", CLAUDE),
    "counting tokens": ("POST", "/v1/messages/count_tokens", CLAUDE),
    "counting tokens on vertex": (
        "POST",
        f"{VERTEX}/anthropic/models/count-tokens:rawPredict",
        {"anthropic_version": "x", "messages": []},
    ),
    "counting tokens of gemini": ("POST", "/v1beta/models/gemini-2.5-pro:countTokens", GEMINI),
    "batches": ("POST", "/v1/messages/batches", {"requests": []}),
    "models": ("POST", "/v1/models", CHAT),
    "embeddings": ("POST", "/v1/embeddings", {"model": "m", "input": "hi"}),
    "gemini embeddings": ("POST", "/v1beta/models/e:embedContent", {"content": {}}),
    "files": ("POST", "/v1/files", {}),
    "a thread's message": ("POST", "/v1/threads/t/messages", {"role": "user", "content": "hi"}),
    "cancelling a response": ("POST", "/v1/responses/resp_1/cancel", {}),
    "a form called responses": ("POST", "/survey/responses", {"input": "hi"}),
    "a web app's own chat": ("POST", "/api/chat", {"messages": []}),
    "messages that are no list": ("POST", "/v1/chat/completions", {"messages": "hi"}),
    "contents that are no list": ("POST", "/v1beta/models/m:generateContent", {"contents": "hi"}),
    "no body": ("POST", "/v1/messages", None),
    "a list": ("POST", "/v1/messages", [CLAUDE]),
    "no path": ("POST", "", CLAUDE),
    "a path elsewhere": ("POST", "/v1/chat", CHAT),
}


@pytest.mark.parametrize(("method", "path", "body"), OTHER_CALLS.values(), ids=OTHER_CALLS.keys())
def test_other_call(method: str, path: str, body: Any) -> None:
    """What only looks like a model call is none."""
    assert recognise(method, path, body) is None


@pytest.mark.parametrize("value", [float("nan"), 2**70, "\ud800", {1: 2}], ids=repr)
def test_beyond_json(value: Any) -> None:
    """A body that canonical JSON cannot hold has no hash, so it is no readable request."""
    assert read_request("/v1/chat/completions", CHAT | {"seed": value}) is None
