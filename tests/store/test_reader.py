"""A finished capture opened for reading: verified once, then any event at once."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import ToolCall
from reenact.store.reader import CaptureReader


@reenact.tool
def echo(value: Any) -> Any:
    return value


def recorded(path: Path, *values: Any, threshold_bytes: int = 1000) -> CaptureReader:
    with reenact.capture(path, blob_threshold_bytes=threshold_bytes):
        for value in values:
            echo(value)
    return CaptureReader(path)


def test_events_are_had_by_number(tmp_path: Path):
    """From the first to the last, in any order; the line of a number is its event."""
    reader = recorded(tmp_path / "run", *range(50))
    assert len(reader) == 102
    for seq in (102, 1, 57, 58, 2):
        assert reader.event(seq).seq == seq
        assert json.loads(reader.line(seq))["seq"] == seq
    assert [event.seq for event in reader.events()] == list(range(1, 103))
    assert b"\n".join(reader.lines()) + b"\n" == (tmp_path / "run" / "events.jsonl").read_bytes()


def test_payloads_come_back_from_wherever_they_are(tmp_path: Path):
    """In place, as a quoted text where order matters, in a blob, and inside other values."""
    values = [1, {"b": 1, "a": 2}, "x" * 5000, {"z": ["y" * 5000], "a": None}]
    reader = recorded(tmp_path / "run", *values)
    results = [reader.resolve(reader.event(seq).data.result) for seq in (3, 5, 7, 9)]
    assert results == values
    assert [list(result) for result in results if isinstance(result, dict)] == [["b", "a"], ["z", "a"]]
    assert reader.resolve([{"deep": reader.event(7).data.result}]) == [{"deep": "x" * 5000}]


def test_plain_values_resolve_to_themselves(tmp_path: Path):
    """Nothing is looked up where nothing refers."""
    reader = recorded(tmp_path / "run")
    value = {"a": [1, 2.5, None, True, "$blob", {"b": {}}], "bytes": 7}
    assert reader.resolve(value) == value


def test_blobs_are_verified_when_they_are_read(tmp_path: Path):
    """Each time: a file may change while the capture is open."""
    reader = recorded(tmp_path / "run", "x" * 5000)
    digest = reader.event(2).data.args["$blob"]
    assert json.loads(reader.blob(digest)) == {"value": "x" * 5000}
    blob = next(
        path
        for path in (tmp_path / "run" / "blobs").rglob("*")
        if path.is_file() and digest.endswith(path.name)
    )
    blob.write_bytes(b"changed")
    with pytest.raises(FormatError, match="copy the blob again"):
        reader.blob(digest)
    for odd in ("sha256:xyz", "", 7, None, "../manifest.json"):
        with pytest.raises(FormatError, match="names no blob"):
            reader.blob(odd)


def test_an_event_that_does_not_fit_its_type_is_named(tmp_path: Path):
    """The log may be what was recorded and still not be readable: file, line and path say where."""
    with reenact.capture(tmp_path / "run") as run:
        run._context._events.append(b"tool_call", b'{"tool":"t"}')
    reader = CaptureReader(tmp_path / "run")
    with pytest.raises(FormatError) as caught:
        reader.event(2)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "run" / "events.jsonl"), 2)
    assert caught.value.json_path in ("$.data.callId", "$.data.args")


def test_an_open_run_is_not_read(tmp_path: Path):
    """It would be half a run."""
    with reenact.capture(tmp_path / "run"), pytest.raises(StoreError, match="is still being recorded"):
        CaptureReader(tmp_path / "run")


def test_reading_goes_on_in_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A capture opened by a relative path is that capture, wherever its reader goes."""
    recorded(tmp_path / "run", "x" * 5000)
    monkeypatch.chdir(tmp_path)
    reader = CaptureReader("run")
    os.chdir("/")
    assert reader.resolve(reader.event(3).data.result) == "x" * 5000


def test_a_request_is_resolved_without_spoiling_the_next(tmp_path: Path):
    """What a caller does to a list it got does not show in others."""
    messages = [{"role": "user", "content": f"{number}" * 300} for number in range(6)]
    with reenact.capture(tmp_path / "run"):
        for count in (2, 4, 6):
            with crossing(Call("llm", "", {"messages": messages[:count]})) as step:
                step.answer = count
    reader = CaptureReader(tmp_path / "run")
    for seq, count in ((6, 6), (4, 4), (6, 6), (2, 2)):
        found = reader.resolve(reader.event(seq).data.request)["messages"]
        assert found == messages[:count]
        found.clear()


@pytest.mark.slow
def test_opening_takes_next_to_no_memory(tmp_path: Path):
    """The log is mapped: opening costs eight bytes an event, not the event."""
    reader = recorded(tmp_path / "run", *(["x" * 3000] * 3000), threshold_bytes=10_000)
    size_bytes = (tmp_path / "run" / "events.jsonl").stat().st_size
    assert size_bytes > 15_000_000
    tracemalloc.start()
    try:
        again = CaptureReader(tmp_path / "run")
        count = sum(isinstance(event, ToolCall) for event in again.events())
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, len(again)) == (3000, len(reader))
    assert peak_bytes < size_bytes / 50
