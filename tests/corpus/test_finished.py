"""The reader for many captures gives the rows that the one for a single run gives."""

import json
import shutil
from pathlib import Path

import pytest

import reenact
from reenact.corpus import rows
from reenact.corpus.captures import FinishedCapture, add_capture
from reenact.corpus.rows import read_source
from reenact.corpus.tables import CorpusSource, TableRows
from tests.analysis.recordings import ask, fetch, order, search

GOLDEN = sorted(
    file.parent for file in (Path(__file__).parents[1] / "golden" / "capture").rglob("manifest.json")
)


def rows_of(path, monkeypatch, *, fast):
    with monkeypatch.context() as patch:
        if not fast:
            patch.setattr(FinishedCapture, "load", lambda _: None)
        rows = TableRows()
        reading = read_source(CorpusSource("run", str(path), "run"), rows)
    return reading, rows.rows


def make_runs(folder):
    with reenact.capture(folder / "chat", redact="none"):
        ask("hello", "there")
        ask("hello", "there", "again")
        search("ü" * 9)
        fetch(40_000)
        for _ in range(2):
            with pytest.raises(KeyError):
                order("lamp")
    with reenact.capture(folder / "failed", redact="none"):
        search("lamp")
        with pytest.raises(KeyError):
            order("lamp")
        search("lamp")
    with reenact.capture(folder / "empty", redact="none"):
        pass
    with reenact.capture(folder / "typed", redact="none"):
        reenact.tool(lambda **_: (1, {2: 3}, {"$x": b"y"}))(a={"$ref": 1})


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_golden_captures_have_the_same_rows(folder, monkeypatch):
    assert rows_of(folder, monkeypatch, fast=True) == rows_of(folder, monkeypatch, fast=False)


def test_all_kinds_of_payloads_have_the_same_rows(tmp_path, monkeypatch):
    """References, blobs, Python types, retries, an empty run, one that was recovered."""
    make_runs(tmp_path)
    shutil.copytree(tmp_path / "chat", tmp_path / "recovered")
    (tmp_path / "recovered" / "recovered.json").write_text("{}")
    for run in sorted(tmp_path.iterdir()):
        assert FinishedCapture.load(str(run)) is not None, run
        assert rows_of(run, monkeypatch, fast=True) == rows_of(run, monkeypatch, fast=False), run


def test_what_is_not_plain_is_left_to_the_other_reader(tmp_path, monkeypatch):
    """Damage, other line ends, an open run, links: told in the same words as for a single run."""
    make_runs(tmp_path)
    whole = (tmp_path / "chat" / "events.jsonl").read_bytes()
    odd = {
        "torn": {"events.jsonl": whole[:-20]},
        "crlf": {"events.jsonl": whole.replace(b"\n", b"\r\n")},
        "gap": {"events.jsonl": whole.replace(b'"seq":3,', b'"seq":4,')},
        "no json": {"events.jsonl": whole.replace(b'{"captureId"', b"{captureId", 3)},
        "nothing": {"events.jsonl": b""},
        "open": {"manifest.open.json": b'{"pid": 1, "manifest": {}}'},
        "manifest": {"manifest.json": b"{}"},
    }
    for name, files in odd.items():
        shutil.copytree(tmp_path / "chat", tmp_path / name)
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        assert rows_of(tmp_path / name, monkeypatch, fast=True) == rows_of(
            tmp_path / name, monkeypatch, fast=False
        ), name
    shutil.copytree(tmp_path / "chat", tmp_path / "link")
    (tmp_path / "link" / "events.jsonl").unlink()
    (tmp_path / "link" / "events.jsonl").symlink_to(tmp_path / "chat" / "events.jsonl")
    assert FinishedCapture.load(str(tmp_path / "link")) is None
    assert rows.read_source(CorpusSource("x", str(tmp_path / "link"), "run"), TableRows()).problem


def test_a_failed_call_that_was_not_tried_again_is_read_in_one_go(tmp_path):
    make_runs(tmp_path)
    capture = FinishedCapture.load(str(tmp_path / "failed"))
    into = TableRows()
    assert add_capture(capture, "run", into)
    [error] = filter(None, into.rows["calls"]["error"])
    assert json.loads(error)["type"] == "builtins:KeyError"
    assert not add_capture(FinishedCapture.load(str(tmp_path / "chat")), "run", TableRows())


def test_the_data_of_every_event_is_json(tmp_path):
    """Also of a line that has more members than most."""
    make_runs(tmp_path)
    log = tmp_path / "failed" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b',"runId"', b',"order":["0.0!"],"runId"'))
    into = TableRows()
    assert add_capture(FinishedCapture.load(str(log.parent)), "run", into)
    assert all(isinstance(json.loads(text), dict) for text in into.rows["events"]["data"])
