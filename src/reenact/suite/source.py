"""Where a test's run comes from: a bundle, a capture, a replay log, or the agent executed again, offline.

This side of the house never runs an agent: it asks the command line to, in a process of its own, and reads
the receipt.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reenact.errors import FormatError
from reenact.formats.bundle import read_bundle
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import read_replay_log
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Trace
from reenact.store.reader import CaptureReader
from reenact.trace.from_run import trace_of_run
from reenact.trace.normalize import normalize
from reenact.trace.replayed import with_receipt
from reenact.trace.sources.capture import read_capture
from reenact.trace.sources.replay_log import read_log

TIMEOUT_S: Final = 600


def replay_command(capture: Path, command: str | list[str], directory: Path) -> ReplayReceipt:
    """The receipt of *command*, run in *directory* and replayed from *capture*.

    :class:`FormatError` where no replay came about: there is nothing to judge then.
    """
    arguments = _split(command) if isinstance(command, str) else command
    with TemporaryDirectory(prefix="reenact-") as scratch:
        receipt = Path(scratch, "receipt.json")
        replay = [sys.executable, "-m", "reenact", "replay", str(capture.resolve())]
        whole = [*replay, "--receipt", str(receipt), "--", *arguments]
        try:
            done = subprocess.run(
                whole,
                cwd=directory,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = f"the replay was stopped after {TIMEOUT_S} s"
            raise FormatError(reason, json_path="$.adapter_input.command") from None
        if not receipt.is_file():
            reason = f"the replay left no receipt (exit status {done.returncode}): {_last_line(done.stderr)}"
            raise FormatError(reason, json_path="$.adapter_input.command")
        return read_replay_receipt(receipt.read_bytes(), file=f"the receipt of {capture}")


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise FormatError(f"not a command: {error}", json_path="$.adapter_input.command") from None


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def read_trace_of(case: TestCase, test_file: Path, *, test_run_id: str, started_at: datetime) -> Trace:
    """The trace that *case* is about; its artifacts name the files it was made from."""
    source, directory = case.adapter_input, test_file.parent
    names: dict[str, Any] = {"case": case, "trace_id": f"{test_run_id}.{case.id}", "test_run_id": test_run_id}
    if source.replay_file is not ABSENT:
        file = _existing(directory / source.replay_file, "replay_file")
        bundle = read_bundle(file.read_bytes(), str(file))
        return normalize(bundle, started_at=started_at, artifacts={"replay_file": str(file)}, **names)
    if source.replay_log is not ABSENT:
        file = _existing(directory / source.replay_log, "replay_log")
        with file.open("rb") as stream:
            lines = read_replay_log(stream, file=str(file))
            return trace_of_run(read_log(lines), artifacts={"replay_log": str(file)}, **names)
    if source.capture is ABSENT:
        reason = "a command is replayed from a capture; name it as capture"
        raise FormatError(reason, json_path="$.adapter_input.command")
    return _trace_of_capture(case, directory, names)


def _trace_of_capture(case: TestCase, directory: Path, names: Mapping[str, Any]) -> Trace:
    source = case.adapter_input
    assert source.capture is not ABSENT
    path = _existing(directory / source.capture, "capture")
    trace = trace_of_run(read_capture(CaptureReader(path)), artifacts={"capture": str(path)}, **names)
    if source.command is ABSENT:
        return trace
    return with_receipt(trace, replay_command(path, source.command, directory))


def _existing(path: Path, key: str) -> Path:
    if not path.exists():
        reason = f"{path} does not exist; paths are relative to the test file"
        raise FormatError(reason, json_path=f"$.adapter_input.{key}")
    return path
