"""A capture that was changed is found out, with the line and the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.check.integrity.capture import check_capture
from reenact.cli import main
from reenact.errors import StoreError
from reenact.store.reader import EventReader
from reenact.store.rundir import RunDir
from reenact.store.transcript import make_transcript, transcript_of
from tests.aging import make_older

Change = Callable[[list[bytes]], list[bytes]]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A small run with a large payload."""

    @reenact.tool
    def fetch(page: int) -> str:
        return f"{page}" * 20_000

    path = tmp_path / "run"
    with reenact.capture(path) as run:
        fetch(1)
        fetch(2)
        run.clock.now()
    return path


def change_events(path: Path, change: Change) -> None:
    events = path / "events.jsonl"
    events.write_bytes(b"".join(change(events.read_bytes().splitlines(keepends=True))))


def codes(path: Path) -> set[str]:
    return {finding.code for finding in check_capture(path).findings}


def test_a_whole_capture_has_no_finding(capture: Path) -> None:
    """What was recorded verifies, blobs included."""
    report = check_capture(capture)
    assert report.findings == []
    assert (report.facts["events"], report.facts["blobs"]) == (7, 2)


CHANGES: dict[str, tuple[Change, str, int | None]] = {
    "a line was dropped": (lambda lines: lines[:2] + lines[3:], "sequence", 3),
    "two lines were swapped": (lambda lines: [*lines[:1], lines[2], lines[1], *lines[3:]], "sequence", 2),
    "the end was cut off": (lambda lines: lines[:-1], "no_end", None),
    "a line was written twice": (lambda lines: [*lines[:3], lines[2], *lines[3:]], "sequence", 4),
    "a call was dropped": (lambda lines: lines[:1] + lines[2:], "outcome_without_call", 2),
    "a line is no JSON": (lambda lines: [*lines[:3], b"{\n", *lines[4:]], "event_unreadable", 4),
    "a line of another run": (
        lambda lines: [*lines[:3], lines[3].replace(b'"run_', b'"run_x'), *lines[4:]],
        "foreign_event",
        4,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_log_is_found_out(capture: Path, name: str) -> None:
    """Each change has its own finding at its own line, beside the hash that no longer fits."""
    change, code, line = CHANGES[name]
    change_events(capture, change)
    findings = check_capture(capture).findings
    assert "events_changed" in {finding.code for finding in findings}
    assert (code, line) in {(finding.code, finding.line) for finding in findings}


def test_a_changed_manifest_is_found_out(capture: Path) -> None:
    """The manifest digests itself."""
    manifest = capture / "manifest.json"
    value = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps(value | {"createdAt": value["createdAt"] + 1}))
    assert codes(capture) == {"manifest_changed"}


def test_damaged_missing_and_unused_blobs_are_told_apart(capture: Path) -> None:
    """A blob is held against the digest that is its name."""
    first, second = sorted((capture / "blobs").glob("sha256/*/*"))
    first.write_bytes(b"changed")
    stray = second.parent / ("0" * len(second.name))
    second.rename(stray)
    assert codes(capture) >= {"blob_damaged", "blob_missing", "blob_unused"}


def test_there_must_be_a_capture(tmp_path: Path) -> None:
    """A directory without one is refused, not reported."""
    with pytest.raises(StoreError):
        check_capture(tmp_path)


# What a reviewer reads


def test_a_transcript_that_says_something_else_is_found(tmp_path: Path) -> None:
    """It is made anew by recovering, and one that is missing is no fault: older captures have none."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = "paid"
    file = tmp_path / "run" / "transcript.md"
    assert "paid" in file.read_text()
    file.write_text(file.read_text().replace("paid", "refused"))
    [finding] = check_capture(tmp_path / "run").findings
    assert (finding.code, finding.file) == ("transcript", "transcript.md")
    assert main(["recover", str(tmp_path / "run")]) == 0
    assert check_capture(tmp_path / "run").findings == []
    file.unlink()
    assert check_capture(tmp_path / "run").findings == []


def test_line_ends_that_were_changed_are_named(tmp_path: Path) -> None:
    """The message says what to do, in verifying and in replaying alike."""
    with reenact.capture(tmp_path / "run"):
        pass
    events = tmp_path / "run" / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b"\n", b"\r\n"))
    findings = check_capture(tmp_path / "run").findings
    assert "'**/captures/** -text' (or their own folder) in .gitattributes" in next(
        each.message for each in findings if each.code == "events_changed"
    )
    with pytest.raises(reenact.DigestMismatch, match="the lines end in CRLF"):
        reenact.replay(tmp_path / "run")


def test_a_transcript_is_looked_at_beside_a_warning(tmp_path: Path) -> None:
    """Where times go back, that alone is reported, and why."""

    @reenact.tool
    def look_up(item: str) -> str:
        return item.upper()

    with reenact.capture(tmp_path / "run"):
        for item in ("lamp", "door", "desk"):
            look_up(item)
    make_older(tmp_path / "run", from_seq=4)
    [warning] = check_capture(tmp_path / "run").findings
    assert (warning.code, warning.severity) == ("time", "warning")
    assert "a clock was set back, or an older reenact updated the run" in warning.message
    file = tmp_path / "run" / "transcript.md"
    file.write_text(file.read_text().replace("DOOR", "WALL"))
    assert [finding.code for finding in check_capture(tmp_path / "run").findings] == ["time", "transcript"]


def test_a_longer_transcript_of_an_earlier_version_is_none_of_the_faults(tmp_path: Path) -> None:
    """A transcript ends earlier now; one that was made before is still what the events say."""
    with reenact.capture(tmp_path / "run"):
        for number in range(100):
            with crossing(Call("tool", "note", f"{number} " + "a text " * 600)) as step:
                step.answer = None
    log = EventReader(RunDir(tmp_path / "run"))
    file = tmp_path / "run" / "transcript.md"
    assert file.read_bytes() == transcript_of(log)
    assert b"too long for a transcript" in file.read_bytes()
    file.write_bytes(
        make_transcript(log.lines(), log.resolve, size_bytes=log.size_bytes, max_characters=2_000_000)
    )
    assert b"too long for a transcript" not in file.read_bytes()
    assert check_capture(tmp_path / "run").findings == []
