"""However a log is cut into segments, and on however many cores, the findings are the same."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reenact
from reenact.canonical import encode
from reenact.check.integrity import segments as links_module
from reenact.check.integrity.capture import check_capture
from reenact.check.integrity.replay_log import check_replay_log
from reenact.check.integrity.segments import LinkFault, Links, SegmentLinks, follow
from reenact.formats.hashes import params_hash
from tests.check.test_verify_log import HEADER, START, call, end, result
from tests.formats import law

LINES = {
    "call": lambda key, second: call(key, second),
    "result": lambda key, second: result(key, second),
    "wrong params": lambda key, second: call(key, second, params_hash=params_hash({})),
    "foreign": lambda key, second: result(key, second, session_id="t"),
    "header": lambda *_: HEADER,
    "start": lambda *_: START,
    "end": lambda *_: end(2, 10),
    "unknown": lambda key, second: {"type": "Odd", "x": key, "ts": f"2026-02-15T00:00:{second:02}Z"},
}
DAMAGE = {"broken": b"{", "blank": b""}
logs = st.lists(
    st.tuples(st.sampled_from([*LINES, *DAMAGE]), st.sampled_from("abc"), st.integers(0, 59)),
    max_size=25,
)


def text_of(lines: list[tuple[str, str, int]]) -> bytes:
    texts = [encode(HEADER)]
    for kind, key, second in lines:
        texts.append(encode(LINES[kind](key, second)) if kind in LINES else DAMAGE[kind])
    return b"\n".join(texts) + b"\n"


@law
@given(logs, st.booleans(), st.integers(1, 2000))
def test_a_log_may_be_cut_anywhere(lines: list[tuple[str, str, int]], lenient: bool, size: int) -> None:
    """One segment or many: the same report."""
    text = text_of(lines)
    whole, cut = (
        check_replay_log(lambda: io.BytesIO(text), file="log", lenient=lenient, segment_bytes=segment_bytes)
        for segment_bytes in (1 << 20, size)
    )
    assert whole == cut


calls = st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=30)


@law
@given(calls, st.lists(st.integers(0, 30), max_size=4))
def test_joining_finds_what_following_every_line_finds(
    events: list[tuple[bool, str]], cuts: list[int]
) -> None:
    """The second look is as good as if all keys had been followed."""
    placed = [(line, is_call, key) for line, (is_call, key) in enumerate(events, 1)]
    assert sorted(joined(placed, sorted(cuts))) == sorted(follow(placed))


def joined(placed: list[tuple[int, bool, str]], cuts: list[int]) -> list[LinkFault]:
    links = Links()
    for first, last in zip([0, *cuts], [*cuts, len(placed)], strict=True):
        segment = SegmentLinks()
        for line, is_call, key in placed[first:last]:
            segment.add(is_call, key, line)
        links.join(segment)
    return links.find_faults(lambda suspects: [event for event in placed if event[2] in suspects])


def test_keys_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated call is found in whichever part its hash falls."""
    monkeypatch.setattr(links_module, "_PART_KEYS", 3)
    links = Links()
    placed = []
    for number in [*range(50), 17]:
        segment = SegmentLinks()
        for is_call in (True, False):
            placed.append((len(placed) + 1, is_call, f"step-{number}"))
            segment.add(is_call, f"step-{number}", len(placed))
        links.join(segment)
    faults = links.find_faults(lambda suspects: [event for event in placed if event[2] in suspects])
    assert faults == [LinkFault(101, "second_call", "step-17")]


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    """Of a log and of a capture, with something wrong in each of several segments."""
    uses = [event for number in range(300) for event in (call(f"s{number}"), result(f"s{number}"))]
    uses[100] = call("s3")
    uses[500] = call("s250", params_hash="no")
    log = b"".join(encode(event) + b"\n" for event in [HEADER, *uses, end(300, 1500)])
    log = log.replace(encode(uses[300]), b"{broken")
    one, two = (
        check_replay_log(
            lambda: io.BytesIO(log), file="log", lenient=True, processes=number, segment_bytes=10_000
        )
        for number in (1, 2)
    )
    assert one == two
    assert {finding.code for finding in one.findings} >= {"line_unreadable", "second_call", "params_hash"}


def test_a_capture_may_be_cut_anywhere(tmp_path: Path) -> None:
    """Findings in several segments, and those that only their joining shows."""

    @reenact.tool
    def look(page: int) -> str:
        return str(page)

    path = tmp_path / "run"
    with reenact.capture(path):
        for page in range(30):
            look(page)
    events = path / "events.jsonl"
    lines = events.read_bytes().splitlines(keepends=True)
    lines[5], lines[30], lines[40] = lines[6], lines[10], b"{\n"
    events.write_bytes(b"".join(lines))
    whole, cut = (check_capture(path, segment_bytes=size) for size in (1 << 20, 1000))
    assert whole == cut
    codes = {finding.code for finding in whole.findings}
    assert codes >= {"sequence", "second_outcome", "outcome_without_call", "event_unreadable"}
