"""``reenact update``: what differs is made and recorded, the rest is answered from the capture."""

import pytest

from tests.cli.commands import PYTHON, run

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
    "several programs": (["sh", "-c", f"{PYTHON} agent.py x; {PYTHON} agent.py y"], 3, "several programs"),
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
