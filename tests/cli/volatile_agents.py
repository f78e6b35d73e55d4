"""Small agents whose requests differ from run to run, and the model they ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reenact.testing import Reply, ScriptedProvider, ToolCall

ASKING = """
import os
import sqlite3

import httpx2

# What C reads of the clock is not recorded.
# A time that is now may differ in a replay, one of a month ago may not.
days = sqlite3.connect(":memory:").execute("select julianday('now')").fetchone()[0]
born = (days - 2440587.5 - 30) * 86400


def ask(messages, **more):
    body = {"model": "any", "messages": messages, **more}
    answer = httpx2.post(os.environ["MODEL"] + "/chat/completions", json=body)
    return answer.json()["choices"][0]["message"]["content"]
"""

CHATTING = (
    ASKING
    + """
import uuid

system = f"You help.\\nStarted at {born:.6f} in {os.getcwd()}.\\nSession {uuid.uuid4()}, be kind."
messages = [{"role": "system", "content": system}]
for line in ("Hello", "And more"):
    messages.append({"role": "user", "content": line})
    messages.append({"role": "assistant", "content": ask(messages, user=str(born))})
print(messages[-1]["content"])
"""
)
"""Two turns with the time, the working directory and a session's id in the prompt."""

TOOL_USING = """
import json
import os
from pathlib import Path

import openai

client = openai.OpenAI(base_url=os.environ["MODEL"], api_key="unused", max_retries=0)
messages = [{"role": "user", "content": "What is in the notes?"}]
while True:
    said = client.chat.completions.create(model="any", messages=messages).choices[0].message
    messages.append(said.model_dump(exclude_none=True))
    if not said.tool_calls:
        break
    for call in said.tool_calls:
        text = Path(json.loads(call.function.arguments)["path"]).read_text()
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
print(said.content)
"""
"""A loop whose only tool really reads a file, in a replay as well."""

COUNTING = (
    ASKING
    + """
from pathlib import Path

count = int(Path("count").read_text()) + 1 if Path("count").exists() else 1
os.write(os.open("count", os.O_WRONLY | os.O_CREAT), str(count).encode())
for number in range(count):
    ask([{"role": "user", "content": f"Question {number}"}])
"""
)
"""Asks once more in every run."""


@contextmanager
def model(script: Any) -> Iterator[str]:
    """The base address of a model that says what *script* says."""
    with ScriptedProvider(script) as provider:
        yield provider.base_url("openai")


def reading(*paths: str) -> list[Reply]:
    """A model that reads files, one after the other, and then says so."""
    return [*(Reply(tool_calls=[ToolCall("read", {"path": path})]) for path in paths), Reply("All read.")]
