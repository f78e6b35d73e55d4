"""``reenact record``: the child is left alone, its calls are in the capture, and it is said what happened."""

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

import reenact
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from tests.cli.commands import AGENTS, CAPTURE_FILES, ENVIRONMENT, PYTHON, agent, command, run


def event_types(path):
    return [event.__struct_config__.tag for event in CaptureReader(path).events()]


# What it leaves


def test_an_agent_is_recorded_without_an_edit(tmp_path):
    """Calls from threads, tasks and calls are all there; the agent's own capture block stands back."""
    done = run("record", "-o", "a", "--", *agent("lanes"), cwd=tmp_path)
    assert done.returncode == 0
    assert "failed: 'desk'" in done.stdout
    assert done.stderr.splitlines() == [
        "reenact: recorded a: 30 events, 20 calls: 11 rng, 8 tool, 1 clock",
        f"  replay it with: reenact replay a -- {PYTHON} {AGENTS}/lanes.py",
    ]
    types = event_types(tmp_path / "a")
    assert (types[0], types[-1]) == ("run_start", "run_end")
    assert types.count("tool_call") == types.count("tool_result") == 8
    assert not (tmp_path / "never-made").exists()


def test_steps_are_counted_as_show_counts_them(tmp_path):
    """An outcome belongs to the step of its call; reads of state and values of chance are steps, too."""
    report = reenact.record_command(agent("lanes"), tmp_path / "a", upstreams={})
    with reenact.open_artifact(tmp_path / "a") as artifact:
        artifact.index()
        assert report.steps == artifact.counts().kinds == {"rng": 11, "tool": 8, "clock": 1}
    assert list(report.steps.values()) == [11, 8, 1]


ENDINGS = {
    "by itself": ("pass", 0, "ok", None),
    "sys.exit": ("sys.exit(3)", 3, "error", "exit status 3"),
    "SystemExit": ("raise SystemExit(4)", 4, "error", "exit status 4"),
    "sys.exit with nothing wrong": ("sys.exit()", 0, "ok", None),
    "an exception": ("raise ValueError('no lamp')", 1, "error", "ValueError: no lamp"),
    "an interrupt": ("raise KeyboardInterrupt", 130, "error", "KeyboardInterrupt"),
    "at once": ("import os; os._exit(5)", 5, "error", "exit status 5"),
    "killed": ("import os; os.kill(os.getpid(), 9)", 137, "error", "interrupted"),
    "terminated": ("import os; os.kill(os.getpid(), 15)", 143, "error", "interrupted"),
}


@pytest.mark.parametrize(("code", "status", "run_status", "error"), ENDINGS.values(), ids=ENDINGS)
def test_however_the_child_ends_its_status_is_passed_on_and_the_capture_is_whole(
    code, status, run_status, error, tmp_path
):
    """A killed child's capture is recovered on the spot."""
    done = run("record", "-o", "a", "--", *agent("ending", code), cwd=tmp_path)
    assert done.returncode == status
    assert done.stdout == "12.5\n"
    manifest = CaptureReader(tmp_path / "a").manifest
    assert (manifest.status, manifest.error or None) == (run_status, error)
    assert manifest.exitStatus == status
    is_cut_off = error == "interrupted"
    assert ("the run was interrupted and has been recovered, 0 bytes cut" in done.stderr) is is_cut_off
    assert RunDir(tmp_path / "a").state is (RunState.RECOVERED if is_cut_off else RunState.COMPLETE)


def test_the_child_finds_its_surroundings_as_they_were(tmp_path):
    """No path, no variable and no module of the injection is left to see, but for the mode."""
    code = (
        "import os; print(sorted(n for n in os.environ if n.startswith('REENACT'))); "
        "print(os.environ['PYTHONPATH']); print([p for p in sys.path if 'injected' in p])"
    )
    done = run("record", "-o", "a", "--", *agent("ending", code), cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["['REENACT_MODE']", ENVIRONMENT["PYTHONPATH"], "[]"]


def test_the_users_own_sitecustomize_still_runs(tmp_path):
    """Ours stands in front of it and passes on."""
    (tmp_path / "sitecustomize.py").write_text("print('set up')\n")
    paths = f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"
    code = "print(sys.modules['sitecustomize'].__file__)"
    done = run("record", "-o", "a", "--", *agent("ending", code), cwd=tmp_path, PYTHONPATH=paths)
    ours, *childs = done.stdout.splitlines()
    assert (ours, childs) == ("set up", ["set up", "12.5", str(tmp_path / "sitecustomize.py")])
    assert len(event_types(tmp_path / "a")) == 4


def test_modules_and_console_scripts_are_recorded(tmp_path):
    """Whatever way the interpreter is started."""
    (tmp_path / "shop.py").write_text((AGENTS / "ending.py").read_text())
    script = tmp_path / "shop"
    script.write_text(f"#!{PYTHON}\nimport shop\n")
    script.chmod(0o755)
    forms = {"module": [PYTHON, "-m", "shop", "pass"], "script": ["./shop", "sys.exit(2)"]}
    for name, words in forms.items():
        done = run("record", "-o", name, "--", *words, cwd=tmp_path)
        assert "recorded" in done.stderr
        assert event_types(tmp_path / name) == ["run_start", "tool_call", "tool_result", "run_end"]
    assert CaptureReader(tmp_path / "module").event(1).data.argv == [Path(PYTHON).name, "-m", "shop", "pass"]


def test_a_process_that_makes_no_call_leaves_no_trace(tmp_path):
    """One before the agent is not taken for it."""
    line = f"{PYTHON} -c 'print(1)'; {PYTHON} {AGENTS}/ending.py 'sys.exit(3)'"
    done = run("record", "-o", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert done.returncode == 3
    assert CaptureReader(tmp_path / "a").event(1).data.argv[-1] == "sys.exit(3)"
    assert event_types(tmp_path / "a") == ["run_start", "tool_call", "tool_result", "run_end"]


def test_python_that_the_agent_starts_is_one_call_of_the_agents(tmp_path):
    """What it calls itself is not in the capture, and no other capture is made."""
    code = f"import subprocess; subprocess.run({agent('ending', 'pass')}, check=True)"
    done = run("record", "-o", "a", "--", *agent("ending", code), cwd=tmp_path)
    assert done.stdout == "12.5\n12.5\n"
    assert "recorded a: 6 events, 2 calls: 1 tool, 1 process\n" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_redaction_is_chosen(tmp_path):
    """It is in the manifest, and strict is the choice where CI is set."""
    for name, words, environment in (("a", ["--redact", "none"], {}), ("b", [], {"CI": "true"})):
        run("record", "-o", name, *words, "--", *agent("ending", "pass"), cwd=tmp_path, **environment)
    profiles = [CaptureReader(tmp_path / name).manifest.redaction.profile for name in ("a", "b")]
    assert profiles == ["none", "strict"]


# Where it goes


def test_without_a_directory_one_is_named_under_runs(tmp_path):
    """After the agent and the time."""
    run("record", "--", *agent("ending", "pass"), cwd=tmp_path)
    [path] = (tmp_path / "runs").iterdir()
    assert time.strptime(path.name, "ending-%Y%m%d-%H%M%S")
    assert RunDir(path).state is RunState.COMPLETE


def test_a_directory_that_is_not_empty_is_refused_before_the_child_starts(tmp_path):
    """Nothing is overwritten and nothing runs."""
    (tmp_path / "notes.txt").touch()
    done = run("record", "-o", ".", "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "reenact: .: is not empty (notes.txt); remove it or choose another directory\n"
    assert not (tmp_path / "started").exists()


def test_a_directory_with_a_capture_is_refused_with_the_way_to_replace_it(tmp_path):
    """Only when it is asked for."""
    words = ["record", "-o", "run", "--", *agent("ending", "pass")]
    run(*words, cwd=tmp_path)
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "reenact: run: holds a capture already (complete); "
        "remove it or choose another directory, or replace it with --force\n",
    )
    assert run("record", "--force", *words[1:], cwd=tmp_path).returncode == 0


# The alarm


def test_a_path_that_is_no_utf_8_is_refused_before_the_child_starts(tmp_path):
    """Processes of the command are told where to record in JSON."""
    done = run("record", "-o", os.fsdecode(b"a\x80"), "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 3
    assert "is not UTF-8; choose another path" in done.stderr
    assert [*tmp_path.iterdir()] == []


ASCII = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("words", [["record", "-o", "ö"], ["replay", "ä"]], ids=lambda words: words[0])
def test_a_path_that_the_locale_cannot_spell_is_refused_for_that(tmp_path, words):
    """It is UTF-8, but this Python was told that file names are ASCII."""
    assert run("record", "-o", "ä", "--", *agent("lanes"), cwd=tmp_path).returncode == 0
    done = run(*words, "--", *agent("lanes"), cwd=tmp_path, **ASCII)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "this Python takes file names for ascii; set PYTHONUTF8=1, or choose another path" in done.stderr


def test_a_child_without_calls_is_called_silent(tmp_path):
    """Its status is still passed on, and no empty capture is left."""
    done = run("record", "-o", "a", "--", PYTHON, "-c", "import sys; sys.exit(6)", cwd=tmp_path)
    assert done.returncode == 6
    assert done.stderr.startswith(
        "reenact: nothing was recorded: the command itself failed with exit status 6; the program "
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("words", [["true"], [PYTHON, "-I", "-c", "pass"]], ids=["no Python", "isolated"])
def test_a_child_that_cannot_be_injected_is_called_silent(words, tmp_path):
    """The message says what is needed."""
    done = run("record", "-o", "a", "--", *words, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("reenact: nothing was recorded: the command started no Python that reads")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An interpreter in which reenact is not installed."""
    path = tmp_path_factory.mktemp("bare")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", path], check=True)
    return str(path / "bin" / "python")


def test_a_python_without_reenact_runs_unrecorded(bare_python, tmp_path):
    """It is named, with the command that helps."""
    line = f"PYTHONPATH=${{PYTHONPATH%%:*}} {bare_python} -c 'print(1)'"
    done = run("record", "-o", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr == (
        f"reenact: nothing was recorded: {bare_python}: No module named 'reenact'; "
        "let the agent run in a Python where reenact is installed\n"
    )


# Signals


def start(tmp_path, code):
    """``reenact record`` with an agent that says its process id and does *code*."""
    code = f"import os, time; print(os.getpid(), flush=True); {code}"
    recording = subprocess.Popen(
        command("record", "-o", "a", "--", *agent("ending", code)),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert recording.stdout.readline() == "12.5\n"
    return recording, int(recording.stdout.readline())


@pytest.mark.parametrize(
    ("number", "status", "error"),
    [(signal.SIGINT, 130, "KeyboardInterrupt"), (signal.SIGTERM, 143, "interrupted")],
)
def test_a_signal_to_record_ends_the_child_and_the_capture(number, status, error, tmp_path):
    """Nobody is left behind, and what was recorded is whole."""
    recording, pid = start(tmp_path, "time.sleep(60)")
    recording.send_signal(number)
    recording.communicate(timeout=30)
    assert recording.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert CaptureReader(tmp_path / "a").manifest.error == error


_ON_A_TERMINAL = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        said += os.read(terminal, 1000)
    except OSError:
        break
    if said.endswith(b"ready\\r\\n"):
        os.write(terminal, b"\\x03")
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

_COUNTS_INTERRUPTS = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    try:
        time.sleep(0.3)
        print("once")
    except KeyboardInterrupt:
        print("twice")
"""


def test_ctrl_c_reaches_the_child_once(tmp_path):
    """The terminal has told it already, so it is not told again."""
    words = command("record", "-o", "a", "--", *agent("ending", _COUNTS_INTERRUPTS))
    done = subprocess.run(
        [PYTHON, "-c", _ON_A_TERMINAL, *words],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "once" in done.stdout
    assert "recorded a: 4 events, 1 call: 1 tool" in done.stdout


def test_a_run_can_be_watched_while_it_is_recorded(tmp_path):
    """show lists what there is; recover refuses, and says why."""
    recording, _ = start(tmp_path, "time.sleep(60)")
    try:
        shown, recovered = run("show", "a", cwd=tmp_path), run("recover", "a", cwd=tmp_path)
    finally:
        recording.terminate()
        recording.communicate(timeout=30)
    assert shown.returncode == 0
    assert "being recorded" in shown.stdout
    assert 'tool look_up(item="lamp")' in shown.stdout
    assert recovered.returncode == 1
    assert recovered.stdout == "a: is still being recorded; recover it when that has ended\n"


# Wrong usage

WRONG = {
    "no command": ([], 3, "Missing argument '[--] COMMAND...'; see: reenact record --help"),
    "an unknown program": (
        ["--", "no-such-program"],
        3,
        "no-such-program: No such file or directory; name a program that can be run",
    ),
    "an unknown profile": (["--redact", "some", "--", "true"], 3, "Invalid value for '--redact'"),
    "an unknown durability": (["--durability", "rock", "--", "true"], 3, "Invalid value for '--durability'"),
    "a file in the way": (["-o", "file", "--", "true"], 2, "file: is a file; record into another directory"),
}


@pytest.mark.parametrize(("words", "status", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line(words, status, message, tmp_path):
    """And nothing is left behind."""
    (tmp_path / "file").touch()
    done = run("record", *words, cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr.startswith(f"reenact: {message}")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.glob("*/*")] == []


# Whatever happens to the recording


CALLING = """
import os, shutil, sys, reenact
@reenact.tool
def work(number):
    return "x" * 5000
for number in range(int(sys.argv[2])):
    work(number)
    if number == 2 and sys.argv[1]:
        shutil.rmtree(sys.argv[1])
print("done")
sys.exit(7)
"""


def test_a_directory_that_is_deleted_leaves_the_exit_status(tmp_path):
    """The command's status is ours; the loss is said in a line."""
    (tmp_path / "agent.py").write_text(CALLING)
    done = run("record", "-o", "a", "--", PYTHON, "agent.py", "a", "10", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "done\n")
    assert "reenact: the capture is lost: a was removed while the command ran" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_replaced_leaves_the_exit_status(tmp_path):
    """By a file, and by one with other things in it."""
    for left in ("open('a', 'w')", "os.makedirs('a/b')", "os.symlink('nowhere', 'a')"):
        (tmp_path / "agent.py").write_text(
            CALLING.replace("shutil.rmtree(sys.argv[1])", f"{REMOVED}; {left}")
        )
        done = run("record", "-o", "a", "--", PYTHON, "agent.py", "a", "10", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
        assert "Traceback" not in done.stderr
        subprocess.run(["rm", "-rf", tmp_path / "a"], check=True)


REMOVED = "shutil.rmtree('a')"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 KB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("temp", ["elsewhere", "there too"])
def test_a_full_disk_leaves_the_exit_status(temp, small_disk, tmp_path):
    """Even where the disk is the one on which we hand orders over."""
    (tmp_path / "agent.py").write_text(CALLING)
    where = {"TMPDIR": str(small_disk)} if temp == "there too" else {}
    done = run("record", "-o", small_disk / "a", "--", PYTHON, "agent.py", "", "300", cwd=tmp_path, **where)
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_size_limit_leaves_the_exit_status(tmp_path):
    """The signal that comes with the limit is Python's to ignore, in the command and in ours."""
    (tmp_path / "agent.py").write_text(CALLING)
    words = command("record", "-o", "a", "--", PYTHON, "agent.py", "", "300")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 64; exec "$@"', "-", *words],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert "File too large" in done.stderr


# One directory, one command


def test_a_directory_is_claimed_before_the_command_starts(tmp_path):
    """A second recording into it is refused at once, and its command never starts."""
    first = subprocess.Popen(
        command("record", "-o", "a", "--", PYTHON, "-c", "import time; print(1, flush=True); time.sleep(60)"),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert first.stdout.readline() == b"1\n"
        done = run("record", "-o", "a", "--", PYTHON, "-c", "print('started')", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"a: is being recorded by process {first.pid}; record into another directory" in done.stderr
        recorded = run("recover", "a", cwd=tmp_path)
        assert recorded.returncode == 1
        assert "still being recorded" in recorded.stdout
    finally:
        first.terminate()
        first.communicate(timeout=30)
    assert not (tmp_path / "a").exists()


def test_of_many_that_start_at_once_one_records(tmp_path):
    """The others are refused before they could mix in anything."""
    (tmp_path / "agent.py").write_text(CALLING)
    words = command("record", "-o", "a", "--", PYTHON, "agent.py", "", "30")
    racing = [
        subprocess.Popen(
            words, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    done = [(*process.communicate(timeout=120), process.returncode) for process in racing]
    assert sorted(status for *_, status in done) == [2, 2, 2, 2, 7]
    assert [out for out, _, status in done if status == 2] == [""] * 4
    assert event_types(tmp_path / "a").count("tool_call") == 30
    assert sorted(os.listdir(tmp_path / "a")) == CAPTURE_FILES


def test_a_directory_with_a_capture_is_refused_as_what_it_is(tmp_path):
    """Not as one that is open, which it is for the moment in which it is looked at."""
    words = ("record", "-o", "a", "--", PYTHON, "-c", "import time; time.time()")
    assert run(*words, cwd=tmp_path).returncode == 0
    again = run(*words, cwd=tmp_path)
    assert again.returncode == 2
    assert "a: holds a capture already (complete); remove it" in again.stderr
    assert run("verify", "a", cwd=tmp_path).returncode == 0


def test_what_a_killed_command_left_is_no_claim(tmp_path):
    """The lock goes with the process; an empty directory can be recorded into again."""
    first = subprocess.Popen(
        command("record", "-o", "a", "--", PYTHON, "-c", "import time; print(1, flush=True); time.sleep(5)"),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first.stdout.readline()
    first.kill()
    first.communicate(timeout=30)
    (tmp_path / "agent.py").write_text(CALLING)
    done = run("record", "-o", "a", "--", PYTHON, "agent.py", "", "3", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert sorted(os.listdir(tmp_path / "a")) == CAPTURE_FILES


ONE_CALL = "import reenact, sys\n@reenact.tool\ndef f(x): return x\nf(sys.argv[1])\n"


def test_force_replaces_a_capture_once_there_is_a_new_one(tmp_path):
    """A command that records nothing leaves the old one as it was."""
    (tmp_path / "agent.py").write_text(ONE_CALL)
    agent = [PYTHON, "agent.py"]
    assert run("record", "-o", "run", "--", *agent, "one", cwd=tmp_path).returncode == 0
    first = (tmp_path / "run" / "events.jsonl").read_text()
    assert run("record", "-o", "run", "--", *agent, "two", cwd=tmp_path).returncode == 2
    done = run("record", "--force", "-o", "run", "--", "true", cwd=tmp_path)
    assert "nothing was recorded" in done.stderr
    assert (tmp_path / "run" / "events.jsonl").read_text() == first
    done = run("record", "--force", "-o", "run", "--", *agent, "two", cwd=tmp_path)
    assert "recorded run: 4 events" in done.stderr
    assert '"two"' in (tmp_path / "run" / "events.jsonl").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.py", "run"]


def test_force_replaces_captures_alone(tmp_path):
    """A folder with anything else in it is left alone."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.md").write_text("Call me")
    done = run("record", "--force", "-o", "thesis", "--", "true", cwd=tmp_path)
    assert (done.returncode, "is not empty (chapter.md)" in done.stderr) == (2, True)
    assert (tmp_path / "thesis" / "chapter.md").read_text() == "Call me"


def test_a_command_that_fails_by_itself_is_said_to(tmp_path):
    """Before any hint of ours about what may be wrong with the recording."""
    done = run("record", "--", "sh", "-c", "exit 7", cwd=tmp_path)
    assert done.returncode == 7
    assert done.stderr.startswith(
        "reenact: nothing was recorded: the command itself failed with exit status 7; "
    )


def test_the_replay_command_can_be_pasted(tmp_path):
    """Also where an argument has several lines."""
    (tmp_path / "agent.py").write_text(ONE_CALL)
    done = run("record", "-o", "run", "--", PYTHON, "agent.py", "it's\ntwo lines", cwd=tmp_path)
    again = done.stderr.partition("replay it with: reenact ")[2].strip()
    words = [PYTHON, "-m", "reenact"]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(words)} {again}"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "reproduced" in done.stderr


@pytest.mark.parametrize("hidden", [["--api-key", "correct-horse-battery"], ["-H", "x-token: abc123def456"]])
def test_the_replay_command_shows_no_secret(hidden, tmp_path):
    """What is printed may end in a log of CI; a name shows where a value is to be put back."""
    (tmp_path / "agent.py").write_text(ONE_CALL)
    done = run("record", "-o", "run", "--", PYTHON, "agent.py", *hidden, cwd=tmp_path)
    again = done.stderr.partition("replay it with: reenact ")[2]
    assert hidden[1].rpartition(" ")[2] not in done.stderr
    assert "<secret:" in again
    assert again.endswith("(with your own values for <secret:…>)\n")


GIVES_UP_ITS_RIGHTS = """
import os, time
time.time()
os.setgid(65534)
os.setuid(65534)
print(os.getuid(), time.time() > 0)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give up rights")
def test_an_agent_that_gives_up_its_rights_runs_as_ever(tmp_path):
    """It cannot write the end of the recording, or its report, any more; a line says so, no traceback."""
    (tmp_path / "agent.py").write_text(GIVES_UP_ITS_RIGHTS)
    for words, says in (("record", "-o", "run"), "interrupted"), (("replay", "run"), "nothing is proved"):
        done = run(*words, "--", PYTHON, "agent.py", cwd=tmp_path)
        assert done.stdout == "65534 True\n"
        assert says in done.stderr
        assert "Traceback" not in done.stderr
