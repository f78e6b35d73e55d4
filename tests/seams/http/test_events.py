"""What of an HTTP call is written down."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import reenact
from reenact.formats.capture import read_events
from reenact.testing import Fail, Raw, Reply, ScriptedProvider, ToolCall
from tests.seams.http.site import Site
from tests.seams.http.test_clients import events_in

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def ask(provider: ScriptedProvider, *, stream: bool = False, model: str = "gpt-9") -> None:
    with openai.OpenAI(base_url=provider.base_url("openai"), api_key=KEY, max_retries=0) as client:
        answer = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "How warm is it?"}],
            tools=[{"type": "function", "function": {"name": "weather", "parameters": {}}}],
            stream=stream,  # type: ignore[call-overload]
        )
        if stream:
            list(answer)


def recorded(path: Path, work: Any) -> list[dict[str, Any]]:
    with reenact.capture(path, redact="default"):
        work()
    with (path / "events.jsonl").open("rb") as stream:
        assert [event for _, event in read_events(stream, file="events.jsonl")]  # each is of its format
    return events_in(path)[1:-1]


def test_a_model_call_says_what_was_asked_and_answered(tmp_path: Path) -> None:
    """The provider's fields stand beside the bytes."""
    reply = Reply("Let me look.", tool_calls=[ToolCall("weather", {"city": "Oslo"})])
    with ScriptedProvider([reply]) as provider:
        request, response = recorded(tmp_path / "run", lambda: ask(provider))
    assert (request["type"], response["type"]) == ("llm_request", "llm_response")
    asked, answered = request["data"], response["data"]
    assert (asked["provider"], asked["model"], asked["stream"]) == ("openai_chat", "gpt-9", False)
    assert asked["inputHash"].startswith("sha256:")
    assert asked["toolSchemaHash"].startswith("sha256:")
    assert asked["request"]["method"] == "POST"
    assert asked["request"]["url"] == f"{provider.base_url('openai')}/chat/completions"
    assert asked["request"]["body"]["messages"] == [{"role": "user", "content": "How warm is it?"}]
    assert (answered["provider"], answered["model"], answered["stopReason"]) == (
        "openai_chat",
        "gpt-9",
        "tool_calls",
    )
    assert len(answered["toolCallIds"]) == 1
    assert answered["response"]["status"] == 200
    assert answered["response"]["body"].startswith('{"id":')


def test_a_streamed_model_call_has_its_chunks_as_text(tmp_path: Path) -> None:
    """One piece for each chunk, and the fields of the message they add up to."""
    with ScriptedProvider([Reply("one two", chunks=2)]) as provider:
        _, response = recorded(tmp_path / "run", lambda: ask(provider, stream=True))
    data = response["data"]
    assert all(piece.startswith("data: ") for piece in data["pieces"])
    assert "body" not in data["response"]
    assert data["stopReason"] == "stop"
    assert data["complete"]
    assert "cancelled" not in data  # the SDK leaves at [DONE], which is the end


def test_a_refused_model_call_is_an_answer_not_an_error(tmp_path: Path) -> None:
    """An HTTP error is what the provider said; `error` is for what the call raised."""

    def work() -> None:
        with pytest.raises(openai.RateLimitError):
            ask(provider)

    with ScriptedProvider([Fail(429)]) as provider:
        _, response = recorded(tmp_path / "run", work)
    data = response["data"]
    assert data["response"]["status"] == 429
    assert data["modelError"]["status"] == 429
    assert "error" not in data
    assert data["model"] == "gpt-9"  # the answer names none: the request's


def test_a_failed_model_call_still_names_its_model(tmp_path: Path) -> None:
    with ScriptedProvider([]) as provider:
        pass

    def work() -> None:
        with pytest.raises(openai.APIConnectionError):
            ask(provider)

    _, response = recorded(tmp_path / "run", work)
    data = response["data"]
    assert data["error"]["type"] == "httpx2:ConnectError"
    assert (data["provider"], data["model"], data["usage"]) == ("openai_chat", "gpt-9", None)


def test_any_other_call_is_a_value_from_the_network(tmp_path: Path, web: Site) -> None:
    call, outcome = recorded(tmp_path / "run", lambda: httpx2.get(f"{web.url}/page?a=1"))
    assert call["type"] == outcome["type"] == "nondeterministic"
    assert call["data"]["source"] == "network"
    assert call["data"]["key"] == f"GET {web.url}/page?a=1"
    assert call["data"]["request"] == {"method": "GET", "url": f"{web.url}/page?a=1"}
    assert outcome["data"]["value"]["reason"] == "OK"
    assert outcome["data"]["value"]["httpVersion"] == "HTTP/1.1"
    assert {"X-Twice": "no"} in outcome["data"]["value"]["headers"]


def test_no_key_reaches_the_disk(tmp_path: Path, web: Site) -> None:
    """Not in headers of requests, nor in cookies of responses."""
    with ScriptedProvider([Reply("Hi.")]) as provider:

        def work() -> None:
            ask(provider)
            httpx2.get(f"{web.url}/moved", headers={"x-api-key": "opensesame-4711"})

        recorded(tmp_path / "run", work)
    text = (tmp_path / "run" / "events.jsonl").read_text()
    for secret in (KEY, "opensesame-4711", "first=1", "second=2"):
        assert secret not in text
    assert "Bearer <secret:" in text


def test_a_secret_in_a_compressed_body_is_not_kept_compressed(tmp_path: Path) -> None:
    """The decoded text is redacted, the coded bytes are left out; the answer replays without its coding."""
    body = gzip.compress(f'{{"say": "{KEY}"}}'.encode())
    turn = Raw(headers={"content-encoding": "gzip", "content-type": "application/json"}, body=body)
    with ScriptedProvider([turn]) as provider:
        url = f"{provider.base_url('openai')}/chat/completions"

        def work() -> httpx2.Response:
            return httpx2.post(url, json={"model": "m", "messages": []})

        [_, response] = recorded(tmp_path / "run", work)
        assert "exact" not in response["data"]
        assert KEY not in (tmp_path / "run" / "events.jsonl").read_text()
        with reenact.replay(tmp_path / "run"):
            answer = work()
    assert answer.json()["say"].startswith("<secret:")
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_a_body_that_is_not_what_its_coding_says_fails_the_same(tmp_path: Path) -> None:
    """The client complains in replay about the bytes it complained about before."""
    turn = Raw(headers={"content-encoding": "gzip"}, body=b"not gzip at all")
    with ScriptedProvider([turn]) as provider:
        url = f"{provider.base_url('openai')}/chat/completions"

        def work() -> str:
            with pytest.raises(httpx2.DecodingError) as caught:
                httpx2.post(url, json={"model": "m", "messages": []})
            return str(caught.value)

        with reenact.capture(tmp_path / "run"):
            recorded = work()
        with reenact.replay(tmp_path / "run"):
            assert work() == recorded


def test_a_hook_that_refuses_an_answer_refuses_it_again(tmp_path: Path, web: Site) -> None:
    """It runs between an answer's head and its body; the body is recorded all the same."""

    def refuse(response: httpx2.Response) -> None:
        response.raise_for_status()

    def work() -> int:
        with httpx2.Client(event_hooks={"response": [refuse]}) as client:
            with pytest.raises(httpx2.HTTPStatusError) as refused:
                client.get(f"{web.url}/status/503")
            return refused.value.response.status_code

    _, outcome = recorded(tmp_path / "run", work)
    assert outcome["data"]["value"]["body"] == "no 503"
    with reenact.replay(tmp_path / "run"):
        assert work() == 503
