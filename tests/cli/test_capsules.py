"""``reenact capsules``: what there is to judge by."""

import json

from reenact import canonical
from reenact.check.actions.action import ACTION
from reenact.cli import main


def test_capsules_are_listed_with_their_digest(capsys):
    """One line each; in JSON the whole digest."""
    assert main(["capsules"]) == 0
    assert capsys.readouterr().out.startswith(
        f"agent.action.replay.v1  1.0  {ACTION.digest[:12]}  One action"
    )
    assert main(["capsules", "--json"]) == 0
    assert [entry["digest"] for entry in json.loads(capsys.readouterr().out)] == [ACTION.digest]


def test_a_capsule_is_described_field_by_field(capsys):
    """What it takes and what it gives; ``?`` marks what may be absent."""
    assert main(["capsules", "agent.action.replay.v1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"  digest  {ACTION.digest}" in lines
    assert "takes: One action of an agent: a model's answer to a conversation" in lines
    words = [line.split() for line in lines]
    assert ["params.top_p?", "number", "0…1", "Share", "of", "probability", "sampled", "from"] in words
    assert ["input.messages[].role", "string", "Who", "speaks"] in words


def test_the_digest_is_that_of_the_manifest(capsys):
    """Anyone can compute it again."""
    assert main(["capsules", "agent.action.replay.v1", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["digest"] == canonical.digest(described["manifest"], "jcs")
    assert described["manifest"]["logic_version"] == "1"


def test_an_unknown_capsule_is_wrong_usage(capsys):
    """With those that are known."""
    assert main(["capsules", "nope"]) == 3
    assert "choose from agent.action.replay.v1" in capsys.readouterr().err
