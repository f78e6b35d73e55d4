"""What a recorded command prints: passed on unchanged, and compared in replay."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

AGENT = """
import os, sys, reenact
@reenact.tool
def tool(): return "answer"
print(tool())
print(os.environ.get("SAYS", "the same"), sys.stdout.isatty())
sys.stdout.write("no end of line")
"""


def reenact(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reenact", *words],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(textwrap.dedent(AGENT))
    done = reenact("record", "-o", "run", "--", sys.executable, "agent.py", cwd=tmp_path)
    assert done.stdout == "answer\nthe same False\nno end of line"
    return tmp_path


def test_the_same_output_is_reproduced(place: Path) -> None:
    done = reenact("replay", "run", "--strict-output", "--", sys.executable, "agent.py", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stderr
    assert done.stdout == "answer\nthe same False\nno end of line"


def test_another_output_is_noted_with_its_line(place: Path) -> None:
    done = reenact("replay", "run", "--", sys.executable, "agent.py", cwd=place, SAYS="another")
    assert done.returncode == 0
    assert (
        "note: line 2 of what the command printed differs from the recorded one: another False" in done.stderr
    )


def test_another_output_can_be_a_divergence(place: Path) -> None:
    command = ["replay", "run", "--strict-output", "--json", "--", sys.executable, "agent.py"]
    done = reenact(*command, cwd=place, SAYS="another")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["verdict"] == "diverged"
    assert "line 2" in report["receipt"]["divergences"][0]["detail"]


def test_the_recording_holds_digests_only(place: Path) -> None:
    manifest = json.loads((place / "run" / "manifest.json").read_text())
    assert len(manifest["stdout"]["lines"]) == 3
    assert "the same" not in (place / "run" / "manifest.json").read_text()


def test_a_secret_in_what_differs_is_not_in_the_receipt(place: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 22 + "AA"
    command = ["replay", "run", "--receipt", "receipt.json", "--", sys.executable, "agent.py"]
    done = reenact(*command, cwd=place, SAYS=secret)
    assert done.returncode == 0
    assert secret not in (place / "receipt.json").read_text()


def test_who_stops_reading_stops_the_command(tmp_path: Path) -> None:
    """As with any pipe."""
    (tmp_path / "agent.py").write_text("while True: print('y')")
    command = f"{sys.executable} -m reenact record -o run -- {sys.executable} agent.py 2>/dev/null | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "y\n"


def test_a_terminal_stays_one(place: Path) -> None:
    """Of the same size; what is printed reaches ours."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "reenact", "record", "-o", "onscreen", "--", sys.executable, "agent.py"]
    child = subprocess.Popen(command, cwd=place, stdout=secondary, stderr=subprocess.DEVNULL)
    os.close(secondary)
    assert child.wait(100) == 0
    shown = os.read(primary, 4096).decode()
    os.close(primary)
    assert "the same True" in shown
    lines = json.loads((place / "onscreen" / "manifest.json").read_text())["stdout"]["lines"]
    assert len(lines) == 3


PRINTING_THREADS = """
import random, threading, time, reenact

@reenact.tool
def tool(number):
    return number

lock = threading._RLock()  # a lock of a library's own: who takes it is not recorded

def work(number):
    tool(number)
    for piece in range(8):
        time.sleep(random.SystemRandom().random() / 500)
        with lock:
            print(number, piece)

threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
for thread in threads:
    thread.start()
print("started")
for thread in threads:
    thread.join()
print("over")
"""


def test_threads_print_in_recorded_order(tmp_path: Path) -> None:
    """Which thread prints after which is chance, and is repeated."""
    (tmp_path / "agent.py").write_text(PRINTING_THREADS)
    recorded = reenact("record", "-o", "run", "--", sys.executable, "agent.py", cwd=tmp_path)
    assert recorded.stdout.count("\n") == 34
    for _ in range(3):
        done = reenact("replay", "run", "--strict-output", "--", sys.executable, "agent.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == recorded.stdout


def test_what_is_printed_is_not_kept_where_another_thread_prints_less(tmp_path: Path) -> None:
    """What a replay prints comes out although a thread whose turn it is does not print."""
    agent = PRINTING_THREADS.replace("print(number, piece)", "number and print(number, piece)")
    (tmp_path / "agent.py").write_text(PRINTING_THREADS)
    reenact("record", "-o", "run", "--", sys.executable, "agent.py", cwd=tmp_path)
    (tmp_path / "agent.py").write_text(agent)
    done = reenact("replay", "run", "--", sys.executable, "agent.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 26
    assert "what the command printed differs" in done.stderr


def test_one_thread_that_prints_needs_no_order(place: Path) -> None:
    assert '"order"' not in (place / "run" / "events.jsonl").read_text()


NAMES = """
import os, reenact, library
@reenact.tool
def look(name): return 1
name = library.make_name()
look(name)
print("looked at", name)
if "SAYS" in os.environ: print("a line more")
"""


@pytest.mark.parametrize(("says", "status"), [(None, 0), ("more", 1)])
def test_a_generated_name_may_be_printed(tmp_path: Path, says: str | None, status: int) -> None:
    """It is another one in each run, and the receipt pairs the two."""
    (tmp_path / "agent.py").write_text(NAMES)
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("import uuid\ndef make_name(): return uuid.uuid4().hex")
    paths = os.pathsep.join([str(library.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    reenact("record", "-o", "run", "--", sys.executable, "agent.py", cwd=tmp_path, PYTHONPATH=paths)
    words = ("replay", "run", "--strict-output", "--", sys.executable, "agent.py")
    given = {"PYTHONPATH": paths} | ({"SAYS": says} if says else {})
    assert reenact(*words, cwd=tmp_path, **given).returncode == status
