"""Lenient replay goes on where nothing recorded is alike: with an error, with nothing, or for real."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai

import reenact
from reenact.replayer.step import OnUnmatched
from reenact.testing import Reply, ScriptedProvider

calls: list[str] = []


@reenact.tool
def look_up(word: str) -> str:
    calls.append(word)
    return f"meaning of {word}"


@reenact.tool
def fetch_page(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.status)


@reenact.tool
async def count_up(to: int) -> Any:
    for number in range(to):
        yield number


def recorded(path: Path, work: Callable[[], Any] = lambda: None) -> Path:
    with reenact.capture(path):
        work()
    return path


def replayed(path: Path, how: OnUnmatched, work: Callable[[], Any]) -> tuple[Any, reenact.Run]:
    with reenact.replay(path, policy="lenient", on_unmatched=how, stall_s=0.2) as run:
        result = work()
    return result, run


def test_an_error_is_the_agents_to_catch_and_the_run_goes_on(tmp_path: Path) -> None:
    """The call raises, and what comes behind it is answered."""
    path = recorded(tmp_path / "d", lambda: count_words("tea"))

    def agent() -> str:
        with pytest.raises(reenact.Diverged, match="event_payload_mismatch"):
            look_up("milk")
        return count_words("tea")

    result, run = replayed(path, "error", agent)
    assert result == "1 word"
    assert [(found.code, found.answered) for found in run.divergences] == [("event_payload_mismatch", None)]


@reenact.tool
def count_words(text: str) -> str:
    return f"{len(text.split())} word"


def test_nothing_is_answered_by_a_tool(tmp_path: Path) -> None:
    """The tool does not run and gives ``None``; the divergence and the receipt say so."""
    calls.clear()
    path = recorded(tmp_path / "d")
    result, run = replayed(path, "empty", lambda: look_up("milk"))
    assert (result, calls) == (None, [])
    assert [found.answered for found in run.divergences] == ["empty"]
    assert "answered     with an empty answer" in run.divergences[0].explain()
    assert run.receipt is not None
    assert (run.receipt.matching.onUnmatched, run.receipt.verdict) == ("empty", "diverged")
    assert not run.receipt.liveCalls


def test_a_generator_yields_nothing(tmp_path: Path) -> None:
    """Its pieces are none."""

    async def agent() -> list[int]:
        return [number async for number in count_up(3)]

    path = recorded(tmp_path / "d")
    assert replayed(path, "empty", lambda: asyncio.run(agent()))[0] == []


def test_a_process_that_says_nothing(tmp_path: Path) -> None:
    """It ended well, and nothing was started."""
    words = [sys.executable, "-c", "print('hello')"]

    def agent() -> Any:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as begun:
            return done.stdout, begun.communicate()[0], begun.returncode

    path = recorded(tmp_path / "d")
    result, run = replayed(path, "empty", agent)
    assert result == ("", "", 0)
    assert run.blocked == []


def test_a_page_without_content(tmp_path: Path) -> None:
    """Any other request gets 204 and no body."""

    def agent() -> tuple[int, bytes]:
        with urllib.request.urlopen("http://127.0.0.1:9/page") as answer:
            return answer.status, answer.read()

    assert replayed(recorded(tmp_path / "d"), "empty", agent)[0] == (204, b"")


def test_a_memory_that_has_nothing(tmp_path: Path) -> None:
    """A value that is read from outside is ``None``, or really read."""
    path = recorded(tmp_path / "d")
    with reenact.replay(path, policy="lenient", on_unmatched="empty") as run:
        assert run.memory_read("facts", lambda: "tea") is None
    with reenact.replay(path, policy="lenient", on_unmatched="live") as run:
        assert run.memory_read("facts", lambda: look_up("tea")) == "meaning of tea"
    assert run.receipt is not None
    assert [call.target for call in run.receipt.liveCalls or ()] == ["facts", "look_up"]


SAID: Any = [{"role": "user", "content": "Hello"}]


def chat(base_url: str) -> list[str | None]:
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key="k", max_retries=0)
    whole = client.chat.completions.create(model="m", messages=SAID)
    stream = client.chat.completions.create(
        model="m", messages=SAID, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].usage is not None
    return [whole.choices[0].message.content, chunks[0].choices[0].delta.content]


def responses(base_url: str) -> list[str]:
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key="k", max_retries=0)
    whole = client.responses.create(model="m", input="Hello")
    with client.responses.stream(model="m", input="Hello") as stream:
        streamed = stream.get_final_response()
    return [whole.output_text, streamed.output_text]


def messages(base_url: str) -> list[str]:
    client = anthropic.Anthropic(base_url=base_url, api_key="k", max_retries=0)
    whole: Any = client.messages.create(model="m", max_tokens=9, messages=SAID)
    with client.messages.stream(model="m", max_tokens=9, messages=SAID) as stream:
        return [whole.content[0].text, stream.get_final_text()]


def gemini(base_url: str) -> list[str | None]:
    client = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=base_url))
    whole = client.models.generate_content(model="m", contents="Hello")
    streamed = list(client.models.generate_content_stream(model="m", contents="Hello"))
    return [whole.text, streamed[0].text]


def ollama_chat(base_url: str) -> list[str | None]:
    client = ollama.Client(host=base_url)
    whole = client.chat(model="m", messages=SAID)
    streamed = list(client.chat(model="m", messages=SAID, stream=True))
    generated = client.generate(model="m", prompt="Hello")
    return [whole.message.content, streamed[0].message.content, generated.response]


@pytest.mark.parametrize("ask", [chat, responses, messages, gemini, ollama_chat])
def test_a_model_that_says_nothing(ask: Callable[[str], list[str | None]], tmp_path: Path) -> None:
    """Each SDK reads a well-formed answer without words, whole and as a stream, and nobody is asked."""
    path = recorded(tmp_path / "d")
    result, run = replayed(path, "empty", lambda: ask("http://127.0.0.1:9"))
    assert not any(result)
    assert {found.answered for found in run.divergences} == {"empty"}
    assert run.blocked == []


def test_what_goes_live_is_made_and_counted(tmp_path: Path) -> None:
    """A model is really asked, a tool really runs, with what it does inside; all of it is in the receipt."""
    path = recorded(tmp_path / "d", lambda: look_up("tea"))
    calls.clear()
    with (
        ScriptedProvider(Reply("Live.")) as provider,
        openai.OpenAI(base_url=provider.base_url("openai"), api_key="k", max_retries=0) as client,
    ):

        def agent() -> tuple[str | None, str, str]:
            answer = client.chat.completions.create(model="m", messages=SAID)
            models = provider.base_url("openai") + "/models"
            return answer.choices[0].message.content, fetch_page(models), look_up("tea")

        result, run = replayed(path, "live", agent)
    assert result == ("Live.", "200", "meaning of tea")
    assert calls == []
    assert run.receipt is not None
    made = [call.kind for call in run.receipt.liveCalls or ()]
    assert made == ["llm", "tool", "network"]
    assert [found.answered for found in run.divergences] == ["live", "live"]
    assert (run.receipt.verdict, run.blocked) == ("diverged", [])


def test_only_a_lenient_replay_goes_that_far(tmp_path: Path) -> None:
    """A strict one is told how to; a wrong word is too."""
    path = recorded(tmp_path / "d")
    with pytest.raises(reenact.UsageError, match="a strict replay stops at the first difference"):
        reenact.replay(path, on_unmatched="empty")
    with pytest.raises(reenact.UsageError, match="choose error, empty or live"):
        reenact.replay(path, policy="lenient", on_unmatched="maybe")  # type: ignore[arg-type]
