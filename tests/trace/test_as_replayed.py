"""What an agent did now: real captures, really replayed, by agents that have changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.errors import Diverged
from reenact.store.reader import CaptureReader
from reenact.trace.from_run import trace_of_run
from reenact.trace.replayed import with_receipt
from reenact.trace.sources.capture import read_capture


@reenact.tool
def search(query: str) -> str:
    return query.upper()


@reenact.tool
def send(text: str) -> str:
    return "sent"


@reenact.tool
def delete(text: str) -> str:
    return "deleted"


def agent() -> str:
    return send(search("tea"))


def another_argument() -> str:
    return send(search("coffee"))


def another_tool() -> str:
    return delete(search("tea"))


def one_call_less() -> str:
    return search("tea")


def one_call_more() -> str:
    agent()
    return delete("tea")


def another_output() -> str:
    return agent() + "!"


TEA, SENT = ("tool_call", "search", {"query": "tea"}), ("tool_call", "send", {"text": "TEA"})
COFFEE = ("tool_call", "search", {"query": "coffee"})
STRICT = {
    "the same": (agent, [TEA, SENT], "sent"),
    "another argument": (another_argument, [COFFEE], ""),
    "another tool": (another_tool, [TEA, ("tool_call", "delete", {"text": "TEA"})], ""),
    "one call less": (one_call_less, [TEA], "TEA"),
    "one call more": (one_call_more, [TEA, SENT, ("tool_call", "delete", {"text": "tea"})], "sent"),
    "another output": (another_output, [TEA, SENT], "sent!"),
}
LENIENT = {
    "another argument": (another_argument, [COFFEE, SENT], "sent"),
    "another tool": (another_tool, [TEA, ("tool_call", "delete", {"text": "TEA"})], "sent"),
}


def replayed(path: Path, work: Callable[[], str], policy: Any) -> Any:
    """The trace of *work*, replayed from what the agent did."""
    with reenact.capture(path) as run:
        run.final_output = agent()
    again = reenact.replay(path, policy=policy)
    try:
        with again:
            again.final_output = work()
    except Diverged:
        pass
    assert again.receipt is not None
    return with_receipt(
        trace_of_run(read_capture(CaptureReader(path)), trace_id="t", test_run_id="r"), again.receipt
    )


@pytest.mark.parametrize(("work", "calls", "output"), STRICT.values(), ids=STRICT)
def test_a_strict_replay_ends_at_the_first_wrong_call(tmp_path, work, calls, output):
    """Which is the last thing it did."""
    trace = replayed(tmp_path / "run", work, "strict")
    found = [event for event in trace.events if event.type == "tool_call"]
    assert [(event.type, event.data["tool"], event.data["args"]) for event in found] == calls
    assert trace.metrics.tool_call_count == len(calls)
    assert trace.final_output.content == output
    assert [event.seq for event in trace.events] == [*range(1, len(trace.events) + 1)]


@pytest.mark.parametrize(("work", "calls", "output"), LENIENT.values(), ids=LENIENT)
def test_a_lenient_replay_goes_on_behind_it(tmp_path, work, calls, output):
    """Each wrong call stands where the one stood whose answer it got."""
    trace = replayed(tmp_path / "run", work, "lenient")
    found = [event for event in trace.events if event.type == "tool_call"]
    assert [(event.type, event.data["tool"], event.data["args"]) for event in found] == calls
    assert trace.final_output.content == output
