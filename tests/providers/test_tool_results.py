"""Deriving tool results from model traffic."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.providers import (
    ToolCallPart,
    ToolResultPart,
    derive_tool_results,
    pair_tool_results,
    read_request,
)


def gemini_turn(*names: str, answer: str) -> list[dict[str, Any]]:
    calls = [{"functionCall": {"name": name, "args": {}}} for name in names]
    results = [{"functionResponse": {"name": name, "response": {"output": answer}}} for name in names]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]


def test_without_ids_only_the_last_turn() -> None:
    """Old results without an id would be taken for answers to new calls of that name."""
    contents = [*gemini_turn("f", answer="old"), *gemini_turn("f", "g", "f", answer="new")]
    request = read_request("/models/m:generateContent", {"contents": contents})
    assert request is not None
    assert [(result.name, result.content["output"]) for result in derive_tool_results(request)] == [
        ("f", "new"),
        ("g", "new"),
        ("f", "new"),
    ]


def test_with_ids_all_turns() -> None:
    """Agents interleave parallel calls and results as they like; ids tell which is which."""
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
    ]
    request = read_request("/responses", {"model": "m", "input": items})
    assert request is not None
    assert [(result.call_id, result.content) for result in derive_tool_results(request)] == [
        ("a", "1"),
        ("b", "2"),
    ]


def call(name: str, call_id: str | None = None) -> ToolCallPart:
    return ToolCallPart(name=name, arguments={}, id=call_id)


def result(content: int, name: str | None = None, call_id: str | None = None) -> ToolResultPart:
    return ToolResultPart(content=content, name=name, call_id=call_id)


def pairs(calls: list[ToolCallPart], results: list[ToolResultPart]) -> list[int]:
    return [found.content for _, found in pair_tool_results(calls, results)]


def test_pairs_by_id() -> None:
    """The id decides, whatever the order; a call without its result has no pair."""
    calls = [call("f", "a"), call("f", "b"), call("f", "c")]
    assert pairs(calls, [result(2, call_id="b"), result(1, call_id="a")]) == [1, 2]


def test_pairs_by_name_and_order() -> None:
    """Without ids the first result of that name."""
    calls = [call("f"), call("g"), call("f")]
    assert pairs(calls, [result(1, "g"), result(2, "f"), result(3, "f")]) == [2, 1, 3]


def test_pairs_by_order() -> None:
    """Without ids and names the first result that is left."""
    assert pairs([call("f"), call("g")], [result(1), result(2)]) == [1, 2]


def test_an_id_never_meets_a_name() -> None:
    """A result of another call is not taken just because its name fits."""
    assert pairs([call("f", "a")], [result(1, "f"), result(2, "f", "b")]) == []


@settings(deadline=None)
@given(st.permutations(range(8)))
def test_pairs_in_any_order(order: list[int]) -> None:
    """Equal results are distinguished by their ids."""
    calls = [call("f", str(number)) for number in range(8)]
    results = [result(number, call_id=str(number)) for number in order]
    assert pairs(calls, results) == list(range(8))
