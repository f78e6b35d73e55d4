"""Assertions on the files of a run."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

import reenact
from reenact.cli import main
from reenact.rerun import run_in_files
from reenact.store.reader import CaptureReader
from reenact.suite.files import CommandSucceedsInWorkspace, allow_commands
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture
from tests.suite.runs import judged, trace_of
from tests.suite.test_runner import write_test


def trace_with_files(folder):
    """A run that wrote a program, and a log that it removed."""
    work = Path(folder, "work")
    (work / "src").mkdir(parents=True)
    (work / "README").write_text("A project.\n")

    @reenact.tool
    def write(path: str, text: str) -> None:
        (work / path).write_text(text)

    @reenact.tool
    def remove(path: str) -> None:
        (work / path).unlink()

    capture = Path(folder, "run")
    with reenact.capture(capture, workspace=work):
        write("src/app.py", "print('hello')\n")
        write("build.log", "x")
        remove("build.log")
    names = {"trace_id": "t", "test_run_id": "r", "case": None}
    return trace_of_run(read_capture(CaptureReader(capture)), artifacts={"capture": str(capture)}, **names)


CASES = {
    "there": ("file_exists", {"path": "src/app.py"}, "pass"),
    "a folder": ("file_exists", {"path": "src", "kind": "folder"}, "pass"),
    "no folder": ("file_exists", {"path": "README", "kind": "folder"}, "fail"),
    "gone": ("file_exists", {"path": "build.log"}, "fail"),
    "gone, as expected": ("file_exists", {"path": "build.log", "exists": False}, "pass"),
    "text": ("file_contains", {"path": "src/app.py", "text": "hello"}, "pass"),
    "other text": ("file_contains", {"path": "src/app.py", "text": "Hello"}, "fail"),
    "pattern": ("file_contains", {"path": "src/app.py", "pattern": "^print"}, "pass"),
    "no file": ("file_contains", {"path": "src", "text": "hello"}, "fail"),
    "neither": ("file_contains", {"path": "src/app.py"}, "fail"),
    "unchanged": ("file_unchanged", {"path": "README"}, "pass"),
    "changed in between": ("file_unchanged", {"path": "build.log"}, "fail"),
    "changed folder": ("file_unchanged", {"path": "src"}, "fail"),
    "only these": ("files_changed_only", {"patterns": ["src/*", "*.log"]}, "pass"),
    "in between too": ("files_changed_only", {"patterns": ["src/*"]}, "fail"),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return trace_with_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(("kind", "params", "status"), CASES.values(), ids=CASES)
def test_files_are_judged(kind, params, status, trace):
    """At the end, and at every step where it matters."""
    found = judged(kind, params, trace)
    assert found.status == status, found.message


def test_a_run_without_files_fails_with_the_reason():
    """It holds nothing, and says what to do."""
    found = judged("file_exists", {"path": "a"}, trace_of())
    assert (found.status, "only a capture has files" in found.message) == ("fail", True)


# Commands

PYTHON = sys.executable


def checked(trace, **params):
    """What the assertion on a command says where commands are allowed."""
    return allow_commands(run_in_files)(trace, CommandSucceedsInWorkspace(**params))


def test_a_command_is_not_run_unless_it_is_allowed(trace):
    """It fails with the option that would run it, in one line."""
    found = judged("command_succeeds_in_workspace", {"command": "touch /tmp/never-made"}, trace)
    expected = "'touch /tmp/never-made' was not run: commands are run only with --allow-commands"
    assert (found.status, found.message) == ("fail", expected)
    assert not Path("/tmp/never-made").exists()


def test_a_command_runs_in_a_copy_of_the_files_at_the_end(trace):
    """It finds them, and what it writes is in the copy alone."""
    found = checked(trace, command=["sh", "-c", "cat README && cd src && python3 app.py && rm app.py && pwd"])
    assert found.passed, found.message
    said = found.observed["output"].splitlines()
    assert said[:2] == ["A project.", "hello"]
    assert not Path(said[2]).exists()
    assert checked(trace, command="python3 app.py", folder="src").passed
    assert checked(trace, command="test -f {workspace}/README", folder="src").passed


REFUSED = {
    "another status": (
        {"command": ["sh", "-c", "echo not; echo good >&2; exit 3"]},
        "found exit status 3: 'good'",
    ),
    "a signal": ({"command": ["sh", "-c", "kill -9 $$"]}, "found exit status 137: 'it said nothing'"),
    "no such program": ({"command": "no-such-program"}, "no-such-program: No such file or directory"),
    "too slow": ({"command": "sleep 600", "timeout_s": 1}, "it was stopped after 1 s"),
    "a shell's words": ({"command": "true && true"}, "no shell runs it; write [sh, -c, '…']"),
    "no words": ({"command": ""}, "is empty"),
    "half a quote": ({"command": "'"}, "not a command"),
    "a folder outside": ({"command": "true", "folder": "../.."}, "is not a folder of the recorded files"),
    "no folder": ({"command": "true", "folder": "README"}, "is not a folder of the recorded files"),
}


@pytest.mark.parametrize(("params", "message"), REFUSED.values(), ids=REFUSED)
def test_a_command_that_does_not_succeed_says_how(params, message, trace):
    """In one line, with the last line that it printed."""
    try:
        said = checked(trace, **params).message
    except reenact.UsageError as error:
        said = str(error)
    assert message in said
    assert "\n" not in said


def test_what_a_command_started_ends_with_its_time(trace, tmp_path):
    """Also where it does not want to, and holds on to its output."""
    script = f"trap '' TERM; (trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600) & wait"
    began = time.monotonic()
    assert not checked(trace, command=["sh", "-c", script], timeout_s=1).passed
    assert time.monotonic() - began < 20
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


def test_a_command_reaches_nobody_and_gets_no_secret(trace, monkeypatch):
    """The fence of replays stands around it, variables of secrets are not there, printed ones are hidden."""
    secret = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t" * 2
    monkeypatch.setenv("SOME_API_KEY", secret)
    code = "import os, socket; print(os.environ.get('SOME_API_KEY'), flush=True); "
    code += "socket.create_connection(('192.0.2.1', 80), 5)"
    found = checked(trace, command=[PYTHON, "-c", code])
    assert not found.passed
    if found.observed["offline"]:
        assert "Network is unreachable" in found.message
    assert found.observed["output"].startswith("None")
    printed = checked(trace, command=["echo", f"key {secret[:4]}{secret[4:]}"]).observed["output"]
    assert printed.startswith("key <secret:")


def test_output_without_end_costs_no_memory(trace):
    """Its end is kept."""
    found = checked(trace, command=["sh", "-c", "yes | head -c 3000000; echo over"])
    assert found.passed
    assert found.observed["output"].endswith("over\n")
    assert len(found.observed["output"]) <= 8192


def test_a_test_file_says_what_must_succeed(tmp_path, monkeypatch, capsys):
    """``reenact test --allow-commands`` runs it, ``reenact test`` says that it did not."""
    trace_with_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assertion = "{id: a, type: command_succeeds_in_workspace, params: {command: python3 src/app.py}}"
    write_test(tmp_path, assertion, "capture: run")
    assert main(["test", "test.yaml"]) == 1
    assert "was not run: commands are run only with --allow-commands" in capsys.readouterr().out
    assert main(["test", "test.yaml", "--allow-commands"]) == 0
    monkeypatch.setenv("REENACT_ALLOW_COMMANDS", "1")
    assert main(["test", "test.yaml"]) == 0


def test_a_test_runs_its_command_among_the_recorded_files(tmp_path, monkeypatch, capsys):
    """The agent is replayed in a folder with the files at the start, whatever became of them here."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "input.txt").write_text("recorded")
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import reenact\nfrom pathlib import Path\n@reenact.tool\ndef save(text):\n"
        "    Path('output.txt').write_text(text)\nsave(Path('input.txt').read_text())\n"
    )
    monkeypatch.chdir(work)
    assert main(["record", "-o", "../run", "--workspace", "--", PYTHON, str(agent)]) == 0
    monkeypatch.chdir(tmp_path)
    (work / "input.txt").write_text("other")
    source = f"capture: run, command: [{PYTHON}, agent.py]"
    write_test(tmp_path, "{id: a, type: divergence_free}", source)
    assert main(["test", "test.yaml"]) == 0, capsys.readouterr().out
    agent.write_text(agent.read_text().replace("save(Path", "save('x' + Path"))
    assert main(["test", "test.yaml"]) == 1
