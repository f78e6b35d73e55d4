"""``reenact update``: what differs is made and recorded, the rest is answered from the capture."""

import json

import pytest

from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.aging import make_older
from tests.cli.commands import AGENTS, PYTHON, agent, run

AGENT = """
import reenact, sys

@reenact.tool
def look(item):
    print("live", item)
    return item

for item in sys.argv[1:]:
    look(item)
sys.exit(1 if "sofa" in sys.argv else 0)
"""


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    assert run("record", "-o", "run", "--", PYTHON, "agent.py", "a", "b", "c", cwd=tmp_path).returncode == 0
    return tmp_path


def events(folder):
    return (folder / "run" / "events.jsonl").read_bytes().splitlines()


def test_only_what_differs_is_made(shop):
    """The other lines keep every byte, and the new capture replays."""
    before = events(shop)
    done = run("update", "run", "--", PYTHON, "agent.py", "a", "B", "c", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "live B\n")
    assert done.stderr == "reenact: run: updated, 2 calls answered from the capture, 2 new events\n"
    assert [one == other for one, other in zip(before, events(shop), strict=True)].count(False) == 2
    done = run("replay", "run", "--", PYTHON, "agent.py", "a", "B", "c", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "")
    assert run("verify", "run", cwd=shop).returncode == 0


CLOCK = """
import pathlib, reenact, sys
from datetime import datetime, timezone

@reenact.tool
def look(item):
    return item

look("a")
if "news" in sys.argv:
    file = pathlib.Path("clock")
    file.touch()
    look(f"news of {datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).isoformat()}")
"""


def test_a_run_of_another_day_stays_as_long_as_it_was(shop):
    """A time in a new request that no recorded clock gave is still that of its call."""
    (shop / "agent.py").write_text(CLOCK)
    run("record", "--force", "-o", "run", "--", PYTHON, "agent.py", cwd=shop)
    make_older(shop / "run")
    done = run("update", "run", "--", PYTHON, "agent.py", "news", cwd=shop)
    assert done.stderr == "reenact: run: updated, 1 call answered from the capture, 2 new events\n"
    assert "warning" not in run("verify", "run", cwd=shop).stdout
    shown = run("show", "run", cwd=shop).stdout
    assert " h" not in shown.partition("\n\n")[0], shown
    done = run("replay", "run", "--", PYTHON, "agent.py", "news", cwd=shop)
    assert done.returncode == 0, done.stderr


def test_nothing_that_differs_changes_nothing(shop):
    """And nothing is made."""
    before = events(shop)
    done = run("update", "run", "--", PYTHON, "agent.py", "a", "b", "c", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "reenact: run: unchanged, 3 calls answered from the capture\n"
    assert events(shop) == before


REFUSED = {
    "a command that fails": (
        [PYTHON, "agent.py", "sofa"],
        1,
        "the command itself failed, with exit status 1",
    ),
    "a command without a call": ([PYTHON, "-c", ""], 1, "the command made no call that reenact sees"),
    "no such program": (["no-such"], 3, "no-such: No such file or directory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_accepted_changes_nothing(shop, case):
    """One line says why."""
    before = events(shop)
    words, status, why = REFUSED[case]
    done = run("update", "run", "--", *words, cwd=shop)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    assert why in done.stderr
    assert events(shop) == before
    assert sorted(path.name for path in shop.iterdir()) == ["agent.py", "run"]


def test_several_programs_are_told_apart(shop):
    """One that is new is added, and one that is gone is not there any more."""
    words = ["sh", "-c", f"{PYTHON} agent.py a b c; {PYTHON} agent.py x"]
    done = run("update", "run", "--", *words, cwd=shop)
    assert (done.returncode, done.stdout) == (0, "live x\n"), done.stderr
    assert done.stderr == "reenact: run: updated, 3 calls answered from the capture, 2 new events\n"
    assert run("replay", "run", "--", *words, cwd=shop).returncode == 0
    assert run("verify", "run", cwd=shop).returncode == 0
    before = events(shop)
    assert "unchanged, 4 calls" in run("update", "run", "--", *words, cwd=shop).stderr
    assert events(shop) == before
    done = run("update", "run", "--", PYTHON, "agent.py", "a", "b", "c", cwd=shop)
    assert (done.stdout, done.returncode) == ("", 0)
    assert run("replay", "run", "--", PYTHON, "agent.py", "a", "b", "c", cwd=shop).returncode == 0


@pytest.fixture
def provider():
    """A model that repeats what it was asked."""
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        yield provider


def differing(before, after):
    """How many lines of the one are not in the other."""
    return len(set(before) - set(after)), len(set(after) - set(before))


@pytest.mark.parametrize("way", ["fork", "spawn", "os.fork"])
def test_children_are_updated_each_by_itself(way, provider, tmp_path):
    """The model is asked for what one of them asks otherwise, and for nothing else."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    recorded = run("record", "-o", "run", "--", *agent("family", way, "1", "2", "3"), cwd=tmp_path, **base)
    assert recorded.returncode == 0, recorded.stderr
    before, asked = events(tmp_path), len(provider.requests)
    same = run("update", "run", "--", *agent("family", way, "1", "2", "3"), cwd=tmp_path, **base)
    assert "unchanged, 8 calls answered from the capture" in same.stderr, same.stderr
    assert (events(tmp_path), len(provider.requests)) == (before, asked)
    words = agent("family", way, "1", "2", "three")
    done = run("update", "run", "--", *words, cwd=tmp_path, **base)
    assert done.returncode == 0, done.stderr
    assert [request.user_text for request in provider.requests[asked:]] == ["three"]
    assert differing(before, events(tmp_path)) == (2, 2)
    assert run("verify", "run", cwd=tmp_path).returncode == 0
    provider.stop()
    again = run("replay", "run", "--", *words, cwd=tmp_path, **base)
    assert again.returncode == 0, again.stderr
    assert sorted(again.stdout.splitlines()) == sorted(done.stdout.splitlines())


def test_a_process_that_is_killed_changes_nothing(provider, tmp_path):
    """What it would have come to is not known."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    run("record", "-o", "run", "--", *agent("family", "fork", "1", "2"), cwd=tmp_path, **base)
    before = events(tmp_path)
    done = run("update", "run", "--", *agent("family", "fork", "1", "die"), cwd=tmp_path, **base)
    assert done.returncode == 2, done.stderr
    assert "not updated" in done.stderr
    assert events(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


ISOLATED = [PYTHON, "-I", str(AGENTS / "asking.py")]


def test_a_program_behind_the_gateway_is_updated(provider, tmp_path):
    """In any language: what it asks as before is answered from the capture."""
    base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
    assert run("record", "-o", "run", "--", *ISOLATED, "1", "2", "3", cwd=tmp_path, **base).returncode == 0
    before, asked = events(tmp_path), len(provider.requests)
    same = run("update", "run", "--", *ISOLATED, "1", "2", "3", cwd=tmp_path)
    assert (same.stderr, same.returncode) == (
        "reenact: run: unchanged, 3 calls answered from the capture\n",
        0,
    )
    done = run("update", "run", "--", *ISOLATED, "1", "two", "3", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1!\ntwo!\n3!\n"), done.stderr
    assert [request.user_text for request in provider.requests[asked:]] == ["two"]
    assert differing(before, events(tmp_path)) == (2, 2)
    assert run("verify", "run", cwd=tmp_path).returncode == 0
    provider.stop()
    again = run("replay", "run", "--", *ISOLATED, "1", "two", "3", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


LOOP = """
import json, os, sys
from urllib.request import Request, urlopen

messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    request = Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
                      {"content-type": "application/json"})
    with urlopen(request, timeout=30) as response:
        content = json.load(response)["content"]
    messages.append({"role": "assistant", "content": content})
    calls = [block for block in content if block["type"] == "tool_use"]
    if not calls:
        print(content[-1]["text"])
        break
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": sys.argv[2]} for call in calls]})
"""


def test_tools_that_were_read_from_the_traffic_follow(tmp_path):
    """The call stays as it was; its result, and what comes of it, are new."""
    (tmp_path / "loop.py").write_text(LOOP)

    def answer(request):
        if not request.tool_results:
            return Reply(tool_calls=[ToolCall("find", {"number": "A-1"}, id="toolu_1")])
        return Reply(f"It is {request.tool_results[-1].text}.")

    words = [PYTHON, "-I", "loop.py", "Where?"]
    with ScriptedProvider(answer) as provider:
        base = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        recorded = run("record", "-o", "run", "--", *words, "here", cwd=tmp_path, **base)
        assert recorded.stdout == "It is here.\n", recorded.stderr
        before, asked = events(tmp_path), len(provider.requests)
        assert "unchanged" in run("update", "run", "--", *words, "here", cwd=tmp_path).stderr
        done = run("update", "run", "--", *words, "gone", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "It is gone.\n"), done.stderr
        assert len(provider.requests) == asked + 1
    found = [json.loads(line) for line in events(tmp_path)]
    assert [event["type"] for event in found] == [json.loads(line)["type"] for line in before]
    assert [event["data"]["result"] for event in found if event["type"] == "tool_result"] == ["gone"]
    assert events(tmp_path)[:4] == before[:4]
    assert run("verify", "run", cwd=tmp_path).returncode == 0
    again = run("replay", "run", "--", *words, "gone", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
