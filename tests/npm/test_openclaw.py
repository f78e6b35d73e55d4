"""OpenClaw, by the page about it: a message with a real command, doctored and replayed.

It is large and wants a newer Node than most have, so only ``make test-all-agents`` tries it.
"""

import json
import os
import re
import socket
from pathlib import Path

from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed

PAGE = Path(__file__).parents[2] / "docs/howto/openclaw.md"


def script(request):
    if request.tool_results or not request.body.get("tools"):
        return Reply("Forty-two.")
    return Reply(tool_calls=[ToolCall("exec", {"command": "echo $((6 * 7))"})])


def test_openclaw_is_replayed_strictly_after_the_doctor(tmp_path):
    """With the settings and the command of the page, each run in a state directory of its own."""
    installed("node", "24.21.0")
    bin_folder = installed("openclaw", "2026.9.6").parent / ".bin"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    settings, command = re.findall(r"```(?:json|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert json.loads(settings)
    (tmp_path / "openclaw.json").write_text(settings.replace("4141", port))
    (tmp_path / "reenact.toml").touch()
    (tmp_path / "work").mkdir()
    message = command.partition(" -- ")[2].removeprefix("sh -c '").removesuffix("'\n")
    surroundings = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "OPENCLAW_CONFIG_PATH": str(tmp_path / "openclaw.json"),
        "ANTHROPIC_API_KEY": "unused",
    }

    def do(verb, *words):
        line = [verb, *words, "--port", port, "--", "sh", "-c", message]
        return run(*line, cwd=tmp_path / "work", timeout_s=250, **surroundings)

    with ScriptedProvider(script) as provider:
        surroundings["ANTHROPIC_BASE_URL"] = provider.base_url("anthropic")
        done = do("doctor", "-o", tmp_path / "d")
    assert done.returncode == 0, done.stdout + done.stderr
    done = do("replay", tmp_path / "d" / "2")
    assert done.returncode == 0, done.stderr
    assert "Forty-two." in done.stdout
