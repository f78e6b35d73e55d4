"""Requests of each wire format asked otherwise, and the way back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reenact.errors import UsageError
from reenact.providers import RequestChange, ask_otherwise, read_request, undo_changes

CHANGE = RequestChange(model="new model", system="Be brief.", temperature=0.5)
USER = {"role": "user", "content": "hello"}
CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "anthropic": ("anthropic", "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER]}),
    "anthropic blocks": (
        "anthropic",
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "old"}], "messages": [USER]},
    ),
    "bedrock": (
        "anthropic",
        "/model/old.m-v1:0/invoke",
        {"anthropic_version": "b", "max_tokens": 9, "messages": [USER]},
    ),
    "vertex": (
        "anthropic",
        "/v1/publishers/anthropic/models/old:rawPredict",
        {"anthropic_version": "v", "max_tokens": 9, "messages": [USER]},
    ),
    "chat": ("openai_chat", "/v1/chat/completions", {"model": "m", "messages": [USER]}),
    "chat with a system prompt": (
        "openai_chat",
        "/v1/chat/completions",
        {"model": "m", "temperature": 1, "messages": [{"role": "developer", "content": "old"}, USER]},
    ),
    "azure": ("openai_chat", "/openai/deployments/chat/chat/completions?api-version=1", {"messages": [USER]}),
    "responses": ("openai_responses", "/v1/responses", {"model": "m", "input": "hello"}),
    "responses with instructions": (
        "openai_responses",
        "/v1/responses",
        {"model": "m", "input": [USER], "instructions": "old"},
    ),
    "responses with a system message": (
        "openai_responses",
        "/v1/responses",
        {"model": "m", "input": [{"role": "system", "content": "old"}, USER]},
    ),
    "gemini": (
        "gemini",
        "/v1beta/models/old:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
    ),
    "gemini in snake case": (
        "gemini",
        "/v1beta/models/old:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "system_instruction": {"parts": [{"text": "old"}]},
            "generation_config": {"temperature": 1.0, "maxOutputTokens": 9},
        },
    ),
    "ollama": ("ollama", "/api/chat", {"model": "m", "messages": [USER], "options": {"top_k": 3}}),
    "ollama's generate": ("ollama", "/api/generate", {"model": "m", "prompt": "hello", "system": "old"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_request_says_what_the_change_says_and_nothing_else_changes(case: str) -> None:
    """It is still a request of its format, and undoing the change gives the agent's own request."""
    provider, path, body = CASES[case]
    url, before = f"https://host{path}", copy.deepcopy(body)
    other = ask_otherwise(provider, url, body, CHANGE)
    asked, was = read_request(other.url[12:], other.body), read_request(path, body)
    assert asked is not None
    assert was is not None
    assert (asked.provider, asked.model, asked.system) == (provider, "new model", "Be brief.")
    assert asked.params["temperature"] == 0.5
    assert [message.parts for message in asked.messages] == [message.parts for message in was.messages]
    assert other.url.partition("?")[2] == url.partition("?")[2]
    assert body == before
    assert undo_changes({"url": other.url, "body": other.body}, other.undo) == {"url": url, "body": body}


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_already_is_no_change(case: str) -> None:
    """So that the recording can answer."""
    provider, path, body = CASES[case]
    once = ask_otherwise(provider, f"https://host{path}", body, CHANGE)
    assert once.undo
    twice = ask_otherwise(provider, once.url, once.body, CHANGE)
    assert (twice.undo, twice.url, twice.body) == ([], once.url, once.body)


@pytest.mark.parametrize(
    "change",
    [
        RequestChange(temperature=-1),
        RequestChange(temperature=2.5),
        RequestChange(temperature=float("nan")),
        RequestChange(model="a\nb"),
    ],
)
def test_what_no_model_takes_is_refused(change: RequestChange) -> None:
    with pytest.raises(UsageError):
        change.check()
