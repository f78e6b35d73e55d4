"""SQL over runs: what it takes to be read, what is refused, and how rows are written."""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq
import pytest

import reenact
from reenact.cli import main
from reenact.corpus.query import needed_by
from reenact.corpus.tables import ALL_COLUMNS, TABLES
from reenact.errors import StoreError, UsageError
from tests.analysis.recordings import ask, record
from tests.cli.commands import run

SQL = "select tool, count(*) as n, quantile_cont(latency_ms, 0.95) as p95 from calls group by 1 order by 1"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(capsys):
    """The command line, in this process."""

    def run_main(*words):
        status = main(list(words))
        return Done(status, *capsys.readouterr())

    return run_main


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "runs" / "one", "lamp", "=1+1")
    with reenact.capture(tmp_path / "runs" / "two", redact="none"):
        ask("hi")
    return tmp_path


def test_a_query_gives_columns_and_rows(runs):
    """With DuckDB's types and Python's values."""
    report = reenact.query(SQL, "runs")
    assert [(column.name, column.type) for column in report.columns] == [
        ("tool", "VARCHAR"),
        ("n", "BIGINT"),
        ("p95", "DOUBLE"),
    ]
    assert [row[:2] for row in report.rows] == [("search", 2), (None, 1)]
    assert report.problems == []


ALL = "all"
NEEDED = {
    SQL: {"calls": {"run", "tool", "latency_ms"}},
    "select count(*) from calls": {"calls": {"run"}},
    "from calls": {"calls": ALL},
    "select c.* from calls c": {"calls": ALL},
    "select c from calls as c": {"calls": ALL},
    "select calls from calls": {"calls": ALL},
    "select columns('a.*') from calls": {"calls": ALL},
    "select #4 from calls": {"calls": ALL},
    "select b from calls as t(a, b)": {"calls": ALL},
    "select kind from (select * from calls)": {"calls": ALL},
    "select kind from query('select kind from calls')": dict.fromkeys(TABLES, ALL),
    "select ARGUMENTS->>'q', \"Seq\" from Calls": {"calls": {"run", "arguments", "seq"}},
    "select 1 from runs natural join calls": {"runs": ALL, "calls": ALL},
    "select 1 from runs join calls using (run)": {"runs": {"run", "calls"}, "calls": {"run"}},
    "select 1 from runs join calls using (error)": {
        "runs": {"run", "error", "calls"},
        "calls": {"run", "error"},
    },
    "with x as (select tool from calls) select * exclude (tool) from x": {"calls": ALL},
    "select 1 where exists (select 1 from events where data like '%x%')": {"events": {"run", "data"}},
    "select (select max(seq) from events)": {"events": {"run", "seq"}},
    "select count(*) filter (state = 'ok') from calls order by all": {"calls": ALL},
    "select max(at_ms) over (partition by kind) from calls": {"calls": {"run", "at_ms", "kind"}},
    "describe messages": {"messages": ALL},
    "summarize runs": {"runs": ALL},
    "pivot runs on status": dict.fromkeys(TABLES, ALL),
    "select 1": {},
}


@pytest.mark.parametrize("sql", NEEDED)
def test_only_what_a_query_asks_for_is_read(sql):
    """Too much costs time, too little would be wrong."""
    needed = needed_by(duckdb.connect(), sql)
    expected = {table: ALL_COLUMNS[table] if names == ALL else names for table, names in NEEDED[sql].items()}
    assert {table: set(names) for table, names in needed.items()} == {
        table: set(names) for table, names in expected.items()
    }


@pytest.mark.slow
def test_with_and_without_an_index_the_answer_is_the_same(runs):
    """Whatever is read for it."""
    reenact.index("runs", out="corpus")
    for sql in NEEDED:
        if "exclude" not in sql:
            one, other = reenact.query(sql, "runs"), reenact.query(sql, "corpus")
            assert one.columns == other.columns, sql
            assert sorted(map(repr, one.rows)) == sorted(map(repr, other.rows)), sql


REFUSED = {
    "selec 1": r'SQL: Parser Error: syntax error at or near "selec" \(line 1, column 1\)$',
    "select x\nfrom calls": r'SQL: Binder Error: Referenced column "x" not found',
    "select * from call": r"SQL: Catalog Error: Table with name call does not exist! Did you mean \"calls\"",
    "": r"SQL: there are 0 statements; write one",
    "select 1; select 2": r"SQL: there are 2 statements; write one",
    "copy runs to 'x.csv'": r"SQL: COPY changes something; write one SELECT",
    "create table x as from runs": r"SQL: CREATE changes something",
    "attach 'x.db'": r"SQL: ATTACH changes something",
    "install httpfs": r"SQL: LOAD changes something",
    "set threads = 1": r"SQL: SET changes something",
    "select 'a'::int": r"SQL: Conversion Error",
    "select * from read_parquet('s3://x/y')": r"SQL: ",
}


def test_bad_sql_is_one_line(runs):
    """DuckDB's words without its drawing; nothing is written and nothing fetched."""
    for sql, said in REFUSED.items():
        with pytest.raises(UsageError, match=said) as refused:
            reenact.query(sql, "runs")
        assert "\n" not in str(refused.value)
    assert os.listdir() == ["runs"]


def test_sql_that_is_not_utf_8_is_one_line(runs):
    """As an argument in another encoding becomes half characters."""
    with pytest.raises(UsageError, match=r"^SQL: is not UTF-8"):
        reenact.query("select '\udcff'", runs)


def test_an_error_in_the_middle_of_the_rows_is_one_line(runs, call):
    """Also where rows have been given out."""
    done = call("query", "select seq, (case when seq > 2 then 'x' else '1' end)::int from calls", "runs")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("reenact: SQL: Conversion Error")


def test_what_is_not_there_is_said(runs):
    """As the other verbs say it."""
    with pytest.raises(StoreError, match="nothing: No such file or directory; name a run"):
        reenact.query("from runs", "nothing")
    with pytest.raises(UsageError, match="name a corpus, or runs"):
        reenact.query("from runs")
    reenact.index("runs", out="corpus")
    with pytest.raises(UsageError, match="corpus: is a corpus; it is asked alone"):
        reenact.query("from runs", "corpus", "runs")


def test_ones_own_files_can_be_joined(runs):
    """Labels in a CSV, beside the runs."""
    (runs / "labels.csv").write_text("run,label\nruns/one,good\n")
    sql = "select label, status from runs join 'labels.csv' using (run)"
    assert reenact.query(sql, "runs").rows == [("good", "ok")]


def test_rows_as_a_table(runs, call):
    """Numbers to the right, nothing for null."""
    done = call("query", SQL, "runs")
    assert done.stdout.splitlines()[0].split() == ["tool", "n", "p95"]
    assert done.stdout.splitlines()[1].startswith("search  2")
    assert (done.returncode, done.stderr) == (0, "")


def test_rows_as_json(runs, call):
    """One object per row; times are ISO 8601, what JSON has no number for is null."""
    sql = "select 1 as a, 'x' as b, timestamp '2026-01-02 03:04:05' as t, 'nan'::double as n, [1, 2] as l"
    done = call("query", sql, "runs", "--json")
    assert json.loads(done.stdout) == {"a": 1, "b": "x", "t": "2026-01-02T03:04:05", "n": None, "l": [1, 2]}
    sql = "select 1.50::decimal(9,2) as d, '\\xAA'::blob as b, interval 1 day as i, {'k': null} as s"
    done = call("query", sql, "runs", "--json")
    assert json.loads(done.stdout)["s"] == {"k": None}


def test_rows_as_csv(runs, call):
    """What a spreadsheet would run as a formula is quoted."""
    done = call(
        "query",
        "select arguments->>'query' as q, seq from calls where tool = 'search'",
        "runs",
        "--csv",
    )
    assert list(csv.reader(io.StringIO(done.stdout))) == [["q", "seq"], ["lamp", "2"], ["'=1+1", "4"]]


def test_rows_as_parquet(runs, call):
    """A file that is whole, and replaces nothing unless told."""
    words = ("query", "select run, created_at from runs order by 1", "runs", "--parquet", "rows.parquet")
    assert call(*words).returncode == 0
    assert pq.read_table("rows.parquet")["run"].to_pylist() == ["runs/one", "runs/two"]
    done = call(*words)
    assert (done.returncode, "rows.parquet: exists already" in done.stderr) == (3, True)
    assert call(*words, "--force").returncode == 0


@pytest.mark.parametrize("value", ["interval 1 day", "[interval 1 day]", "union_value(a := 1)"])
def test_a_type_that_parquet_lacks_is_one_line(runs, call, value):
    """And no file is left."""
    done = call("query", f"select run, {value} from runs", "runs", "--parquet", "odd.parquet")
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("reenact: odd.parquet: Parquet has no such type: ")
    assert done.stderr.endswith("cast that column to varchar\n")
    assert not os.path.exists("odd.parquet")


def test_ways_to_write_exclude_each_other(runs, call):
    done = call("query", "from runs", "runs", "--json", "--csv")
    assert (done.returncode, "choose one" in done.stderr) == (3, True)


def test_a_run_that_cannot_be_read_is_said_and_the_others_are_asked(runs, call):
    """With the exit status for it."""
    (runs / "runs" / "two" / "manifest.json").write_text("{")
    done = call("query", "select run, status from runs", "runs", "--csv")
    assert done.stdout.splitlines()[1:] == ["runs/one,ok", "runs/two,unreadable"]
    assert done.returncode == 2
    assert done.stderr.startswith("reenact: runs/two/manifest.json")


@pytest.mark.slow
def test_a_missing_library_is_named_with_its_extra(runs, tmp_path):
    """In one line, for both verbs."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "duckdb.py").write_text("raise ModuleNotFoundError('no', name='duckdb')")
    path = os.pathsep.join([str(tmp_path / "without"), *sys.path])
    for words in (("query", "from runs", "runs"), ("index", "runs", "-o", "corpus")):
        done = run(*words, cwd=runs, PYTHONPATH=path)
        assert done.returncode == 3
        assert done.stderr == "reenact: duckdb is not installed; tables take: pip install 'reenact[query]'\n"


def test_the_page_has_every_table_and_column():
    """With its type, in the order of the table."""
    types = {"text": "text", "json": "text (JSON)", "int": "integer", "float": "number"}
    types |= {"time": "time, UTC", "bool": "yes or no"}
    page = (Path(__file__).parents[2] / "docs" / "corpus.md").read_text()
    for table, columns in TABLES.items():
        section = page.partition(f"\n### {table}\n")[2].partition("\n#")[0]
        rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) ?\|$", section, re.MULTILINE)
        assert rows == [(column.name, types[column.type], column.about) for column in columns]


def test_the_index_verb_says_what_it_did(runs, call):
    """In one line, or as JSON."""
    done = call("index", "runs", "-o", "corpus")
    assert done.stdout.startswith("corpus: 2 runs, ")
    assert done.stdout.endswith("(2 added)\n")
    done = call("index", "-o", "corpus", "--json")
    assert json.loads(done.stdout)["unchanged"] == 2
    (runs / "runs" / "two" / "manifest.json").write_text("{")
    done = call("index", "-o", "corpus")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_file_that_takes_a_download_is_refused_in_our_words(runs):
    """Not with the advice of DuckDB to switch its downloads on."""
    with pytest.raises(UsageError) as refused:
        reenact.query("select * from read_csv('http://127.0.0.1:9/labels.csv')", "runs")
    assert str(refused.value) == (
        "SQL: http://127.0.0.1:9/labels.csv takes DuckDB's extension httpfs, and reenact downloads nothing; "
        "name a file on this machine"
    )
