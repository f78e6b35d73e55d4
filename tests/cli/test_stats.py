"""``reenact stats``: runs counted, as tables, bars, JSON, CSV and pictures."""

import csv
import json
import sys
from io import StringIO

import pytest

import reenact
from reenact.cli import main
from tests.analysis.recordings import ask, order, record, search

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    record(tmp_path / "runs" / "a", "lamp", "desk")
    with reenact.capture(tmp_path / "runs" / "b"):
        ask("hi")
        with pytest.raises(KeyError):
            order("chair")
    return tmp_path


def test_tables_and_bars(runs, capsys):
    """The runs as a whole, the calls, the models, how long they took."""
    assert main(["stats", "runs"]) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:3] == ["2 runs: 2 ok", "steps 5", "errors 1, 20.0%"]
    assert any(line.startswith("tool search 3 ") and line.endswith("█" * 16) for line in lines)
    assert "gpt-5 1 100 40 20" in lines
    assert "latency of calls" in lines


def test_prices_of_the_project_are_used(runs, capsys):
    """Those that its assertions use."""
    (runs / "reenact.toml").write_text(
        '[test.defaults.cost_budget.prices]\n"gpt-*" = { input = 10, output = 50 }\n'
    )
    assert main(["stats", "runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] == pytest.approx(0.002)
    main(["show", "runs/b"])
    out = capsys.readouterr().out
    assert "100+20" in out
    assert "; cost 0.002\n" in out


def test_json_has_everything(runs, capsys):
    """Every run, every call, every model."""
    assert main(["stats", "runs/a", "runs/b", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["path"] for run in found["each"]] == ["runs/a", "runs/b"]
    assert found["calls"][0]["latencyMs"]["count"] == 3


@pytest.mark.parametrize(
    ("table", "names"),
    [("call", ["search", "gpt-5", "order"]), ("model", ["gpt-5"]), ("run", ["runs/a", "runs/b"])],
)
def test_csv_is_one_table(runs, table, names, capsys):
    """Nested members have a column each."""
    assert main(["stats", "runs", "--csv", "--by", table]) == 0
    rows = list(csv.DictReader(StringIO(capsys.readouterr().out)))
    assert [row.get("name") or row.get("model") or row["path"] for row in rows] == names
    assert None not in rows[0]
    assert any("." in name for name in rows[0])


def test_csv_runs_nothing_in_a_spreadsheet(tmp_path, capsys):
    """A name that looks like a formula is quoted; control characters are not handed on."""

    @reenact.tool(name='=HYPERLINK("x")\x1b[2J')
    def odd():
        return 1

    with reenact.capture(tmp_path / "a"):
        odd()
    main(["stats", str(tmp_path / "a"), "--csv"])
    [row] = csv.DictReader(StringIO(capsys.readouterr().out))
    assert row["name"] == '\'=HYPERLINK("x")�[2J'


@pytest.mark.parametrize("name", ["x.png", "x.svg"])
def test_a_picture_is_written(runs, name, capsys):
    """The same numbers make the same file."""
    pytest.importorskip("matplotlib")
    for _ in range(2):
        assert main(["stats", "runs", "--plot", name]) == 0
        data = (runs / name).read_bytes()
        assert data.startswith((PNG, b"<?xml"))
    assert (runs / name).read_bytes() == data


def test_names_in_a_picture_are_text(tmp_path, capsys):
    """Neither markup nor formulas."""
    pytest.importorskip("matplotlib")

    @reenact.tool(name="<script>$x^2$")
    def odd():
        return 1

    with reenact.capture(tmp_path / "a"):
        odd()
    assert main(["stats", str(tmp_path / "a"), "--plot", str(tmp_path / "x.svg")]) == 0
    text = (tmp_path / "x.svg").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;$x^2$" in text


def test_a_picture_needs_matplotlib(runs, monkeypatch, capsys):
    """The message says how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["stats", "runs", "--plot", "x.png"]) == 3
    assert capsys.readouterr().err == (
        "reenact: --plot needs matplotlib; install it with: pip install 'reenact[plot]'\n"
    )


def test_recorded_text_cannot_steer_the_terminal(tmp_path, capsys):
    """Escape sequences are shown, not sent."""

    @reenact.tool(name="odd\x1b[2J\r\n\u202e")
    def odd():
        return 1

    with reenact.capture(tmp_path / "a"):
        odd()
        search("x")
    for options in ([], ["--json"], ["--csv"]):
        main(["stats", str(tmp_path / "a"), *options])
        out = capsys.readouterr().out
        assert all(mark.isprintable() for mark in out.replace("\n", ""))
        assert "[2J" in out


def test_a_run_that_cannot_be_read_is_named_and_the_others_counted(runs, capsys):
    """Exit 2."""
    (runs / "runs" / "a" / "manifest.json").write_text("{")
    assert main(["stats", "runs"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("1 run: 1 ok\n")
    assert captured.err.startswith("reenact: runs/a/manifest.json: ")


def test_where_no_run_can_be_read_nothing_is_counted(tmp_path, capsys):
    """One line says so, without a table of zeros."""
    (tmp_path / "notes.txt").write_text("hello")
    assert main(["stats", str(tmp_path / "notes.txt")]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 3),
        (["nothing"], 2),
        (["runs", "--json", "--csv"], 3),
        (["runs", "--plot", "x.gif"], 3),
        (["runs", "--by", "day"], 3),
    ],
)
def test_wrong_input_is_one_line(runs, words, status, capsys):
    """Each with its exit status."""
    assert main(["stats", *words]) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
