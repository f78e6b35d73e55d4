"""Codex, forked: another answer of its model leads to another shell command, which really runs."""

import json
import socket

import pytest

from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed
from tests.npm.test_others import AGENTS

COMMAND = "echo six times seven"


class Recorded:
    """Where it was recorded, and how to run it again."""

    def __init__(self, folder):
        codex = AGENTS["codex"]
        place = installed(codex.package, codex.version)
        program = next(each for each in place.parents if each.name == "node_modules") / ".bin" / "codex"
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._port = server.getsockname()[1]
        self._words = [
            "--port",
            self._port,
            "--",
            program,
            codex.words[0],
            "-m",
            "gpt-5-codex",
            *codex.words[1:],
        ]
        self.folder = folder
        (folder / "work").mkdir()
        told = {"HOME": folder, "CODEX_HOME": folder, "PWD": folder / "work"}
        self._environment = {name: str(place) for name, place in told.items()}
        self._environment |= {"TERM": "dumb", **codex.environment}

    def do(self, verb, *words, **environment):
        command = [verb, *words, *self._words]
        return run(*command, cwd=self.folder / "work", timeout_s=200, **self._environment, **environment)

    def events(self, name, event_type):
        """The numbers of the events of that type."""
        lines = map(json.loads, CaptureReader(self.folder / name).lines())
        return [event["seq"] for event in lines if event["type"] == event_type]


def answer(request):
    """Asks for a command, and tells what it printed."""
    if not request.tool_results:
        return Reply(tool_calls=[ToolCall("exec_command", {"cmd": COMMAND}, id="call_1")])
    said = "seven times eight" if "seven times eight" in request.tool_results[0].text else "six times seven"
    return Reply(f"It says: {said}.")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run of Codex; the provider is gone."""
    again = Recorded(tmp_path_factory.mktemp("codex"))
    with ScriptedProvider(answer) as model:
        again.provider_port = model.port
        done = again.do("record", "-o", again.folder / "run", OPENAI_BASE_URL=model.base_url("openai"))
    assert done.returncode == 0, done.stderr
    assert "It says: six times seven." in done.stdout
    return again


def fork(recorded, name, at, *words):
    options = ["--at", at, *words, "--json", "-o", recorded.folder / name]
    return recorded.do("fork", recorded.folder / "run", *options)


def test_its_last_answer_is_another_one(recorded):
    """Nothing goes live, the fork is whole and replays."""
    last = recorded.events("run", "llm_request")[-1]
    change = '$.output[0].content[0].text="Forty-two."'
    done = fork(recorded, "said", last, "--set", change)
    assert done.returncode == 0, done.stderr
    shares = json.loads(done.stdout)["shares"]
    assert (shares["recording"], shares["nearest"], shares["live"]) == (0, 0, 0)
    assert run("verify", recorded.folder / "said", cwd=recorded.folder).returncode == 0
    again = recorded.do("replay", recorded.folder / "said")
    assert again.returncode == 0, again.stderr
    assert "Forty-two." in again.stdout


def test_another_command_leads_to_another_answer(recorded):
    """Its model asks for another command: Codex runs it, and asks with what it printed."""
    first = recorded.events("run", "llm_request")[0]
    told = json.dumps(json.dumps({"cmd": "echo seven times eight"}))
    change = f"$.output[0].arguments={told}"
    missed = fork(recorded, "other", first, "--set", change)
    assert missed.returncode == 1
    assert "the recording does not have this call" in missed.stderr
    assert not (recorded.folder / "other").exists()
    with ScriptedProvider(answer, port=recorded.provider_port) as model:
        done = fork(recorded, "other", first, "--set", change, "--on-miss", "live")
        assert len(model.requests) == 1, done.stderr
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["shares"]["live"] == 1
    again = recorded.do("replay", recorded.folder / "other")
    assert again.returncode == 0, again.stderr
    assert "It says: seven times eight." in again.stdout
    found = run("diff", "run", "other", cwd=recorded.folder)
    assert f"other is a fork of run at event {first}" in found.stdout


def test_another_model_is_asked_from_a_call_on(recorded):
    """The first answer comes from the recording, the second from the model that the fork names."""
    last = recorded.events("run", "llm_request")[-1]
    with ScriptedProvider(answer, port=recorded.provider_port) as model:
        done = fork(recorded, "model", last, "--model", "other-model", "--on-miss", "live")
        assert [request.body["model"] for request in model.requests] == ["other-model"], done.stderr
    assert done.returncode == 0, done.stderr
