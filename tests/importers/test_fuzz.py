"""Whatever a source holds: no traceback, no secret on disk, and what was imported can be looked at."""

from __future__ import annotations

import json
import shutil
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.importers.importing import importers
from reenact.store.rundir import RunDir

FIXTURES = Path(__file__).parent / "fixtures"
FILES = sorted(
    path
    for path in FIXTURES.rglob("*")
    if path.suffix in (".yaml", ".json", ".jsonl", ".pb")
    and "payloads" not in path.parts
    and path.name != "manifest.json"
)
KEY = "sk-proj-Zx8cV6bN4mQ2wE1rT3yU5iO7pA9sD0fG2hJ4kL6"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def look_at(path: str) -> None:
    """What every run must take; problems that these are made to find are their own."""
    assert reenact.verify(path).is_good
    reenact.convert(path, "trace")
    assert reenact.diff(path, path).equal
    with reenact.open_artifact(path) as artifact:
        for step in list(artifact.steps())[:5]:
            artifact.detail(step.seq)
    rows = Path(f"{path}.rows.jsonl")
    assert reenact.export_runs(path, "sft", rows, reasoning="keep").failed == []
    assert reenact.verify(rows).is_good if rows.stat().st_size else True
    assert reenact.export_runs(path, "otlp", rows).failed == []


def import_all(source: Path, out: Path, **options: Any) -> Any:
    """Import; only what the library raises on purpose may come out of it."""
    try:
        return reenact.import_runs(source, out, **options)
    except reenact.ReenactError:
        return None


def changed_bytes(data: bytes, cuts: list[tuple[float, float, bytes]]) -> bytes:
    for place, length, put in cuts:
        start = int(place * len(data))
        data = data[:start] + put + data[start + int(length * 40) :]
    return data


CUTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.binary(max_size=6)), min_size=1, max_size=3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:30])
@settings(max_examples=8)
@given(cuts=CUTS, is_cut_off=st.booleans())
def test_damaged_bytes_never_break_an_import(path, cuts, is_cut_off):
    """Bytes taken out and put in anywhere, or the end missing."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, path.name)
        data = changed_bytes(path.read_bytes(), cuts)
        source.write_bytes(data[: int(len(data) * cuts[0][0])] if is_cut_off else data)
        report = import_all(source, Path(folder, "out"))
        for run in report.runs if report else ():
            look_at(run.path)


def replaced(value: Any, picks: list[int], put: list[Any]) -> Any:
    """*value* with other values in some of its places."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(child, dict | list):
                walk(child)

    walk(value)
    for pick, new in zip(picks, put, strict=False):
        if places:
            node, key = places[pick % len(places)]
            node[key] = new
    return value


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix in (".json", ".jsonl")], ids=lambda path: path.name[:30]
)
@settings(max_examples=8)
@given(
    picks=st.lists(st.integers(0, 10**6), min_size=1, max_size=4), put=st.lists(JSON, min_size=4, max_size=4)
)
def test_values_of_any_kind_in_any_place_never_break_an_import(path, picks, put):
    """A text where a list is expected, NaN, lone surrogates, huge numbers, nothing at all."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    told = replaced([json.loads(line) for line in lines], picks, put)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, path.name)
        source.write_text("\n".join(map(json.dumps, told)))
        report = import_all(source, Path(folder, "out"))
        for run in report.runs if report else ():
            look_at(run.path)


@pytest.mark.parametrize("name", sorted(importers()))
@settings(max_examples=15)
@given(value=JSON, is_lines=st.booleans())
def test_anything_at_all_given_as_a_format_is_read_or_refused(name, value, is_lines):
    """With ``--from``, nothing was recognised before."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "it")
        text = json.dumps(value)
        source.write_text(f"{text}\n{text}\n" if is_lines else text)
        import_all(source, Path(folder, "out"), format=name)


def test_a_long_transcript_takes_no_more_memory_than_a_short_one(tmp_path, monkeypatch):
    """Read line by line; but for ids, what is held is bounded by a turn, not by the file."""
    # The transcript for people has a bound of its own, which is larger than these files.
    monkeypatch.setattr(RunDir, "write_transcript", lambda _: None)
    [path] = (FIXTURES / "pi").glob("*.jsonl")
    head, *rest = path.read_text().splitlines()
    turns = [json.loads(line) for line in rest]
    peaks = []
    for times in (20, 300):
        source = tmp_path / f"{times}.jsonl"
        with source.open("w") as out:
            out.write(f"{head}\n")
            parent = None
            for number in range(times):
                for turn in turns:
                    own = f"{turn['id']}-{number}"
                    text = json.dumps({**turn, "id": own, "parentId": parent}).replace(
                        "toolu_", f"toolu_{number}_"
                    )
                    out.write(text.replace("one.txt", "one.txt " + "x" * 4000) + "\n")
                    parent = own
        tracemalloc.start()
        (run,) = reenact.import_runs(source, tmp_path / f"run{times}").runs
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (run.counts.model_calls, run.losses) == (2 * times, [])
        shutil.rmtree(tmp_path / f"run{times}")
    assert peaks[1] < peaks[0] + 1_500_000, peaks
