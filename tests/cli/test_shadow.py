"""``reenact shadow`` and samples of a fork, as commands."""

import json
import os
import signal
import subprocess
import time
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

import reenact
from reenact.cli import main
from reenact.formats.schemas import json_schema
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import ENVIRONMENT, PYTHON, command, run

AGENT = """
import os, sys, time
import httpx2
import reenact

@reenact.tool
def look_up(order):
    return f"{order} is on its way"

time.sleep(float(os.environ.get("PAUSE_S", 0)))
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
messages = [{"role": "user", "content": f"Where is order {sys.argv[1]}"}]
with httpx2.Client(headers={"x-api-key": "any"}, verify=False) as client:
    while True:
        body = {"model": "m", "max_tokens": 9, "system": "Help.", "messages": messages}
        answer = client.post(url, json=body).json()
        calls = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not calls:
            break
        messages.append({"role": "assistant", "content": answer["content"]})
        messages.append({"role": "user", "content": look_up(**calls[0]["input"])})
print(answer["content"][0]["text"])
"""


def _say(request):
    """Asked to be brief, the model does not look up order 3."""
    messages = request.body["messages"]
    number = messages[0]["content"].split()[-1]
    if len(messages) > 1:
        return Reply(text=f"Order {number}: {messages[-1]['content']}")
    if request.body["system"] == "Be <brief>." and number == "3":
        return Reply(text="Tomorrow.")
    return Reply(tool_calls=(ToolCall("look_up", {"order": f"A-{number}"}),))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "agent.py").write_text(AGENT)
    (folder / "prompt.txt").write_text("Be <brief>.")
    with ScriptedProvider(_say) as provider:
        environment = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic"), "ANTHROPIC_API_KEY": "any"}
        for number in "34":
            words = ["record", "-o", f"runs/{number}", "--", PYTHON, "agent.py", number]
            assert run(*words, cwd=folder, **environment).returncode == 0
        yield folder, environment


TEXT = ({"message", "type"}, set())
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "assertions", "time", "classname", "status"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": TEXT,
    "error": TEXT,
    "skipped": ({"message"}, set()),
    "system-out": (set(), set()),
}
"""What the schema of Jenkins allows: the attributes of each element, and what is in it."""


def check_junit(element):
    """Refuse what stands in no schema; the counts are those of the cases."""
    attributes, inside = JUNIT[element.tag]
    assert set(element.attrib) <= attributes, element.attrib
    assert {child.tag for child in element} <= inside
    if element.tag in ("testsuites", "testsuite"):
        counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
        for name, tag in counted.items():
            assert int(element.get(name, len(list(element.iter(tag))))) == len(list(element.iter(tag)))
    order = [child.tag for child in element if child.tag.startswith("system")]
    assert order == sorted(order)
    for child in element:
        check_junit(child)


CHANGED = ["--system", "prompt.txt", "--on-miss", "live"]


def test_a_shadow_run_is_reported_everywhere(shop):
    """Three columns on a page of its own, a case a run for JUnit, all of it in JSON."""
    folder, environment = shop
    words = ["shadow", "runs", *CHANGED, "--fail-on", "changed", "--html", "r.html", "--json", "r.json"]
    done = run(*words, "--junit", "/dev/stdout", "--", PYTHON, "agent.py", "{2:}", cwd=folder, **environment)
    assert done.returncode == 1, done.stderr
    text, _, xml = done.stdout.partition("<?xml")
    assert "other tools   runs/3" in text
    assert text.splitlines()[-1] == "no difference can be told from this many runs"
    document = ET.fromstring("<?xml" + xml)
    check_junit(document)
    cases = document.findall(".//testcase")
    assert [case.get("name") for case in cases] == ["runs/3", "runs/4"]
    report = json.loads((folder / "r.json").read_text())
    Draft202012Validator(json_schema("shadow")).validate(report)
    assert report["counts"] == {"same": 1, "words": 0, "tools": 1, "failed": 0}
    assert report["baseline"] == "replayed"
    page = (folder / "r.html").read_text()
    assert "other tools" in page
    assert "Be &lt;brief&gt;." in page
    assert "<script" not in page
    assert "<th>tokens<th>time" in page  # no cost is known
    assert "http" not in page.replace("http-equiv", "")


def test_another_text_that_is_printed_is_a_difference(shop):
    """The calls and the model's last answer are the same; what the new code prints of it is not."""
    folder, environment = shop
    (folder / "shouting.py").write_text(AGENT.replace('["text"])', '["text"].upper())'))
    done = run(
        "shadow", "runs", "--json", "-", "--", PYTHON, "shouting.py", "{2:}", cwd=folder, **environment
    )
    report = json.loads(done.stdout)
    assert report["counts"] == {"same": 0, "words": 2, "tools": 0, "failed": 0}
    assert report["runs"][0]["first"]["candidate"] == "prints something else"


def test_an_agent_that_never_prints_the_same_twice_is_judged_by_its_words(shop):
    """The old agent reproduces its calls and prints something else each time, and so does the new one."""
    folder, environment = shop
    (folder / "chatty.py").write_text("import os; print(os.urandom(9).hex())\n" + AGENT)
    record = ["record", "-o", "chatty/1", "--", PYTHON, "chatty.py", "4"]
    assert run(*record, cwd=folder, **environment).returncode == 0
    words = ["shadow", "chatty", "--json", "-", "--baseline", f"{PYTHON} chatty.py 4"]
    done = run(*words, "--", PYTHON, "chatty.py", "4", cwd=folder, **environment)
    assert json.loads(done.stdout)["counts"] == {"same": 1, "words": 0, "tools": 0, "failed": 0}


def test_step_by_step_asks_without_an_agent(shop):
    """Each request on its recorded history; a key is taken from the environment, which must have one."""
    folder, environment = shop
    words = ["shadow", "runs", "--system", "prompt.txt", "--step-by-step", "--json", "-"]
    done = run(*words, cwd=folder, **environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    Draft202012Validator(json_schema("shadow-steps")).validate(report)
    assert [(step["seq"], step.get("sameTools", False)) for step in report["steps"]] == [
        (2, False),
        (6, True),
        (2, True),
        (6, True),
    ]
    assert (report["tools"]["count"], report["tools"]["total"]) == (3, 4)
    keyless = run(*words, cwd=folder, ANTHROPIC_BASE_URL=environment["ANTHROPIC_BASE_URL"])
    assert keyless.returncode == 3
    assert "event 2: no API key; set ANTHROPIC_API_KEY" in keyless.stderr


def test_samples_are_grouped(shop):
    """Each is a fork of its own, which has all of its events where its parent is in a pack."""
    folder, environment = shop
    reenact.pack(folder / "runs" / "3", out=folder / "three.pack")
    words = ["fork", "three.pack#3", "--at", "2", *CHANGED, "-n", "2", "-o", "forks", "--json"]
    done = run(*words, "--", PYTHON, "agent.py", "3", cwd=folder, **environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [group["outcome"]["output"] for group in report["groups"]] == ["Tomorrow."]
    assert (report["endedWell"]["count"], report["same"]["count"]) == (2, 0)
    assert sorted(path.name for path in (folder / "forks").iterdir()) == ["1", "2"]
    assert report["parent"] == "three.pack#3"
    assert run("verify", "forks/2", cwd=folder).returncode == 0


MEETING = """
import os, sys, time
import reenact

@reenact.tool
def ask():
    return "Thursday"

ask()
meeting = sys.argv[1]
if os.path.isdir(meeting):
    open(os.path.join(meeting, str(os.getpid())), "x").close()
    deadline = time.monotonic() + 60
    while len(os.listdir(meeting)) < 2:
        assert time.monotonic() < deadline, "nobody else is at work"
        time.sleep(0.02)
"""


def test_samples_are_at_work_side_by_side(tmp_path):
    """Each waits for the other, which would never come if they were made one after the other."""
    (tmp_path / "agent.py").write_text(MEETING)
    words = [PYTHON, "agent.py", "meeting"]
    assert run("record", "-o", "run", "--", *words, cwd=tmp_path).returncode == 0
    (tmp_path / "meeting").mkdir()
    done = run(
        "fork", "run", "--at", 2, "-n", 2, "-j", 2, "-o", "forks", "--json", "--", *words, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["endedWell"]["count"] == 2, done.stdout


def test_ctrl_c_keeps_what_is_done(shop):
    """The sample under way is cleared away."""
    folder, environment = shop
    words = ["fork", "runs/3", "--at", "2", *CHANGED, "-n", "9", "-j", "1", "-o", "some"]
    process = subprocess.Popen(
        command(*words, "--", PYTHON, "agent.py", "3"),
        cwd=folder,
        env=ENVIRONMENT | environment | {"PAUSE_S": "0.5"},
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 50
    while not (folder / "some" / "1" / "manifest.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "of 9 (interrupted)" in said
    for fork in (folder / "some").iterdir():
        assert (fork / "manifest.json").exists()


def test_what_cannot_be_is_said_in_one_line(shop, monkeypatch, capsys):
    monkeypatch.chdir(shop[0])
    wrong = [
        (["runs"], 3, "Missing argument '-- COMMAND...'"),
        (["runs", "--model", "x", "--", PYTHON, "agent.py", "3"], 3, "choose --on-miss live"),
        (["runs", "--system", "none.txt", "--", PYTHON], 2, "none.txt: No such file"),
        (["runs", "--step-by-step"], 3, "nothing is changed; give"),
        (["nowhere", "--", PYTHON], 2, "nowhere: No such file or directory"),
        (["runs", "--", PYTHON, "agent.py", "{7}"], 3, "the recorded command has 3 words"),
        (["runs", "-o", "runs/3/x", "--", PYTHON], 2, "runs/3/x: is inside the capture that is forked"),
    ]
    for words, status, said in wrong:
        assert main(["shadow", *words]) == status
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert said in told
