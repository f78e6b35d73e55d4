"""Agents whose tools really run: what a tool says now is told, and the recorded conversation goes on."""

from __future__ import annotations

import json
from pathlib import Path

from reenact.testing import echo
from tests.cli.commands import PYTHON, run
from tests.cli.volatile_agents import CHATTING, TOOL_USING, model, reading

AGENT = [PYTHON, "agent.py"]


def test_another_output_of_a_tool_is_told_and_the_run_completes(tmp_path: Path) -> None:
    """Each model call gets the answer of the call it is likest to; what differs is named."""
    (tmp_path / "agent.py").write_text(TOOL_USING)
    (tmp_path / "a.txt").write_text("tea")
    (tmp_path / "b.txt").write_text("milk")
    with model(reading("a.txt", "b.txt")) as address:
        run("record", "-o", "d", "--", *AGENT, cwd=tmp_path, MODEL=address)
    (tmp_path / "a.txt").write_text("no tea at all")
    done = run("replay", "d", "--policy", "lenient", "--json", "--", *AGENT, cwd=tmp_path, MODEL=address)
    assert (done.returncode, done.stderr) == (1, "All read.\n")
    receipt = json.loads(done.stdout)["receipt"]
    told = [(found["eventSeq"], found["answeredWith"], found["jsonPath"]) for found in receipt["divergences"]]
    place = "$.data.request.body.messages[2].content"
    assert told == [(4, 4, place), (6, 6, place)]
    assert receipt["liveCallsRefused"] == []


def test_a_rule_on_the_command_line(tmp_path: Path) -> None:
    """For one replay, or kept in the capture when it is recorded."""
    (tmp_path / "agent.py").write_text(CHATTING)
    rule = r"llm $.body.messages[*].content =~ Started at \d+\.\d+"
    with model(echo(lambda request: "Yes")) as address:
        run("record", "-o", "a", "--", *AGENT, cwd=tmp_path, MODEL=address)
        run("record", "-o", "b", "--volatile", rule, "--", *AGENT, cwd=tmp_path, MODEL=address)
    again = ["--", *AGENT]
    assert run("replay", "a", *again, cwd=tmp_path, MODEL=address).returncode == 1
    assert run("replay", "a", "--volatile", rule, *again, cwd=tmp_path, MODEL=address).returncode == 0
    assert run("replay", "b", *again, cwd=tmp_path, MODEL=address).returncode == 0
    done = run("replay", "b", "--volatile", "messages", *again, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("reenact: Invalid value for '--volatile': 'messages' names no path")
