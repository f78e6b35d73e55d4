"""Agents whose tools really run: what a tool says now is reported, and the recorded conversation goes on."""

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


MORE = """
import sys
import reenact

@reenact.tool
def look_up(word):
    print("really", word, file=sys.stderr)
    return [word]

@reenact.tool
def count(text):
    return len(text)

print(count("tea"))
if sys.argv[1:]:
    print(look_up("milk"))
"""


def test_a_run_reaches_its_end_where_nothing_recorded_is_alike(tmp_path: Path) -> None:
    """With an error of its own, with nothing, or for real; which it was is reported and counted."""
    (tmp_path / "agent.py").write_text(MORE)
    run("record", "-o", "d", "--", *AGENT, cwd=tmp_path)
    ways = {}
    for how in ("error", "empty", "live"):
        words = ["replay", "d", "--policy", "lenient", "--on-unmatched", how, "--", *AGENT, "more"]
        ways[how] = run(*words, cwd=tmp_path)
    assert {done.returncode for done in ways.values()} == {1}
    assert ways["error"].stdout == "3\n"
    assert "reenact.errors.Diverged" in ways["error"].stderr
    assert ways["empty"].stdout == "3\nNone\n"
    assert "answered     with an empty answer" in ways["empty"].stderr
    assert ways["live"].stdout == "3\n['milk']\n"
    assert "really milk\n" in ways["live"].stderr
    assert "d: diverged, 1 call answered from the capture, 1 call went live\n" in ways["live"].stderr
    refused = run("replay", "d", "--on-unmatched", "live", "--", *AGENT, cwd=tmp_path)
    assert refused.returncode == 3
    assert "a strict replay stops at the first difference; choose lenient" in refused.stderr


def test_the_policy_is_a_setting(tmp_path: Path) -> None:
    """The command line counts first, then the environment, then ``reenact.toml``; else it is strict."""
    (tmp_path / "agent.py").write_text(MORE)
    run("record", "-o", "d", "--", *AGENT, cwd=tmp_path)

    def policy(*words: str, **environment: str) -> str:
        done = run("replay", "d", *words, "--json", "--", *AGENT, cwd=tmp_path, **environment)
        return json.loads(done.stdout)["receipt"]["matching"]["policy"] if done.stdout else done.stderr

    assert policy() == "strict"
    assert policy(REENACT_POLICY="lenient") == "lenient"
    (tmp_path / "reenact.toml").write_text('[replay]\npolicy = "lenient"\n')
    assert policy() == "lenient"
    assert policy(REENACT_POLICY="strict") == "strict"
    assert policy("--policy", "lenient", REENACT_POLICY="strict") == "lenient"
    assert "REENACT_POLICY='lax' is unknown; choose strict or lenient" in policy(REENACT_POLICY="lax")
    (tmp_path / "reenact.toml").write_text('[replay]\npolicy = "lax"\n')
    assert 'reenact.toml: $.replay.policy: expected "strict" or "lenient"' in policy()
    (tmp_path / "reenact.toml").write_text("[replay]\npolcy = 1\n")
    assert "reenact.toml: $.replay.polcy: is unknown; the table has policy alone" in policy()
