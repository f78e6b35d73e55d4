"""An agent that tells the model the traceback of a call that failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import PYTHON, run

AGENT = """
import os, subprocess, traceback
import httpx2

URL = os.environ["OPENAI_BASE_URL"]


def ask(text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    print(httpx2.post(f"{URL}/chat/completions", json=body).json()["choices"][0]["message"]["content"][-40:])


def late():
    httpx2.post(f"{URL}/chat/completions", json={}, timeout=1e-6)


def missing():
    subprocess.run(["no-such-program"], check=True)


def failing():
    subprocess.run(["sh", "-c", "exit 3"], check=True)


for act in late, missing, failing:
    try:
        act()
    except Exception:
        ask("Explain " + traceback.format_exc())
"""


@pytest.mark.parametrize("was", ["missing, failing", '["no-such-program"]', "    try:\n        act()"])
def test_a_traceback_in_a_prompt(was: str, tmp_path: Path) -> None:
    """It is the same in another folder; of another place in the agent's code it is another one."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "agent.py").write_text(AGENT)
    words = [PYTHON, "agent.py"]
    with ScriptedProvider(lambda request: Reply(f"It is {request.user_text[-30:]}")) as provider:
        known = {"OPENAI_BASE_URL": provider.base_url("openai")}
        recorded = run("record", "-o", str(tmp_path / "run"), "--", *words, cwd=here, **known)
    assert recorded.returncode == 0, recorded.stderr
    shutil.move(here, there)
    replayed = run("replay", str(tmp_path / "run"), "--", *words, cwd=there, **known)
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert was in AGENT
    becomes = {"missing, failing": "failing, missing"}.get(
        was, f"\n{was}" if "try" in was else '["no-program"]'
    )
    (there / "agent.py").write_text(AGENT.replace(was, becomes))
    assert run("replay", str(tmp_path / "run"), "--", *words, cwd=there, **known).returncode == 1
