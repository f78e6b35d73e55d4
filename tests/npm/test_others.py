"""Codex, Claude Code, Gemini CLI and opencode: a turn with a real shell command, doctored and replayed.

They are large, so only ``make test-all-agents`` tries them.
"""

import json
import socket
from dataclasses import dataclass, field

import pytest

from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed

QUESTION = "How many files are here?"
CODEX_PROVIDER = (
    '{name="reenact", base_url="{gateway}/openai", env_key="OPENAI_API_KEY", wire_api="responses"}'
)
BASE_URLS = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}


@dataclass
class Agent:
    package: str
    version: str
    service: str
    shell: str
    """Its tool that runs commands."""
    words: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, dict] = field(default_factory=dict)
    """Settings, by their path below the home directory."""


AGENTS = {
    "codex": Agent(
        "@openai/codex",
        "0.166.0",
        "openai",
        "exec_command",
        (
            *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", "model_provider=reenact", "-c", f"model_providers.reenact={CODEX_PROVIDER}", QUESTION),
        ),
        {"OPENAI_API_KEY": "unused"},
    ),
    "claude": Agent(
        "@anthropic-ai/claude-code",
        "2.1.197",
        "anthropic",
        "Bash",
        ("-p", QUESTION, "--allowedTools", "Bash"),
        {
            "ANTHROPIC_API_KEY": "unused",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
    ),
    "gemini": Agent(
        "@google/gemini-cli",
        "0.61.0",
        "gemini",
        "run_shell_command",
        ("--yolo", "-m", "gemini-2.5-pro", "-p", QUESTION),
        {"GEMINI_API_KEY": "unused", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {
            ".gemini/settings.json": {
                "privacy": {"usageStatisticsEnabled": False},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
            }
        },
    ),
    "opencode": Agent(
        "opencode-ai",
        "1.18.33",
        "anthropic",
        "bash",
        ("run", "-m", "scripted/any", QUESTION),
        files={
            "work/opencode.json": {
                "share": "disabled",
                "autoupdate": False,
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/anthropic",
                        "options": {"baseURL": "http://127.0.0.1:PORT/anthropic/v1", "apiKey": "unused"},
                        "models": {"any": {"name": "any"}},
                    }
                },
            }
        },
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_replayed_strictly_after_the_doctor(name, tmp_path):
    """Its model is gone, its shell command really runs, and what it says is the same."""
    agent = AGENTS[name]

    def script(request):
        if request.tool_results or not request.body.get("tools"):
            return Reply("There is one file.")
        return Reply(
            tool_calls=[ToolCall(agent.shell, {"command": "ls", "cmd": "ls", "description": "look"})]
        )

    place = installed(agent.package, agent.version)
    program = next(each for each in place.parents if each.name == "node_modules") / ".bin" / name
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "one.txt").touch()
    (tmp_path / "reenact.toml").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for path, settings in agent.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(settings).replace("PORT", str(port)))
    surroundings = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "TERM": "dumb", **agent.environment}
    surroundings["PWD"] = str(tmp_path / "work")

    def do(verb, *words):
        command = [verb, *words, "--port", port, "--", program, *agent.words]
        return run(*command, cwd=tmp_path / "work", timeout_s=200, **surroundings)

    with ScriptedProvider(script) as provider:
        surroundings[BASE_URLS[agent.service]] = provider.base_url(agent.service)
        done = do("doctor", "-o", tmp_path / "d")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "replays strictly" in done.stdout
    done = do("replay", tmp_path / "d" / "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("There is one file.\n")
