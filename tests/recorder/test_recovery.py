"""Completing a run that was killed, and refusing what cannot be completed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.errors import FormatError, StoreError
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from tests.recorder.recording import events_in

_AGENT = """
import sys, time
import reenact
from reenact.boundary import Call, crossing

@reenact.tool
def work(number):
    return {"number": number, "large": "x" * 30_000}

with reenact.capture(sys.argv[1]):
    with crossing(Call("llm", "", {"model": "m"}, {"provider": "p", "model": "m"})) as step:
        step.answer = 1
    for number in range(3):
        work(number)
    print("ready", flush=True)
    time.sleep(60)
"""


def killed(path: Path) -> subprocess.Popen[str]:
    """A run of 9 events whose process is about to be killed."""
    agent = subprocess.Popen([sys.executable, "-c", _AGENT, str(path)], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    assert agent.stdout.readline() == "ready\n"
    return agent


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    with killed(path) as agent:
        agent.send_signal(signal.SIGKILL)
    return path


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_killed_run_is_completed(interrupted: Path):
    """Every event is there, the manifest says what happened, and the directory shows it."""
    assert RunDir.open(interrupted).state is RunState.INTERRUPTED
    recovered = recover(interrupted)
    assert RunDir.open(interrupted).state is RunState.RECOVERED
    manifest = CaptureReader(interrupted).manifest
    assert manifest == recovered.manifest
    assert (manifest.status, manifest.error, manifest.eventCount) == ("error", "interrupted", 9)
    assert (manifest.model.provider, manifest.model.model) == ("p", "m")
    assert manifest.completedAt == events_in(interrupted)[-1].ts
    assert recovered.removed_bytes == 0
    marker = json.loads((interrupted / "recovered.json").read_bytes())
    assert marker["removedBytes"] == 0
    assert marker["recoveredAt"] >= manifest.createdAt


TAILS = {
    "half a line": b'{"captureId":"cap_',
    "half a line with its end": b'{"captureId":"cap_\n',
    "zeros": b"\0" * 4096,
    "half a character": b'{"a":"\xc3',
}


@pytest.mark.parametrize("name", TAILS)
def test_a_torn_last_line_is_cut(interrupted: Path, name: str):
    """What is behind the last whole line goes, and how much that was is said."""
    whole = (interrupted / "events.jsonl").read_bytes()
    with (interrupted / "events.jsonl").open("ab") as stream:
        stream.write(TAILS[name])
    recovered = recover(interrupted)
    assert recovered.removed_bytes == len(TAILS[name])
    assert (interrupted / "events.jsonl").read_bytes() == whole
    assert CaptureReader(interrupted).manifest.eventCount == 9


def test_what_was_half_written_beside_the_log_goes(interrupted: Path):
    """Temporary files are nobody's, and blobs that are whole stay."""
    (interrupted / ".tmp-1-1").write_bytes(b"half")
    (interrupted / "blobs" / ".tmp-1-2").write_bytes(b"half")
    recover(interrupted)
    assert not list(interrupted.rglob(".tmp-*"))
    reader = CaptureReader(interrupted)
    assert reader.resolve(reader.event(5).data.result)["large"] == "x" * 30_000


def test_a_recovered_run_is_not_recovered_again(interrupted: Path):
    """The second time there is nothing to do, and nothing changes."""
    recover(interrupted)
    before = snapshot(interrupted)
    with pytest.raises(StoreError, match="is recovered; there is nothing to recover"):
        recover(interrupted)
    assert snapshot(interrupted) == before


def test_a_finished_run_is_not_recovered(tmp_path: Path):
    """Nor one that ended by itself."""
    with reenact.capture(tmp_path / "run"):
        pass
    with pytest.raises(StoreError, match="is complete; there is nothing to recover"):
        recover(tmp_path / "run")


def test_what_is_no_capture_is_not_recovered(tmp_path: Path):
    """A wrong path is said to be one."""
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match=r"name a capture directory"):
            recover(path)


def test_a_running_capture_is_left_alone(tmp_path: Path):
    """Neither from outside nor from inside, and asking does no harm."""
    with killed(tmp_path / "run") as agent:
        with pytest.raises(StoreError, match=f"is still being recorded by process {agent.pid}; wait until"):
            recover(tmp_path / "run")
        agent.kill()
    assert recover(tmp_path / "run").manifest.eventCount == 9
    with reenact.capture(tmp_path / "own") as run:
        with pytest.raises(StoreError, match=f"is still being recorded by process {os.getpid()}"):
            recover(tmp_path / "own")
        run.final_output = 1
    assert CaptureReader(tmp_path / "own").manifest.status == "ok"


DAMAGES = {
    "a broken line": (lambda lines: [*lines[:3], lines[3][:-9] + b"\n", *lines[4:]], 4, "not JSON"),
    "a line of something else": (lambda lines: [*lines[:3], b'{"a":1}\n', *lines[4:]], 4, "missing"),
    "a missing line": (lambda lines: [*lines[:3], *lines[4:]], 4, "expected 4, found 5"),
    "two broken lines at the end": (lambda lines: [*lines[:7], b"{\n", b"{\n"], 8, "not JSON"),
    "binary in the middle": (lambda lines: [*lines[:3], b"\x00\xff\n", *lines[4:]], 4, "not UTF-8"),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("tail", [b"", b'{"half'], ids=["whole", "torn"])
def test_damage_in_the_middle_is_refused_without_a_change(interrupted: Path, name: str, tail: bytes):
    """Only a torn tail is what a kill leaves; more is for somebody to look at, as it is."""
    damage, line, reason = DAMAGES[name]
    log = interrupted / "events.jsonl"
    log.write_bytes(b"".join(damage(log.read_bytes().splitlines(keepends=True))) + tail)
    (interrupted / ".tmp-1-1").write_bytes(b"half")
    before = snapshot(interrupted)
    with pytest.raises(FormatError, match=reason) as caught:
        recover(interrupted)
    assert (caught.value.file, caught.value.line) == (str(log), line)
    assert snapshot(interrupted) == before
    assert RunDir.open(interrupted).state is RunState.INTERRUPTED


def test_a_damaged_open_manifest_is_refused_without_a_change(interrupted: Path):
    """What the run was cannot be guessed."""
    (interrupted / "manifest.open.json").write_bytes(b'{"pid": 1, "manifest": {"version": 1}}')
    before = snapshot(interrupted)
    with pytest.raises(FormatError, match=r"captureId: required, but missing"):
        recover(interrupted)
    assert snapshot(interrupted) == before


def test_a_run_killed_before_its_first_event_is_recovered(interrupted: Path):
    """An empty log is a log."""
    (interrupted / "events.jsonl").write_bytes(b"")
    assert recover(interrupted).manifest.eventCount == 0
    assert len(CaptureReader(interrupted)) == 0


def test_an_unfinished_run_is_not_read(interrupted: Path):
    """The remedy is named."""
    with pytest.raises(StoreError, match=f"was interrupted; complete it with: reenact recover {interrupted}"):
        CaptureReader(interrupted)
