"""Times that libraries read by themselves: a replay reads the recorded ones, wherever they end up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import ENVIRONMENT, PYTHON, run
from tests.frameworks.installed import later_date

LIBRARY = """
import datetime, io, os, sys, time, zipfile
import httpx2


def now():
    return datetime.datetime.now().isoformat()


def log(text):
    print(f"{time.time():.6f} {now()} {time.strftime('%H:%M')} {text}", flush=True)


def ask(text):
    began = time.perf_counter()
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    said = httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body).json()
    log(f"took {time.perf_counter() - began:.6f} s")
    return said["content"][0]["text"]


def pack(text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("text", text)
    return packed.getvalue()


def wait(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass
"""
AGENT = """
import asyncio, base64, sys, threading
from pathlib import Path
from framework import *

log("begins")
Path("said.zip").write_bytes(pack(ask("On 2026-01-02 it is " + base64.b64encode(pack("Hello")).decode())))
for number in range(2):
    worker = threading.Thread(target=lambda: [log(ask(f"In thread {number}")) for _ in range(2)])
    worker.start()
    worker.join()


async def one(number):
    log(f"task {number}")
    await asyncio.sleep(0.01 * number)
    log(await asyncio.to_thread(ask, f"In task {number}"))


async def main():
    for number in range(2):
        await asyncio.create_task(one(number))


asyncio.run(main())
"""
PLAIN = """
import base64
from framework import *
said = ask("On 2026-01-02 " + base64.b64encode(pack("Hello")).decode())
log(said)
print(ask(f"At {time.time()} it was so"))
"""
ONCE_MORE = """
from framework import *
print(ask("Hello"))
times = [now() for _ in range(4)]
assert times == sorted(times), times
wait(0.1)
print(ask("The end of the story"))
"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler, for a later date")


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    """Writes a program, records it, and replays it as it is then."""
    library = tmp_path / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "framework.py").write_text(LIBRARY)
    place = tmp_path / "work"
    place.mkdir()
    with ScriptedProvider(lambda request: Reply(f"I know {request.user_text}", delay_ms=30)) as provider:
        known = {
            "ANTHROPIC_BASE_URL": provider.base_url("anthropic"),
            "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{library}",
        }

        def go(verb: str, *words: str, **later: str) -> Any:
            *options, program = words
            (place / "agent.py").write_text(program)
            how = ["-o", str(tmp_path / "capture")] if verb == "record" else [str(tmp_path / "capture")]
            return run(verb, *how, *options, "--", PYTHON, "agent.py", cwd=place, **{**known, **later})

        yield go


@needs_compiler
def test_what_is_printed_packed_and_asked(agent: Any) -> None:
    """Weeks later, too, in threads and tasks, to the microsecond, with durations."""
    recorded = agent("record", AGENT)
    assert recorded.returncode == 0, recorded.stderr
    for later in ({}, {"LD_PRELOAD": str(later_date())}):
        replayed = agent("replay", AGENT, **later)
        assert replayed.returncode == 0, replayed.stderr
        assert replayed.stdout == recorded.stdout


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("2026-01-02", "2026-01-03"),
        ('pack("Hello")', 'pack("hello")'),
        ("log(said)", "log(said.upper())"),
        ("print(ask(", "time.time = lambda: 1e9; print(ask("),
    ],
    ids=["a date of the user", "packed words", "printed words", "a clock that was stopped"],
)
def test_another_program_is_told(agent: Any, was: str, becomes: str) -> None:
    """Only the clock is repeated, not what the program makes of it."""
    assert agent("record", PLAIN).returncode == 0
    assert was in PLAIN
    changed = agent("replay", "--strict-output", PLAIN.replace(was, becomes))
    assert changed.returncode == 1, changed.stdout
    assert "differs" in changed.stderr


def test_who_reads_more_often_sees_the_time_go_on(agent: Any) -> None:
    """It never goes back, and does not stand still."""
    assert agent("record", ONCE_MORE).returncode == 0
    replayed = agent("replay", ONCE_MORE.replace("range(4)", "range(30)"))
    assert replayed.returncode == 0, replayed.stderr
