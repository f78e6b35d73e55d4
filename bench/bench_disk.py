"""What a long chat costs on disk, beside the bytes of its distinct messages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reenact
from bench.figure import Figure, TimesAsLong
from reenact.boundary import Call, crossing
from reenact.canonical import encode

TURNS = (50, 100, 200)
SYSTEM = "You route support requests to the right team, and you are brief about it. " * 8
TOOLS = [
    {
        "name": f"tool_{number}",
        "description": "Finds orders by number or by customer. " * 4,
        "input_schema": {},
    }
    for number in range(6)
]


def ask(body: dict[str, Any], answer: Any) -> Any:
    """One model call as the HTTP seam makes it."""
    request = {"method": "POST", "url": "https://api.example/v1/messages", "body": body}
    with crossing(Call("llm", "POST", request, {"provider": "anthropic", "model": "m"})) as step:
        if step.live:
            step.answer = answer
    return step.answer


def chat(messages: int) -> list[dict[str, Any]]:
    """What an agent and its model say to each other: results of tools, and short answers."""
    return [
        {"role": "user", "content": f"Result {n}: " + f"order {n * 7919} waits for stock. " * 45}
        if n % 2 == 0
        else {"role": "assistant", "content": f"Answer {n}: " + f"order {n * 104729} has shipped. " * 20}
        for n in range(messages)
    ]


def figures() -> Iterator[Figure]:
    """One line per length: the bar holds for each, so the cost is linear."""
    for turns in TURNS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run"
            with reenact.capture(path, redact="default"):
                messages = _talk(turns)
            size_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        distinct_bytes = len(encode([SYSTEM, TOOLS, messages]))
        yield Figure(
            f"chat of {turns} turns on disk", size_bytes, "its messages", distinct_bytes, TimesAsLong(2), "B"
        )


def _talk(turns: int) -> list[dict[str, Any]]:
    messages = chat(2 * turns)
    for turn in range(turns):
        body = {"model": "m", "system": SYSTEM, "tools": TOOLS, "messages": messages[: 2 * turn + 1]}
        ask(body, messages[2 * turn + 1])
    return messages
