"""Programs whose libraries count from today: a replay weeks later asks the same."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import ENVIRONMENT, PYTHON, run
from tests.frameworks.installed import later_date

LIBRARY = """
import datetime, os, time
from datetime import datetime as dt
import httpx2


def in_days(days):
    return (datetime.date.today() + datetime.timedelta(days=days)).isoformat()


def next_monday():
    now = dt.now()
    return (now + datetime.timedelta(days=7 - now.weekday())).strftime("%A %d %B %Y")


def season():
    return f"{time.strftime('%B')}, quarter {(dt.now(datetime.UTC).month - 1) // 3}"


def ask(text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages"
    return httpx2.post(url, json=body).json()["content"][0]["text"]
"""

AGENT = """
import multiprocessing
import framework


def plan():
    for text in framework.in_days(3), framework.in_days(-30), framework.next_monday(), framework.season():
        print(framework.ask(f"What was planned for {text}?"), flush=True)


if __name__ == "__main__":
    plan()
    other = multiprocessing.get_context("spawn").Process(target=plan)
    other.start()
    other.join()
"""


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler, for a later date")


@needs_compiler
def test_a_date_that_a_library_counts_from_today(tmp_path: Path) -> None:
    """In the program and in a process that it starts."""
    library = tmp_path / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "framework.py").write_text(LIBRARY)
    (tmp_path / "agent.py").write_text(AGENT)
    capture = tmp_path / "capture"
    with ScriptedProvider(lambda request: Reply(f"I know {request.user_text}")) as provider:
        known = {
            "ANTHROPIC_BASE_URL": provider.base_url("anthropic"),
            "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{library}",
        }
        words = [PYTHON, "agent.py"]
        recorded = run("record", "-o", str(capture), "--", *words, cwd=tmp_path, **known)
        assert recorded.returncode == 0, recorded.stderr
    later = {**known, "LD_PRELOAD": str(later_date())}
    replayed = run("replay", str(capture), "--", *words, cwd=tmp_path, **later)
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout


TASK = """
import os, pathlib, sys
import httpx2

way, given = sys.argv[1:]
read = {"word": lambda: given, "file": pathlib.Path(given).read_text, "input": sys.stdin.read}
task = read[way]()
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": task}]}
print(httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body).status_code)
"""


@needs_compiler
@pytest.mark.parametrize("way", ["word", "file", "input"])
def test_a_date_that_the_user_gave_is_no_clock(way: str, tmp_path: Path) -> None:
    """Although it was the current one when the run was recorded, and another is in the replay."""
    (tmp_path / "agent.py").write_text(TASK)
    capture, today = tmp_path / "capture", datetime.now(UTC).date()
    tasks = [f"Book a table for {day}" for day in (today, today + timedelta(days=40))]
    given = [{"word": task, "file": "task.txt", "input": "-"}[way] for task in tasks]
    with ScriptedProvider(lambda request: Reply("Booked")) as provider:
        known = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        (tmp_path / "task.txt").write_text(tasks[0])
        words = [PYTHON, "agent.py", way, given[0]]
        recorded = run("record", "-o", str(capture), "--", *words, cwd=tmp_path, input=tasks[0], **known)
        assert recorded.returncode == 0, recorded.stderr
    (tmp_path / "task.txt").write_text(tasks[1])
    words = [PYTHON, "agent.py", way, given[1]]
    later = {**known, "LD_PRELOAD": str(later_date())}
    replayed = run("replay", str(capture), "--", *words, cwd=tmp_path, input=tasks[1], **later)
    assert replayed.returncode == 1, replayed.stderr
    assert "what a model is asked differs" in replayed.stderr
