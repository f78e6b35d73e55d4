"""Captures made from what agents tell of themselves: the real streams of two frameworks, and one by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.events import (
    AgentEvent,
    EventStreamState,
    StreamCapture,
    capture_events,
    from_langgraph,
    from_openai_agents,
)
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall


def events(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    assert all(event["data"].get("derived") for event in found[1:-1])
    assert check_capture(path).findings == []
    return found


def calls(path: Path) -> list[tuple[str, Any]]:
    """What was called and answered, in its order."""
    found: list[tuple[str, Any]] = []
    for event in events(path):
        data = event["data"]
        match event["type"]:
            case "tool_call":
                found.append((data["tool"], data["args"]))
            case "tool_result":
                found.append(("result", data["result"] if data["ok"] else data["error"]))
            case "llm_response":
                found.append(("answer", data["response"].get("text", "")))
    return found


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    """A model that has two things looked up, and then answers."""
    script = [
        Reply(tool_calls=[ToolCall("find", {"number": "A-1"}), ToolCall("find", {"number": "A-2"})]),
        Reply("Both are on their way."),
    ]
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    with ScriptedProvider(script) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url("openai"))
        yield provider


FOUND = [
    ("answer", ""),
    ("find", {"number": "A-1"}),
    ("find", {"number": "A-2"}),
    ("result", "A-1 left"),
    ("result", "A-2 left"),
    ("answer", "Both are on their way."),
]


def in_any_order(found: list[tuple[str, Any]]) -> list[str]:
    """Tools that run side by side are reported in the order in which they do."""
    return sorted(map(repr, found))


async def follow_openai_agent(path: Path, agent: Any) -> None:
    from openai import AsyncOpenAI

    import agents

    async with AsyncOpenAI() as client:  # the SDK's own one would outlive its event loop
        agents.set_default_openai_client(client, use_for_tracing=False)
        result = agents.Runner.run_streamed(agent, "Where are they?")
        with StreamCapture(path, from_openai_agents) as capture:
            async for event in result.stream_events():
                capture.add(event)


def test_the_stream_of_the_openai_agents_sdk(provider: ScriptedProvider, tmp_path: Path) -> None:
    """Answers with model and usage, tool calls with arguments and results, and who it was."""
    agents = pytest.importorskip("agents")

    @agents.function_tool
    def find(number: str) -> str:
        """Where an order is."""
        return f"{number} left"

    support = agents.Agent(name="support", instructions="Help.", tools=[find], model="gpt-5-mini")
    asyncio.run(follow_openai_agent(tmp_path / "run", support))
    assert in_any_order(calls(tmp_path / "run")) == in_any_order(FOUND)
    found = events(tmp_path / "run")
    answers = [event["data"] for event in found if event["type"] == "llm_response"]
    assert all(answer["usage"]["total_tokens"] for answer in answers)
    assert answers[0]["model"].startswith("gpt-5-mini")
    details = [event["data"]["details"] for event in found if event["type"] == "state_mutation"]
    assert {"phase": "agent", "name": "support"} in details
    assert CaptureReader(tmp_path / "run").manifest.status == "ok"
    assert found[-1]["data"]["finalOutput"] == "Both are on their way."


def test_a_handoff_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = pytest.importorskip("agents")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")

    other = agents.Agent(name="shipping", model="gpt-5-mini")
    first = agents.Agent(name="support", handoffs=[other], model="gpt-5-mini")
    script = [Reply(tool_calls=[ToolCall("transfer_to_shipping", {})]), Reply("Here.")]
    with ScriptedProvider(script) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url("openai"))
        asyncio.run(follow_openai_agent(tmp_path / "run", first))
    kinds = [event["data"]["type"] for event in events(tmp_path / "run") if event["type"] == "state_mutation"]
    assert {"handoff_requested", "handoff_occurred", "lifecycle"} <= set(kinds)


def make_graph() -> Any:
    pytest.importorskip("langgraph")
    from langchain_core.callbacks import dispatch_custom_event
    from langchain_openai import ChatOpenAI
    from langgraph.config import get_stream_writer
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    def find(number: str) -> str:
        """Where an order is."""
        if number == "lost":
            raise ValueError("nobody knows")
        return f"{number} left"

    model = ChatOpenAI(model="gpt-5-mini").bind_tools([find])

    def ask(state: MessagesState) -> dict[str, Any]:
        get_stream_writer()({"asking": len(state["messages"])})
        dispatch_custom_event("progress", {"messages": len(state["messages"])})
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode([find], handle_tool_errors=True))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


ASKED = {"messages": [("user", "Where are they?")]}
MODES: dict[str, Any] = {
    "updates": "updates",
    "values": "values",
    "several": ["updates", "values", "custom", "messages"],
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_the_stream_of_langgraph(mode: Any, provider: ScriptedProvider, tmp_path: Path) -> None:
    """Whichever modes are asked for, each message is taken once."""
    graph = make_graph()

    async def agent() -> None:
        with StreamCapture(tmp_path / "run", from_langgraph) as capture:
            async for item in graph.astream(ASKED, stream_mode=mode):
                capture.add(item)

    asyncio.run(agent())
    assert calls(tmp_path / "run") == FOUND
    found = events(tmp_path / "run")
    assert found[-1]["data"]["finalOutput"] == "Both are on their way."
    if isinstance(mode, list):
        kinds = [event["data"]["type"] for event in found if event["type"] == "state_mutation"]
        assert kinds.count("custom") == 2


def test_the_events_of_langgraph(provider: ScriptedProvider, tmp_path: Path) -> None:
    """What was asked is there too, nodes, and events of the user's own."""
    graph = make_graph()

    async def agent() -> None:
        with StreamCapture(tmp_path / "run", from_langgraph) as capture:
            async for event in graph.astream_events(ASKED, version="v2"):
                capture.add(event)

    asyncio.run(agent())
    assert in_any_order(calls(tmp_path / "run")) == in_any_order(FOUND)
    found = events(tmp_path / "run")
    asked = [event["data"]["request"]["messages"] for event in found if event["type"] == "llm_request"]
    assert "Where are they?" in json.dumps(asked[0])
    details = [event["data"] for event in found if event["type"] == "state_mutation"]
    nodes = [data["details"].get("name") for data in details if data["details"].get("phase") == "node"]
    assert nodes == ["model", "tools", "tools", "model"] or nodes == ["model", "tools", "model"]
    assert [data["type"] for data in details].count("progress") == 2
    assert found[-1]["data"]["finalOutput"] == "Both are on their way."


@pytest.mark.parametrize("way", ["astream", "astream_events"])
def test_a_tool_that_fails_in_a_graph(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a result that is not ok."""

    async def agent() -> None:
        graph = make_graph()
        with StreamCapture(tmp_path / "run", from_langgraph) as capture:
            stream = graph.astream(ASKED) if way == "astream" else graph.astream_events(ASKED, version="v2")
            async for item in stream:
                capture.add(item)

    script = [Reply(tool_calls=[ToolCall("find", {"number": "lost"})]), Reply("I do not know.")]
    with ScriptedProvider(script) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "unused")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url("openai"))
        asyncio.run(agent())
    [result] = [event["data"] for event in events(tmp_path / "run") if event["type"] == "tool_result"]
    assert result["ok"] is False
    assert "nobody knows" in json.dumps(result["error"])


BY_HAND = [
    AgentEvent("lifecycle", {"phase": "start", "input": "Where?"}),
    AgentEvent("assistant", {"text": "I look.", "model": "m", "provider": "p"}, "m1"),
    AgentEvent("tool", {"phase": "call", "tool": "find", "args": {"key": "sk-ant-api03-" + "a" * 95}}, "t1"),
    AgentEvent("tool", {"phase": "result", "result": "x" * 50_000}, "t1"),
    AgentEvent("assistant", {"text": "I look.", "model": "m", "provider": "p"}, "m1"),
    AgentEvent("tool", {"phase": "error", "tool": "late", "error": "no"}, "t2"),
    AgentEvent("weather", {"sun": True}),
]


def test_a_stream_of_ones_own(tmp_path: Path) -> None:
    """Redacted, with large payloads in blobs; it can be shown and tested, and answers nothing in replay."""
    with StreamCapture(tmp_path / "run") as capture:
        for event in BY_HAND:
            capture.add(event)
    found = events(tmp_path / "run")
    assert [event["type"] for event in found] == [
        *("run_start", "state_mutation", "llm_request", "llm_response", "tool_call", "tool_result"),
        *("tool_call", "tool_result", "state_mutation", "run_end"),
    ]
    assert "sk-ant" not in (tmp_path / "run" / "events.jsonl").read_text()
    assert found[5]["data"]["result"]["$blob"]
    with reenact.replay(tmp_path / "run"):
        pass


def test_an_error_ends_the_run(tmp_path: Path) -> None:
    """Whether the stream tells it or the agent raises it."""
    with StreamCapture(tmp_path / "told") as capture:
        capture.add(AgentEvent("error", {"type": "RateLimit", "message": "slow down"}))
    assert (capture.manifest.status, capture.manifest.error) == ("error", "RateLimit: slow down")
    with pytest.raises(ZeroDivisionError), StreamCapture(tmp_path / "raised") as capture:
        1 / 0  # noqa: B018
    assert capture.manifest.error == "ZeroDivisionError: division by zero"


def test_nothing_else_of_the_process_is_recorded(tmp_path: Path) -> None:
    """Calls in the block belong to the run that is open around it, if there is one."""

    @reenact.tool
    def seen() -> int:
        return 1

    with reenact.capture(tmp_path / "outer"), StreamCapture(tmp_path / "inner") as capture:
        seen()
        capture.add(AgentEvent("note", {}))
    assert [event["type"] for event in events(tmp_path / "inner")][1:-1] == ["state_mutation"]
    assert "seen" in (tmp_path / "outer" / "events.jsonl").read_text()


def test_what_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    """The agent goes on."""
    with StreamCapture(tmp_path / "run", from_openai_agents) as capture:
        capture.add("no event of that kind")
        capture.add(AgentEvent("tool", {"phase": "call"}))
    assert len(capture.warnings) == 2
    assert "was not recorded" in capture.warnings[0]


def test_the_mapping_is_one_function() -> None:
    """Channels to types, with what came before."""
    told = EventStreamState()
    kinds = [kind for event in BY_HAND for kind, _ in capture_events(event, told)]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 2
    assert told.output == "I look."
