"""Reading the run of a test: from a bundle, a capture, a replay log, or a replay of the agent.

The reading side never runs an agent: the caller passes a function that does, and gives back its receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from reenact.errors import FormatError
from reenact.formats.bundle import read_bundle
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import read_replay_log
from reenact.formats.replay_receipt import ReplayReceipt
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Trace
from reenact.store.objects import address_in
from reenact.store.reader import CaptureReader
from reenact.store.remote import local_run, remote_name
from reenact.trace.from_run import trace_of_run
from reenact.trace.normalize import normalize
from reenact.trace.replayed import with_receipt
from reenact.trace.sources.capture import read_capture
from reenact.trace.sources.replay_log import read_log

ReplayForTest: TypeAlias = Callable[[Path, str | list[str], Path], ReplayReceipt]
"""Replays a command from a capture in a folder, and returns the receipt."""


def read_trace_of(
    case: TestCase, test_file: Path, *, test_run_id: str, started_at: datetime, replay: ReplayForTest | None
) -> Trace:
    """Read the trace for *case*; its artifacts name the source files.

    Without *replay* a test that names a command cannot be run.
    """
    source, directory = case.adapter_input, test_file.parent
    names: dict[str, Any] = {"case": case, "trace_id": f"{test_run_id}.{case.id}", "test_run_id": test_run_id}
    if source.replay_file is not ABSENT:
        file = _require_path(directory / source.replay_file, "replay_file")
        bundle = read_bundle(file.read_bytes(), str(file))
        return normalize(bundle, started_at=started_at, artifacts={"replay_file": str(file)}, **names)
    if source.replay_log is not ABSENT:
        file = _require_path(directory / source.replay_log, "replay_log")
        with file.open("rb") as stream:
            lines = read_replay_log(stream, file=str(file))
            return trace_of_run(read_log(lines), artifacts={"replay_log": str(file)}, **names)
    if source.capture is ABSENT:
        reason = "a command is replayed from a capture; name it as capture"
        raise FormatError(reason, json_path="$.adapter_input.command")
    return _trace_of_capture(case, directory, names, replay)


def _trace_of_capture(
    case: TestCase, directory: Path, names: Mapping[str, Any], replay: ReplayForTest | None
) -> Trace:
    source = case.adapter_input
    assert source.capture is not ABSENT
    named = directory / source.capture if address_in(source.capture) is None else source.capture
    with local_run(named) as path:
        artifacts = {"capture": remote_name(named)}
        trace = trace_of_run(
            read_capture(CaptureReader(_require_path(path, "capture"))), artifacts=artifacts, **names
        )
        if source.command is ABSENT:
            return trace
        if replay is None:
            reason = "commands are not run here; use: reenact test"
            raise FormatError(reason, json_path="$.adapter_input.command")
        return with_receipt(trace, replay(path, source.command, directory))


def _require_path(path: Path, key: str) -> Path:
    if not path.exists():
        reason = f"{path} does not exist; paths are relative to the test file"
        raise FormatError(reason, json_path=f"$.adapter_input.{key}")
    return path
