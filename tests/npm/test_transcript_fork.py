"""``pi``'s own session is imported, and forked with pi itself: nothing was recorded by reenact."""

import json
import shutil
import socket

from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed

QUESTION = "What is six times seven?"


def test_a_session_of_pi_is_forked_by_pi(tmp_path):
    """Its last answer is another one, its shell command really runs, and the fork replays strictly."""
    pi = installed("@mariozechner/pi-coding-agent", "0.73.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    model = {"api": "anthropic-messages", "apiKey": "any", "models": [{"id": "scripted"}]}
    models = {"providers": {"reenact": model | {"baseUrl": f"http://127.0.0.1:{port}/anthropic"}}}
    for name in ("agent", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "agent" / "models.json").write_text(json.dumps(models))
    environment = {"PI_CODING_AGENT_DIR": str(tmp_path / "agent"), "PI_OFFLINE": "1"}
    agent = [shutil.which("node"), pi / "dist" / "cli.js", "--provider", "reenact", "--model", "scripted"]

    def do(verb, *words, **more):
        command = [verb, *words, "--port", port, "--", *agent, "-p", QUESTION]
        return run(*command, cwd=tmp_path / "work", timeout_s=120, **environment, **more)

    script = [
        Reply(tool_calls=[ToolCall("bash", {"command": "echo $((6 * 7))"})]),
        Reply("The answer is 42."),
    ]
    with ScriptedProvider(script) as provider:
        done = do("record", "-o", tmp_path / "run", ANTHROPIC_BASE_URL=provider.base_url("anthropic"))
    assert (done.returncode, done.stdout) == (0, "The answer is 42.\n"), done.stderr
    [session] = (tmp_path / "agent" / "sessions").rglob("*.jsonl")
    done = run("import", session, "-o", tmp_path / "told", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = list(map(json.loads, CaptureReader(tmp_path / "told").lines()))
    at = [event["seq"] for event in events if event["type"] == "llm_request"][-1]
    done = do("fork", tmp_path / "told", "--at", at, "--set", '$.text="Forty-two."', "-o", tmp_path / "fork")
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n"), done.stderr
    assert "1 call from the prefix, 0 from the recording, 0 live" in done.stderr
    assert "not compared: instructions of the model (2)" in done.stderr
    done = do("replay", tmp_path / "fork")
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n"), done.stderr
