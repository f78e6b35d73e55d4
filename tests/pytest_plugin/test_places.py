"""Where captures are, and how they get there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reenact
from reenact.store.paths import folder_name
from reenact.store.place import staging_folder
from reenact.store.rundir import RunDir
from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

# Names

OWN = [
    "test_one",
    "TestIt.test_one",
    "test_one[a-1.5-b_c]",
    "test_one[]",
    "Test1.Test2.test_x",
    "test-dashed",
]


@pytest.mark.parametrize("name", OWN)
def test_plain_names_are_their_own_folder(name: str) -> None:
    """So that a person finds the capture of a test."""
    assert folder_name(name) == name


READABLE = {
    "test_one[a/b]": r"test_one\[a_b~\w{12}\]",
    "test_one[Oslo]": r"test_one\[Oslo~\w{12}\]",
    "test_one[../../etc]": r"test_one\[\.\._\.\._etc~\w{12}\]",
    "test_größe": r"test_gr_e~\w{12}",
    "test_one[" + "x" * 300 + "]": r"test_one\[x+~\w{12}\]",
    "test_" + "x" * 300: r"test_x+~\w{12}",
    "..": r"\.\.~\w{12}",
    "": r"~\w{12}",
}


@pytest.mark.parametrize("name", READABLE)
def test_other_names_stay_readable(name: str) -> None:
    """A digest of the whole makes them unique."""
    assert re.fullmatch(READABLE[name], folder_name(name), re.ASCII)


@given(st.text(max_size=300), st.text(max_size=300))
def test_different_tests_have_different_folders(one: str, other: str) -> None:
    """On file systems that ignore case, too, as far as parameters go."""
    names = [folder_name(f"test_it[{text}]") for text in (one, other)]
    assert (names[0].lower() == names[1].lower()) is (one == other)


@given(st.text(max_size=300))
def test_every_name_is_safe_on_any_file_system(name: str) -> None:
    """Short, and of plain characters."""
    folder = folder_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_.\[\]~-]{1,100}", folder)
    assert folder not in (".", "..")


def test_every_test_has_its_own_place(suite: Suite) -> None:
    """Beside its file: by module, class, name and parameters."""
    test = "@pytest.mark.reenact\ndef test_one():\n    search('a')\n"
    suite.pytester.mkdir("sub")
    suite.pytester.path.joinpath("pytest.ini").write_text(
        "[pytest]\naddopts=--import-mode=importlib\npythonpath=.\n"
    )
    suite.write(
        test_a=test,
        test_b=test
        + """
@pytest.mark.reenact
@pytest.mark.parametrize("city", ["oslo", "a/b"])
class TestIt:
    def test_one(self, city):
        search("a")

    class TestInner:
        def test_one(self, city):
            search("a")
""",
    )
    suite.write(**{"sub/test_a": test})
    suite.run("--reenact=record").assert_outcomes(passed=7)
    digests = re.compile(r"~\w{12}")
    assert [digests.sub("~#", place) for place in suite.captures()] == [
        "captures/test_a/test_one",
        "captures/test_b/TestIt.TestInner.test_one[a_b~#]",
        "captures/test_b/TestIt.TestInner.test_one[oslo]",
        "captures/test_b/TestIt.test_one[a_b~#]",
        "captures/test_b/TestIt.test_one[oslo]",
        "captures/test_b/test_one",
        "sub/captures/test_a/test_one",
    ]
    suite.run().assert_outcomes(passed=7)


def test_tests_that_differ_in_case_alone_are_not_recorded(suite: Suite) -> None:
    """Where case is ignored one capture would replace the other."""
    suite.write(test_it="def test_a(reenact_run): search('a')\ndef test_A(reenact_run): search('A')\n")
    result = suite.run("--reenact=record")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["captures/test_it/test_a: several tests would record into it; *"])


# Putting a new capture in place


def test_what_a_dead_process_left_is_removed_and_no_more(tmp_path: Path) -> None:
    """A recording that is still being made is another process's own."""
    place = tmp_path / "test_one[a]"
    alive, dead, other = (
        tmp_path / f".test_one[{name}" for name in ("a].recording-1", "a].recording-2", "b].recording-3")
    )
    with reenact.capture(alive, mode="capture"):
        for left in (dead, other):
            RunDir.create(left, b"{}").abandon()
        staging_folder(place)
        assert {path.name for path in tmp_path.iterdir()} == {alive.name, other.name}


def test_each_process_records_into_a_folder_of_its_own(tmp_path: Path) -> None:
    """Beside the place, where a rename is one step, and out of sight."""
    place = tmp_path / "test_one[a]"
    new = staging_folder(place)
    assert new.parent == place.parent
    assert re.fullmatch(r"\.test_one\[a\]\.recording-\d+", new.name)
