"""Programs with which a run talks over sockets, as with the kernel of a notebook: they run in replay too."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import PYTHON, run

KERNEL = """
import json, os, socket, sys, urllib.request

def ask(question):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request))["content"][0]["text"]

server = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as file:
    file.write(str(server.getsockname()[1]))
os.rename("port.new", "port")
client, _ = server.accept()
while question := client.recv(1000):
    client.send(ask(question.decode()).encode())
"""
AGENT = """
import os, socket, subprocess, sys, time

async def on_loop():
    process = await asyncio.create_subprocess_exec(sys.executable, "kernel.py")
    talk()
    process.terminate()
    await process.wait()

def talk():
    while not os.path.exists("port"):
        time.sleep(0.01)
    with open("port") as file:
        port = int(file.read())
    os.remove("port")
    with socket.create_connection(("127.0.0.1", port)) as kernel:
        for question in sys.argv[2:]:
            kernel.send(question.encode())
            print(kernel.recv(1000).decode())
        if sys.argv[1] == "thread":
            process.terminate()
            process.wait()
        elif sys.argv[1] == "polled":
            process.poll()

if sys.argv[1] == "loop":
    import asyncio
    asyncio.run(on_loop())
else:
    process = subprocess.Popen([sys.executable, "kernel.py"])
    talk()
    process.wait()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With an agent that talks with a program, which asks a model."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


@pytest.mark.parametrize("way", ["thread", "polled"])
def test_a_program_is_run_and_what_it_asks_a_model_is_answered(folder: Path, way: str) -> None:
    """With the model gone; the receipt names the program, and a question of another kind is a divergence."""
    agent = [PYTHON, "agent.py", way]
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        address = provider.base_url("anthropic")
        done = run("record", "-o", "a", "--", *agent, "one", "two", cwd=folder, ANTHROPIC_BASE_URL=address)
    assert (done.returncode, done.stdout) == (0, "one!\ntwo!\n"), done.stderr
    again = run("replay", "a", "--", *agent, "one", "two", cwd=folder, ANTHROPIC_BASE_URL=address)
    assert (again.returncode, again.stdout) == (0, "one!\ntwo!\n"), again.stderr
    assert "was run: the recorded run talked with it over a socket" in again.stderr
    assert "3 calls answered from the capture" in again.stderr
    other = run("replay", "a", "--", *agent, "one", "three", cwd=folder, ANTHROPIC_BASE_URL=address)
    assert other.returncode == 1
    assert "three" in other.stderr
    fewer = run("replay", "a", "--", *agent, "one", cwd=folder, ANTHROPIC_BASE_URL=address)
    assert fewer.returncode == 1
    assert "a model was recorded, but never called" in fewer.stderr
