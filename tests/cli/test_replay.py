"""``reenact replay``: reproduced or not, said in an exit status, a receipt and words."""

import json
import shutil

import pytest

from reenact.formats.replay_receipt import read_replay_receipt
from tests.cli.commands import AGENTS, PYTHON, agent, run
from tests.greeting import greeting
from tests.injected.fenced import needs_fences


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    """The capture of an agent that calls from everywhere, and what the agent said."""
    folder = tmp_path_factory.mktemp("lanes")
    done = run("record", "-o", "a", "--", *agent("lanes"), cwd=folder)
    return folder / "a", done.stdout


@pytest.fixture(scope="module")
def ending(tmp_path_factory):
    """The capture of an agent that made one call and ended well."""
    folder = tmp_path_factory.mktemp("ending")
    run("record", "-o", "a", "--", *agent("ending", "pass"), cwd=folder)
    return folder / "a"


@pytest.fixture
def edited(tmp_path):
    """The second agent with another first call."""
    path = tmp_path / "edited.py"
    path.write_text((AGENTS / "ending.py").read_text().replace('look_up("lamp")', 'look_up("desk")'))
    return [PYTHON, str(path), "pass"]


def test_the_same_agent_is_reproduced(lanes, tmp_path):
    """It says again what it said, random numbers and the clock included."""
    path, said = lanes
    done = run("replay", path, "--", *agent("lanes"), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == said
    assert (
        done.stderr == f"reenact: {path}: reproduced, 20 calls answered from the capture, nothing went live\n"
    )


def test_an_edited_agent_diverges(ending, edited, tmp_path):
    """The place in the capture and the place in the code are named."""
    done = run("replay", ending, "--", *edited, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    [_, told] = done.stderr.split(f"reenact: {ending}: diverged, 0 calls answered from the capture\n")
    assert told.splitlines() == [
        '  event_payload_mismatch: event 2: tool look_up differs at $.item: expected "lamp", observed "desk"',
        f"    called from  {tmp_path}/edited.py:13 in <module>",
        "    task         0",
        '    differs      $.item: expected "lamp", observed "desk"',
        "    near         event 2 (look_up, task 0): differs at 1 place",
    ]


def test_lenient_goes_on_and_still_says_that_it_differs(ending, edited, tmp_path):
    """The nearest recorded answer is given."""
    done = run("replay", ending, "--policy", "lenient", "--", *edited, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "12.5\n"
    assert "event_payload_mismatch: event 2: tool look_up differs" in done.stderr


def test_a_swallowed_divergence_is_still_one(ending, tmp_path):
    """An agent that catches everything is not reproduced by that."""
    path = tmp_path / "swallowing.py"
    code = (AGENTS / "ending.py").read_text().replace("print(look_up", "try: print(look_up")
    path.write_text(code.replace('"lamp"', '"desk"').replace("exec(", "except Exception: pass\nexec("))
    done = run("replay", ending, "--", PYTHON, path, "pass", cwd=tmp_path)
    assert done.returncode == 1
    assert "diverged, 0 calls answered" in done.stderr


ENDINGS = {
    "as recorded": ("sys.exit(3)", "sys.exit(3)", 0, "reproduced"),
    "with another status": (
        "sys.exit(3)",
        "sys.exit(4)",
        1,
        "the command ended with exit status 4, the recorded one with 3",
    ),
    "well at last": (
        "raise ValueError",
        "pass",
        1,
        "the recorded run ended with ValueError, this one without an error",
    ),
    "in the same error": ("raise ValueError", "raise ValueError", 0, "reproduced"),
    "at once": ("import os; os._exit(5)", "import os; os._exit(5)", 0, "reproduced"),
    "without a word": ("pass", "import os; os.kill(os.getpid(), 9)", 1, "ended before it could report"),
}


@pytest.mark.parametrize(("recorded", "code", "status", "message"), ENDINGS.values(), ids=ENDINGS)
def test_the_end_is_compared_as_well(recorded, code, status, message, tmp_path):
    """The recorded exit status must come again; without a report nothing is proved."""
    run("record", "-o", "a", "--", *agent("ending", recorded), cwd=tmp_path)
    done = run("replay", "a", "--", *agent("ending", code), cwd=tmp_path)
    assert done.returncode == status
    assert message in done.stderr


AT_EXIT = """
import asyncio, atexit, time

async def look_up_later(item):
    await asyncio.sleep(0.01)
    return look_up(item)

async def look_up_all():
    return await asyncio.gather(*(look_up_later(str(number)) for number in range(3)))

def end():
    time.sleep(0.05)
    print(look_up("desk"), asyncio.run(look_up_all()), flush=True)

atexit.register(end)
"""


def test_calls_of_exit_functions_are_replayed(tmp_path):
    """Also where Python starts no thread any more, as 3.12 does not while it shuts down."""
    recorded = run("record", "-o", "a", "--", *agent("ending", AT_EXIT), cwd=tmp_path)
    done = run("replay", "a", "--", *agent("ending", AT_EXIT), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == recorded.stdout


def test_what_would_go_live_is_refused(ending, tmp_path):
    """And named, although the agent swallowed it."""
    code = "import socket\ntry: socket.create_connection(('127.0.0.1', 9))\nexcept Exception: pass"
    done = run("replay", ending, "--", *agent("ending", code), cwd=tmp_path)
    assert done.returncode == 1
    assert "  refused: connect 127.0.0.1:9\n    called from  <string>:2 in <module>\n" in done.stderr


UNSEEN = """
import ctypes, socket, sys, uuid

uuid.uuid4()
port = int(sys.argv[1])
with socket.create_server(("127.0.0.1", 0)) as own:
    for asked in (port, own.getsockname()[1]):
        with socket.socket() as client:
            address = int(socket.AF_INET).to_bytes(2, sys.byteorder) + asked.to_bytes(2, "big")
            address += socket.inet_aton("127.0.0.1") + bytes(8)
            assert getattr(ctypes.CDLL(None), "__connect")(client.fileno(), address, 16) == 0
"""


@needs_fences
def test_a_server_that_only_native_code_asks_is_named(tmp_path):
    """No hook of Python sees the connection, so it is made; then nobody may say that nothing went live."""
    with greeting() as port:
        words = [PYTHON, "-c", UNSEEN, str(port)]
        run("record", "-o", "a", "--", *words, cwd=tmp_path)
        done = run("replay", "a", "--", *words, cwd=tmp_path)
        allowed = run("replay", "a", "--allow", f"127.0.0.1:{port}", "--", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f", nothing went live but connections to 127.0.0.1:{port}\n" in done.stderr
    note = f"made a connection to 127.0.0.1:{port}: no part of the run, so its answers were live"
    assert done.stderr.count("note:") == 1
    assert note in done.stderr
    assert f"nothing went live but what --allow names: 127.0.0.1:{port}\n" in allowed.stderr


def test_a_process_that_was_not_recorded_is_not_answered(ending, tmp_path):
    """One that asks nothing does not matter; a second agent is not told what the first was."""
    line = f"{PYTHON} -c 'print(1)'; {PYTHON} {AGENTS}/ending.py pass"
    assert run("replay", ending, "--", "sh", "-c", line, cwd=tmp_path).returncode == 0
    done = run("replay", ending, "--", "sh", "-c", f"{line}; {PYTHON} {AGENTS}/ending.py pass", cwd=tmp_path)
    assert done.returncode == 1
    assert "tool look_up was called, but the recording has no further call here" in done.stderr


def test_json_has_stdout_to_itself(ending, tmp_path):
    """What the agent prints goes to stderr then."""
    done = run("replay", ending, "--json", "--", *agent("ending", "pass"), cwd=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["verdict"], found["answered"], found["exitStatus"]) == ("reproduced", 1, 0)
    assert found["receipt"]["schema"] == "reenact.replay-receipt.v1"
    assert done.stderr == "12.5\n"


def test_the_receipt_is_written(ending, tmp_path):
    """With the verdict on the exit status in it, and a fingerprint of the agent's code."""
    run("replay", ending, "--receipt", "r.json", "--", *agent("ending", "sys.exit(3)"), cwd=tmp_path)
    receipt = read_replay_receipt((tmp_path / "r.json").read_bytes(), file="r.json")
    assert receipt.verdict == "diverged"
    assert receipt.divergences[0]["expected"] == {"exitStatus": 0}
    run("replay", ending, "--receipt", "s.json", "--", PYTHON, "-c", "pass", cwd=tmp_path)
    other = read_replay_receipt((tmp_path / "s.json").read_bytes(), file="s.json")
    assert receipt.fingerprint.code != other.fingerprint.code


def test_a_damaged_capture_is_refused_before_anything_runs(ending, tmp_path):
    """Exit 2 and the place."""
    damaged = tmp_path / "damaged"
    shutil.copytree(ending, damaged)
    (damaged / "events.jsonl").write_text((damaged / "events.jsonl").read_text().replace("lamp", "lump"))
    done = run("replay", "damaged", "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("reenact: damaged/events.jsonl: the events are not those")
    assert not (tmp_path / "started").exists()


def test_a_missing_blob_stops_the_agent_before_it_runs(tmp_path):
    """The process fails closed, and the command says why."""
    (tmp_path / "big.py").write_text(
        "import reenact\nfetch = reenact.tool(name='fetch')(lambda: 'x' * 50_000)\nprint(len(fetch()))\n"
    )
    run("record", "-o", "a", "--", PYTHON, "big.py", cwd=tmp_path)
    shutil.rmtree(tmp_path / "a" / "blobs")
    done = run("replay", "a", "--", PYTHON, "big.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("reenact: ")
    assert "blobs" in done.stderr


def test_a_python_without_reenact_does_not_run(ending, tmp_path):
    """Unwatched is not an option in replay."""
    (tmp_path / "reenact").mkdir()
    (tmp_path / "reenact" / "__init__.py").write_text("raise ImportError('not this one')\n")
    line = f"PYTHONPATH=${{PYTHONPATH%%:*}}:{tmp_path} {PYTHON} -c 'print(1)'"
    done = run("replay", ending, "--", "sh", "-c", line, cwd=tmp_path / "reenact")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"reenact: {PYTHON}: not this one; let the agent run in a Python where")


WRONG = {
    "no such capture": (["{capture}-2", "--", "true"], 2, "{capture}-2: No such file or directory"),
    "no command": (["{capture}"], 3, "Missing argument '-- COMMAND...'"),
    "an unknown program": (["{capture}", "--", "no-such"], 3, "no-such: No such file or directory"),
    "an unknown policy": (["{capture}", "--policy", "x", "--", "true"], 3, "Invalid value for '--policy'"),
    "no folder for the receipt": (
        ["{capture}", "--receipt", "no/such/folder.json", "--", "true"],
        3,
        "no/such/folder.json: its folder does not exist; make it first",
    ),
    "no Python": (
        ["{capture}", "--", "true"],
        1,
        "{capture}: nothing is proved: the command started no Python",
    ),
}


@pytest.mark.parametrize(("words", "status", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line(words, status, message, ending, tmp_path):
    """Each with its exit status."""
    done = run("replay", *(word.format(capture=ending) for word in words), cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr.startswith(f"reenact: {message.format(capture=ending)}")
    assert done.stderr.count("\n") == 1


def test_the_rules_in_force_are_named(tmp_path):
    """Whoever reads that a run was reproduced reads under which rules."""
    (tmp_path / "agent.py").write_text(
        "import reenact\n@reenact.tool\ndef search(query): return query\nsearch('bees')\n"
    )
    run("record", "-o", "a", "--", PYTHON, "agent.py", cwd=tmp_path)
    done = run("replay", "a", "--volatile", "tool search $.query", "--", PYTHON, "agent.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "  rule in force: tool search $.query\n" in done.stderr
    refused = run("replay", "a", "--volatile", "tool search $", "--", PYTHON, "agent.py", cwd=tmp_path)
    assert refused.returncode == 3
    assert "name the part that may differ" in refused.stderr
