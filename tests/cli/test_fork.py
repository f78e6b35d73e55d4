"""``reenact fork``: a recorded command with something changed on the way, in all its processes."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from functools import partial

import pytest

import reenact
from reenact.cli import main
from reenact.testing import Fail, Reply, ScriptedProvider
from tests.cli.commands import AGENTS, ENVIRONMENT, PYTHON, agent, command, run

AGENT = """
import subprocess, sys, reenact

@reenact.tool
def price(item):
    print("live price", item)
    return {"item": item, "euros": 12}

@reenact.tool
def pay(euros):
    print("live pay", euros)
    return f"paid {euros}"

euros = price("lamp")["euros"]
taxed = subprocess.run([sys.executable, "tax.py", str(euros)], stdout=subprocess.PIPE, text=True).stdout
print(pay(int(taxed)))
"""
TAX = """
import sys, reenact

@reenact.tool
def tax(euros):
    return euros * 2

print(tax(int(sys.argv[1])))
"""
WORDS = [PYTHON, "agent.py"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The shop, recorded once."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "agent.py").write_text(AGENT)
    (folder / "tax.py").write_text(TAX)
    assert run("record", "-o", "run", "--", *WORDS, cwd=folder).returncode == 0
    return folder


@pytest.fixture
def shop(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "shop")


def test_a_change_is_followed_live(shop):
    """The fork is a capture: it is verified, compared and replayed."""
    done = run(
        "fork",
        "run",
        "--at",
        3,
        "--set",
        "$.euros=50",
        "--on-miss",
        "live",
        "-o",
        "f",
        "--",
        *WORDS,
        cwd=shop,
    )
    assert (done.returncode, done.stdout) == (0, "live pay 100\npaid 100\n"), done.stderr
    shares = "0 calls from the prefix, 0 from the recording, 2 live"
    assert done.stderr == f"reenact: f: forked from run at event 2: {shares}\n"
    assert run("verify", "f", cwd=shop).returncode == 0
    assert "50" in run("diff", "run", "f", cwd=shop).stdout
    again = run("replay", "f", "--", *WORDS, cwd=shop)
    assert (again.returncode, again.stdout) == (0, "paid 100\n"), again.stderr
    assert run("show", "f", cwd=shop).returncode == 0
    assert run("convert", "f", "--to", "replay-log", "-o", "log.jsonl", cwd=shop).returncode == 0
    assert run("verify", "log.jsonl", cwd=shop).returncode == 0


def test_no_change_is_the_parent(shop):
    """Nothing goes live, and the fork takes next to no room."""
    done = run("fork", "run", "--at", 2, "--json", "-o", "f", "--", *WORDS, cwd=shop)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["shares"] == {"prefix": 0, "recording": 3, "nearest": 0, "live": 0}
    assert sum(file.stat().st_size for file in (shop / "f").rglob("*") if file.is_file()) < 4096


REFUSED = {
    "no call": (["--at", "1"], 3, "run: event 1 (run_start) is not a call"),
    "no JSON": (
        ["--at", "3", "--set", "$.euros=many"],
        3,
        "many is not JSON; a text is written",
    ),
    "no value": (["--at", "3", "--set", "$.euros"], 3, "write PATH=VALUE"),
    "nothing to set": (["--at", "3", "--set", "=1"], 3, "a path is missing; write one as $.orders[0].due"),
    "no path": (["--at", "3", "--set", "$.cents=1"], 3, "there is no $.cents; $ has item, euros"),
    "no file": (["--at", "3", "--replace", "none.json"], 2, "none.json: No such file or directory"),
    "no JSON in the file": (["--at", "3", "--replace", "agent.py"], 2, "agent.py: is not JSON"),
    "no exception": (["--at", "3", "--error", "Sofa"], 3, "Sofa: is not a built-in exception"),
    "a missing call": (["--at", "3", "--set", "$.euros=1"], 1, "the recording does not have this call"),
    "a place that is taken": (["--at", "3", "-o", "run"], 2, "run: exists already"),
    "a place inside the parent": (["--at", "3", "-o", "run/f"], 2, "run/f: is inside the capture that is"),
    "no such program": (["--at", "3"], 3, "name a program that can be run"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_said_in_one_line(shop, case):
    """Nothing is half written, and the parent is left as it was."""
    options, status, said = REFUSED[case]
    before = sorted((file.name, file.read_bytes()) for file in (shop / "run").iterdir())
    words = ["/no/program"] if case == "no such program" else WORDS
    done = run("fork", "run", *options, "--", *words, cwd=shop)
    assert done.returncode == status, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert sorted((file.name, file.read_bytes()) for file in (shop / "run").iterdir()) == before
    assert sorted(file.name for file in shop.iterdir()) == ["agent.py", "run", "tax.py"]


WRONG = {
    "half a character": (["--set", '$.euros="\\ud800"'], 3, "a lone surrogate is not Unicode text"),
    "a number that is too large": (["--set", f"$.euros=1{'0' * 30}"], 3, "does not fit into 64 bits"),
    "NaN": (["--set", "$.euros=NaN"], 3, "NaN is not JSON"),
    "a key twice": (["--set", '$={"a":1,"a":2}'], 3, "the key 'a' appears twice"),
    "a place below a file": (["-o", "agent.py/f"], 2, "agent.py/f: agent.py is not a folder"),
    "samples inside the parent": (["-n", "2", "-o", "run/f"], 2, "run/f: is inside the capture that is"),
    "samples of a run in a pack": (
        ["-n", "2", "--of", "a.pack#run"],
        3,
        "a.pack#run: the fork cannot be written",
    ),
    "a run in a pack": (["--of", "a.pack#run"], 3, "a.pack#run: the fork cannot be written"),
    "a published log": (["--of", "log.jsonl"], 2, "log.jsonl: Not a directory"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_said_before_anything_runs(shop, case, monkeypatch, capsys):
    """In one line; no file is written."""
    monkeypatch.chdir(shop)
    reenact.pack("run", out="a.pack")
    reenact.publish("run", "log.jsonl")
    options, status, said = WRONG[case]
    parent = "run"
    if "--of" in options:
        parent, options = options[-1], options[:-2]
    before = {file: file.read_bytes() for file in shop.rglob("*") if file.is_file()}
    assert main(["fork", parent, "--at", "3", *options, "--", "/no/program"]) == status
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert {file: file.read_bytes() for file in shop.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": "3"}, "at '3' is not the number of an event"),
        ({"at": True}, "at True is not the number of an event"),
        ({"at": 3.0}, "at 3.0 is not the number of an event"),
        ({"at": 3, "change": {"set": {"$.euros": float("nan")}}}, "nan is not a JSON number"),
        ({"at": 3, "change": {"replace": {1: 2}}}, "keys are strings"),
        ({"at": 3, "change": {"replace": object()}}, "a object is not a JSON value"),
    ],
)
def test_python_is_told_the_same(shop, options, said):
    for fork in (reenact.fork, partial(reenact.fork_command, words=["/no/program"])):
        with pytest.raises(reenact.UsageError, match=re.escape(said)):
            fork(shop / "run", output=shop / "f", **options)
    assert not (shop / "f").exists()


def test_a_damaged_parent_is_refused(shop):
    """Before anything runs."""
    log = shop / "run" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"lamp", b"lump"))
    done = run("fork", "run", "--at", 3, "--", *WORDS, cwd=shop)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "the events are not those that were recorded" in done.stderr


@pytest.fixture
def provider():
    """A model that repeats what it was asked."""
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        yield provider


def test_children_are_forked_with_their_parent(provider, tmp_path):
    """The point may be in any of them; the others are answered from the recording."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    words = agent("family", "spawn", "1", "2", "3")
    assert run("record", "-o", "run", "--", *words, cwd=tmp_path, **base).returncode == 0
    asked = len(provider.requests)
    lines = (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    at = next(
        event["seq"] for event in events if event["type"] == "llm_response" and "2!" in json.dumps(event)
    )
    change = ["--set", '$.content[0].text="changed!"']
    done = run("fork", "run", "--at", at, *change, "-o", "f", "--", *words, cwd=tmp_path, **base)
    assert done.returncode == 0, done.stderr
    assert "changed!" in done.stdout
    assert len(provider.requests) == asked
    assert run("verify", "f", cwd=tmp_path).returncode == 0
    again = run("replay", "f", "--", *words, cwd=tmp_path, **base)
    assert again.returncode == 0, again.stderr
    assert "changed!" in again.stdout


ISOLATED = [PYTHON, "-I", str(AGENTS / "asking.py")]


def test_a_program_behind_the_gateway_is_forked(provider, tmp_path):
    """In any language; a miss goes live only if asked."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    assert run("record", "-o", "run", "--", *ISOLATED, "1", "2", "3", cwd=tmp_path, **base).returncode == 0
    asked = len(provider.requests)
    change = ["--at", 3, "--set", '$.content[0].text="other"']
    done = run("fork", "run", *change, "-o", "f", "--", *ISOLATED, "1", "2", "3", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "other\n2!\n3!\n"), done.stderr
    live = run(
        "fork", "run", *change, "--on-miss", "live", "-o", "g", "--", *ISOLATED, "1", "two", "3", cwd=tmp_path
    )
    assert (live.returncode, live.stdout) == (0, "other\ntwo!\n3!\n"), live.stderr
    assert [request.user_text for request in provider.requests[asked:]] == ["two"]
    failed = run("fork", "run", *change, "-o", "h", "--", *ISOLATED, "1", "two", "3", cwd=tmp_path)
    assert failed.returncode == 1
    assert not (tmp_path / "h").exists()
    provider.stop()
    for fork, words in (("f", ["1", "2", "3"]), ("g", ["1", "two", "3"])):
        assert run("verify", fork, cwd=tmp_path).returncode == 0
        again = run("replay", fork, "--", *ISOLATED, *words, cwd=tmp_path)
        assert again.returncode == 0, again.stderr


def test_a_program_behind_the_gateway_asks_another_model(provider, tmp_path):
    """As its request says: the agent itself knows nothing of it, and its replay neither."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    words = [*ISOLATED, "1", "2", "3"]
    assert run("record", "-o", "run", "--", *words, cwd=tmp_path, **base).returncode == 0
    asked = len(provider.requests)
    (tmp_path / "prompt.txt").write_text("Be brief.")
    change = ["--at", 4, "--model", "other", "--system", "prompt.txt", "--temperature", "0"]
    done = run("fork", "run", *change, "--on-miss", "live", "-o", "f", "--", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1!\n2!\n3!\n"), done.stderr
    assert "1 call from the prefix, 0 from the recording, 2 live" in done.stderr
    new = [request.body for request in provider.requests[asked:]]
    assert [(body["model"], body["system"], body["temperature"]) for body in new] == [
        ("other", "Be brief.", 0)
    ] * 2
    assert run("verify", "f", cwd=tmp_path).returncode == 0
    provider.stop()
    again = run("replay", "f", "--", *words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "1!\n2!\n3!\n"), again.stderr


def test_a_miss_goes_to_another_upstream(provider, tmp_path):
    """A request is the same wherever it is sent, so that calls before the point are found."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    assert run("record", "-o", "run", "--", *ISOLATED, "1", "2", "3", cwd=tmp_path, **base).returncode == 0
    provider.stop()
    words = [*ISOLATED, "1", "two", "3"]
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}?")) as other:
        change = ["--at", 3, "--set", '$.content[0].text="other"', "--on-miss", "live"]
        to = ["--upstream", f"anthropic={other.base_url('anthropic')}"]
        done = run("fork", "run", *change, *to, "-o", "f", "--", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "other\ntwo?\n3!\n"), done.stderr
        assert [request.user_text for request in other.requests] == ["two"]
    again = run("replay", "f", "--", *words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "other\ntwo?\n3!\n"), again.stderr


@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_written_where_no_model_answers(tmp_path, is_there):
    """Because the provider wants a key, or because nobody is there."""
    with ScriptedProvider(lambda request: Reply("yes")) as provider:
        base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        words = agent("asking_by_client", "1")
        assert run("record", "-o", "run", "--", *words, cwd=tmp_path, **base).returncode == 0
    change = ["--at", 2, "--model", "other", "--on-miss", "live", "-o", "f"]
    with ScriptedProvider(Fail(401), port=provider.port) as refusing:
        if not is_there:
            refusing.stop()
        done = run("fork", "run", *change, "--", *words, cwd=tmp_path, **base)
    assert done.returncode == 1, done.stderr
    said = done.stderr.splitlines()[-1]
    assert ("set its key" if is_there else "could not be reached") in said, said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_fork_that_waits_for_a_model_can_be_ended(tmp_path, tmp_path_factory, how):
    """One that is interrupted is what it was by then; one that was killed leaves its place free."""
    with ScriptedProvider(lambda request: Reply("yes")) as provider:
        base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        words = agent("asking_by_client", "1")
        assert run("record", "-o", "run", "--", *words, cwd=tmp_path, **base).returncode == 0
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    forking = ["fork", "run", "--at", 2, "--model", "other", "--on-miss", "live", "-o", "f", "--", *words]
    # Not a pipe: the agent of a fork that was killed may live on, and holds it open.
    told = tmp_path_factory.mktemp("told") / "stderr.txt"
    with socket.create_server(("127.0.0.1", provider.port)) as silent, told.open("w") as stderr:
        process = subprocess.Popen(
            command(*forking), cwd=tmp_path, env=ENVIRONMENT | base, stderr=stderr, start_new_session=True
        )
        asked, _ = silent.accept()
        with asked:
            os.kill(process.pid, how)
            process.wait(60)
    said = told.read_text()
    assert {file: file.read_bytes() for file in before} == before
    if how == signal.SIGINT:
        assert process.returncode == 130, said
        assert "could not be reached" not in said
        assert run("verify", "f", cwd=tmp_path).returncode == 0
        shutil.rmtree(tmp_path / "f")
    assert not (tmp_path / "f").exists()
    with ScriptedProvider(lambda request: Reply("no"), port=provider.port):
        assert run(*forking, cwd=tmp_path, **base).returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["f", "run"]
