"""The values the figures are measured on, shaped like what captures hold."""

from __future__ import annotations

from typing import Any


def tool_event(seq: int = 17) -> dict[str, Any]:
    """A small event, about 300 bytes."""
    return {
        "version": 1,
        "captureId": "cap_01JCN4T7Q2",
        "runId": "run_01JCN4T7Q3",
        "seq": seq,
        "ts": 1763190000123,
        "type": "tool_call",
        "data": {
            "callId": f"call_{seq:06}",
            "tool": "search_orders",
            "args": {"query": "order 1234, not shipped, needed before Friday", "limit": 10, "exact": True},
            "lane": "0.1",
        },
    }


def model_event(seq: int = 18) -> dict[str, Any]:
    """A typical event, about 2 KB: a short chat with one tool."""
    text = "My order #1234 (two lamps) has not shipped yet, and I need it before Friday. "
    tool = {
        "name": "search_orders",
        "description": "Finds orders by number, by customer, or by what they contain.",
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
            "required": ["query"],
        },
    }
    messages = [
        {"role": "system", "content": "You route support requests to the right team. " * 4},
        {"role": "user", "content": text * 6},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "tc_1", "name": "search_orders"}]},
        {"role": "tool", "tool_call_id": "tc_1", "content": "2 × lamp, paid, waiting for stock. " * 8},
    ]
    request = {"model": "large-1", "temperature": 0.2, "messages": messages, "tools": [tool, tool]}
    data = {
        "callId": f"call_{seq:06}",
        "provider": "openai",
        "model": "large-1",
        "inputHash": "sha256:" + "0" * 64,
    }
    return tool_event(seq) | {"type": "llm_request", "data": data | {"request": request}}


def chat() -> dict[str, Any]:
    """A long chat, about 25 KB, with the nulls that SDKs write for fields not set."""
    text = "Sentence {} of a longer chat (it goes on), as agents hold it over many turns. "
    turns = [
        {
            "role": "user" if turn % 2 else "assistant",
            "content": text.format(turn) * 5,
            "name": None,
            "refusal": None,
            "tool_calls": None,
        }
        for turn in range(50)
    ]
    return {"model": "large-1", "temperature": 0.2, "seed": None, "messages": turns}
