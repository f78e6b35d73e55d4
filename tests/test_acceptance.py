"""The four scenarios by which the first design of deterministic replay is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import reenact
from reenact.boundary import Call, crossing, outside
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider

tool_runs: list[str] = []


@reenact.tool
def look_up(order: str, *, detail: str = "short") -> dict[str, Any]:
    tool_runs.append(order)
    return {"order": order, "state": "lost", "detail": detail}


def ask_model(url: str, question: str) -> str:
    """One model call, crossing the boundary as a seam does."""
    request = {"model": "gpt-test", "messages": [{"role": "user", "content": question}]}
    facts = {"provider": "openai", "model": "gpt-test", "inputHash": "sha256:" + "0" * 64}
    with crossing(Call("llm", "openai", request, facts)) as step:
        if step.live:
            body = json.dumps(request).encode()
            asked = Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
            with outside(), urlopen(asked) as response:  # a seam's own request is no call of the agent's
                step.answer = json.load(response)
            step.facts = {
                "provider": "openai",
                "model": "gpt-test",
                "stopReason": step.answer["choices"][0]["finish_reason"],
                "usage": step.answer["usage"],
            }
    text: str = step.answer["choices"][0]["message"]["content"]
    return text


Agent = Callable[..., str]


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """A model provider that really listens, and has one answer to give."""
    tool_runs.clear()
    with ScriptedProvider([Reply("A-17")]) as found:
        yield found


@pytest.fixture
def agent(provider: ScriptedProvider) -> Agent:
    """A run with one model response and one tool call."""

    def run_it(run: reenact.Run, *, detail: str = "short") -> str:
        order = ask_model(provider.base_url("openai"), "My order has not shipped")
        found = look_up(order, detail=detail)
        run.final_output = f"Your order {found['order']} is {found['state']}."
        return str(run.final_output)

    return run_it


@pytest.fixture
def capture(tmp_path: Path, agent: Agent, provider: ScriptedProvider) -> Path:
    """A valid capture artifact; the provider has nothing more to say."""
    with reenact.capture(tmp_path / "run") as run:
        assert agent(run) == "Your order A-17 is lost."
    assert (provider.connections, tool_runs) == (1, ["A-17"])
    return tmp_path / "run"


def test_scenario_1_capture_baseline(capture: Path) -> None:
    """``manifest.json`` and ``events.jsonl`` exist, with the model's and the tool's events in order."""
    manifest = json.loads((capture / "manifest.json").read_bytes())
    lines = [json.loads(line) for line in (capture / "events.jsonl").read_bytes().splitlines()]
    assert [event["type"] for event in lines] == [
        "run_start",
        "llm_request",
        "llm_response",
        "tool_call",
        "tool_result",
        "run_end",
    ]
    assert [event["seq"] for event in lines] == [1, 2, 3, 4, 5, 6]
    assert manifest["version"] == 1
    assert (manifest["status"], manifest["eventCount"], manifest["mode"]) == ("ok", 6, "capture")
    assert manifest["model"] == {"provider": "openai", "model": "gpt-test"}
    assert {"provider", "model", "inputHash"} <= lines[1]["data"].keys()
    assert {"provider", "model", "stopReason", "usage", "response"} <= lines[2]["data"].keys()
    assert {"tool", "args", "callId"} <= lines[3]["data"].keys()
    assert lines[3]["data"]["callId"] == lines[4]["data"]["callId"]
    assert lines[4]["data"]["ok"] is True
    assert {(event["captureId"], event["runId"], event["version"]) for event in lines} == {
        (manifest["captureId"], manifest["runId"], 1)
    }


def test_scenario_2_replay_offline(capture: Path, agent: Agent, provider: ScriptedProvider) -> None:
    """The final output matches and no outbound provider, network or tool execution occurs."""
    provider.stop()
    with reenact.replay(capture) as run:
        assert agent(run) == "Your order A-17 is lost."
    assert (provider.connections, tool_runs) == (1, ["A-17"])
    assert (run.divergences, run.blocked) == ([], [])
    assert run.receipt is not None
    assert run.receipt.verdict == "reproduced"
    recorded = list(CaptureReader(capture).events())[-1]
    assert run.receipt.finalOutputHash == recorded.data.finalOutputHash  # type: ignore[union-attr]


def test_scenario_3_strict_divergence(capture: Path, agent: Agent) -> None:
    """Other tool arguments fail the replay with ``event_payload_mismatch`` and the JSON path."""
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(capture, policy="strict") as run:
        agent(run, detail="long")
    found = caught.value.divergence
    assert (found.code, found.event_seq, found.json_path) == (
        "event_payload_mismatch",
        4,
        "$.data.args.detail",
    )
    assert found.differences[0].describe() == '$.detail: expected "short", observed "long"'
    assert found.expected["data"]["args"] == {"order": "A-17", "detail": "short"}
    assert found.observed.data["args"] == {"order": "A-17", "detail": "long"}
    assert tool_runs == ["A-17"]


def test_scenario_4_lenient_divergence(capture: Path, agent: Agent) -> None:
    """The same mismatch is noted; the replay completes and has it in its result."""
    with reenact.replay(capture, policy="lenient") as run:
        assert agent(run, detail="long") == "Your order A-17 is lost."
    assert [found.code for found in run.divergences] == ["event_payload_mismatch"]
    assert run.receipt is not None
    assert run.receipt.verdict == "diverged"
    assert run.receipt.divergences[0]["jsonPath"] == "$.data.args.detail"
    assert tool_runs == ["A-17"]
