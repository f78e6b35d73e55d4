"""What is typed at a terminal: recorded there, and given again where there is no terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

REENACT = [sys.executable, "-m", "reenact"]
CHAT = """
    import reenact

    @reenact.tool
    def look_up(word):
        return f"{word}, looked up"

    while True:
        try:
            said = input("you> ")
        except EOFError:
            print("bye")
            break
        print(look_up(said))
"""
READS = """
    import asyncio, sys
    from getpass import getpass

    import reenact

    @reenact.tool
    def look_up(word):
        return f"{word}, looked up"

    print(look_up(sys.stdin.readline()))
    print(look_up(asyncio.run(asyncio.to_thread(input, "and> "))))
    print(len(look_up(getpass("key: "))) > 20)
    for line in sys.stdin:
        print(look_up(line))
"""


def write_agent(folder: Path, text: str) -> None:
    (folder / "agent.py").write_text(dedent(text))


def record_at_terminal(folder: Path, *typed: tuple[bytes, bytes]) -> None:
    """Record the agent at a terminal of its own; each text is typed when the one before it was printed."""
    above, terminal = os.openpty()
    process = subprocess.Popen(
        [*REENACT, "record", "-o", "run", "--", sys.executable, "-u", "agent.py"],
        cwd=folder,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(terminal)
    output = b""
    for printed, text in typed:
        while not output.endswith(printed):
            output += os.read(process.stdout.fileno(), 1)
        os.write(above, text)
    output += process.communicate(timeout=60)[0]
    os.close(above)
    assert process.returncode == 0, output.decode()


def replay(folder: Path, *, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [*REENACT, "replay", "run", "--strict-output", "--", sys.executable, "-u", "agent.py"]
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, timeout=60)


def tools(folder: Path) -> list[tuple[str, object]]:
    events = [json.loads(line) for line in (folder / "run" / "events.jsonl").read_text().splitlines()]
    names = {
        event["data"]["callId"]: event["data"]["tool"] for event in events if event["type"] == "tool_call"
    }
    return [
        (names[event["data"]["callId"]], event["data"].get("result"))
        for event in events
        if event["type"] == "tool_result"
    ]


def test_what_was_typed_is_typed_again(tmp_path: Path):
    write_agent(tmp_path, CHAT)
    record_at_terminal(tmp_path, (b"", b"lamp\nsofa\n\x04"))
    assert [result for name, result in tools(tmp_path) if name == "input"] == ["lamp", "sofa", None]
    ended = replay(tmp_path)
    assert "reproduced" in ended.stderr, ended.stderr
    assert ended.stdout.splitlines() == ["you> lamp, looked up", "you> sofa, looked up", "you> bye"]
    assert ended.stderr.startswith("lamp\nsofa\n")


def test_every_way_of_reading(tmp_path: Path):
    write_agent(tmp_path, READS)
    secret = b"correct horse battery staple"
    record_at_terminal(
        tmp_path, (b"", b"lamp\nsofa\n"), (b"key: ", secret + b"\n"), (b"True\n", b"bed\n\x04")
    )
    assert [name for name, _ in tools(tmp_path) if name != "look_up"] == [
        *("stdin", "input", "getpass", "stdin", "stdin")
    ]
    assert "horse" not in (tmp_path / "run" / "events.jsonl").read_text()
    ended = replay(tmp_path)
    assert "reproduced" in ended.stderr, ended.stderr
    assert [line for line in ended.stdout.splitlines() if line] == [
        *("lamp", ", looked up", "and> sofa, looked up", "True", "bed", ", looked up")
    ]


def test_another_prompt_and_more_questions_are_differences(tmp_path: Path):
    write_agent(tmp_path, CHAT)
    record_at_terminal(tmp_path, (b"", b"lamp\n\x04"))
    write_agent(tmp_path, CHAT.replace("you> ", "me> "))
    ended = replay(tmp_path)
    assert ended.returncode == 1
    assert '$.prompt: expected "you> ", observed "me> "' in ended.stderr
    write_agent(tmp_path, CHAT.replace('print("bye")', 'print(input("more> "))'))
    ended = replay(tmp_path)
    assert ended.returncode == 1
    assert "diverged" in ended.stderr


def test_a_lenient_replay_ends_the_input_where_nothing_was_typed(tmp_path: Path):
    write_agent(tmp_path, CHAT)
    record_at_terminal(tmp_path, (b"", b"lamp\n\x04"))
    write_agent(tmp_path, CHAT.replace("you> ", "Which one do you want to look up? "))
    command = [*REENACT, "replay", "run", "--policy", "lenient", "--on-unmatched", "empty"]
    ended = subprocess.run(
        [*command, "--", sys.executable, "agent.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert ended.stdout.endswith("bye\n"), ended.stderr
    assert "None" not in ended.stderr


@pytest.mark.parametrize("given", ["lamp\n", "sofa\n"])
def test_input_from_a_pipe_is_given_to_the_replay(tmp_path: Path, given: str):
    write_agent(tmp_path, CHAT)
    command = [*REENACT, "record", "-o", "run", "--", sys.executable, "agent.py"]
    subprocess.run(command, cwd=tmp_path, input=b"lamp\n", capture_output=True, check=True, timeout=60)
    assert tools(tmp_path) == [("look_up", "lamp, looked up")]
    assert (replay(tmp_path, given=given).returncode == 0) is (given == "lamp\n")


def test_a_debugger_is_no_part_of_the_run(tmp_path: Path):
    write_agent(tmp_path, CHAT.replace("while True", "breakpoint()\n    while True"))
    record_at_terminal(tmp_path, (b"", b"p 6 * 7\nc\nlamp\n\x04"))
    assert [result for name, result in tools(tmp_path) if name == "input"] == ["lamp", None]
