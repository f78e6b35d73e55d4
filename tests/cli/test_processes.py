"""Every Python process of a command is recorded and replayed: children, forks, pools, siblings."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from reenact.formats.replay_receipt import read_replay_receipt
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import AGENTS, CAPTURE_FILES, ENVIRONMENT, PYTHON, agent, command, run

WAYS = ("fork", "spawn", "forkserver", "os.fork")


@pytest.fixture
def provider():
    """A model that repeats what it was asked."""
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        yield provider


def record(provider, words, cwd):
    done = run("record", "-o", "a", "--", *words, cwd=cwd, ANTHROPIC_BASE_URL=provider.base_url("anthropic"))
    provider.stop()
    return done


def replay(provider, words, cwd, *options):
    base_url = provider.base_url("anthropic")
    return run("replay", "a", *options, "--", *words, cwd=cwd, ANTHROPIC_BASE_URL=base_url)


def asked(path):
    """What the model was asked, by lane."""
    events = [event for event in CaptureReader(path).events() if event.__struct_config__.tag == "llm_request"]
    reader = CaptureReader(path)
    return {
        (event.data.lane, reader.resolve(event.data.request)["body"]["messages"][0]["content"])
        for event in events
    }


@pytest.mark.parametrize("way", WAYS)
def test_children_are_recorded_and_replayed_offline(way, provider, tmp_path):
    """Each in lanes of its own, named after who made it, with the provider gone; chance repeats in all."""
    words = agent("family", way, "one", "two", "three")
    done = record(provider, words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert asked(tmp_path / "a") == {("0", "one"), ("0:0", "two"), ("0:1", "three"), ("0", "last")}
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == CAPTURE_FILES
    assert run("verify", "a", cwd=tmp_path).returncode == 0
    again = replay(provider, words, tmp_path)
    assert again.returncode == 0, again.stderr
    assert sorted(again.stdout.splitlines()) == sorted(done.stdout.splitlines())
    # In which order processes print is not repeated, which is noted.
    told = "reenact: a: reproduced, 8 calls answered from the capture, nothing went live\n"
    assert re.fullmatch(
        rf"{re.escape(told)}(  note: line \d+ of what the command printed differs.*\n)?", again.stderr
    )


@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("what", ["queues", "polls", "locks"])
def test_what_processes_share_is_taken_in_the_recorded_order(what, way, provider, tmp_path):
    """Who gets which job, and in which order results, locks and messages come, decides what is asked."""
    words = agent("crew", what, way)
    done = record(provider, words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert run("verify", "a", cwd=tmp_path).returncode == 0
    for _ in range(2):
        again = replay(provider, words, tmp_path)
        assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


def test_what_processes_share_is_not_awaited_of_one_that_does_something_else(provider, tmp_path):
    """A worker that takes no job is the difference that is reported, and the others do not wait for ever."""
    record(provider, agent("crew", "queues", "fork"), tmp_path)
    edited = (
        (AGENTS / "crew.py")
        .read_text()
        .replace("    for job in iter", "    if number:\n        return\n    for job in iter")
    )
    (tmp_path / "edited.py").write_text(edited)
    again = replay(provider, [PYTHON, "edited.py", "queues", "fork"], tmp_path)
    assert again.returncode == 1
    assert "reenact: a: diverged" in again.stderr


CHANGES = {
    "another question in a child": (
        ["one", "two", "3"],
        r'event_payload_mismatch: .*expected "three", observed "3"\n(.*\n)+    task +0:1\n',
    ),
    "a child less": (
        ["one", "two"],
        r"event_missing: .* was recorded, but never called\n(.*\n)*    task +0:1\n",
    ),
    "a child more": (
        ["one", "two", "three", "four"],
        r"event_unexpected: .* the recording has no further call here\n(.*\n)+    task +0:2\n",
    ),
}


@pytest.mark.parametrize(("questions", "told"), CHANGES.values(), ids=CHANGES)
def test_what_is_different_in_a_child_is_a_divergence_of_the_run(questions, told, provider, tmp_path):
    """It is in the one verdict and the one receipt, with the child's lane."""
    record(provider, agent("family", "fork", "one", "two", "three"), tmp_path)
    again = replay(provider, agent("family", "fork", *questions), tmp_path, "--receipt", "r.json")
    assert again.returncode == 1
    assert "reenact: a: diverged" in again.stderr
    assert re.search(told, again.stderr), again.stderr
    receipt = read_replay_receipt((tmp_path / "r.json").read_bytes(), file="r.json")
    assert (receipt.verdict, len(receipt.divergences) > 0) == ("diverged", True)


_KNOCKING = """
import contextlib, socket

def knock(question):
    if question == "two":
        with contextlib.suppress(Exception):
            socket.create_connection(("127.0.0.1", 9))

"""


def test_what_a_child_would_send_past_the_seams_is_refused(provider, tmp_path):
    """A child has the guard as well, and its refusals are in the verdict."""
    record(provider, agent("family", "spawn", "one", "two"), tmp_path)
    edited = (AGENTS / "family.py").read_text().replace("def ask(", f"{_KNOCKING}def ask(", 1)
    edited = edited.replace("    body =", "    knock(question)\n    body =", 1)
    (tmp_path / "edited.py").write_text(edited)
    again = replay(provider, [PYTHON, "edited.py", "spawn", "one", "two"], tmp_path)
    assert again.returncode == 1
    assert "refused: connect 127.0.0.1:9" in again.stderr


def test_a_child_that_is_killed_leaves_what_it_recorded(provider, tmp_path):
    """It is joined with the rest, the run says so, and a replay in which it is killed again is good."""
    words = agent("family", "fork", "one", "die", "three")
    done = record(provider, words, tmp_path)
    assert done.returncode == 9
    assert "warning: process 0:0 ended with an error: interrupted" in done.stderr
    assert ("0:0", "die") in asked(tmp_path / "a")
    again = replay(provider, words, tmp_path)
    assert again.returncode == 0, again.stderr
    assert sorted(again.stdout.splitlines()) == sorted(done.stdout.splitlines())


def test_recover_joins_the_children_of_a_recording_that_was_killed_as_a_whole(provider, tmp_path):
    """Neither parent nor child nor the command could finish anything."""
    program = (AGENTS / "family.py").read_text().replace('ask("last")', "__import__('time').sleep(60)")
    (tmp_path / "slow.py").write_text(program)
    recording = subprocess.Popen(
        command("record", "-o", "a", "--", PYTHON, "slow.py", "fork", "one", "two"),
        cwd=tmp_path,
        env=ENVIRONMENT | {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert recording.stdout.readline().startswith(b"one!")
        assert recording.stdout.readline().startswith(b"two!")
    finally:
        os.killpg(recording.pid, signal.SIGKILL)
        recording.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while (done := run("recover", "a", cwd=tmp_path)).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    assert done.returncode == 0, done.stderr
    assert asked(tmp_path / "a") == {("0", "one"), ("0:0", "two")}


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_jobs_for_a_pool_are_calls(way, tmp_path):
    """A job is done by whoever is idle, so it is recorded by what it is; in replay no worker is started."""
    done = run("record", "-o", "a", "--", *agent("pooled", way), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "14 calls: 14 process" in done.stderr
    again = run("replay", "a", "--", *agent("pooled", way), cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


SCRIPTS = {
    "one behind the other": "{agent} one && {agent} two",
    "side by side": "{agent} one & {agent} two & wait",
}


@pytest.mark.parametrize("line", SCRIPTS.values(), ids=SCRIPTS)
def test_siblings_in_a_script_are_recorded_and_replayed(line, provider, tmp_path):
    """Whichever of them is the first this time."""
    words = ["sh", "-c", line.format(agent=f"{PYTHON} {AGENTS}/asking_by_client.py")]
    done = record(provider, words, tmp_path)
    assert sorted(done.stdout.replace("!", "! ").split()) == ["one!", "two!"], done.stderr
    assert {lane for lane, _ in asked(tmp_path / "a")} == {"0", "1"}
    for _ in range(2):
        again = replay(provider, words, tmp_path, "--json")
        assert again.returncode == 0, again.stderr
        assert json.loads(again.stdout)["answered"] == 2


def test_a_process_that_only_knocks_is_refused_all_the_same(tmp_path):
    """It makes no call that a seam sees, but the verdict is about it too; no call is missed in it."""
    shop = f"{PYTHON} {AGENTS}/ending.py pass"
    run("record", "-o", "a", "--", "sh", "-c", shop, cwd=tmp_path)
    (tmp_path / "knock.py").write_text(f"{_KNOCKING}\nknock('two')\n")
    again = run("replay", "a", "--", "sh", "-c", f"{PYTHON} knock.py; {shop}", cwd=tmp_path)
    assert again.returncode == 1
    assert "refused: connect 127.0.0.1:9" in again.stderr
    assert "event_missing" not in again.stderr


def test_a_sibling_that_fails_does_not_fail_the_run(tmp_path):
    """The script has taken it into account; the capture tells of it all the same."""
    line = f"{PYTHON} {AGENTS}/ending.py pass; {PYTHON} {AGENTS}/ending.py 'raise ValueError(1)' || true"
    done = run("record", "-o", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert (done.returncode, CaptureReader(tmp_path / "a").manifest.status) == (0, "ok")
    assert "warning: process 1 ended with an error: ValueError: 1" in done.stderr
    assert run("replay", "a", "--", "sh", "-c", line, cwd=tmp_path).returncode == 0


def test_children_of_a_tool_come_with_the_tool(tmp_path):
    """In replay the tool does not run, so that they are not missed."""
    (tmp_path / "tooled.py").write_text(
        "import multiprocessing, reenact, time\n"
        "def work(): time.time()\n"
        "@reenact.tool\n"
        "def look():\n"
        "    child = multiprocessing.get_context('fork').Process(target=work)\n"
        "    child.start(); child.join()\n"
        "    return 1\n"
        "print(look())\n"
    )
    run("record", "-o", "a", "--", PYTHON, "tooled.py", cwd=tmp_path)
    lanes = {getattr(event.data, "lane", None) for event in CaptureReader(tmp_path / "a").events()}
    assert "0/1:0" in lanes
    again = run("replay", "a", "--", PYTHON, "tooled.py", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


EARLY_THREADS = """
import os, select, sys, threading
import httpx2

found, lock = [], threading.Lock()
def work(name, delay_ms):
    select.select([], [], [], int(delay_ms) / 1000)  # unseen, unlike a sleep
    with lock:
        found.append(name)
threads = [threading.Thread(target=work, args=pair) for pair in zip("abcd", os.environ["PACE"].split())]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
body = {"model": "m", "messages": [{"role": "user", "content": " ".join(found)}]}
answer = httpx2.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", json=body).json()
print(answer["choices"][0]["message"]["content"])
"""


def test_threads_that_act_before_the_first_call_do_so_in_recorded_order(tmp_path):
    """The only process of a run knows which one it is before it asks anything."""
    (tmp_path / "agent.py").write_text(EARLY_THREADS)
    with ScriptedProvider(lambda request: Reply(request.user_text)) as provider:
        given = {"OPENAI_BASE_URL": provider.base_url("openai")}
        words = ("--", PYTHON, "agent.py")
        recorded = run("record", "-o", "run", *words, cwd=tmp_path, **given, PACE="0 30 60 90")
        replayed = run("replay", "run", *words, cwd=tmp_path, **given, PACE="90 60 30 0")
    assert recorded.returncode == 0, recorded.stderr
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
