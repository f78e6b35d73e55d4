"""Work that is shared: the same results whoever does it, and nothing lost or counted twice with a worker."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

import reenact
from reenact.cli import main
from reenact.corpus import sources
from reenact.errors import StoreError, UsageError
from reenact.viewer.shelf import Shelf
from reenact.workers import map_batches
from tests.analysis.recordings import ask, order, record
from tests.corpus.batch_work import refuse, refuse_some, square

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Some runs of several kinds, one of which is damaged and one cannot be read."""
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        record(tmp_path / "runs" / f"{number}", f"lamp {number}")
    with reenact.capture(tmp_path / "runs" / "chat", redact="none"):
        ask("hi", model="gpt-5")
        for _ in range(2):
            with pytest.raises(KeyError):
                order("lamp")
    shutil.copytree(GOLDEN / "replay_log", tmp_path / "runs" / "logs")
    with (tmp_path / "runs" / "1" / "events.jsonl").open("ab") as log:
        log.write(b"{}\n")
    (tmp_path / "runs" / "2" / "manifest.json").write_text("{")
    return tmp_path / "runs"


def test_a_killed_worker_is_replaced(tmp_path):
    """Results are complete, in order, and each once."""
    work = partial(square, tmp_path / "killed")
    assert list(map_batches(work, range(12), jobs=2)) == [number**2 for number in range(12)]
    assert (tmp_path / "killed").exists()


def test_a_batch_that_kills_every_worker_ends_the_work(tmp_path):
    """In one line; it does not go on for ever."""
    with pytest.raises(StoreError, match=r"workers: one was ended 4 times over the same runs"):
        list(map_batches(partial(square, tmp_path / "killed"), [1, -1, 2], jobs=2))


def test_what_the_work_raises_is_raised(tmp_path):
    """As if it had been done here."""
    for jobs in (1, 2):
        with pytest.raises(UsageError, match="not 1"):
            list(map_batches(refuse, [1, 2], jobs=jobs))


def test_the_caller_may_be_one_of_the_workers(tmp_path):
    """It works while it waits; the results keep their order, and errors come in their place."""
    results = map_batches(refuse_some, range(40), jobs=2, works_here=True)
    found = [next(results) for _ in range(30)]
    assert [number for number, _ in found] == [*range(30)]
    assert len({process for _, process in found} | {os.getpid()}) == 2
    with pytest.raises(UsageError, match="not 30"):
        next(results)


@pytest.mark.parametrize("on", ["dask", "ray=", "rays", ""])
def test_an_unknown_engine_is_refused(on):
    """With what there is."""
    with pytest.raises(UsageError, match="is unknown; write ray, or ray=ADDRESS"):
        list(map_batches(refuse, [1], on=on))


def files_of(corpus):
    found = {str(file.relative_to(corpus)): file.read_bytes() for file in corpus.rglob("*.*")}
    return {name: content for name, content in found.items() if not name.endswith(".lock")}


def test_an_index_by_several_processes_is_the_same(runs, monkeypatch):
    """Byte for byte, the manifest included."""
    monkeypatch.setattr(sources, "BATCH_SOURCES", 2)
    one = reenact.index("runs", out="one")
    two = reenact.index("runs", out="two", jobs=2)
    assert files_of(Path("one")) == files_of(Path("two"))
    assert len(list(Path("one/runs").iterdir())) > 2
    assert one.problems == two.problems
    assert len(one.problems) == 2


def stats(capsys, *words):
    status = main(["stats", *words, "--json"])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


def test_stats_are_the_same_by_several_processes_and_from_an_index(runs, capsys):
    """To the last number; what could not be read is reported alike."""
    alone = stats(capsys, "runs")
    assert alone[0] == 2
    assert alone[1]["runs"] == 10
    assert stats(capsys, "runs", "--jobs", "2") == alone
    reenact.index("runs", out="corpus")
    (runs / "0" / "manifest.json").unlink()  # the runs are not looked at
    status, counted, err = stats(capsys, "corpus")
    assert (status, counted) == alone[:2]
    assert sorted(err.splitlines()) == sorted(alone[2].splitlines())


def test_a_corpus_is_counted_alone(runs, capsys):
    reenact.index("runs", out="corpus")
    assert main(["stats", "corpus", "runs"]) == 3
    assert "corpus: is a corpus; it is counted alone" in capsys.readouterr().err


def test_a_folder_of_runs_is_verified(runs, capsys):
    """Each run; the bad ones are shown, the unreadable ones named, by one process as by two."""
    for jobs in ("1", "2"):
        assert main(["verify", "runs", "--jobs", jobs]) == 2
        out, err = capsys.readouterr()
        assert out.splitlines()[-1] == "bad: 11 runs: 5 good, 5 bad, 1 unreadable"
        assert "the capture runs/1 has" in out
        if jobs == "1":
            alone = out, err
    assert (out, err) == alone
    assert main(["verify", "runs/logs", "--json"]) in (0, 1)
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 6


def test_what_belongs_to_one_run_is_refused_for_a_folder(runs, capsys):
    assert main(["verify", "runs", "--key", "x.pub"]) == 3
    assert "is a folder of runs" in capsys.readouterr().err
    assert main(["verify", "runs/0", "--on", "ray"]) == 3
    assert "--on is for a folder of runs" in capsys.readouterr().err


def test_the_viewer_lists_a_corpus_without_opening_its_runs(runs, monkeypatch):
    """The same lines as for the runs; a run that is gone is not listed."""
    reenact.index("runs", out="corpus")
    opened = Shelf([Path("runs")])
    shelf = Shelf([Path("corpus")])
    by_path = {opened.path(run): opened.line(run) for run in opened.ids}
    monkeypatch.setattr("reenact.viewer.shelf.open_artifact", None)
    assert {shelf.path(run) for run in shelf.ids} == set(by_path)
    for run in shelf.ids:
        line, expected = shelf.line(run), by_path[shelf.path(run)]
        assert (line.kind, line.status, line.model) == (expected.kind, expected.status, expected.model)
        assert (line.started_ms, line.took_ms) == (expected.started_ms, expected.took_ms)
    shutil.rmtree(runs / "0")
    shelf.refresh()
    assert len(shelf.ids) == len(by_path) - 1
