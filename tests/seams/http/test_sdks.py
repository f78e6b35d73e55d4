"""The providers' own SDKs, recorded and replayed against a scripted provider that counts connections."""

from __future__ import annotations

import asyncio
import time
import timeit
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import pydantic
import pytest
from google import genai
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import reenact
from reenact.testing import Disconnect, Fail, Reply, ScriptedProvider, Timeout, ToolCall, echo
from tests.seams.http.test_clients import calls_in, events_in

MODEL = "any-model"
CALLS = 200

Script = Any

real_clock = timeit.Timer().timer.__call__
"""A clock that is not recorded: the names of this module are exchanged, an attribute of a library is not."""


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def twice(path: Path, script: Script, work: Callable[[ScriptedProvider], Any], *, replays: int = 1) -> Any:
    """The result of *work* when it was recorded; in replay it is the same, and nobody comes near."""
    with ScriptedProvider(script) as provider:
        with reenact.capture(path) as run:
            recorded = work(provider)
        assert run.warnings == []
        before = provider.connections
        for _ in range(replays):
            with reenact.replay(path) as again:
                replayed = work(provider)
            assert (again.divergences, again.blocked) == ([], [])
            assert replayed == recorded
        assert provider.connections == before
    return recorded


def openai_client(provider: ScriptedProvider, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url("openai"), api_key="k", **options)


def anthropic_client(provider: ScriptedProvider, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.base_url("anthropic"), api_key="k", **options)


def failure(work: Callable[[], Any]) -> tuple[Any, ...]:
    """What an SDK raised: type, message, status, body, cause."""
    try:
        work()
    except Exception as error:
        body = getattr(error, "body", None)
        return type(error), str(error), getattr(error, "status_code", None), body, type(error.__cause__)
    raise AssertionError("nothing was raised")


# Many at once


def test_two_hundred_openai_calls_in_threads(tmp_path: Path) -> None:
    """Each gets its own answer again."""

    def work(provider: ScriptedProvider) -> list[str | None]:
        with openai_client(provider) as client, ThreadPoolExecutor(16) as pool:

            def ask(number: int) -> str | None:
                answer = client.chat.completions.create(model=MODEL, messages=said(f"number {number}"))
                return answer.choices[0].message.content

            return list(pool.map(ask, range(CALLS)))

    assert twice(tmp_path / "run", echo(), work) == [f"number {number}" for number in range(CALLS)]


def test_two_hundred_anthropic_calls_in_threads(tmp_path: Path) -> None:
    def work(provider: ScriptedProvider) -> list[str]:
        with anthropic_client(provider) as client, ThreadPoolExecutor(16) as pool:

            def ask(number: int) -> str:
                asked = said(f"number {number}")
                return client.messages.create(model=MODEL, max_tokens=9, messages=asked).content[0].text

            return list(pool.map(ask, range(CALLS)))

    assert twice(tmp_path / "run", echo(), work) == [f"number {number}" for number in range(CALLS)]


def test_two_hundred_openai_calls_gathered(tmp_path: Path) -> None:
    async def gathered(provider: ScriptedProvider) -> list[str | None]:
        url = provider.base_url("openai")
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:

            async def ask(number: int) -> str | None:
                answer = await client.chat.completions.create(model=MODEL, messages=said(f"number {number}"))
                return answer.choices[0].message.content

            return await asyncio.gather(*map(ask, range(CALLS)))

    found = twice(tmp_path / "run", echo(), lambda provider: asyncio.run(gathered(provider)))
    assert found == [f"number {number}" for number in range(CALLS)]


def test_two_hundred_anthropic_streams_gathered(tmp_path: Path) -> None:
    async def gathered(provider: ScriptedProvider) -> list[str]:
        url = provider.base_url("anthropic")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k") as client:

            async def ask(number: int) -> str:
                asked = said(f"number {number}")
                async with client.messages.stream(model=MODEL, max_tokens=9, messages=asked) as stream:
                    return await stream.get_final_text()

            return await asyncio.gather(*map(ask, range(CALLS)))

    found = twice(tmp_path / "run", echo(), lambda provider: asyncio.run(gathered(provider)))
    assert found == [f"number {number}" for number in range(CALLS)]


# What a model says


WHOLE = Reply("It is warm.", thinking="Let me see.", tool_calls=[ToolCall("weather", {"city": "Oslo"})])


def test_thinking_and_tool_calls_are_bit_identical(tmp_path: Path) -> None:
    """Signatures and ids included, whole or streamed."""

    def work(provider: ScriptedProvider) -> list[str]:
        asked: Any = {"model": MODEL, "max_tokens": 99, "messages": said("How warm is it?")}
        with anthropic_client(provider) as client:
            whole = client.messages.create(**asked)
            with client.messages.stream(**asked) as stream:
                streamed = stream.get_final_message()
        return [whole.model_dump_json(), streamed.model_dump_json()]

    whole, streamed = twice(tmp_path / "run", WHOLE, work)
    for message in (whole, streamed):
        assert '"signature":"' in message
        assert '"toolu_' in message


def test_raw_and_streaming_responses_of_an_sdk(tmp_path: Path) -> None:
    """Headers, elapsed time and lines are there as the SDK gives them."""

    def work(provider: ScriptedProvider) -> list[Any]:
        with openai_client(provider) as client:
            asked: Any = {"model": MODEL, "messages": said("one two three")}
            raw = client.chat.completions.with_raw_response.create(**asked)
            assert raw.elapsed.total_seconds() >= 0
            found = [raw.headers["x-request-id"], raw.content, raw.parse().choices[0].message.content]
            streaming = client.chat.completions.with_streaming_response.create(**asked, stream=True)
            with streaming as response:
                found.append(list(response.iter_lines()))
            with client.chat.completions.with_streaming_response.create(**asked) as response:
                found.append(response.parse().choices[0].message.content)
        return found

    assert twice(tmp_path / "run", echo(), work)[2] == "one two three"


def test_the_responses_api_streams(tmp_path: Path) -> None:
    """Every event is the same, down to its sequence number."""

    def work(provider: ScriptedProvider) -> list[str]:
        with openai_client(provider) as client:
            stream = client.responses.create(model=MODEL, input="How warm is it?", stream=True)
            return [event.model_dump_json() for event in stream]

    assert len(twice(tmp_path / "run", WHOLE, work)) > 5


def test_an_agent_that_reads_half_a_stream(tmp_path: Path) -> None:
    """It breaks off, asks something else, and does the same in replay."""

    def work(provider: ScriptedProvider) -> list[Any]:
        with openai_client(provider) as client:
            found = []
            with client.chat.completions.create(
                model=MODEL, messages=said("one two three four"), stream=True
            ) as stream:
                for chunk in stream:
                    found.append(chunk.choices[0].delta.content)
                    if len(found) == 3:
                        break
            after = client.chat.completions.create(model=MODEL, messages=said("and now?"))
            return [*found, after.choices[0].message.content]

    assert twice(tmp_path / "run", echo(), work) == ["", "one", " two", "and now?"]
    assert [event["data"].get("cancelled") for event in events_in(tmp_path / "run")].count(True) == 1


def test_gemini_and_ollama(tmp_path: Path) -> None:
    """Whole and streamed."""

    def work(provider: ScriptedProvider) -> list[Any]:
        client = genai.Client(api_key="k", http_options={"base_url": provider.base_url("gemini")})
        asked: Any = {"model": MODEL, "contents": "one two"}
        found = [client.models.generate_content(**asked).text]
        found += [chunk.text for chunk in client.models.generate_content_stream(**asked)]
        client.close()
        local = ollama.Client(host=provider.base_url("ollama"))
        found.append(local.chat(MODEL, said("one two")).message.content)
        found += [part.message.content for part in local.chat(MODEL, said("one two"), stream=True)]
        local._client.close()
        return found

    found = twice(tmp_path / "run", echo(), work)
    assert found[0] == "one two"
    assert {call["provider"] for call in calls_in(tmp_path / "run")} == {"gemini", "ollama"}


def test_gemini_asynchronously(tmp_path: Path) -> None:
    """The SDK takes aiohttp where it is installed."""

    async def ask(provider: ScriptedProvider) -> list[str | None]:
        client = genai.Client(api_key="k", http_options={"base_url": provider.base_url("gemini")})
        async with client.aio as models:
            whole = await models.models.generate_content(model=MODEL, contents="one two")
            stream: AsyncIterator[Any] = await models.models.generate_content_stream(
                model=MODEL, contents="one two"
            )
            found = [whole.text, *[chunk.text async for chunk in stream]]
        client.close()
        return found

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Inheritance class AiohttpClientSession", DeprecationWarning)
        found = twice(tmp_path / "run", echo(), lambda provider: asyncio.run(ask(provider)))
    assert found[0] == "one two"


def test_a_pydantic_ai_agent_with_a_tool(tmp_path: Path) -> None:
    """A loop of two model calls around a recorded tool."""

    class Warmth(pydantic.BaseModel):
        degrees: int

    @reenact.tool
    def weather(city: str) -> int:
        asked.append(city)
        return 21

    def work(provider: ScriptedProvider) -> str:
        client = openai.AsyncOpenAI(base_url=provider.base_url("openai"), api_key="k")
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))

        async def ask() -> str:
            async with client:
                return (await Agent(model, tools=[weather]).run("How warm is it in Oslo?")).output

        return asyncio.run(ask())

    asked: list[str] = []
    script = [Reply(tool_calls=[ToolCall("weather", {"city": "Oslo"})]), Reply("It is 21 °C.")]
    assert twice(tmp_path / "run", script, work) == "It is 21 °C."
    assert asked == ["Oslo"]


@pytest.fixture
def local_date(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], date]]:
    """Moves this process into a time zone; between these two it is never the same day."""

    def move(zone: str) -> date:
        monkeypatch.setenv("TZ", ZONES[zone])
        time.tzset()
        return date.today()  # noqa: DTZ011 — as agents read it

    yield move
    monkeypatch.undo()
    time.tzset()


ZONES = {"yesterday": "WEST+11", "today": "EAST-14"}


def test_a_run_of_yesterday_replays_today(tmp_path: Path, local_date: Callable[[str], date]) -> None:
    """The prompt holds the date, in replay the recorded one, and so does the agent's answer."""

    def agent(provider: ScriptedProvider) -> str | None:
        with openai_client(provider) as client:
            today, now = date.today(), datetime.now()  # noqa: DTZ005, DTZ011 — as agents read them
            asked = said(f"Today is {today:%A}, {now:%Y-%m-%d %H:%M:%S.%f}.")
            return client.chat.completions.create(model=MODEL, messages=asked).choices[0].message.content

    yesterday = local_date("yesterday")
    with ScriptedProvider(echo()) as provider:
        with reenact.capture(tmp_path / "run"):
            recorded = agent(provider)
        assert local_date("today") > yesterday
        with reenact.replay(tmp_path / "run") as run:
            assert agent(provider) == recorded
    assert f"{yesterday:%A, %Y-%m-%d}" in str(recorded)
    assert (run.divergences, run.blocked) == ([], [])


# What goes wrong


@pytest.mark.parametrize("ask", ["openai", "anthropic"])
def test_a_retry_after_a_rate_limit_does_not_wait_again(tmp_path: Path, ask: str) -> None:
    """The pause between the attempts was made when recording; in replay it is skipped."""
    pause_s = 1.0
    times_s = []

    def work(provider: ScriptedProvider) -> str:
        began = real_clock()
        answer = ASK[ask](provider, "Still there?")
        times_s.append(real_clock() - began)
        return answer

    script = [Fail(429, headers={"retry-after": str(pause_s)}), Reply("Yes.")]
    assert twice(tmp_path / "run", script, work, replays=3) == "Yes."
    assert times_s[0] >= pause_s > min(times_s[1:])
    [pause] = [
        event["data"] for event in events_in(tmp_path / "run") if event["data"].get("key") == "retry pause"
    ]
    assert pause["value"] == pause_s


def test_an_asynchronous_retry_does_not_wait_again(tmp_path: Path) -> None:
    async def ask(provider: ScriptedProvider) -> str | None:
        url = provider.base_url("openai")
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
            answer = await client.chat.completions.create(model=MODEL, messages=said("Still there?"))
            return answer.choices[0].message.content

    times_s = []

    def work(provider: ScriptedProvider) -> str | None:
        began = real_clock()
        answer = asyncio.run(ask(provider))
        times_s.append(real_clock() - began)
        return answer

    script = [Fail(429, headers={"retry-after": "1"}), Reply("Yes.")]
    assert twice(tmp_path / "run", script, work, replays=3) == "Yes."
    assert times_s[0] >= 1 > min(times_s[1:])


def _ask_openai(provider: ScriptedProvider, text: str, **options: Any) -> str:
    with openai_client(provider, **options) as client:
        answer = client.chat.completions.create(model=MODEL, messages=said(text))
        return answer.choices[0].message.content or ""


def _ask_anthropic(provider: ScriptedProvider, text: str, **options: Any) -> str:
    with anthropic_client(provider, **options) as client:
        return client.messages.create(model=MODEL, max_tokens=9, messages=said(text)).content[0].text


ASK: dict[str, Callable[..., str]] = {"openai": _ask_openai, "anthropic": _ask_anthropic}

FAILURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "400": (Fail(400), {}),
    "401": (Fail(401), {}),
    "429": (Fail(429), {"max_retries": 0}),
    "500": (Fail(500, {"error": {"message": "no", "type": "server_error"}}), {"max_retries": 0}),
    "500 of no shape": (Fail(500, "<h1>Bad gateway</h1>"), {"max_retries": 0}),
    "529": (Fail(529), {"max_retries": 0}),
    "disconnected": (Disconnect(), {"max_retries": 0}),
    "disconnected within the body": (Disconnect(1), {"max_retries": 0}),
    "timeout": (Timeout(), {"max_retries": 0, "timeout": 0.05}),
}


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("name", FAILURES)
def test_an_sdk_raises_the_same(tmp_path: Path, ask: str, name: str) -> None:
    """Type, message, status, body and cause."""
    turn, options = FAILURES[name]
    twice(tmp_path / "run", turn, lambda provider: failure(lambda: ASK[ask](provider, "Hm?", **options)))


@pytest.mark.parametrize("ask", ASK)
def test_an_sdk_raises_the_same_where_nobody_listens(tmp_path: Path, ask: str) -> None:
    with ScriptedProvider([]) as gone:
        pass
    kind, *_ = twice(tmp_path / "run", [], lambda _: failure(lambda: ASK[ask](gone, "Hm?", max_retries=0)))
    assert kind.__name__ == "APIConnectionError"


def test_a_stream_that_breaks_raises_after_the_same_chunks(tmp_path: Path) -> None:
    def work(provider: ScriptedProvider) -> list[Any]:
        found: list[Any] = []
        with openai_client(provider) as client:
            stream = client.chat.completions.create(model=MODEL, messages=said("Hm?"), stream=True)
            # The oldest SDK lets the client's own error through.
            with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)) as caught:
                found.extend(chunk.choices[0].delta.content for chunk in stream)
            error = caught.value
            is_wrapped = isinstance(error, openai.APIConnectionError)
            return [*found, str(error), repr(error.__cause__ if is_wrapped else error)]

    *chunks, _, cause = twice(tmp_path / "run", Disconnect(3, Reply("one two three")), work)
    assert chunks == ["", "one", " two"]
    assert cause.startswith("RemoteProtocolError('peer closed connection")


def test_an_sdk_on_the_older_httpx(tmp_path: Path) -> None:
    """The client may be given by the user."""

    def work(provider: ScriptedProvider) -> str:
        return _ask_openai(provider, "Hm?", http_client=httpx.Client(verify=False))

    assert twice(tmp_path / "run", Reply("Yes."), work) == "Yes."
