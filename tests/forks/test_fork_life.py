"""A fork is a capture: it is sealed, published, moved, stored and forked again, and its parent is missed."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reenact
from reenact import canonical
from reenact.formats.capture import read_manifest, write_manifest
from reenact.formats.seal import write_disclosure
from reenact.store.reader import CaptureReader
from tests.cli.commands import run


@reenact.tool
def due(order: str) -> dict[str, str]:
    return {"day": "Thursday", "note": "n" * 40, "order": order}


@reenact.tool
def tell(text: str) -> str:
    return f"told {text}"


def agent() -> list[str]:
    """Events 2 to 5, 6 to 9, 10 to 13."""
    return [tell(due(order)["day"]) for order in ("A", "B", "C")]


def fork(parent: Path, name: str, at: int, day: str, **options: Any) -> Path:
    place = parent.with_name(name)
    change = {"set": {"$.day": day}}
    with reenact.fork(parent, at=at, change=change, on_miss="live", output=place, **options) as forked:
        forked.final_output = agent()
    return place


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one``, a fork of ``run``, ``two`` of that, ``three`` of that; ``whole`` is the last one whole."""
    folder = tmp_path_factory.mktemp("life")
    with reenact.capture(folder / "run") as recording:
        recording.final_output = agent()
    one = fork(folder / "run", "one", 2, "Friday")
    two = fork(one, "two", 6, "Sunday")
    fork(two, "three", 10, "Monday")
    fork(two, "whole", 10, "Monday", standalone=True)
    reenact.keygen(folder / "key")
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def replays(path: Path) -> None:
    with reenact.replay(path) as again:
        again.final_output = agent()
    assert again.final_output == ["told Friday", "told Sunday", "told Monday"]


@pytest.mark.parametrize("name", ["three", "whole"])
def test_it_is_sealed_published_and_disclosed(runs: Path, name: str) -> None:
    """What is shared with its parents is under its seal as what is its own."""
    path = runs / name
    sealed = reenact.seal(path, runs / "key")
    options = {"seal": sealed.seal, "key": runs / "key.pub"}
    assert reenact.verify(path, **options).is_good
    published = runs / "log.jsonl"
    reenact.publish(path, published, seal=sealed.seal)
    assert reenact.verify(published, **options).is_good
    assert "Monday" not in published.read_text()
    for seq, day in ((3, "Friday"), (11, "Monday")):
        disclosed = reenact.disclose(path, seq, ["$.data.result.day"], seal=sealed.seal)
        (runs / "day.json").write_bytes(write_disclosure(disclosed))
        assert reenact.verify(runs / "day.json", **options).is_good
        assert day in (runs / "day.json").read_text()


def test_a_seal_breaks_with_any_parent(runs: Path) -> None:
    """An event that is only in the first run is changed: the fork of the fork of its fork is bad."""
    sealed = reenact.seal(runs / "three", runs / "key")
    log = runs / "run" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"order":"A"', b'"order":"Z"', 1))
    options = {"seal": sealed.seal, "key": runs / "key.pub"}
    for name in ("one", "two", "three"):
        with pytest.raises(reenact.DigestMismatch, match=r"its parent, capture cap_\w+ in \S+, was changed"):
            CaptureReader(runs / name)
    done = run("verify", runs / "three", "--seal", sealed.seal, "--key", options["key"], cwd=runs)
    assert done.returncode == 1
    assert "was changed before they part" in done.stdout + done.stderr
    assert reenact.verify(runs / "whole").is_good


def change_later(run: Path) -> None:
    """One of its last events, behind what any fork shares with it."""
    log = run / "events.jsonl"
    head, mark, rest = log.read_bytes().rpartition(b'"text":"Thursday"')
    assert mark
    log.write_bytes(head + b'"text":"Tuesdays"' + rest)


def write_manifest_again(run: Path) -> None:
    """As somebody would who changes a run and wants nobody to see it."""
    (run / "transcript.md").unlink()
    manifest = read_manifest((run / "manifest.json").read_bytes(), file="manifest.json")
    digest = canonical.digest_of_bytes((run / "events.jsonl").read_bytes())
    integrity = msgspec.structs.replace(manifest.integrity, eventsHash=digest)
    (run / "manifest.json").write_bytes(
        write_manifest(msgspec.structs.replace(manifest, integrity=integrity))
    )


@pytest.mark.parametrize("is_hidden", [False, True], ids=["damaged", "rewritten"])
def test_a_parent_that_was_changed_behind_the_point_is_noticed(runs: Path, *, is_hidden: bool) -> None:
    """The fork has all that it needs, so it is good; but it is no fork of what is there now."""
    change_later(runs / "run")
    if is_hidden:
        write_manifest_again(runs / "run")
    assert reenact.verify(runs / "run").is_good is is_hidden
    report = reenact.verify(runs / "one")
    assert [(found.code, found.severity) for found in report.findings] == [("parent_differs", "warning")]
    done = run("verify", "one", cwd=runs)
    assert done.returncode == 0
    assert re.search(r"its parent, capture cap_\w+ in run, was changed .* behind event 2;", done.stdout)
    for name in ("two", "three", "whole"):
        assert reenact.verify(runs / name).findings == []
    replays(runs / "three")


def test_a_self_contained_fork_notices_its_parent_where_it_is(runs: Path) -> None:
    """It needs none: one that is gone, or in whose place another is, is no problem."""
    log = runs / "two" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Sunday", b"Monday"))
    report = reenact.verify(runs / "whole")
    assert [(found.code, found.severity) for found in report.findings] == [("parent_differs", "warning")]
    assert "before they part; the fork has all of its events itself" in report.findings[0].message
    shutil.rmtree(runs / "two")
    assert reenact.verify(runs / "whole").findings == []
    shutil.copytree(runs / "run", runs / "two")
    assert reenact.verify(runs / "whole").findings == []


def test_parents_and_forks_move_together(runs: Path) -> None:
    """As long as they lie to each other as they did."""
    runs.rename(runs.with_name("elsewhere"))
    moved = runs.with_name("elsewhere")
    replays(moved / "three")
    assert reenact.verify(moved / "three").is_good
    (moved / "two").rename(moved / "second")
    for path in (moved / "three", moved / "second"):
        if path.name == "second":
            assert reenact.verify(path).is_good
            continue
        done = run("verify", path, cwd=moved)
        assert done.returncode == 2
        assert "is a fork of capture cap_" in done.stderr
        assert "which is not there; put it back" in done.stderr
    replays(moved / "whole")


def test_every_verb_says_that_a_parent_is_gone(runs: Path) -> None:
    """In one line, with status 2, and nothing is written."""
    shutil.rmtree(runs / "one")
    before = sorted(path.name for path in runs.iterdir())
    verbs = (
        ("show", "three"),
        ("replay", "three", "--", "true"),
        ("fork", "three", "--at", 10, "--", "true"),
        ("seal", "three", "--key", "key"),
        ("publish", "three", "-o", "p.jsonl"),
        ("pack", "three", "-o", "p.pack"),
        ("diff", "run", "two"),
        ("convert", "three", "--to", "trace", "-o", "t.json"),
    )
    for words in verbs:
        done = run(*words, cwd=runs)
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), (words, done)
        assert "is a fork of " in done.stderr, words
    assert sorted(path.name for path in runs.iterdir()) == before


def test_a_pack_takes_the_parents(runs: Path) -> None:
    """A fork that would be alone in it is refused; the self-contained one is not."""
    with pytest.raises(reenact.StoreError, match=r"two: is a fork of \S+one, which is not packed with it"):
        reenact.pack(runs / "two", runs / "run", runs / "three", runs / "whole", out=runs / "p.pack")
    assert not (runs / "p.pack").exists()
    family = [runs / name for name in ("run", "one", "two", "three")]
    reenact.pack(*family, out=runs / "all.pack")
    assert reenact.verify(f"{runs}/all.pack#three").is_good
    reenact.pack(runs / "whole", out=runs / "whole.pack")
    assert reenact.verify(f"{runs}/whole.pack#whole").is_good
    brought = reenact.pull(f"{runs}/all.pack#three", runs / "brought")
    assert [Path(path).name for path in brought.pulled] == ["run", "one", "two", "three"]
    replays(runs / "brought" / "three")


def test_a_fork_is_pushed_behind_its_parent(runs: Path) -> None:
    """Whatever the order; where the parent is not stored it is said, and nothing is pushed."""
    address = f"file://{runs}/store"
    alone = reenact.push(runs / "three", to=address)
    assert (alone.pushed, len(alone.problems)) == ([], 1)
    assert "which is not there; name the folder that holds both" in alone.problems[0]
    family = [runs / name for name in ("three", "two", "one", "run")]
    assert reenact.push(*family, to=address).pushed == ["run", "one", "two", "three"]
    assert reenact.push(runs / "whole", to=address).pushed == ["whole"]
    assert reenact.verify(f"{address}/three").is_good
    brought = reenact.pull(f"{address}/two", runs / "brought")
    assert [Path(path).name for path in brought.pulled] == ["run", "one", "two"]
    assert reenact.verify(runs / "brought" / "two").is_good
    again = reenact.pull(f"{address}/two", runs / "brought")
    assert (again.pulled, len(again.already_here)) == ([], 1)


def test_the_self_contained_one_names_its_parent_all_the_same(runs: Path) -> None:
    """And is equal to the other but for its ids."""
    manifests = [json.loads((runs / name / "manifest.json").read_text()) for name in ("three", "whole")]
    stored = [manifest["fork"].pop("stored") for manifest in manifests]
    assert stored == ["suffix", "whole"]
    assert manifests[0]["fork"]["parent"] == manifests[1]["fork"]["parent"]
    assert reenact.diff(runs / "three", runs / "whole").equal
    own = {name: (runs / name / "events.jsonl").stat().st_size for name in ("run", "three", "whole")}
    assert own["three"] < own["whole"] / 2


@reenact.tool
def stamp(at: str) -> str:
    return f"seen at {at}"


def dated_agent() -> None:
    """Its clock is none that is recorded, so its dates are known by what they read as."""
    due("first")
    seen = stamp(datetime.now(UTC).isoformat())
    stamp(f"{datetime.now(UTC).isoformat()}, {seen[:4]}")


def test_the_pause_between_the_runs_is_in_no_time_of_the_fork(tmp_path: Path) -> None:
    """Its times go on where those of its parent end; dates of its own are still those of its own time."""
    with reenact.capture(tmp_path / "run", sources=()):
        dated_agent()
    parent = tmp_path / "run"
    for name in ("fork", "again"):
        time.sleep(2.5)
        with reenact.fork(parent, at=4, change={"replace": name}, on_miss="live", output=tmp_path / name):
            dated_agent()
        reader = CaptureReader(tmp_path / name)
        times = [reader.event(seq).ts for seq in range(1, len(reader) + 1)]
        assert times == sorted(times)
        assert times[-1] - times[0] < 2000
        with reenact.replay(tmp_path / name) as replayed:
            dated_agent()
        assert replayed.receipt.verdict == "reproduced"
        parent = tmp_path / name
