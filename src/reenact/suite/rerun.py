"""Executing an agent again, offline, from its capture.

This side of the house never runs an agent: it asks the command line to, in a process of its own, and reads
the receipt.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reenact.errors import FormatError
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt

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
