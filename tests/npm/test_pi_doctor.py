"""``pi`` under the doctor: what differs in its requests gets rules; other differences are reported."""

import json
import shutil
import socket

from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed


def script(request):
    """One command whose output is never the same, then an end."""
    if request.tool_results:
        return Reply("Done.")
    return Reply(tool_calls=[ToolCall("bash", {"command": "date +%s.%N; mktemp -u /tmp/tmp.XXXXXXXXXX"})])


def test_pi_passes_strictly_after_the_doctor(tmp_path):
    """Also elsewhere: the folder that it names to its model is its own."""
    pi = installed("@mariozechner/pi-coding-agent", "0.73.1")
    for name in ("agent", "work", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "reenact.toml").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    provider = {"baseUrl": f"http://127.0.0.1:{port}/anthropic", "api": "anthropic-messages", "apiKey": "any"}
    models = {"providers": {"reenact": provider | {"models": [{"id": "scripted"}]}}}
    (tmp_path / "agent" / "models.json").write_text(json.dumps(models))
    options = ["--provider", "reenact", "--model", "scripted", "--no-session", "-p", "Go"]
    words = [shutil.which("node"), pi / "dist" / "cli.js", *options]
    surroundings = {"PI_CODING_AGENT_DIR": str(tmp_path / "agent"), "PI_OFFLINE": "1"}
    with ScriptedProvider(script) as model:
        address = model.base_url("anthropic")
        doctor = ["doctor", "-o", tmp_path / "d", "--port", port, "--", *words]
        done = run(*doctor, cwd=tmp_path / "work", ANTHROPIC_BASE_URL=address, **surroundings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("replays strictly, 2 calls answered from the capture\n")

    replay = ["replay", tmp_path / "d" / "2", "--port", port, "--", *words]
    done = run(*replay, cwd=tmp_path / "elsewhere", **surroundings)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
