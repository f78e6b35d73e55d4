"""The sink of an injected run: no directory before the first call, and each process has its own."""

import os

import pytest

from reenact.errors import StoreError
from reenact.formats.capture import NO_MODEL, CaptureSeed, Redaction
from reenact.injected.first_call import FirstCallSink
from reenact.recorder.sink import Ending

SEED = CaptureSeed(
    version=1,
    captureId="cap",
    runId="run",
    createdAt=1,
    mode="capture",
    model=NO_MODEL,
    eventLogPath="events.jsonl",
    redaction=Redaction(enabled=False, profile="none"),
)


def first_call_sink(folder):
    return FirstCallSink(folder / "a", durability="process", beside=lambda: folder / "beside")


@pytest.fixture
def sink(tmp_path):
    sink = first_call_sink(tmp_path)
    sink.start(SEED)
    sink.append(b'{"seq":1}')
    return sink


def lines(path):
    return (path / "events.jsonl").read_bytes().splitlines()


def test_a_run_without_a_call_leaves_nothing(sink, tmp_path):
    """Its beginning is kept in memory."""
    assert not sink.is_open
    assert list(tmp_path.iterdir()) == []


def test_the_first_call_brings_the_beginning_with_it(sink, tmp_path):
    """In order, and once."""
    sink.append(b'{"seq":2}')
    sink.append(b'{"seq":3}')
    assert lines(tmp_path / "a") == [b'{"seq":1}', b'{"seq":2}', b'{"seq":3}']


def test_a_large_payload_is_a_call_too(sink, tmp_path):
    """Blobs are written before the event that refers to them."""
    sink.put_blob(b"x" * 20_000)
    sink.append(b'{"seq":2}')
    assert lines(tmp_path / "a") == [b'{"seq":1}', b'{"seq":2}']
    assert sink.finalize(Ending("ok", 2, NO_MODEL)).eventCount == 2


def test_the_second_process_goes_beside(sink, tmp_path):
    """The directory is the first one's."""
    sink.append(b'{"seq":2}')
    other = first_call_sink(tmp_path)
    other.start(SEED)
    other.append(b'{"seq":1}')
    other.append(b'{"seq":2}')
    assert len(lines(tmp_path / "beside")) == len(lines(tmp_path / "a")) == 2


def test_other_reasons_are_told_as_they_are(tmp_path):
    """A file in the way is no process."""
    (tmp_path / "a").touch()
    sink = first_call_sink(tmp_path)
    sink.start(SEED)
    sink.append(b'{"seq":1}')
    with pytest.raises(StoreError, match="is a file"):
        sink.append(b'{"seq":2}')


def test_a_fork_does_not_take_the_capture(sink, tmp_path, monkeypatch):
    """It would be closed by nobody."""
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StoreError, match="belongs to the parent process"):
        sink.append(b'{"seq":2}')
    assert list(tmp_path.iterdir()) == []
