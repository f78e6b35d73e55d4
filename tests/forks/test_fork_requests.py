"""A fork may ask its models otherwise: another model, another system prompt, another temperature."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.providers import read_request
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, Request, ScriptedProvider
from tests.seams.http.clients import CLIENTS, Client


def _say(request: Request) -> Reply:
    """The model tells what it was asked."""
    asked = read_request(request.path, request.body)
    assert asked is not None
    heat = asked.params.get("temperature")
    return Reply(text=f"{asked.model}, {asked.system}, {heat}: {request.user_text}")


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(_say) as provider:
        yield provider


@reenact.tool
def shout(text: str) -> str:
    return text.upper()


WIRES: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages", {"model": "old", "max_tokens": 9, "system": "S"}),
    "openai_chat": ("/v1/chat/completions", {"model": "old"}),
    "openai_responses": ("/v1/responses", {"model": "old"}),
    "gemini": ("/v1beta/models/old:generateContent", {}),
    "ollama": ("/api/chat", {"model": "old", "stream": False}),
}


def asking(client: Client, url: str, wire: str) -> list[str]:
    """Events 2 and 3 ask, 4 and 5 are a tool, 6 and 7 ask again."""
    path, body = WIRES[wire]

    def ask(text: str) -> str:
        if wire == "gemini":
            said: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        elif wire == "openai_responses":
            said = {"input": text}
        else:
            said = {"messages": [{"role": "user", "content": text}]}
        return client.post(url + path, json=body | said).decode()

    first = ask("one")
    return [first, shout("two"), ask("two")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "wire"),
    [(name, "anthropic") for name in CLIENTS]
    + [(name, "gemini") for name in ("httpx2", "requests", "aiohttp", "urllib")]
    + [("httpx2-async", wire) for wire in ("openai_chat", "openai_responses", "ollama")],
)
def test_a_fork_asks_another_model(
    provider: ScriptedProvider, tmp_path: Path, client: str, wire: str
) -> None:
    """The requests before the point are answered from the recording, those behind it ask anew."""
    with reenact.capture(tmp_path / "run"):
        asking(CLIENTS[client], provider.url, wire)
    assert len(provider.requests) == 2
    change = {"model": "new/model", "system": "Be brief.", "temperature": 0.25}
    with reenact.fork(tmp_path / "run", at=6, change=change, on_miss="live", output=tmp_path / "fork") as run:
        answers = asking(CLIENTS[client], provider.url, wire)
    assert len(provider.requests) == 3
    last = provider.requests[-1]
    assert int(last.headers["content-length"]) == len(last.raw)
    assert "new/model, Be brief., 0.25: two" in answers[-1]
    assert run.shares is not None
    assert (run.shares.prefix, run.shares.recording, run.shares.live) == (2, 0, 1)
    assert check_capture(tmp_path / "fork").findings == []
    event = CaptureReader(tmp_path / "fork").event(6)
    assert event.data.model == "new/model"  # type: ignore[union-attr]
    with reenact.replay(tmp_path / "fork"):
        assert asking(CLIENTS[client], provider.url, wire) == answers
    assert len(provider.requests) == 3


def conversation(url: str, *, stream: bool = False) -> list[str]:
    """Four questions, each with what was said before; events 2, 4, 6 and 8."""
    messages: list[Any] = []
    with anthropic.Anthropic(api_key="any", base_url=url) as client:
        for number in range(4):
            messages.append({"role": "user", "content": f"question {number} " * 30})
            request = {"model": "old", "max_tokens": 99, "system": "S", "messages": messages}
            if stream:
                with client.messages.stream(**request) as answer:  # type: ignore[arg-type]
                    text = "".join(answer.text_stream)
            else:
                text = client.messages.create(**request).content[0].text  # type: ignore[call-overload]
            messages.append({"role": "assistant", "content": text})
    return [message["content"][:10] for message in messages if message["role"] == "assistant"]


@pytest.fixture
def talk(provider: ScriptedProvider, tmp_path: Path) -> Path:
    with reenact.capture(tmp_path / "run"):
        conversation(provider.base_url("anthropic"))
    return tmp_path / "run"


@pytest.mark.parametrize("stream", [False, True])
def test_this_and_all_later_requests_change(provider: ScriptedProvider, tmp_path: Path, stream: bool) -> None:
    url = provider.base_url("anthropic")
    with reenact.capture(tmp_path / "talk"):
        conversation(url, stream=stream)
    with reenact.fork(
        tmp_path / "talk", at=4, change={"model": "new"}, on_miss="live", output=tmp_path / "fork"
    ):
        said = conversation(url, stream=stream)
    assert [text[:3] for text in said] == ["old", "new", "new", "new"]
    assert len(provider.requests) == 4 + 3
    own = (tmp_path / "fork" / "events.jsonl").read_text()
    assert own.count("question 1 " * 29) <= 3  # a history is written once, in what was sent


@pytest.mark.parametrize("at", [2, 4, 8])
def test_the_old_answers_are_the_nearest(
    provider: ScriptedProvider, talk: Path, tmp_path: Path, at: int
) -> None:
    """At the point, be it the last call, and behind it: each rewritten request gets its own old answer."""
    url, asked = provider.base_url("anthropic"), len(provider.requests)
    with reenact.fork(
        talk, at=at, change={"model": "new"}, on_miss="nearest", output=tmp_path / "fork"
    ) as run:
        said = conversation(url)
    assert [text[:3] for text in said] == ["old"] * 4
    assert len(provider.requests) == asked
    assert run.shares is not None
    assert (run.shares.prefix, run.shares.nearest) == (at // 2 - 1, 5 - at // 2)
    with reenact.replay(tmp_path / "fork"):
        assert conversation(url) == said


def test_a_fork_of_such_a_fork_goes_on_with_its_model(
    provider: ScriptedProvider, talk: Path, tmp_path: Path
) -> None:
    """What the first fork recorded answers; what it did not is asked of the same model."""
    url = provider.base_url("anthropic")
    with reenact.fork(talk, at=4, change={"model": "new"}, on_miss="live", output=tmp_path / "one"):
        conversation(url)
    asked = len(provider.requests)
    with reenact.fork(tmp_path / "one", at=6, output=tmp_path / "same") as run:
        conversation(url)
    assert len(provider.requests) == asked
    assert run.shares is not None
    assert run.shares.live == 0
    with reenact.fork(
        tmp_path / "one", at=6, change={"temperature": 1}, on_miss="live", output=tmp_path / "two"
    ):
        said = conversation(url)
    assert [text[:3] for text in said] == ["old", "new", "new", "new"]
    assert provider.requests[-1].body["temperature"] == 1
    assert check_capture(tmp_path / "two").findings == []
    with reenact.replay(tmp_path / "two"):
        assert conversation(url) == said


def test_before_the_point_of_such_a_fork_its_parent_is_to_be_forked(
    provider: ScriptedProvider, talk: Path, tmp_path: Path
) -> None:
    with reenact.fork(talk, at=4, change={"model": "new"}, on_miss="live", output=tmp_path / "one"):
        conversation(provider.base_url("anthropic"))
    with pytest.raises(reenact.UsageError, match=r"fork \.\./run instead"):
        reenact.fork(tmp_path / "one", at=2, output=tmp_path / "two")


def test_asking_the_same_asks_nobody(provider: ScriptedProvider, talk: Path, tmp_path: Path) -> None:
    """A change that says what the agent says already is answered from the recording."""
    asked = len(provider.requests)
    with reenact.fork(
        talk, at=4, change={"model": "old", "system": "S"}, on_miss="live", output=tmp_path / "fork"
    ) as run:
        conversation(provider.base_url("anthropic"))
    assert len(provider.requests) == asked
    assert run.shares is not None
    assert run.shares.live == 0


def test_a_fork_from_the_start_may_differ_anywhere(
    provider: ScriptedProvider, talk: Path, tmp_path: Path
) -> None:
    """Every model request is asked anew, all else is answered where it can be."""
    with reenact.fork(talk, at=None, change={"system": "T"}, on_miss="live", output=tmp_path / "fork") as run:
        said = conversation(provider.base_url("anthropic"))
    assert len(said) == 4
    assert run.shares is not None
    assert run.shares.live == 4
    with reenact.replay(tmp_path / "fork"):
        assert conversation(provider.base_url("anthropic")) == said


def test_a_change_that_cannot_be_is_refused_before_anything_runs(talk: Path, tmp_path: Path) -> None:
    refused: list[tuple[dict[str, Any], Any, str]] = [
        ({"model": "new"}, "fail", "choose --on-miss live"),
        ({"temperature": 9.0}, "live", "between 0 and 2"),
        ({"temperature": "warm"}, "live", "temperature"),
        ({"system": 3}, "live", "system"),
    ]
    for change, on_miss, message in refused:
        with pytest.raises(reenact.UsageError, match=message):
            reenact.fork(talk, at=4, change=change, on_miss=on_miss, output=tmp_path / "fork")
    assert not (tmp_path / "fork").exists()


def test_a_secret_in_a_prompt_is_not_written(provider: ScriptedProvider, talk: Path, tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4" * 8
    with reenact.fork(
        talk, at=8, change={"system": f"Use {secret}"}, on_miss="live", output=tmp_path / "fork"
    ):
        conversation(provider.base_url("anthropic"))
    assert secret in json.dumps(provider.requests[-1].body)
    files = [path for path in (tmp_path / "fork").rglob("*") if path.is_file()]
    assert all(secret not in path.read_text() for path in files)
