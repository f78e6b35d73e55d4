"""What a user of the scripted provider relies on, whatever the wire format."""

from __future__ import annotations

import asyncio
import time

import httpx2
import pytest

import reenact.testing
from reenact.errors import UsageError
from reenact.testing import Fail, Reply, Request, ScriptedProvider, ToolCall, Turn, echo

PARALLEL = 200
LOOK = Reply(tool_calls=[ToolCall("look")])


def ask(provider: ScriptedProvider, text: str, path: str = "/v1/messages") -> httpx2.Response:
    messages = [{"role": "user", "content": text}]
    return httpx2.post(provider.url + path, json={"model": "m", "messages": messages})


def test_the_public_names() -> None:
    """Adding or removing a name is a decision."""
    assert reenact.testing.__all__ == [
        "FIXED",
        "Disconnect",
        "Fail",
        "Message",
        "Raw",
        "Reply",
        "Request",
        "RunFiles",
        "Script",
        "ScriptedProvider",
        "Timeout",
        "ToolCall",
        "ToolResult",
        "Turn",
        "echo",
    ]


async def test_parallel_streams_each_get_their_own_answer() -> None:
    """Two hundred streams are open at once, and each carries its own words."""
    open_now = asyncio.Semaphore(0)

    async def one(client: httpx2.AsyncClient, number: int) -> bool:
        body = {"stream": True, "messages": [{"role": "user", "content": f"words-of-{number}"}]}
        async with client.stream("POST", f"{provider.url}/v1/chat/completions", json=body) as answer:
            chunks = answer.aiter_raw()
            await anext(chunks)
            open_now.release()
            # Nobody reads on before everybody has begun.
            await all_open
            rest = b"".join([chunk async for chunk in chunks])
            return f'"words-of-{number}"'.encode() in rest

    async def wait_for_all() -> None:
        for _ in range(PARALLEL):
            await open_now.acquire()

    limits = httpx2.Limits(max_connections=PARALLEL)
    with ScriptedProvider(echo(like=Reply(chunk_delay_ms=50))) as provider:
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
            all_open = asyncio.ensure_future(wait_for_all())
            heard = await asyncio.gather(*(one(client, number) for number in range(PARALLEL)))
    assert heard == [True] * PARALLEL
    assert provider.connections == PARALLEL


def test_a_request_is_recorded_as_it_came() -> None:
    """Path, headers, body, time and order can be looked at afterwards."""
    began = time.time()
    with ScriptedProvider(echo()) as provider:
        httpx2.post(
            f"{provider.url}/v1/messages?beta=1", json={"model": "m"}, headers={"X-Api-Key": "secret"}
        )
        httpx2.get(f"{provider.url}/v1/models")
    first, second = provider.requests
    assert (first.number, first.method, first.path) == (0, "POST", "/v1/messages?beta=1")
    assert first.headers["x-api-key"] == "secret"
    assert (first.body, first.model, first.provider) == ({"model": "m"}, "m", "anthropic")
    assert began <= first.time <= second.time
    assert (second.number, second.method, second.wire, second.body) == (1, "GET", None, None)


def test_equal_requests_get_equal_answers() -> None:
    """Ids derive from the request, so that two runs of a test see the same bytes."""
    answers = []
    for _ in range(2):
        with ScriptedProvider(LOOK) as provider:
            answers += [ask(provider, "x").content, ask(provider, "y").content]
    assert answers[:2] == answers[2:]
    assert answers[0] != answers[1]


def test_ids_may_count_instead() -> None:
    """Counted ids differ even between equal requests, and repeat from run to run."""
    answers = []
    for _ in range(2):
        with ScriptedProvider(LOOK, ids="counter") as provider:
            answers += [ask(provider, "x").json()["id"] for _ in range(2)]
    assert answers[:2] == answers[2:]
    assert answers[0] != answers[1]


def test_usage_is_estimated_unless_given() -> None:
    """Longer requests and replies cost more."""
    with ScriptedProvider([Reply("short"), Reply("long " * 100)]) as provider:
        small, large = ask(provider, "x").json()["usage"], ask(provider, "x" * 400).json()["usage"]
    assert 0 < small["input_tokens"] < large["input_tokens"]
    assert 0 < small["output_tokens"] < large["output_tokens"]


def test_a_finished_script_passes() -> None:
    """All turns used and every request answered."""
    with ScriptedProvider([Reply(), Fail()]) as provider:
        ask(provider, "x")
        ask(provider, "x")
    provider.assert_finished()


def test_turns_left_over_are_named() -> None:
    """A turn nobody asked for fails the test that checks."""
    with ScriptedProvider([Reply("first"), Reply("second")]) as provider:
        ask(provider, "x")
    assert provider.unused == (Reply("second"),)
    with pytest.raises(AssertionError, match=r"never asked for: Reply\(.*second"):
        provider.assert_finished()


def test_a_request_too_many_is_named() -> None:
    """The answer says which request found no turn, and so does the check at the end."""
    with ScriptedProvider([Reply()]) as provider:
        ask(provider, "x")
        answer = ask(provider, "once more")
    assert answer.status_code == 500
    assert "no turn is left for request 1 (turn 0, 'once more')" in answer.json()["error"]["message"]
    with pytest.raises(AssertionError, match="no turn is left for request 1"):
        provider.assert_finished()


def test_a_script_that_raises_is_named() -> None:
    """What the user's function raises reaches the client and the check at the end."""

    def script(request: Request) -> Turn:
        raise LookupError("no such case")

    with ScriptedProvider(script) as provider:
        answer = ask(provider, "x", "/v1/chat/completions")
    assert answer.status_code == 500
    assert "LookupError: no such case" in answer.json()["error"]["message"]
    with pytest.raises(AssertionError, match="LookupError"):
        provider.assert_finished()


def test_an_unknown_provider_has_no_base_url() -> None:
    """The error lists those that are served."""
    with (
        ScriptedProvider([]) as provider,
        pytest.raises(UsageError, match="anthropic, openai, gemini, ollama"),
    ):
        provider.base_url("cohere")  # type: ignore[arg-type]  # the mistake under test
