"""``pi``, forked: another answer of its model, or another model; its shell command really runs."""

import json

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import run
from tests.npm.test_pi import recorded

__all__ = ["recorded"]


@pytest.fixture(scope="module")
def forking(recorded):
    """Runs ``reenact`` with pi's command behind the words."""

    def do(verb, path, *words):
        (recorded.work / "answer.txt").unlink(missing_ok=True)
        command = [verb, recorded.folder / path, *words, "--port", recorded.port, "--", *recorded.words]
        return run(*command, cwd=recorded.work, **recorded.environment)

    return do


def shares(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["shares"]


def test_its_last_answer_is_another_one(recorded, forking):
    """Streamed answers have the paths of the message; nothing goes live, and the fork replays."""
    place = recorded.folder / "said"
    done = forking("fork", "run", "--at", 6, "--set", '$.content[0].text="Forty-two."', "--json", "-o", place)
    assert shares(done) == {"prefix": 1, "recording": 0, "nearest": 0, "live": 0}
    assert "Forty-two." in done.stderr
    again = forking("replay", "said")
    assert (again.returncode, again.stdout) == (0, "Forty-two.\n"), again.stderr
    found = run("diff", "run", "said", cwd=recorded.folder)
    assert found.returncode == 1
    assert 'said is a fork of run at event 6: $.content[0].text = "Forty-two."' in found.stdout


def test_another_command_leads_to_another_answer(recorded, forking):
    """The model asks for another command: pi runs it, and asks with what it printed, which is a miss."""
    command = '$.content[0].input.command="echo 6 times 7"'
    missed = forking("fork", "run", "--at", 2, "--set", command, "-o", recorded.folder / "other")
    assert missed.returncode == 1
    assert "the recording does not have this call" in missed.stderr
    assert not (recorded.folder / "other").exists()
    with ScriptedProvider([Reply("It says: 6 times 7.")], port=recorded.provider_port) as provider:
        words = ["--set", command, "--on-miss", "live", "--json", "-o", recorded.folder / "other"]
        done = forking("fork", "run", "--at", 2, *words)
        assert len(provider.requests) == 1, done.stderr
        [request] = provider.requests
    assert shares(done) == {"prefix": 0, "recording": 0, "nearest": 0, "live": 1}
    assert "6 times 7" in request.tool_results[0].text
    again = forking("replay", "other")
    assert (again.returncode, again.stdout) == (0, "It says: 6 times 7.\n"), again.stderr


def test_another_model_is_asked_from_a_call_on(recorded, forking):
    """The first answer comes from the recording, the second from the model that the fork names."""
    with ScriptedProvider([Reply("Another model's answer.")], port=recorded.provider_port) as provider:
        words = ["--model", "other-model", "--on-miss", "live", "--json", "-o", recorded.folder / "model"]
        done = forking("fork", "run", "--at", 6, *words)
        assert len(provider.requests) == 1, done.stderr
        [request] = provider.requests
    assert shares(done) == {"prefix": 1, "recording": 0, "nearest": 0, "live": 1}
    assert request.body["model"] == "other-model"
    again = forking("replay", "model")
    assert (again.returncode, again.stdout) == (0, "Another model's answer.\n"), again.stderr


def test_a_tool_that_pi_runs_itself_is_not_changed(recorded, forking):
    """Said in one line."""
    done = forking("fork", "run", "--at", 4, "--error", "TimeoutError", "-o", recorded.folder / "no")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "is a tool that the agent ran itself, whose model was asked at event 2; name" in done.stderr
