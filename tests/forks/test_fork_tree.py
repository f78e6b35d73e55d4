"""Which runs are forks of which, as `show --tree` and `diff` say it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.analysis.fork_tree import describe_change, fork_links
from reenact.corpus.runs import fork_tree
from tests.cli.commands import run


@reenact.tool
def read(name: str) -> dict[str, str]:
    return {"name": name}


def agent() -> str:
    """Events 2 and 3, 4 and 5, 6 and 7."""
    return " ".join(read(name)["name"] for name in ("a", "b", "c"))


def forked(parent: Path, name: str, at: int, change: Any, **options: Any) -> Path:
    place = parent.parent / name
    with reenact.fork(parent, at=at, change=change, output=place, **options) as run:
        run.final_output = agent()
    return place


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """``late`` and ``short`` are forks of ``run``, ``later`` is one of ``late``, ``other`` is no kin."""
    for name in ("run", "other"):
        with reenact.capture(tmp_path / name) as capture:
            capture.final_output = agent()
    late = forked(tmp_path / "run", "late", 2, {"set": {"$.name": "A"}})
    forked(tmp_path / "run", "short", 6, {"replace": {"name": ""}})
    forked(late, "later", 4, {"set": {"$.name": "B"}})
    return tmp_path


def names(runs: Path, **options: Any) -> list[tuple[str, int]]:
    return [(Path(node.path).name, node.depth) for node in fork_tree(runs / "late", **options)]


def test_the_tree_is_the_same_from_every_run(runs: Path) -> None:
    tree = [("run", 0), ("late", 1), ("later", 2), ("short", 1)]
    assert names(runs) == tree
    for name in ("run", "later", "short"):
        assert fork_tree(runs / name) == fork_tree(runs / "late")
    assert names(runs, among=[]) == [("run", 0), ("late", 1)]
    with pytest.raises(FileNotFoundError):
        fork_tree(runs / "nothing")


def test_a_folder_of_runs_has_all_the_trees_below_it(runs: Path) -> None:
    """Wherever below it the forks lie."""
    (runs / "apart").mkdir()
    forked(runs / "other", "apart/twin", 4, {"set": {"$.name": "C"}})
    told = run("show", "--tree", ".", cwd=runs).stdout.splitlines()
    assert [line.split("  at ")[0] for line in told] == [
        "other", "  apart/twin", "run", "  late", "    later", "  short",
    ]  # fmt: skip


def test_a_run_without_a_fork_beside_it_says_where_to_look(runs: Path) -> None:
    done = run("show", "--tree", "other", cwd=runs)
    assert done.stdout == "other  <- this one\n"
    assert "name a folder that holds both" in done.stderr


def test_a_parent_that_is_gone_has_its_place(runs: Path) -> None:
    """Its forks are still brothers, by what they say of it."""
    shutil.rmtree(runs / "run")
    assert names(runs) == [("run", 0), ("late", 1), ("later", 2), ("short", 1)]
    assert [node.status for node in fork_tree(runs / "late")][:2] == ["", "ok"]
    assert [Path(link.path).name for link in fork_links(runs / "late", runs / "short")] == ["late", "short"]


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ("run", "late", [("late", "run", 2)]),
        ("late", "run", [("late", "run", 2)]),
        ("run", "later", [("later", "late", 4), ("late", "run", 2)]),
        ("later", "short", [("later", "late", 4), ("late", "run", 2), ("short", "run", 6)]),
        ("later", "late", [("later", "late", 4)]),
        ("run", "run", []),
        ("run", "other", []),
        ("late", "other", []),
    ],
)
def test_a_difference_names_the_forks_between(
    runs: Path, left: str, right: str, found: list[tuple[str, str, int]]
) -> None:
    """From each run up to the nearest one that both come from."""
    links = reenact.diff(runs / left, runs / right).forks
    assert [(Path(link.path).name, Path(link.parent).name, link.at) for link in links] == found


def test_diff_says_where_a_fork_parts(runs: Path) -> None:
    """Before the difference, with what was changed."""
    done = run("diff", "run", "late", cwd=runs)
    assert done.returncode == 1
    said = done.stdout.splitlines()
    assert said[:3] == [
        "- run",
        "+ late",
        '  late is a fork of run at event 2: $.name = "A"; the first 2 events are shared',
    ]
    assert any("$.came.result.name" in line for line in said)
    tree = run("show", "--tree", "later", cwd=runs).stdout.splitlines()
    assert tree == [
        "run",
        '  late  at event 2: $.name = "A"',
        '    later  at event 4: $.name = "B"  <- this one',
        '  short  at event 6: replaced by {"name":""}',
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"error": "TimeoutError: late"}, "fails with TimeoutError: late"),
        ({"model": "m", "temperature": 0.5}, "model m, temperature 0.5"),
        ({"system": "Be brief."}, 'system prompt "Be brief."'),
        ({"function": "shop.late"}, "changed by shop.late"),
        ({"replace": [None]}, "replaced by null"),
        ("anything", ""),
    ],
)
def test_a_change_in_words(change: Any, words: str) -> None:
    assert describe_change(change) == words
