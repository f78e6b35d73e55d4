"""Words of a command that are not in the encoding of the process."""

import json

import pytest

from tests.cli.commands import PYTHON, run

AGENT = "import reenact, sys\nreenact.tool(lambda word: ascii(word))(sys.argv[-1])\n"


@pytest.mark.parametrize(
    ("word", "told"), [("\udcc3\udca4ndern", "ändern"), ("\udcff", r"\xff")], ids=["UTF-8", "no text at all"]
)
def test_a_run_is_recorded_whatever_its_words_are(tmp_path, word, told):
    """They are recorded as UTF-8, or else by their bytes; each verb passes them on."""
    (tmp_path / "agent.py").write_text(AGENT)
    agent = ("--", PYTHON, "agent.py", word)
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in (
        ("record", "-o", "a", *agent),
        ("replay", "a", *agent),
        ("update", "a", *agent),
        ("fork", "a", "--at", "2", "--set", "$=1", *agent),
        ("shadow", "a", *agent),
    ):
        done = run(*words, cwd=tmp_path, **plain)
        assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    first = json.loads((tmp_path / "a" / "events.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["data"]["argv"][-1] == told
