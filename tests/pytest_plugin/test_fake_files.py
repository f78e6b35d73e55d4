"""Tests whose files are fakes of pyfakefs; what is recorded has to reach the disk."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import Suite, printed

pytest_plugins = ["pytester"]

FAKES = {
    "the fixture": """
@pytest.mark.reenact
def test_it(fs):
    fs.create_file("/notes/question.txt", contents="Oslo?")
    got(search(open("/notes/question.txt").read()))
    with open("/notes/answer.txt", "w") as notes:
        notes.write("rain")
    got(sorted(os.listdir("/notes")), pathlib.Path("/notes/answer.txt").read_text())
""",
    "a block": """
@pytest.mark.reenact
def test_it():
    with Patcher() as patcher:
        patcher.fs.create_file("/question.txt", contents="Oslo?")
        got(search(open("/question.txt").read()), sorted(os.listdir("/")))
        got(search("inside"))
    got(search("outside"), os.path.exists("/question.txt"))
""",
    "a test before it": """
def test_fakes_alone(fs):
    fs.create_file("/a.txt", contents="a")

@pytest.mark.reenact
def test_it(fs):
    fs.create_file("/a.txt", contents="b")
    got(search(open("/a.txt").read()))
""",
}


@pytest.mark.parametrize("way", FAKES)
def test_a_run_among_fake_files_is_recorded_and_replayed(suite: Suite, way: str) -> None:
    imports = "import pathlib\nfrom pyfakefs.fake_filesystem_unittest import Patcher\n"
    suite.write(test_it=imports + FAKES[way])
    plugin = ("-p", "pyfakefs.pytest_plugin", "-s")
    recorded = suite.run_apart(*plugin, "--reenact=record")
    recorded.assert_outcomes(passed=FAKES[way].count("def test"))
    replayed = suite.run_apart(*plugin)
    replayed.assert_outcomes(passed=FAKES[way].count("def test"))
    assert printed(replayed, "got") == printed(recorded, "got") != []
    assert printed(replayed, "live") == []
    assert suite.captures() == ["captures/test_it/test_it"]
