"""Processes that libraries start: recorded and answered like the agent's own."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
import uvloop

import reenact
from reenact.testing import Reply, ScriptedProvider

SOURCE = """
import asyncio, os, pty, subprocess, sys, threading, time
from subprocess import PIPE, Popen, check_output

import anyio

LINES = "import sys\\nfor line in sys.stdin: print('got', line, end='', flush=True)"
NOW = [sys.executable, "-c", "import time; print(time.time_ns())"]


class SafePopen(Popen):
    def close(self):
        return self.wait()


def ran():
    done = subprocess.run("date +%N; exit 3", shell=True, text=True, stdout=PIPE, stderr=subprocess.STDOUT)
    return done.stdout, done.returncode

def by_name():
    return check_output(NOW)

def timed_out():
    try:
        subprocess.run(["sleep", "30"], timeout=0.2)
    except subprocess.TimeoutExpired as error:
        return str(error)

def held():
    with SafePopen(NOW, stdout=PIPE) as process:
        assert isinstance(process, Popen)
        return process.stdout.read(), process.close(), process.pid

def pumped():
    process = Popen(["sh", "-c", "date +%N; date +%N >&2"], stdout=PIPE, stderr=PIPE, text=True)
    found = {}
    def pump(name):
        found[name] = getattr(process, name).read()
    threads = [threading.Thread(target=pump, args=(name,)) for name in ("stdout", "stderr")]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found, process.wait()

def talked():
    heard = []
    with Popen([sys.executable, "-c", LINES], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
        for word in ("one", "two"):
            process.stdin.write(word + "\\n")
            heard.append(process.stdout.readline())
    return heard, process.returncode

def chained():
    first = Popen(["date", "+%N"], stdout=PIPE)
    second = Popen(["cat"], stdin=first.stdout, stdout=PIPE)
    return second.communicate()[0], first.wait()

def system():
    with os.popen("date +%N") as pipe:
        return os.system("exit 6"), pipe.read()

def spawned():
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit $(( $(date +%-N) % 200 ))"], os.environ)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        time.sleep(0.01)
    other = os.posix_spawnp("sh", ["sh", "-c", "kill -9 $$"], os.environ)
    return pid, os.waitpid(other, 0)

def on_terminal():
    heard = []
    def read(fd):
        heard.append(os.read(fd, 1024))
        return b""
    status = pty.spawn(["sh", "-c", "date +%N; date +%N; exit 3"], read)
    return b"".join(heard), os.waitstatus_to_exitcode(status)

def missing():
    try:
        Popen(["no-such-program"])
    except FileNotFoundError as error:
        return str(error)

async def async_ran():
    process = await asyncio.create_subprocess_exec(*NOW, stdout=PIPE)
    return await process.communicate(), process.returncode, process.pid

async def async_shell():
    process = await asyncio.create_subprocess_shell("date +%N; exit 4", stdout=PIPE, stderr=PIPE)
    out = [line async for line in process.stdout]
    return out, await process.wait()

async def async_talked():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LINES, stdin=PIPE, stdout=PIPE)
    heard = []
    for word in (b"one\\n", b"two\\n"):
        process.stdin.write(word)
        await process.stdin.drain()
        heard.append(await process.stdout.readline())
    process.stdin.close()
    return heard, await process.stdout.read(), await process.wait()

async def async_named():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LINES, stdin=PIPE, stdout=PIPE)
    are_answered = []
    for _ in range(3):
        name = os.urandom(6).hex()
        process.stdin.write(f"{os.getcwd()} {name}\\n".encode())
        heard = await process.stdout.readline()
        are_answered.append(heard == f"got {os.getcwd()} {name}\\n".encode())
    process.stdin.close()
    return are_answered, await process.wait()

async def anyio_talked():
    async with await anyio.open_process([sys.executable, "-c", LINES]) as process:
        heard = []
        for word in (b"one\\n", b"two\\n"):
            await process.stdin.send(word)
            heard.append(await process.stdout.receive())
        await process.stdin.aclose()
        return heard, await process.wait()

async def anyio_ran():
    done = await anyio.run_process(NOW)
    return done.stdout, done.returncode

async def killed():
    process = await asyncio.create_subprocess_exec("sleep", "30")
    process.kill()
    return await process.wait()

async def at_once():
    async def one(n):
        process = await asyncio.create_subprocess_shell(f"sleep 0.0{n}; date +%N", stdout=PIPE)
        return (await process.communicate())[0]
    return await asyncio.gather(*map(one, (3, 1, 2)))
"""
WAYS = [
    *("ran", "by_name", "timed_out", "held", "pumped", "talked", "chained", "system", "missing"),
    *("spawned", "on_terminal"),
    *(
        "async_ran",
        "async_shell",
        "async_talked",
        "async_named",
        "anyio_talked",
        "anyio_ran",
        "killed",
        "at_once",
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("installed") / "site-packages"
    folder.mkdir()
    (folder / "a_library_that_spawns.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("a_library_that_spawns")
    sys.path.remove(str(folder))
    del sys.modules["a_library_that_spawns"]


def done_by(function: Callable[[], Any], run: Callable[[Any], Any] = asyncio.run) -> Any:
    result = function()
    return run(result) if asyncio.iscoroutine(result) else result


ON_LOOPS = [way for way in WAYS if way.startswith(("async", "anyio")) or way in ("killed", "at_once")]


@pytest.mark.parametrize(
    ("way", "loop"),
    [*((way, asyncio.run) for way in WAYS), *((way, uvloop.run) for way in ON_LOOPS)],
    ids=[*WAYS, *(f"{way}-uvloop" for way in ON_LOOPS)],
)
def test_a_librarys_program_answers_as_recorded(
    library: ModuleType, way: str, loop: Callable[[Any], Any], tmp_path: Path
) -> None:
    """Whichever way it is started; nothing runs in replay, and recording missed nothing."""
    with reenact.capture(tmp_path / "run") as run:
        recorded = done_by(getattr(library, way), loop)
    assert (run.warnings, run.manifest and run.manifest.status) == ([], "ok")
    with reenact.replay(tmp_path / "run") as again:
        assert done_by(getattr(library, way), loop) == recorded
    assert (again.blocked, again.divergences) == ([], [])


def test_a_pipe_may_end_after_its_process_is_over(
    library: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As uvloop tells it now and then: what is read to its end comes to its end in replay too."""

    def lose_output_late(transport: Any, fd: int, error: Exception | None) -> None:
        tell = partial(transport._protocol.pipe_connection_lost, fd, error)
        transport._loop.call_later(0.05 if fd == 1 else 0, tell)
        transport._try_finish()

    monkeypatch.setattr(BaseSubprocessTransport, "_pipe_connection_lost", lose_output_late)
    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(library.async_shell())
    with reenact.replay(tmp_path / "run"):
        assert asyncio.run(asyncio.wait_for(library.async_shell(), 20)) == recorded


def test_a_process_answers_under_the_names_and_in_the_folder_of_the_replay(
    library: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is told may be longer there; an answer comes when its question was asked."""
    for mode, place in ((reenact.capture, "here"), (reenact.replay, "a/longer/way")):
        (tmp_path / place).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / place)
        with mode(tmp_path / "run"):
            assert asyncio.run(library.async_named()) == ([True] * 3, 0)


def test_another_input_is_a_divergence(library: ModuleType, tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):
        asyncio.run(library.async_talked())
    library.LINES = library.LINES.replace("got", "has")
    try:
        with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
            asyncio.run(library.async_talked())
    finally:
        library.LINES = library.LINES.replace("has", "got")


def test_a_program_of_the_agents_own_is_recorded_once(library: ModuleType, tmp_path: Path) -> None:
    """As one call, although the standard library starts it below."""
    with reenact.capture(tmp_path / "run"):
        subprocess.run(["true"], check=True)
        asyncio.run(_run_true())
    events = [
        json.loads(line)["data"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    ]
    started = [data for data in events if "args" in data.get("request", {})]
    assert [data["request"]["args"] for data in started] == [["true"], ["true"]]
    assert library


def test_what_a_library_asks_of_the_host_is_no_call(tmp_path: Path) -> None:
    import platform

    with reenact.capture(tmp_path / "run", sources=["subprocess"]) as run:
        platform._uname_cache = None  # type: ignore[attr-defined]
        platform.uname().processor  # noqa: B018
    assert run.manifest is not None
    assert run.manifest.eventCount == 2


async def _run_true() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


ASKING = """
import json, os, sys, urllib.request
data = json.dumps({"model": "m", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""


@pytest.mark.parametrize("env", ["none", "given"])
def test_a_program_that_asks_a_model_is_followed(
    tmp_path: Path, env: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls belong to the run; in replay it is not started, and nobody asks."""
    with ScriptedProvider(Reply("Yes.")) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url("openai"))

        async def work() -> bytes:
            given = {**os.environ, "A": "1"} if env == "given" else None
            command = [sys.executable, "-c", ASKING, "Hello?"]
            return (await anyio.run_process(command, env=given)).stdout

        with reenact.capture(tmp_path / "run") as run:
            assert asyncio.run(work()) == b"Yes.\n"
        assert run.warnings == []
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    [asked] = [event["data"] for event in events if event["type"] == "llm_request"]
    assert (asked["lane"], asked["request"]["body"]["messages"][0]["content"]) == ("g/p~", "Hello?")
    with reenact.replay(tmp_path / "run"):
        assert asyncio.run(work()) == b"Yes.\n"


def test_a_spawned_program_whose_output_goes_elsewhere_is_refused(tmp_path: Path) -> None:
    """Nobody sees who reads it, so nothing could stand for it."""

    def agent() -> bytes:
        reading, writing = os.pipe()
        words = ["sh", "-c", "date +%N"]
        pid = os.posix_spawn("/bin/sh", words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
        os.close(writing)
        said = os.read(reading, 100)
        os.close(reading)
        os.waitpid(pid, 0)
        return said

    with reenact.capture(tmp_path / "run") as run:
        assert agent()
    assert len(run.warnings) == 1
    with pytest.raises(reenact.LiveCallBlocked), reenact.replay(tmp_path / "run"):
        agent()


def test_a_process_left_over_from_a_replay_is_over(library: ModuleType, tmp_path: Path) -> None:
    """Libraries tidy up when their objects are collected, which may be after the run."""
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"):
            process = library.Popen(["sleep", "30"])
        process.terminate()
        assert process.wait() in (0, -15)
        assert process.poll() in (0, -15)


def test_a_terminal_that_no_recording_has_says_nothing(library: ModuleType, tmp_path: Path) -> None:
    """A lenient replay with empty answers gives a program on a terminal one of its own form."""
    with reenact.capture(tmp_path / "run"):
        pass
    with reenact.replay(tmp_path / "run", policy="lenient", on_unmatched="empty", stall_s=0.2):
        assert library.on_terminal() == (b"", 0)
