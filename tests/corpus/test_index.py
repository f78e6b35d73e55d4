"""The index of runs: complete, incremental, whole at every moment, and the same rows as the runs give."""

import fcntl
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import reenact
from reenact.corpus import index as indexing
from reenact.corpus import parts, sources
from reenact.corpus.runs import indexed_runs
from reenact.corpus.tables import TABLES
from reenact.errors import FormatError, StoreError, UnknownVersion, UsageError
from tests.analysis.recordings import ask, order, record, search
from tests.cli.commands import command, interrupted, run
from tests.hard import rounds
from tests.kills import killed_at

EVERYTHING = {table: f"select * from {table} order by all" for table in TABLES}


def make_chat(path):
    """A run with model calls, a failed tool and one inside it."""
    with reenact.capture(path, redact="none") as run:
        ask("hi")
        ask("hi", "Hello.", "more " * 60)
        ask("hi", "Hello.", "more " * 60, "ok", "and?")
        with pytest.raises(KeyError):
            order("lamp")
        run.final_output = {"said": "ok"}
    return path


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Three runs, named as a user would from beside them."""
    monkeypatch.chdir(tmp_path)
    make_chat(tmp_path / "runs" / "chat")
    record(tmp_path / "runs" / "lamp", "lamp")
    record(tmp_path / "runs" / "deeper" / "chair", "chair", "table")
    return tmp_path / "runs"


def rows(path, sql):
    return reenact.query(sql, path).rows


def all_rows(path):
    return {table: rows(path, sql) for table, sql in EVERYTHING.items()}


def names(path):
    return [name for (name,) in rows(path, "select run from runs order by run")]


def counts(report):
    return report.added, report.changed, report.removed, report.unchanged


def test_an_index_has_the_rows_of_its_runs(runs):
    """Every table and every column, as a query over the runs themselves gives them."""
    report = reenact.index("runs", out="corpus")
    assert (report.runs, *counts(report)) == (3, 3, 0, 0, 0)
    assert all_rows("corpus") == all_rows("runs")
    assert names("corpus") == ["runs/chat", "runs/deeper/chair", "runs/lamp"]
    assert report.rows == {table: len(found) for table, found in all_rows("runs").items()}


def test_a_second_index_reads_nothing(runs, monkeypatch):
    """What has not changed is not opened."""
    reenact.index("runs", out="corpus")
    manifest = (runs.parent / "corpus" / "corpus.json").read_bytes()
    monkeypatch.setattr(parts, "read_sources", None)
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 3)
    assert (runs.parent / "corpus" / "corpus.json").read_bytes() == manifest


def test_folders_of_known_captures_are_not_listed_again(runs, monkeypatch):
    """While nothing in them has changed, which is noticed file by file."""
    reenact.index("runs", out="corpus")
    listed = []

    def scandir(folder, scan=os.scandir):
        if isinstance(folder, str) and os.path.relpath(folder).startswith("runs"):
            listed.append(os.path.relpath(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 3)
    (runs / "lamp" / "notes.md").write_text("in a new file, of which no row tells")
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 3)
    assert listed == 2 * ["runs", "runs/deeper"]
    mark_recovered(runs / "lamp")
    assert counts(reenact.index("runs", out="corpus")) == (0, 1, 0, 2)
    assert reenact.query("select state from runs where run = 'runs/lamp'", "corpus").rows == [("recovered",)]
    log = runs / "lamp" / "events.jsonl"
    before = log.stat()
    log.write_bytes(log.read_bytes().replace(b"lamp", b"pmal"))  # as long, and as old as before
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reenact.index("runs", out="corpus").changed == 1
    (runs / "lamp" / "manifest.json").unlink()
    assert reenact.index("runs", out="corpus").changed == 1


def mark_recovered(folder, chance=None):
    """As `reenact recover` does it: the mark, then the manifest, each in one step."""
    (folder / "recovered.json").write_text("{}")
    shutil.copy(folder / "manifest.json", folder / ".tmp-1")
    (folder / ".tmp-1").rename(folder / "manifest.json")


def test_new_changed_and_removed_runs_are_told_apart(runs):
    """Only new and changed ones are read; what is gone leaves no row in any file."""
    reenact.index("runs", out="corpus")
    record(runs / "sofa", "sofa")
    shutil.rmtree(runs / "chat")
    shutil.rmtree(runs / "lamp")
    record(runs / "lamp", "another lamp")
    assert counts(reenact.index("runs", out="corpus")) == (1, 1, 1, 1)
    assert all_rows("corpus") == all_rows("runs")
    files = list((runs.parent / "corpus").rglob("*.parquet"))
    assert not [file for file in files if b"runs/chat" in file.read_bytes()]


def test_without_paths_the_runs_of_before_are_looked_at_again(runs, monkeypatch, tmp_path):
    """From anywhere, and under the names that they had."""
    reenact.index("runs", out="corpus")
    record(runs / "sofa", "sofa")
    monkeypatch.chdir("/")
    assert counts(reenact.index(out=tmp_path / "corpus")) == (1, 0, 0, 3)
    assert "runs/sofa" in names(tmp_path / "corpus")
    with pytest.raises(UsageError, match="is not an index yet; name the runs"):
        reenact.index(out=tmp_path / "other")


def test_a_run_of_the_same_size_and_time_is_seen_to_have_changed(runs):
    """A clock that is set back, or a tool that keeps times, hides nothing."""
    reenact.index("runs", out="corpus")
    log = runs / "lamp" / "events.jsonl"
    before = log.stat()
    log.write_bytes(log.read_bytes().replace(b'"lamp"', b'"pram"'))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counts(reenact.index("runs", out="corpus")) == (0, 1, 0, 2)
    assert rows("corpus", "select arguments->>'query' from calls where run = 'runs/lamp'") == [("pram",)]


def edit_in_place(folder, chance):
    """As long and as old as before, by every time that a program can set."""
    log = folder / "events.jsonl"
    before, text = log.stat(), log.read_bytes()
    word = chance.choice([b"lamp", b"sofa", b"desk"])
    with log.open("r+b") as stream:
        stream.write(re.sub(rb"lamp|sofa|desk", word, text))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))


def record_again(folder, chance):
    """Another run under this name, with the times of the one before."""
    times = {name: (folder / name).stat() for name in ("manifest.json", "events.jsonl")}
    other = chance.choice(sorted(folder.parent.iterdir()))
    aside = folder.with_name(".aside")
    shutil.copytree(other, aside)
    shutil.rmtree(folder)
    aside.rename(folder)
    for name, before in times.items():
        os.utime(folder / name, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_manifest(folder, chance):
    """By a rename, as programs that write safely do; the result may be damaged."""
    other = chance.choice(sorted(folder.parent.iterdir()))
    shutil.copy2(other / "manifest.json", folder / "next.json")
    (folder / "next.json").rename(folder / "manifest.json")


def swap_names(folder, chance):
    """Two runs that were renamed, one to the name of the other."""
    other = chance.choice(sorted(folder.parent.iterdir()))
    if other != folder:
        folder.rename(folder.with_name(".aside"))
        other.rename(folder)
        folder.with_name(".aside").rename(other)


CHANGES = [
    edit_in_place,
    record_again,
    replace_manifest,
    swap_names,
    lambda folder, chance: shutil.rmtree(folder),
    lambda folder, chance: folder.rename(folder.with_name(f"renamed {chance.random()}")),
    lambda folder, chance: shutil.copytree(folder, folder.with_name(f"copied {chance.random()}")),
    mark_recovered,
    lambda folder, chance: (folder / "manifest.open.json").write_text("{}"),
    lambda folder, chance: (folder / "notes.md").write_text(str(chance.random())),
    lambda folder, chance: os.utime(folder / "events.jsonl", (0, 2**32)),
]


AGENT = """
import reenact, sys

@reenact.tool
def look(item):
    return item

for item in sys.argv[1:]:
    look(item)
"""


def test_what_the_verbs_change_is_read_again(runs):
    """update, recover and seal, each noticed by two calls of `stat`; and only what they changed is read."""
    top = runs.parent
    (top / "agent.py").write_text(AGENT)
    interrupted(runs / "broken", lambda: search("lamp"), torn=b"{")

    def do(*words):
        done = run(*words, cwd=top)
        assert done.returncode == 0, done.stderr

    def changes_by(*words):
        do(*words)
        report = reenact.index(out="corpus")
        assert all_rows("corpus") == all_rows("runs")
        return report.changed

    do("record", "-o", "runs/shop", "--", sys.executable, "agent.py", "a", "b")
    do("keygen", "-o", "key")
    reenact.index("runs", out="corpus")
    (runs / "broken").rename(top / "broken")  # it is looked at every time
    assert reenact.index(out="corpus").removed == 1
    assert changes_by("update", "runs/shop", "--", sys.executable, "agent.py", "a", "c") == 1
    changes_by("seal", "runs/shop", "--key", "key")
    assert reenact.index(out="corpus").changed == 0
    (top / "broken").rename(runs / "broken")
    reenact.index(out="corpus")
    assert changes_by("recover", "runs/broken") == 1
    assert rows("corpus", "select state from runs where run = 'runs/broken'") == [("recovered",)]
    assert reenact.index(out="corpus").changed == 0


def test_an_index_of_an_older_version_is_brought_up_to_date(runs):
    """Its stamps have the mark of the folder as well; nothing is read again for that."""
    reenact.index("runs", out="corpus")
    [file] = (runs.parent / "corpus" / "sources").iterdir()
    table = pq.read_table(file)
    stamps = [f"{stamp}\t18e94f2538072efb.18e94f2538072efb" for stamp in table["stamp"].to_pylist()]
    place = table.schema.get_field_index("stamp")
    pq.write_table(table.set_column(place, table.schema.field(place), [stamps]), file, compression="zstd")
    manifest = runs.parent / "corpus" / "corpus.json"
    found = json.loads(manifest.read_text())
    found["parts"][0]["sizeBytes"]["sources"] = file.stat().st_size
    manifest.write_text(json.dumps(found))
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 3)


@pytest.mark.parametrize("seed", range(rounds(4, 60)))
def test_no_change_of_a_run_escapes_an_update(runs, seed):
    """After any changes an update has the rows of the runs as they are, and reads nothing the next time."""
    chance = random.Random(seed)
    shutil.rmtree(runs / "chat")
    shutil.rmtree(runs / "deeper")
    for name in ("sofa", "desk"):
        record(runs / name, name)
    sql = (
        "select r.run, r.state, r.status, r.problem, c.seq, c.arguments "
        "from runs r left join calls c on r.run = c.run order by all"
    )
    reenact.index("runs", out="corpus")
    for _ in range(3):
        for change in chance.sample(CHANGES, 4):
            if folders := sorted(runs.iterdir()):
                change(chance.choice(folders), chance)
        if not any(runs.iterdir()):
            record(runs / "lamp", "lamp")
        reenact.index(out="corpus")
        assert rows("corpus", sql) == rows("runs", sql)
        unsettled = rows("corpus", "select count(*) from runs where state not in ('complete', 'recovered')")
        again = reenact.index(out="corpus")
        assert (again.added, again.removed) == (0, 0)
        if unsettled == [(0,)] and not again.problems:
            assert again.changed == 0


def test_a_lock_that_names_no_process_is_told_too(runs):
    """Another program may hold it."""
    reenact.index("runs", out="corpus")
    with Path("corpus/index.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="is being indexed by another process; wait until it ends"):
            reenact.index(out="corpus")


def test_a_run_that_is_not_finished_is_looked_at_every_time(runs):
    """It ends without any of its files being changed: the process is just gone."""
    interrupted(runs / "torn", lambda: search("x"), b'{"half')
    assert reenact.index("runs", out="corpus").runs == 4
    assert rows("corpus", "select state, status from runs where run = 'runs/torn'") == [("interrupted", None)]
    assert counts(reenact.index("runs", out="corpus")) == (0, 1, 0, 3)
    reenact.recover(runs / "torn")
    reenact.index("runs", out="corpus")
    assert rows("corpus", "select state, status from runs where run = 'runs/torn'") == [
        ("recovered", "error")
    ]


def test_a_run_that_cannot_be_read_is_one_row_that_says_why(runs):
    """And no reason not to index the others; it is reported every time until it is mended."""
    (runs / "lamp" / "manifest.json").write_text("{")
    with (runs / "chat" / "events.jsonl").open("r+b") as log:
        log.seek(-200, 2)
        log.write(b"\0" * 20)
    for _ in range(2):
        report = reenact.index("runs", out="corpus")
        assert len(report.problems) == 2
        assert report.runs == 3
    found = rows("corpus", "select run, status, problem from runs where problem is not null order by run")
    assert [(name, status) for name, status, _ in found] == [("runs/chat", "ok"), ("runs/lamp", "unreadable")]
    assert all(name in problem for name, _, problem in found)
    assert all_rows("corpus") == all_rows("runs")


def test_bytes_that_are_no_text_make_one_finding(runs):
    """A head can be read where a payload cannot: nothing of the run is there twice."""
    log = runs / "lamp" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"lamp"', b'"l\xffmp"'))
    [problem] = reenact.index("runs", out="corpus").problems
    assert "runs/lamp/events.jsonl" in problem
    sql = "select status, problem from runs order by run"
    assert rows("corpus", sql) == [("ok", None), ("ok", None), ("unreadable", problem)]
    assert rows("corpus", "select count(*) from events where run = 'runs/lamp'") == [(0,)]


def test_receipts_and_test_results_are_indexed(runs, tmp_path):
    """With what they say, beside the runs."""
    with pytest.raises(reenact.Diverged), reenact.replay(runs / "lamp", receipt=runs / "lamp.receipt.json"):
        search("chair")
    shutil.copytree(Path(__file__).parents[1] / "golden" / "result", runs / "results")
    report = reenact.index("runs", out="corpus")
    assert (report.runs, report.receipts, report.results) == (3, 1, 3)
    [(receipt, code, path)] = rows("corpus", "select receipt, code, json_path from divergences")
    assert (receipt, code) == ("runs/lamp.receipt.json", "event_payload_mismatch")
    assert "query" in path
    joined = "select run from runs join divergences using (capture_id)"
    assert rows("corpus", joined) == [("runs/lamp",)]
    assert rows("corpus", "select count(distinct result) from assertions") == [(3,)]
    assert all_rows("corpus") == all_rows("runs")
    (runs / "lamp.receipt.json").unlink()
    assert reenact.index("runs", out="corpus").removed == 1
    assert rows("corpus", "from divergences") == []


def test_a_message_stands_in_the_call_that_sent_it_first(runs):
    """A chat of N turns has O(N) rows, though every request repeats what was said."""
    sql = "select seq, origin, role, text from messages where run = 'runs/chat' order by 1, 2 desc, message"
    found = [(seq, origin, role, text[:4]) for seq, origin, role, text in rows("runs", sql)]
    assert found == [
        (2, "request", "user", "hi"),
        (2, "answer", "assistant", "Hell"),
        (4, "request", "assistant", "Hell"),
        (4, "request", "user", "more"),
        (4, "answer", "assistant", "Hell"),
        (6, "request", "assistant", "ok"),
        (6, "request", "user", "and?"),
        (6, "answer", "assistant", "Hell"),
    ]


def test_many_small_updates_do_not_make_many_files(runs, monkeypatch):
    """Small parts are merged, and the rows stay what they are."""
    monkeypatch.setattr(indexing, "SMALL_PARTS", 3)
    for number in range(8):
        record(runs / f"more-{number}", f"item {number}")
        reenact.index("runs", out="corpus")
    assert len(list((runs.parent / "corpus" / "runs").iterdir())) <= 4
    assert all_rows("corpus") == all_rows("runs")


def test_parts_are_cut_by_count_and_by_size(runs, monkeypatch):
    """So that memory stays flat however many runs there are."""
    monkeypatch.setattr(sources, "BATCH_SOURCES", 2)
    reenact.index("runs", out="corpus")
    assert len(list((runs.parent / "corpus" / "runs").iterdir())) == 2
    monkeypatch.setattr(sources, "BATCH_BYTES", 1)
    reenact.index("runs", out="corpus", full=True)
    assert len(list((runs.parent / "corpus" / "runs").iterdir())) == 3
    assert all_rows("corpus") == all_rows("runs")


def test_parts_of_many_runs_are_longer(runs, monkeypatch):
    """They need not be merged."""
    monkeypatch.setattr(sources, "BATCH_SOURCES", 1)
    monkeypatch.setattr(sources, "MANY_BATCHES", 2)
    monkeypatch.setattr(sources, "LONGER_BATCH", 2)
    reenact.index("runs", out="corpus")
    assert len(list((runs.parent / "corpus" / "runs").iterdir())) == 2
    assert all_rows("corpus") == all_rows("runs")


@pytest.mark.parametrize(("many", "given", "expected"), [(2, None, 3), (4, None, 1), (2, 1, 1), (4, 2, 2)])
def test_the_command_takes_all_cores_for_many_runs(runs, monkeypatch, many, given, expected):
    """Unless it is told how many; few runs are read before other processes have started."""
    shared = []

    def map_batches(work, batches, *, jobs, on):
        shared.append(jobs)
        return map(work, batches)

    monkeypatch.setattr(sources, "BATCH_SOURCES", 1)
    monkeypatch.setattr(sources, "LONGER_BATCH", 1)
    monkeypatch.setattr(sources, "MANY_BATCHES", many)
    monkeypatch.setattr(indexing, "map_batches", map_batches)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    reenact.index("runs", out="corpus", jobs=given)
    assert shared == [expected]


def test_the_same_runs_make_the_same_bytes(runs):
    """Nothing in the files depends on who made them, or when."""
    for corpus in ("one", "other"):
        reenact.index("runs", out=corpus)
    one, other = (
        {
            file.relative_to(runs.parent / name): file.read_bytes()
            for file in (runs.parent / name).rglob("*.parquet")
        }
        for name in ("one", "other")
    )
    assert one == other


def test_an_update_that_is_killed_leaves_the_old_or_the_new_index(runs, tmp_path):
    """At any of the moments at which it changes something on the disk."""
    reenact.index("runs", out="corpus")
    old = names("corpus")
    shutil.copytree("corpus", "untouched")
    record(runs / "sofa", "sofa")
    shutil.rmtree(runs / "lamp")
    new = names("runs")
    seen = set()
    for moment in itertools.count(1, rounds(4, 1)):
        shutil.rmtree("corpus")
        shutil.copytree("untouched", "corpus")
        was_killed = killed_at(moment, lambda: reenact.index("runs", out="corpus"))
        found = names("corpus")  # which looks at the files of all tables
        assert found in (old, new)
        seen.add("old" if found == old else "new")
        if not was_killed:
            break
        if moment % 10 == 1:  # and whoever comes next ends what was begun
            reenact.index("runs", out="corpus")
            assert all_rows("corpus") == all_rows("runs")
            named = json.loads((tmp_path / "corpus" / "corpus.json").read_text())["parts"]
            files = list((tmp_path / "corpus").rglob("*.parquet"))
            assert len(files) == sum(len(part["sizeBytes"]) for part in named)
    assert seen == {"old", "new"}
    assert moment > 20


def test_a_first_index_that_is_killed_is_no_index(runs):
    """Files without a manifest are not a corpus, and are no hindrance to the next."""
    assert killed_at(30, lambda: reenact.index("runs", out="corpus"))
    with pytest.raises(StoreError, match=r"holds no run|is not an index"):
        reenact.query("from runs", "corpus")
    assert reenact.index("runs", out="corpus").runs == 3
    assert all_rows("corpus") == all_rows("runs")


def test_a_second_writer_is_refused(runs):
    """With who is at it; the first is not disturbed."""
    reenact.index("runs", out="corpus")
    with (runs.parent / "corpus" / "index.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"corpus: is being indexed by process \d+; wait"):
            reenact.index("runs", out="corpus")
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 3)


def test_two_writers_at_once_leave_one_whole_index(runs):
    """Whoever comes second fails or finds nothing to do."""
    writers = [
        subprocess.Popen(command("index", "runs", "-o", "corpus"), stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for writer in writers:
        said = writer.communicate(timeout=60)[1]
        assert writer.returncode == 0 or (writer.returncode == 2 and "is being indexed by process" in said)
    assert all_rows("corpus") == all_rows("runs")


def test_a_reader_keeps_the_files_it_reads(runs):
    """An update in the middle of a query changes nothing for it."""
    from reenact.corpus.query import open_query

    reenact.index("runs", out="corpus")
    with open_query("select run from runs order by run", ["corpus"]) as result:
        shutil.rmtree(runs / "lamp")
        reenact.index("runs", out="corpus")
        assert [name for (name,) in result.rows()] == ["runs/chat", "runs/deeper/chair", "runs/lamp"]
    assert names("corpus") == ["runs/chat", "runs/deeper/chair"]
    reenact.index("runs", out="corpus")
    assert len(list((runs.parent / "corpus" / "runs").iterdir())) == 1


def test_a_corpus_of_another_version_is_refused(runs):
    """In one line that says what to do; and that is done."""
    reenact.index("runs", out="corpus")
    manifest = runs.parent / "corpus" / "corpus.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 7'))
    for work in (lambda: reenact.query("from runs", "corpus"), lambda: reenact.index("runs", out="corpus")):
        with pytest.raises(
            UnknownVersion, match=r"has version 7, this reenact reads version 1; build it again"
        ):
            work()
    reenact.index("runs", out="corpus", full=True)
    assert all_rows("corpus") == all_rows("runs")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "other", "version": 1}', '{"format": "reenact.corpus", "version": 1}']
)
def test_a_damaged_manifest_is_one_line(runs, text):
    """Never a traceback, never an empty corpus."""
    reenact.index("runs", out="corpus")
    (runs.parent / "corpus" / "corpus.json").write_text(text)
    with pytest.raises(FormatError, match="build it again with: reenact index --full"):
        reenact.query("from runs", "corpus")


@pytest.mark.parametrize("damage", [os.unlink, lambda file: os.truncate(file, 100)])
def test_a_file_that_is_missing_or_cut_is_one_line(runs, damage):
    """Half an index never looks whole."""
    reenact.index("runs", out="corpus")
    [file] = (runs.parent / "corpus" / "calls").iterdir()
    damage(file)
    for work in (lambda: reenact.query("from runs", "corpus"), lambda: reenact.index("runs", out="corpus")):
        with pytest.raises(StoreError, match=r"calls/00000001.parquet: .*build the index again"):
            work()
    reenact.index("runs", out="corpus", full=True)
    assert all_rows("corpus") == all_rows("runs")


def test_a_folder_with_something_else_is_left_alone(runs):
    """A typing error does not mix a corpus into runs."""
    with pytest.raises(UsageError, match=r"holds something else \(chat\); name a new folder"):
        reenact.index("runs", out="runs")


def test_a_corpus_among_its_runs_is_no_run(runs):
    """Whoever keeps it there is not punished."""
    for _ in range(2):
        assert reenact.index("runs", out="runs/corpus").runs == 3


def test_a_clock_that_is_far_off_makes_no_time(runs):
    """A year that no calendar has is none; the rest of the run is there."""
    log = runs / "lamp" / "events.jsonl"
    log.write_bytes(re.sub(rb'"ts":\d+', b'"ts":1000000000000000', log.read_bytes()))
    sql = "select started_at, latency_ms, tool from calls where run = 'runs/lamp'"
    assert rows("runs", sql) == [(None, 0, "search")]


def test_the_files_are_plain_parquet(runs):
    """Any tool reads them, in the types that the documentation gives."""
    reenact.index("runs", out="corpus")
    table = pq.read_table("corpus/calls")
    assert table.column_names == [column.name for column in TABLES["calls"]]
    assert table.num_rows == 8


def test_an_update_of_one_run_is_much_faster_than_a_full_index(tmp_path):
    """It costs looking, not reading."""
    template = record(tmp_path / "template", *map(str, range(50)))
    for number in range(300):
        shutil.copytree(template, tmp_path / "runs" / f"{number:04d}")
    began = time.perf_counter()
    reenact.index(tmp_path / "runs", out=tmp_path / "corpus")
    full_s = time.perf_counter() - began
    record(tmp_path / "runs" / "new", "lamp")
    began = time.perf_counter()
    assert counts(reenact.index(tmp_path / "runs", out=tmp_path / "corpus")) == (1, 0, 0, 300)
    assert time.perf_counter() - began < full_s / 2


def test_a_file_with_other_bytes_is_refused(runs):
    """As long as it was, and damaged: no fault of the SQL."""
    reenact.index("runs", out="corpus")
    [file] = (runs.parent / "corpus" / "calls").iterdir()
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(StoreError, match=rf"calls/{file.name}: is damaged; build the index again"):
        reenact.query("select count(*) from calls", "corpus")


def test_sources_wait_in_a_file_by_the_time_they_were_written():
    waiting = sources.SourceList()
    try:
        for number, name in ((3, "new"), (1, "old \udcff"), (2, "later")):
            waiting.append(sources.CorpusSource(name, f"/runs/{name}", "run", f",2.{number:x}.9", number))
        huge = sources.CorpusSource("huge", "/runs/huge", "run", "1.4.1", sources.BATCH_BYTES)
        waiting.append(huge)
        assert len(waiting) == 4
        batches = [waiting.read(places) for places in waiting.batches()]
    finally:
        waiting.close()
    assert [[source.name for source in batch] for batch in batches] == [
        ["old \udcff", "later", "new"],
        ["huge"],
    ]
    assert batches[1] == [huge]


def test_the_name_of_a_run_need_not_be_utf8(runs):
    """It is reported with the numbers of the bytes, and found again by that."""
    for name in (b"bad\xff", b"bad\xfe", b"\\udcff"):
        shutil.copytree(b"runs/lamp", b"runs/" + name)
    reenact.index("runs", out="corpus")
    told = [
        "runs/\\udcff",
        "runs/bad\\udcfe",
        "runs/bad\\udcff",
        "runs/chat",
        "runs/deeper/chair",
        "runs/lamp",
    ]
    assert sorted(names("corpus")) == sorted(names("runs")) == told
    assert counts(reenact.index("runs", out="corpus")) == (0, 0, 0, 6)
    assert sorted(os.path.relpath(run.path) for run in indexed_runs("corpus")) == sorted(
        [os.fsdecode(b"runs/bad\xfe"), os.fsdecode(b"runs/bad\xff"), *told[:1], *told[3:]]
    )
    with pytest.raises(UsageError, match="is not UTF-8"):
        reenact.index(os.fsdecode(b"runs/bad\xff"), out="other")
