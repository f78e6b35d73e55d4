"""A test that executes its agent again: a real agent, the real SDK, the real command line, no provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reenact.formats.result import AssertionResult
from reenact.rerun import replay_for_test
from reenact.suite.runner import Plan, run_test
from reenact.testing import Reply, ScriptedProvider, ToolCall

AGENT = """\
import sys
import anthropic, reenact

@reenact.tool
def find_order(number):
    return f"{number}: on its way"

@reenact.tool
def refund(number):
    return f"{number}: refunded"

def agent(question):
    messages = [{"role": "user", "content": question}]
    with anthropic.Anthropic(api_key="unused", base_url=sys.argv[1]) as client:
        while True:
            answer = client.messages.create(model="any", max_tokens=99, messages=messages)
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return answer.content[0].text
            tool = find_order
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": tool(**call.input)}
                for call in calls
            ]
            messages.append({"role": "assistant", "content": answer.content})
            messages.append({"role": "user", "content": results})

print(agent("Where is it?"))
"""
TEST = """\
schema_version: "0.1"
id: orders.found
title: The agent finds the order and gives no money away
adapter: reenact
mode: replay
scenario: {{trigger: user_message}}
tools: {{}}
adapter_input: {{capture: run, command: [{python}, agent.py, "{url}"]}}
assertions:
  - {{id: finds, type: must_call_tool, params: {{tool: find_order}}}}
  - {{id: no-refund, type: must_not_call_tool, params: {{tool: refund}}}}
  - {{id: answers, type: output_contains, params: {{any_of: [Thursday]}}}}
  - {{id: as-recorded, type: divergence_free}}
"""


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    """A test beside its agent and what was recorded of it; the provider is gone."""
    (tmp_path / "agent.py").write_text(AGENT)
    script = [Reply(tool_calls=[ToolCall("find_order", {"number": "A-1"})]), Reply("It comes on Thursday.")]
    with ScriptedProvider(script) as provider:
        url = provider.base_url("anthropic")
        record = [sys.executable, "-m", "reenact", "record", "-o", "run", "--", sys.executable, "agent.py"]
        subprocess.run([*record, url], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    file = tmp_path / "test.yaml"
    file.write_text(TEST.format(python=sys.executable, url=url))
    return file


def judged(file: Path) -> dict[str, AssertionResult]:
    outcome = run_test(file, Plan("r", replay=replay_for_test))
    assert outcome is not None
    assert outcome.result.status != "error", outcome.result.error
    return {found.id: found for found in outcome.result.assertions}


def test_the_agent_is_judged_by_what_it_does_now(test_file: Path) -> None:
    """As recorded it passes; after an edit the same assertions see the edited agent."""
    assert {found.status for found in judged(test_file).values()} == {"pass"}
    agent = test_file.parent / "agent.py"
    agent.write_text(AGENT.replace("tool = find_order", "tool = refund"))
    found = judged(test_file)
    assert {name: result.status for name, result in found.items()} == dict.fromkeys(found, "fail")
    assert "find_order" in found["as-recorded"].message
    assert "refund" in found["no-refund"].message
