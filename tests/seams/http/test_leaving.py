"""A model call over a connection that stands leaves at once, and is recorded while the model reads it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
import openai
import pytest

import reenact
from reenact.recorder.recovery import recover
from reenact.testing import Raw, Reply, ScriptedProvider, Turn
from reenact.testing.request import Request
from tests.recorder.recording import recorded_by
from tests.seams.http.test_clients import calls_in, events_in

PATIENCE_MS: Final = 10_000
LARGE: Final = "x" * 100_000
QUESTION: Final = {"model": "large-1", "messages": [{"role": "user", "content": "Why?"}]}
Ask = Callable[[str, list[str]], None]


def calls_on_disk(path: Path) -> int:
    return (path / "events.jsonl").read_bytes().count(b'"type":"llm_request"')


def is_recorded(path: Path, call: int) -> bool:
    """Whether the call of that number is on disk, now or in a moment."""
    # No clock: it would be recorded, and what is deferred with it.
    pause = threading.Event()
    return any(calls_on_disk(path) >= call or pause.wait(0.001) for _ in range(PATIENCE_MS))


def ask(url: str, texts: list[str]) -> None:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        for text in texts:
            client.chat.completions.create(model="large-1", messages=[{"role": "user", "content": text}])


def ask_on_a_loop(url: str, texts: list[str]) -> None:
    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            for text in texts:
                await client.chat.completions.create(
                    model="large-1", messages=[{"role": "user", "content": text}]
                )

    asyncio.run(work())


def ask_with(library: Any) -> Ask:
    def ask_plainly(url: str, texts: list[str]) -> None:
        with library.Client() as client:
            for text in texts:
                asked = {"model": "large-1", "messages": [{"role": "user", "content": text}]}
                client.post(f"{url}/chat/completions", json=asked).raise_for_status()

    return ask_plainly


ASKING: Final = {
    "openai": ask,
    "openai on a loop": ask_on_a_loop,
    "httpx": ask_with(httpx),
    "httpx2": ask_with(httpx2),
}


@pytest.fixture(params=ASKING)
def asking(request: pytest.FixtureRequest) -> Ask:
    return ASKING[request.param]


class Hesitant:
    """A sink that takes a model call only when a provider has had it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.arrived = threading.Event()
        self.is_waiting = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, event: bytes) -> None:
        if self.is_waiting and b'"type":"llm_request"' in event:
            assert self.arrived.wait(PATIENCE_MS / 1000)
        self._inner.append(event)


def test_it_leaves_before_it_is_recorded(tmp_path: Path, asking: Ask) -> None:
    """A recording that takes its time does not keep the model waiting."""

    def answer(request: Request) -> Turn:
        if request.number == 1:
            sink.arrived.set()
        sink.is_waiting = True
        return Reply("Yes.")

    def hesitant(inner: Any) -> Hesitant:
        nonlocal sink
        sink = Hesitant(inner)
        return sink

    sink: Hesitant
    with ScriptedProvider(answer) as provider, recorded_by(tmp_path / "run", wrap=hesitant) as context:
        asking(provider.base_url("openai"), ["one", "two"])
    assert context.warnings == []
    assert len(calls_in(tmp_path / "run")) == 2


def test_it_is_recorded_before_the_model_answers(tmp_path: Path, asking: Ask) -> None:
    """The model waits for the recording here: where that waited for the model, nobody would ever get on."""
    path = tmp_path / "run"
    was_recorded: list[bool] = []

    def answer(request: Request) -> Turn:
        was_recorded.append(is_recorded(path, request.number + 1))
        return Reply("Yes.")

    texts = ["one", "two", "three"]
    with ScriptedProvider(answer) as provider:
        with reenact.capture(path) as run:
            asking(provider.base_url("openai"), texts)
        assert run.warnings == []
        assert was_recorded == [True] * 3
        with reenact.replay(path) as again:
            asking(provider.base_url("openai"), texts)
        assert (again.divergences, len(provider.requests)) == ([], 3)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        pytest.param(["first"], {}, id="no connection stands"),
        pytest.param(["first", LARGE], {}, id="sending takes its time"),
        pytest.param(["first", "second"], {"durability": "disk"}, id="the disk must have it"),
    ],
)
def test_it_is_recorded_before_it_leaves(
    tmp_path: Path, asking: Ask, texts: list[str], options: dict[str, Any]
) -> None:
    """Where leaving may take long, or was asked to be safe, nothing leaves that is not on disk."""
    path = tmp_path / "run"
    on_disk: list[int] = []

    def answer(request: Request) -> Turn:
        on_disk.append(calls_on_disk(path))
        return Reply("Yes.")

    with ScriptedProvider(answer) as provider, reenact.capture(path, **options):
        asking(provider.base_url("openai"), texts)
    assert on_disk[-1] == len(texts)


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_connection_to_somebody_else_is_not_at_hand(tmp_path: Path, library: Any) -> None:
    path = tmp_path / "run"
    on_disk: list[int] = []

    def answer(request: Request) -> Turn:
        on_disk.append(calls_on_disk(path))
        return Reply("Yes.")

    with (
        ScriptedProvider(answer) as first,
        ScriptedProvider(answer) as second,
        library.Client() as client,
        reenact.capture(path),
    ):
        for provider in (first, second):
            client.post(f"{provider.base_url('openai')}/chat/completions", json=QUESTION)
    assert on_disk == [1, 2]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_the_request_is_as_it_was(tmp_path: Path, library: Any) -> None:
    """What the agent finds in it afterwards is the library's own."""
    with (
        ScriptedProvider(Reply("Yes.")) as provider,
        library.Client() as client,
        reenact.capture(tmp_path / "run"),
    ):
        url = f"{provider.base_url('openai')}/chat/completions"
        requests = [client.post(url, json=QUESTION).request for _ in range(2)]
    assert [type(request.stream) for request in requests] == [library.ByteStream] * 2


@pytest.mark.parametrize("asking", [ask, ask_on_a_loop])
def test_a_redirected_call_is_sent_whole_again(tmp_path: Path, asking: Ask) -> None:
    """The client takes the body it sent for the next place, too."""
    script = [
        Reply("Yes."),
        Raw(status=307, headers={"location": "/v1/chat/completions"}),
        Reply("Here."),
    ]
    with ScriptedProvider(script) as provider, reenact.capture(tmp_path / "run"):
        asking(provider.base_url("openai"), ["first", "second"])
    _, moved, again = provider.requests
    assert moved.raw == again.raw != b""
    assert len(calls_in(tmp_path / "run")) == 3


def test_a_connection_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """It looked as if one stood; the call is recorded once, with its answer."""
    path = tmp_path / "run"

    def work(provider: ScriptedProvider) -> list[str]:
        with openai.OpenAI(base_url=provider.base_url("openai"), api_key="k", max_retries=0) as client:
            said = []
            for text in ("first", "second"):
                answer = client.chat.completions.create(
                    model="large-1", messages=[{"role": "user", "content": text}]
                )
                said.append(str(answer.choices[0].message.content))
                if run.mode == "capture":
                    provider.stop()
                    provider.start()
            return said

    with ScriptedProvider([Reply("one"), Reply("two")]) as provider:
        with reenact.capture(path) as run:
            assert work(provider) == ["one", "two"]
        with reenact.replay(path) as run:
            assert work(provider) == ["one", "two"]
    assert [event["type"] for event in events_in(path)][1:-1] == ["llm_request", "llm_response"] * 2


def test_a_provider_that_goes_away_fails_the_call_the_same(tmp_path: Path) -> None:
    """The connection stood when the call was made, and nobody listens any more."""
    path = tmp_path / "run"

    def work(provider: ScriptedProvider) -> tuple[type[BaseException | None], ...]:
        failures: list[type[BaseException | None]] = []
        with openai.OpenAI(base_url=provider.base_url("openai"), api_key="k", max_retries=0) as client:
            for text in ("first", "second"):
                try:
                    client.chat.completions.create(
                        model="large-1", messages=[{"role": "user", "content": text}]
                    )
                except openai.APIConnectionError as error:
                    failures += [type(error), type(error.__cause__)]
                provider.stop()
        return tuple(failures)

    with ScriptedProvider([Reply("one")]) as provider:
        with reenact.capture(path):
            failed = work(provider)
        assert failed[0] is openai.APIConnectionError
        with reenact.replay(path) as again:
            assert work(provider) == failed
        assert again.divergences == []
    assert len(calls_in(path)) == 2


AGENT: Final = """
import sys
import openai, reenact
with reenact.capture(sys.argv[1]), openai.OpenAI(base_url=sys.argv[2], api_key="k") as client:
    for text in ("first", "second"):
        client.chat.completions.create(model="large-1", messages=[{"role": "user", "content": text}])
"""


def test_a_kill_while_the_model_thinks_leaves_the_call(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def answer(request: Request) -> Turn:
        if request.number == 1:
            assert is_recorded(path, 2)
            os.kill(agent.pid, signal.SIGKILL)
        return Reply("Yes.")

    with ScriptedProvider(answer) as provider:
        command = [sys.executable, "-c", AGENT, str(path), provider.base_url("openai")]
        agent = subprocess.Popen(command)
        assert agent.wait(60) == -signal.SIGKILL
    recover(path)
    types = [event["type"] for event in events_in(path)]
    assert types[:4] == ["run_start", "llm_request", "llm_response", "llm_request"]
    assert "llm_response" not in types[4:]
