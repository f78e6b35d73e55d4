"""The demo's agent, forked at its tool's result, tells its customer something else."""

from __future__ import annotations

from pathlib import Path

import reenact
from reenact.corpus.runs import fork_tree
from reenact.testing import Reply, ScriptedProvider, support_agent


def test_the_demo_is_forked_at_its_tool_result(tmp_path: Path) -> None:
    """One request goes live, the last one, and the difference between the runs shows it."""
    with ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,)) as provider:
        url = provider.base_url("anthropic")
        with reenact.capture(tmp_path / "demo") as run:
            run.final_output = support_agent.answer(support_agent.QUESTION, url)
    reply = Reply(text="Your book is in Rotterdam and arrives next month. Sorry!")
    with ScriptedProvider([reply], port=int(url.split(":")[2].split("/")[0])) as provider:
        late = {"set": {"$.due": "next month"}}
        with reenact.fork(
            tmp_path / "demo", at=9, change=late, on_miss="live", output=tmp_path / "late"
        ) as run:
            run.final_output = support_agent.answer(support_agent.QUESTION, url)
        assert len(provider.requests) == 1
    assert run.final_output == "Your book is in Rotterdam and arrives next month. Sorry!"
    assert (run.shares.prefix, run.shares.recording, run.shares.live) == (3, 0, 1)
    report = reenact.diff(tmp_path / "demo", tmp_path / "late")
    assert [change.path for change in report.outcome] == ["$.finalOutput"]
    assert report.changes[0].changes[0].path == "$.came.result.due"
    nodes = fork_tree(tmp_path / "late")
    assert [(Path(node.path).name, node.depth, node.at) for node in nodes] == [
        ("demo", 0, None),
        ("late", 1, 8),
    ]
    assert nodes[1].change == '$.due = "next month"'
    assert fork_tree(tmp_path / "demo") == nodes
    own = (tmp_path / "late" / "events.jsonl").read_bytes()
    assert b"A-1042" not in own  # what the fork shares with its parent is not stored again
