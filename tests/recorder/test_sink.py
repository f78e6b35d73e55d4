"""The file sink: append-only, finished in one step, or left to be recovered."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.canonical import digest_of_bytes
from reenact.errors import StoreError
from reenact.formats.capture import NO_MODEL, Model, manifest_codec
from reenact.recorder.sink import Ending, FileCaptureSink, finished_manifest
from reenact.store import durable
from reenact.store.durable import Durability
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from tests.recorder.recording import seed_of

ENDING = Ending("ok", 1763190001000, Model(provider="p", model="m"))


def started(path: Path, durability: Durability = "process") -> FileCaptureSink:
    sink = FileCaptureSink(path, durability=durability)
    sink.start(seed_of())
    return sink


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_events_are_lines_in_their_order(tmp_path: Path, durability: Durability):
    """What was appended is in the file when the call returns; the count goes along."""
    sink = started(tmp_path / "run", durability)
    for number in range(1, 6):
        sink.append(b'{"n":%d}' % number)
        assert sink.count == number
        assert (tmp_path / "run" / "events.jsonl").read_bytes().splitlines()[-1] == b'{"n":%d}' % number
    sink.finalize(ENDING)


def test_a_finished_run_has_count_hash_and_ending(tmp_path: Path):
    """The manifest returned is the manifest written, and it is the same for the same events."""
    manifests = []
    for name in ("a", "b"):
        sink = started(tmp_path / name)
        sink.append(b'{"n":1}')
        sink.append(b'{"n":2}')
        manifest = sink.finalize(ENDING)
        assert manifest.eventCount == 2
        assert manifest.integrity.eventsHash == digest_of_bytes(b'{"n":1}\n{"n":2}\n')
        assert CaptureReader(tmp_path / name).manifest == manifest
        manifests.append((tmp_path / name / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]


def test_no_manifest_before_the_end(tmp_path: Path):
    """An open run shows as open, and its manifest appears in one step."""
    sink = started(tmp_path / "run")
    sink.append(b"{}")
    assert RunDir.open(tmp_path / "run").state is RunState.OPEN
    assert sorted(os.listdir(tmp_path / "run")) == ["events.jsonl", "manifest.open.json"]
    sink.finalize(ENDING)
    assert RunDir.open(tmp_path / "run").state is RunState.COMPLETE
    assert sorted(os.listdir(tmp_path / "run")) == ["events.jsonl", "manifest.json"]


def test_nothing_is_appended_after_the_end(tmp_path: Path):
    """The finished log stays the finished log."""
    sink = started(tmp_path / "run")
    sink.finalize(ENDING)
    with pytest.raises(StoreError, match="is closed; start a new run"):
        sink.append(b"{}")
    with pytest.raises(StoreError):
        sink.finalize(ENDING)
    assert CaptureReader(tmp_path / "run").manifest.eventCount == 0


def test_blobs_are_kept_once_under_their_digest(tmp_path: Path):
    """Equal payloads are one file."""
    sink = started(tmp_path / "run")
    digests = {sink.put_blob(b"payload"), sink.put_blob(b"payload"), sink.put_blob(b"other")}
    sink.finalize(ENDING)
    files = [path for path in (tmp_path / "run" / "blobs").rglob("*") if path.is_file()]
    assert {f"sha256:{path.parent.name}{path.name}" for path in files} == digests
    assert {digest_of_bytes(path.read_bytes()) for path in files} == digests


def test_a_finish_that_fails_lets_go_of_the_directory(tmp_path: Path):
    """The run shows as interrupted at once, not only when the process ends."""
    sink = started(tmp_path / "run")
    sink.append(b"{}")
    (tmp_path / "run" / "manifest.json").mkdir()
    with pytest.raises(StoreError, match=r"manifest\.json: cannot be written"):
        sink.finalize(ENDING)
    (tmp_path / "run" / "manifest.json").rmdir()
    assert RunDir.open(tmp_path / "run").state is RunState.INTERRUPTED


def test_what_the_seed_says_is_in_the_manifest():
    """Fields nobody knows included; what only the end knows comes from the end."""
    seed = msgspec.structs.replace(seed_of("strict"), extra={"team": "support"})
    ending = Ending("error", 7, NO_MODEL, "it broke", ("careful",))
    manifest = manifest_codec.to_json(finished_manifest(seed, ending, 3, "ab" * 32))
    assert manifest["team"] == "support"
    assert manifest["redaction"]["profile"] == "strict"
    assert (manifest["status"], manifest["error"], manifest["warnings"]) == ("error", "it broke", ["careful"])
    assert (manifest["eventCount"], manifest["completedAt"]) == (3, 7)


@settings(deadline=None)  # it waits for the disk
@given(
    events=st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20)), max_size=20)
)
def test_the_log_is_what_was_appended(tmp_path_factory: pytest.TempPathFactory, events: list[Any]):
    """Whatever the events, they come back in their order, and count and hash are theirs."""
    path = tmp_path_factory.mktemp("runs") / "run"
    sink = started(path)
    for event in events:
        sink.append(json.dumps(event).encode())
    manifest = sink.finalize(ENDING)
    text = (path / "events.jsonl").read_bytes()
    assert [json.loads(line) for line in text.splitlines()] == events
    assert (manifest.eventCount, manifest.integrity.eventsHash) == (len(events), digest_of_bytes(text))


def test_threads_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A sync that is under way does not keep others from recording; the next one is for all of them."""
    syncs = []

    def slow_sync(fd: int) -> None:
        syncs.append(fd)
        threading.Event().wait(0.01)

    @reenact.tool
    def look_up(number: int) -> int:
        return number

    monkeypatch.setattr(durable, "_fdatasync", slow_sync)
    with (
        reenact.capture(tmp_path / "run", durability="disk", sources=()),
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(look_up, range(80)))
    assert len(CaptureReader(tmp_path / "run")) == 162
    assert len(syncs) < 120
