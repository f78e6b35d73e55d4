"""``record`` and ``replay`` of programs in any language: one command, one capture, each call once."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from reenact.canonical import read_json
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from reenact.testing import Reply, ScriptedProvider, Timeout
from tests.cli.commands import AGENTS, CAPTURE_FILES, ENVIRONMENT, PYTHON, agent, command, run
from tests.injected.fenced import needs_fences

ISOLATED = [PYTHON, "-I", str(AGENTS / "asking.py")]
"""A Python that does not read our PYTHONPATH stands for all programs without seams."""
NODE = shutil.which("node")


@pytest.fixture
def provider():
    """A model that repeats what it was asked."""
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        yield provider


def recorded(provider, *words, cwd, **environment):
    base_url = provider.base_url("anthropic")
    return run("record", "-o", "a", *words, cwd=cwd, ANTHROPIC_BASE_URL=base_url, **environment)


def model_calls(path):
    """The lane of each recorded model call."""
    events = CaptureReader(path).events()
    return [event.data.lane for event in events if event.__struct_config__.tag == "llm_request"]


# Programs without seams

PROGRAMS = {
    "isolated Python": [*ISOLATED, "one", "two"],
    "Node": [NODE or "node", str(AGENTS / "asking.mjs"), "one", "two"],
}


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_without_seams_is_recorded_and_replayed_offline(words, provider, tmp_path):
    """As it is; the provider is gone when it is replayed, and the user's own address not even set."""
    if words[0] == "node":
        pytest.skip("node is not installed")
    done = recorded(provider, "--", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "one!\ntwo!\n"), done.stderr
    assert "reenact: recorded a: 6 events, 2 calls: 2 model\n" in done.stderr
    provider.stop()
    again = run("replay", "a", "--", *words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "one!\ntwo!\n"), again.stderr
    assert "a: reproduced, 2 calls answered from the capture" in again.stderr


def test_another_question_diverges(provider, tmp_path):
    """The program is told so, and the message says where it differs."""
    recorded(provider, "--", *ISOLATED, "one", cwd=tmp_path)
    provider.stop()
    done = run("replay", "a", "--", *ISOLATED, "two", cwd=tmp_path)
    assert done.returncode == 1
    assert "HTTP Error 400" in done.stderr
    assert 'differs at $.body.messages[0].content: expected "one", observed "two"' in done.stderr


def test_a_call_that_does_not_come_is_missed(provider, tmp_path):
    """Also where the rest was the same."""
    recorded(provider, "--", *ISOLATED, "one", "two", cwd=tmp_path)
    done = run("replay", "a", "--", *ISOLATED, "one", cwd=tmp_path)
    assert done.returncode == 1
    assert "event_missing" in done.stderr


ELSEWHERE = """
import os, socket
if os.path.exists("again"):
    with socket.socket() as client:
        print(client.connect_ex(("192.0.2.1", 443)) == 0)
"""


@needs_fences
def test_a_program_that_goes_elsewhere_gets_nowhere(provider, tmp_path):
    """It ignores its base URL for one call; the replay says who was refused what."""
    words = ["sh", "-c", f"{shlex.join([*ISOLATED, 'one'])}; {shlex.join([PYTHON, '-I', '-c', ELSEWHERE])}"]
    recorded(provider, "--", *words, cwd=tmp_path)
    (tmp_path / "again").touch()
    done = run("replay", "a", "--receipt", "receipt.json", "--", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "one!\nFalse\n"), done.stderr
    program = Path(PYTHON).resolve().name
    refused = f"{program} was refused a connection to 192.0.2.1:443"
    assert "1 call answered from the capture, nothing left this machine\n" in done.stderr
    assert f"  note: {refused}\n" in done.stderr
    assert read_json((tmp_path / "receipt.json").read_bytes())["notes"][0] == refused


PAST_PYTHON = """
import ctypes, os, socket, struct, reenact
lamp = reenact.tool(lambda: "lamp", name="look")()
if os.path.exists("again"):
    port, host = struct.pack(">H", 5432), socket.inet_aton("192.0.2.1")
    beyond = struct.pack("=H", socket.AF_INET) + port + host + bytes(8)
    with socket.socket() as client:
        lamp = ctypes.CDLL(None).syscall(CONNECT, client.fileno(), beyond, 16)
print(lamp)
""".replace("CONNECT", {"aarch64": "203"}.get(os.uname().machine, "42"))


@needs_fences
def test_a_library_that_goes_past_python_gets_nowhere(tmp_path):
    """As those do that open their sockets in C; the guard within Python does not see them."""
    run("record", "-o", "a", "--", PYTHON, "-c", PAST_PYTHON, cwd=tmp_path)
    (tmp_path / "again").touch()
    done = run("replay", "a", "--", PYTHON, "-c", PAST_PYTHON, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "-1\n"), done.stderr
    assert "nothing went live\n" in done.stderr
    assert "was refused a connection to 192.0.2.1:5432\n" in done.stderr


@needs_fences
def test_the_network_can_be_given_back(provider, tmp_path):
    words = ["sh", "-c", f"{shlex.join([*ISOLATED, 'one'])}; grep NoNewPrivs: /proc/self/status"]
    recorded(provider, "--", *words, cwd=tmp_path)
    fenced = run("replay", "a", "--", *words, cwd=tmp_path)
    assert fenced.stdout == "one!\nNoNewPrivs:\t1\n", fenced.stderr
    done = run("replay", "a", "--network", "--", *words, cwd=tmp_path)
    assert done.stdout == f"one!\n{own_status('NoNewPrivs')}\n", done.stderr
    assert "nothing was passed on\n" in done.stderr


def own_status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(name))


# Python with seams


def test_python_with_seams_goes_past_the_gateway(provider, tmp_path):
    """Its calls are recorded once, in its own lane, and it finds its own base URL."""
    words = [*agent("asking_by_client"), "one", "print(os.environ['ANTHROPIC_BASE_URL'])"]
    done = recorded(provider, "--", *words, cwd=tmp_path)
    assert done.stdout == f"{provider.base_url('anthropic')}\none!\n", done.stderr
    assert model_calls(tmp_path / "a") == ["0"]
    assert len(provider.requests) == 1
    provider.stop()
    again = run(
        *("replay", "a", "--", *words), cwd=tmp_path, ANTHROPIC_BASE_URL=provider.base_url("anthropic")
    )
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


def test_python_with_seams_may_know_the_gateway_from_elsewhere(provider, tmp_path):
    """The call is recorded by the gateway alone, and replayed there."""
    words = [*agent("asking_by_client"), "one", "os.environ['ANTHROPIC_BASE_URL'] = '{gateway}/anthropic'"]
    done = recorded(provider, "--", *words, cwd=tmp_path)
    assert done.stdout == "one!\n", done.stderr
    assert model_calls(tmp_path / "a") == ["g~"]
    provider.stop()
    again = run("replay", "a", "--", *words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "one!\n"), again.stderr


_LATE = """
import os, runpy, sys
os.mkdir("started")
sys.stdin.read()
sys.argv = ["", "one"]
runpy.run_path({agent!r})
"""

ORDERS = {
    "the gateway behind": ("{seamed} one && {other} two", ["0", "g~"]),
    "Python behind": (
        "(until [ -d started ]; do sleep 0.05; done; {other} two >&2; :) | {late}; rmdir started",
        ["g~", "0"],
    ),
}


@pytest.mark.parametrize(("line", "lanes"), ORDERS.values(), ids=ORDERS)
def test_both_are_one_capture(line, lanes, provider, tmp_path):
    """In the order of their calls, whoever came first; it verifies, and is replayed in both places."""
    seamed = AGENTS / "asking_by_client.py"
    (tmp_path / "late.py").write_text(_LATE.format(agent=str(seamed)))
    places = {"seamed": f"{PYTHON} {seamed}", "other": " ".join(ISOLATED), "late": f"{PYTHON} late.py"}
    words = ["sh", "-c", line.format(**places)]
    done = recorded(provider, "--", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert model_calls(tmp_path / "a") == lanes
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == CAPTURE_FILES
    assert run("verify", "a", cwd=tmp_path).returncode == 0
    provider.stop()
    again = run(
        *("replay", "a", "--", *words), cwd=tmp_path, ANTHROPIC_BASE_URL=provider.base_url("anthropic")
    )
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert "2 calls answered" in again.stderr


def test_what_a_python_agent_starts_is_shown_and_not_asked_again(provider, tmp_path):
    """It is one call of the agent's, so that in replay it does not run at all."""
    code = f"import subprocess; print(subprocess.run({[*ISOLATED, 'two']}, stdout=-1, text=True).stdout)"
    words = [*agent("asking_by_client"), "one", code]
    done = recorded(provider, "--", *words, cwd=tmp_path)
    assert done.stdout == "two!\n\none!\n", done.stderr
    assert sorted(model_calls(tmp_path / "a")) == ["0", "g/p~"]
    provider.stop()
    again = run(
        *("replay", "a", "--", *words), cwd=tmp_path, ANTHROPIC_BASE_URL=provider.base_url("anthropic")
    )
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


def test_python_that_starts_behind_the_gateway_is_a_tool(provider, tmp_path):
    """It is left alone when it is recorded, and it really runs in replay."""
    tool = f"{PYTHON} -c 'import time, random; print(time.time() > 0, random.random() < 1)'"
    line = f"{' '.join(ISOLATED)} one && {tool} && {tool}"
    done = recorded(provider, "--", "sh", "-c", line, cwd=tmp_path)
    assert done.stdout == "one!\nTrue True\nTrue True\n"
    assert "recorded a: 4 events, 1 call: 1 model\n" in done.stderr
    provider.stop()
    again = run("replay", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


# Addresses


def test_the_address_is_everywhere_it_may_be_looked_for(provider, tmp_path):
    """In the arguments, in the environment, and where --upstream names it."""
    line = 'echo $REENACT_GATEWAY $OPENAI_BASE_URL; ANTHROPIC_BASE_URL={gateway}/mine exec "$@"'
    words = ["sh", "-c", line, "sh", *ISOLATED, "one"]
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    options = ["--port", port, "--upstream", f"mine={provider.base_url('anthropic')}"]
    done = run("record", "-o", "a", *options, "--", *words, cwd=tmp_path)
    assert done.stdout == f"{address} {address}/openai\none!\n", done.stderr
    assert f"replay it with: reenact replay a --port {port} -- sh -c " in done.stderr
    provider.stop()
    again = run("replay", "a", "--port", port, "--", *words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


def test_the_environment_can_be_printed(tmp_path):
    """For configuration files, without running anything."""
    done = run("record", "--port", "4141", "--print-env", cwd=tmp_path)
    assert done.returncode == 0
    assert "OPENAI_BASE_URL=http://127.0.0.1:4141/openai\n" in done.stdout
    assert "REENACT_GATEWAY=http://127.0.0.1:4141\n" in done.stdout
    assert [*tmp_path.iterdir()] == []


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# The alarm


def test_a_program_that_asks_for_an_unknown_name_is_told_the_option(tmp_path):
    """And so is the user."""
    line = f"ANTHROPIC_BASE_URL={{gateway}}/mine {' '.join(ISOLATED)} one"
    done = run("record", "-o", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert "reenact: nothing was recorded: the command itself failed" in done.stderr
    assert "a request for /mine came to the gateway, but no upstream has this name" in done.stderr
    assert "--upstream mine=URL" in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_program_that_ignores_its_base_url_is_called_silent(provider, tmp_path):
    """With the variables it could read."""
    line = f"ANTHROPIC_BASE_URL={provider.base_url('anthropic')} {' '.join(ISOLATED)} one"
    done = run("record", "-o", "a", "--", "sh", "-c", line, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "one!\n")
    assert done.stderr.startswith("reenact: nothing was recorded: ")
    assert "ANTHROPIC_BASE_URL" in done.stderr
    assert done.stderr.count("\n") == 1


# Wrong usage

WRONG = {
    "no URL": (
        ["--upstream", "openai", "--", "true"],
        "--upstream openai: is not a base URL; write one that",
    ),
    "no port": (["--port", "70000", "--", "true"], "Invalid value for '--port'"),
    "a port for the print": (["--print-env"], "--print-env: a free port is known only while a command runs;"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line(words, message, tmp_path):
    """And nothing is left behind."""
    done = run("record", *words, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(f"reenact: {message}")
    assert done.stderr.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("verb", ["record", "replay"])
def test_a_port_in_use_is_one_line(verb, provider, tmp_path):
    """The command is not started."""
    recorded(provider, "--", *ISOLATED, "one", cwd=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        where = ["-o", "b"] if verb == "record" else ["a"]
        done = run(verb, *where, "--port", port, "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(f"reenact: port {port}: is in use;")
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


# Interruptions


@pytest.fixture
def interrupted(tmp_path):
    """``record`` with a program that has one answer and waits for another."""
    with ScriptedProvider([Reply("One."), Timeout(60)]) as provider:
        recording = subprocess.Popen(
            command("record", "-o", "a", "--", *ISOLATED, "one", "two"),
            cwd=tmp_path,
            env=ENVIRONMENT | {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert recording.stdout.readline() == "One.\n"
        while len(provider.requests) < 2:
            time.sleep(0.01)
        yield recording
        recording.kill()
        recording.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_a_whole_capture_and_no_process(number, interrupted, tmp_path):
    """The call that was under way is there, as given up."""
    os.killpg(interrupted.pid, number)
    _, said = interrupted.communicate(timeout=30)
    assert interrupted.returncode == 128 + number
    with pytest.raises(ProcessLookupError):
        os.killpg(interrupted.pid, 0)
    reader = CaptureReader(tmp_path / "a")
    assert reader.event(5).data.cancelled is True
    assert reader.manifest.exitStatus == 128 + number
    assert "recorded a: 6 events, 2 calls: 2 model" in said


def test_a_killed_record_leaves_a_capture_that_can_be_recovered(interrupted, tmp_path):
    """Every event that was there is there."""
    os.killpg(interrupted.pid, signal.SIGKILL)
    interrupted.communicate(timeout=30)
    assert RunDir(tmp_path / "a").state is RunState.INTERRUPTED
    assert run("recover", "a", cwd=tmp_path).returncode == 0
    assert model_calls(tmp_path / "a") == ["g~", "g~"]
