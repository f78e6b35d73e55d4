"""Processes: their outcomes are recorded, and in replay they are not run."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from asyncio import create_subprocess_exec
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, STDOUT, CalledProcessError, TimeoutExpired
from typing import Any

import pytest

import reenact

NANOSECONDS = "import time; print(time.time_ns())"
ECHO = "import sys; print(sys.stdin.read().upper(), end=''); print('said', file=sys.stderr)"
LINES = "import sys\nfor line in sys.stdin: print('got', line, end='', flush=True)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def by_popen(**options: Any) -> Any:
    with subprocess.Popen(python(NANOSECONDS), stdout=PIPE, **options) as process:
        return process.stdout.read(), process.wait(), process.pid, process.args


def talked_to() -> list[Any]:
    heard = []
    with subprocess.Popen(python(LINES), stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
        for word in ("one", "two"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            heard.append(process.stdout.readline())
        process.stdin.close()
        heard += [process.stdout.read(), process.wait(), process.poll()]
    return heard


def stopped() -> Any:
    with subprocess.Popen(python("import time; time.sleep(60)")) as process:
        first = process.poll()
        process.terminate()
        return first, process.wait(timeout=30)


def communicated() -> Any:
    process = subprocess.Popen(python(ECHO), stdin=PIPE, stdout=PIPE, stderr=PIPE)
    return process.communicate(b"hello"), process.returncode


PROGRAMS: dict[str, Callable[[], Any]] = {
    "run": lambda: subprocess.run(python(NANOSECONDS), capture_output=True),
    "run, text": lambda: subprocess.run(python(NANOSECONDS), capture_output=True, text=True, check=True),
    "run, not captured": lambda: subprocess.run(python("pass")),
    "run, keyword": lambda: subprocess.run(args=python("raise SystemExit(3)")).returncode,
    "run, input": lambda: subprocess.run(python(ECHO), input="hä?", capture_output=True, encoding="utf-8"),
    "run, no text": lambda: subprocess.run(python("import os; os.write(1, bytes(range(256)))"), stdout=PIPE),
    "run, shell": lambda: subprocess.run("echo $$; exit 4", shell=True, stdout=PIPE),
    "call": lambda: subprocess.call(python("raise SystemExit(2)")),
    "check_call": lambda: subprocess.check_call(python("pass")),
    "check_output": lambda: subprocess.check_output(python(NANOSECONDS), stderr=STDOUT),
    "getoutput": lambda: subprocess.getoutput("date +%N"),
    "getstatusoutput": lambda: subprocess.getstatusoutput("date +%N; exit 5"),
    "os.system": lambda: os.system("exit 6"),
    "os.popen": lambda: os.popen("date +%N").read(),
    "Popen": by_popen,
    "Popen, text": lambda: by_popen(text=True),
    "Popen, unbuffered": lambda: by_popen(bufsize=0),
    "Popen, talked to": talked_to,
    "Popen, stopped": stopped,
    "Popen, communicate": communicated,
}


def comparable(result: Any) -> Any:
    return vars(result) if isinstance(result, subprocess.CompletedProcess) else result


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_answers_as_recorded(name: str, tmp_path: Path) -> None:
    """The same answer of the same type; no process is started in replay."""
    with reenact.capture(tmp_path / "run"):
        recorded = PROGRAMS[name]()
    with reenact.replay(tmp_path / "run") as run:
        replayed = PROGRAMS[name]()
    assert comparable(replayed) == comparable(recorded)
    assert type(replayed) is type(recorded)
    assert run.blocked == []


def failing(kind: type[Exception], program: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(kind) as caught:
        program()
    return {"str": str(caught.value), "args": caught.value.args, **vars(caught.value)}


FAILURES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "check": (CalledProcessError, lambda: subprocess.run(python("exit(3)"), check=True, capture_output=True)),
    "check_call": (CalledProcessError, lambda: subprocess.check_call(python("exit(3)"))),
    "check_output": (
        CalledProcessError,
        lambda: subprocess.check_output(python("print(1); exit(3)"), text=True),
    ),
    "time-out": (
        TimeoutExpired,
        lambda: subprocess.run(
            python("import time; print(1, flush=True); time.sleep(60)"), stdout=PIPE, timeout=1
        ),
    ),
    "no such program": (FileNotFoundError, lambda: subprocess.run(["no-such-program"])),
    "no such program, Popen": (FileNotFoundError, lambda: subprocess.Popen(["no-such-program"])),
    "wrong use": (ValueError, lambda: subprocess.check_output(["true"], stdout=PIPE)),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    """The same exception with the same facts, and no time is waited out."""
    with reenact.capture(tmp_path / "run"):
        recorded = failing(*FAILURES[name])
    with reenact.replay(tmp_path / "run"):
        assert failing(*FAILURES[name]) == recorded


async def async_communicated() -> Any:
    process = await create_subprocess_exec(*python(ECHO), stdin=PIPE, stdout=PIPE, stderr=PIPE)
    return await process.communicate(b"hello"), process.returncode, process.pid


async def async_talked_to() -> Any:
    process = await asyncio.create_subprocess_exec(*python(LINES), stdin=PIPE, stdout=PIPE)
    heard = []
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        await process.stdin.drain()
        heard.append(await process.stdout.readline())
    process.stdin.close()
    heard += [line async for line in process.stdout]
    return heard, await process.wait()


async def async_shell() -> Any:
    at_once = [
        asyncio.create_subprocess_shell(f"sleep 0.0{n}; date +%N; exit {n}", stdout=PIPE) for n in (3, 1, 2)
    ]
    processes = await asyncio.gather(*at_once)
    outputs = await asyncio.gather(*(process.communicate() for process in processes))
    return outputs, [process.returncode for process in processes]


async def async_killed() -> Any:
    process = await asyncio.create_subprocess_exec(*python("import time; time.sleep(60)"))
    process.kill()
    return await process.wait()


@pytest.mark.parametrize("program", [async_communicated, async_talked_to, async_shell, async_killed])
def test_an_asynchronous_program_answers_as_recorded(program: Callable[[], Any], tmp_path: Path) -> None:
    """The same on an event loop."""
    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(program())
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(program()) == recorded
    assert run.blocked == []


PRINTING: dict[str, Callable[[], Any]] = {
    "run": lambda: subprocess.run(python(NANOSECONDS)).returncode,
    "run, to our output": lambda: subprocess.run(python(NANOSECONDS), stdout=1, stderr=STDOUT).returncode,
    "call": lambda: subprocess.call(python(NANOSECONDS)),
    "check_call": lambda: subprocess.check_call(python(NANOSECONDS)),
    "os.system": lambda: os.system("echo $$; kill -9 $$"),
    "a failure": lambda: os.system("echo $$; exit 3"),
    "what outlives it": lambda: os.system("echo $$; sleep 5 &"),
    "no text": lambda: os.system("printf '\\377\\n'; echo $$"),
}


@pytest.mark.parametrize("name", PRINTING)
def test_what_a_program_prints_is_printed_again(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It goes to our own output, in the same place, with the same status."""
    seen = []
    for begin in (reenact.capture, reenact.replay):
        with begin(tmp_path / "c"):
            os.write(1, b"before\n")
            status = PRINTING[name]()
            os.write(1, b"after\n")
        seen.append((status, capfd.readouterr().out))
    assert seen[0] == seen[1]
    assert len(seen[0][1].splitlines()) >= 3, seen[0]
    plain = PRINTING[name]()
    assert plain == seen[0][0]


@pytest.mark.parametrize(
    "options", [{}, {"text": True}, {"text": True, "bufsize": 1}, {"bufsize": 0}], ids=str
)
def test_what_was_written_before_communicate_arrives(options: dict[str, Any], tmp_path: Path) -> None:
    """Also if it is still in the buffer; afterwards the streams are closed."""
    begins, ends = ("be", "gun") if options.get("text") else (b"be", b"gun")

    def talk() -> tuple[object, ...]:
        process = subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE, **options)
        assert process.stdin
        assert process.stdout
        process.stdin.write(begins)
        said = process.communicate(ends)
        alone = subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE, **options)
        assert alone.stdin
        alone.stdin.write(begins)
        facts = (process.text_mode, process.encoding, process.errors, process.pipesize)  # type: ignore[attr-defined]
        return said, alone.communicate(), process.stdin.closed, process.stdout.closed, facts

    plain = talk()
    for begin in (reenact.capture, reenact.replay):
        with begin(tmp_path / "run") as run:
            assert talk() == plain
        assert run.divergences == []


def test_a_pipe_that_does_not_block_has_nothing_yet(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):
        process = subprocess.Popen(["sh", "-c", "read line; echo $line"], stdin=PIPE, stdout=PIPE)
        assert process.stdout
        os.set_blocking(process.stdout.fileno(), False)
        assert process.stdout.read(10) is None
        assert process.communicate(b"said\n")[0] == b"said\n"


def test_the_use_of_a_descriptor_is_said_when_it_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Because a replay has no pipe; to give a pipe to another program is no such use."""
    with reenact.capture(tmp_path / "run"):
        first = subprocess.Popen(["echo", "x"], stdout=PIPE)
        second = subprocess.Popen(["cat"], stdin=first.stdout, stdout=PIPE)
        assert second.communicate()[0] == b"x\n"
        first.communicate()
        assert caplog.messages == []
        third = subprocess.Popen(["echo", "y"], stdout=PIPE)
        assert third.stdout
        assert os.read(third.stdout.fileno(), 9) == b"y\n"
        third.communicate()
    [told] = caplog.messages
    assert told.startswith("echo: its stdout is used by its descriptor")
    with reenact.replay(tmp_path / "run", policy="lenient"):
        again = subprocess.Popen(["echo", "x"], stdout=PIPE)
        assert again.stdout
        with pytest.raises(io.UnsupportedOperation, match="is not run in a replay"):
            again.stdout.fileno()
        again.stdout.close()


def test_streams_of_asyncio_have_what_programs_use(tmp_path: Path) -> None:
    async def talk() -> list[object]:
        process = await create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        stdin, stdout = process.stdin, process.stdout
        assert isinstance(process, asyncio.subprocess.Process)
        assert isinstance(stdin, asyncio.StreamWriter)
        assert isinstance(stdout, asyncio.StreamReader)
        said: list[object] = [stdout.at_eof(), stdin.can_write_eof(), stdin.get_extra_info("none", "of it")]
        stdin.write(b"one\ntwo\n")
        stdin.write_eof()
        while not stdout.at_eof():
            said.append(await stdout.readline())
        return [*said, stdout.exception(), await process.wait()]

    plain = asyncio.run(talk())
    for begin in (reenact.capture, reenact.replay):
        with begin(tmp_path / "run") as run:
            assert asyncio.run(talk()) == plain
        assert run.divergences == []


def test_a_process_of_asyncio_has_its_status_when_it_has_ended(tmp_path: Path) -> None:
    """Also if nobody waited for it: programs poll it, or kill what has none."""

    async def poll() -> list[object]:
        process = await create_subprocess_exec("sh", "-c", "read line; exit 3", stdin=PIPE)
        said: list[object] = [process.returncode]
        assert process.stdin
        process.stdin.close()
        while process.returncode is None:
            await asyncio.sleep(0.01)
        return [*said, process.returncode, process.stdin.is_closing(), await process.wait()]

    plain = asyncio.run(asyncio.wait_for(poll(), 60))
    for begin in (reenact.capture, reenact.replay):
        with begin(tmp_path / "run") as run:
            assert asyncio.run(asyncio.wait_for(poll(), 60)) == plain
        assert run.divergences == []


BACKGROUND = """
import os, subprocess, sys
import reenact
started = "(read line; for number in $(seq 5000); do echo $number; done; touch %s) < go &"
with reenact.capture("inside"):
    os.system(started % "one")
    subprocess.run(started % "two", shell=True)
    print("the agent ends", flush=True)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    else:
        sys.exit("there is a child that the agent has not started")
"""


@pytest.mark.parametrize(
    "command", [[], ["-m", "reenact", "record", "-o", "run", "--"]], ids=["in it", "whole"]
)
def test_a_program_in_the_background_outlives_the_agent(command: list[str], tmp_path: Path) -> None:
    """It goes on to print when the recording has ended, as it would without it."""
    (tmp_path / "agent.py").write_text(BACKGROUND)
    os.mkfifo(tmp_path / "go")
    agent = [sys.executable, *command, *([sys.executable] if command else []), "agent.py"]
    with open(tmp_path / "printed", "wb") as printed:
        subprocess.run(agent, cwd=tmp_path, stdout=printed, stderr=subprocess.DEVNULL, check=True)
    (tmp_path / "go").write_text("go\n" * 2)
    until_s = time.monotonic() + 30
    said: list[str] = []
    while time.monotonic() < until_s and len(said) < 10_001:
        said = (tmp_path / "printed").read_text().split("\n")[:-1]
        time.sleep(0.05)
    assert said[0] == "the agent ends"
    assert sorted(said[1:], key=int) == sorted([*map(str, range(1, 5001))] * 2, key=int)
    assert (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


def test_a_program_is_one_call(tmp_path: Path) -> None:
    """Named after the program, with its arguments, folder and input; its output can be read."""
    with reenact.capture(tmp_path / "run"):
        subprocess.run(["/bin/cat", "-"], input=b"hello", stdout=PIPE, cwd="/")
    events = [
        json.loads(line)["data"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    ]
    call, outcome = events[1:3]
    assert (call["source"], call["key"]) == ("process", "cat")
    assert call["request"] == {"args": ["/bin/cat", "-"], "cwd": "/", "input": "hello"}
    assert outcome["value"] == {"returncode": 0, "stderr": None, "stdout": "hello"}


def test_another_command_diverges(tmp_path: Path) -> None:
    """With the path to the argument that differs."""
    with reenact.capture(tmp_path / "run"):
        subprocess.run(["echo", "one"], stdout=PIPE)
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        subprocess.run(["echo", "two"], stdout=PIPE)
    assert caught.value.divergence.json_path == "$.data.request.args[1]"


def test_secrets_in_an_output_are_hidden(tmp_path: Path) -> None:
    """Also where the agent reads bytes."""
    secret = "sk-ant-api03-" + "a1B2" * 22 + "AA"
    with reenact.capture(tmp_path / "run", redact=[secret]):
        subprocess.run(["echo", secret], stdout=PIPE)
    assert secret not in (tmp_path / "run" / "events.jsonl").read_text()


def test_a_stand_in_of_popen_is_one(tmp_path: Path) -> None:
    """The class may be tested for, subscripted, and used when no run is open."""
    with reenact.capture(tmp_path / "run"):
        kind = subprocess.Popen
        assert isinstance(kind(["true"]).wait(), int)
        assert kind[bytes]
    process = kind(["true"])
    assert type(process) is subprocess.Popen
    assert isinstance(process, kind)
    assert process.wait() == 0


def test_without_the_source_the_guard_refuses(tmp_path: Path) -> None:
    """A process that is not recorded must not run in replay either."""
    with reenact.capture(tmp_path / "run", sources=[]):
        subprocess.run(["true"])
    with pytest.raises(reenact.LiveCallBlocked), reenact.replay(tmp_path / "run"):
        subprocess.run(["true"])
