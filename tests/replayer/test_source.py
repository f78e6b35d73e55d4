"""``ReplaySource``: a strict cursor over the events, and the calls with their outcomes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import reenact
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.formats.capture import EVENT_TYPES
from reenact.replayer.source import ReplaySource
from tests.twice import captured


@reenact.tool
def work(number: int) -> int:
    return number


@pytest.fixture
def source(tmp_path: Path) -> ReplaySource:
    captured(tmp_path / "run", lambda run: [work(1), run.clock.now(), run.memory_write("a", 1)])
    return ReplaySource(tmp_path / "run")


ORDER = ["run_start", "tool_call", "tool_result", "nondeterministic", "state_mutation", "run_end"]


def test_the_manifest(source: ReplaySource) -> None:
    """As it was written."""
    assert source.manifest().eventCount == source.remaining() == 6


def test_the_cursor_follows_the_recorded_order(source: ReplaySource) -> None:
    """One event after the other, by ``seq``, and then nothing."""
    for seq, expected in enumerate(ORDER, 1):
        assert source.remaining() == 7 - seq
        peeked = source.peek()
        event = source.next(expected)
        assert event is not None
        assert event == peeked
        assert event.seq == seq
    assert source.remaining() == 0
    assert source.peek() is None
    assert source.next("run_end") is None


@pytest.mark.parametrize("wrong", [kind for kind in EVENT_TYPES if kind != "run_start"])
def test_nothing_is_skipped_to_find_a_type(source: ReplaySource, wrong: str) -> None:
    """An event of another type stays where it is, however often it is asked for another."""
    for _ in range(3):
        assert source.next(wrong) is None
    assert source.remaining() == 6
    event = source.next("run_start")
    assert event is not None
    assert event.seq == 1


def test_peeking_moves_nothing(source: ReplaySource) -> None:
    """However often one looks."""
    assert source.peek() == source.peek()
    assert source.remaining() == 6


def test_calls_and_their_outcomes(source: ReplaySource) -> None:
    """A call knows its outcome; what has no duration is its own."""
    assert [(call.type, call.seq, call.outcome_seq, call.is_instant) for call in source.calls] == [
        ("tool_call", 2, 3, False),
        ("nondeterministic", 4, 4, True),
        ("state_mutation", 5, 5, True),
    ]
    assert source.request(source.calls[0]) == {"number": 1}
    assert source.request(source.calls[2]) == {"type": "memory_write", "path": "a", "content": 1}


def test_a_missing_capture(tmp_path: Path) -> None:
    """Nothing there is an error that says so, not an empty recording."""
    with pytest.raises(StoreError, match="none"):
        ReplaySource(tmp_path / "none")


def test_a_damaged_capture(tmp_path: Path) -> None:
    """One flipped byte is found before anything is answered."""
    captured(tmp_path / "run", lambda run: work(1))
    log = tmp_path / "run" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"number":1', b'"number":2'))
    with pytest.raises(DigestMismatch, match=r"events\.jsonl"):
        ReplaySource(tmp_path / "run")


def test_a_capture_without_its_blob(tmp_path: Path) -> None:
    """A missing payload stops the replay at its beginning, not in the middle."""

    @reenact.tool
    def large() -> str:
        return "x" * 100_000

    captured(tmp_path / "run", lambda run: large())
    shutil.rmtree(tmp_path / "run" / "blobs")
    with pytest.raises((FormatError, StoreError)):
        reenact.replay(tmp_path / "run")


def test_an_unfinished_capture(tmp_path: Path) -> None:
    """A run that is still being recorded is not replayed."""
    with reenact.capture(tmp_path / "run"), pytest.raises(StoreError, match="still being recorded"):
        ReplaySource(tmp_path / "run")
