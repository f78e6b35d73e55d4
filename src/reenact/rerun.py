"""Tests over recorded runs, and over commands that are executed again for them.

Judging belongs to the reading side, which never runs an agent; replaying a command belongs to the running
side. This module stands above both and joins them. A command is replayed in a process of its own, because the
working folder and the handling of signals are a process's; what it prints is not shown.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reenact.errors import FormatError, ReenactError
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt, receipt_codec
from reenact.suite.runner import Outcome, SuiteReport, run_suite

TIMEOUT_S: Final = 600
_COMMAND: Final = "$.adapter_input.command"
_MODULE: Final = "reenact.rerun"


def test(
    *paths: str | Path,
    name: str | None = None,
    tags: Collection[str] = (),
    strict: bool = False,
    out: str | Path | None = None,
    jobs: int | None = 1,
    on: str | None = None,
    allow_code: bool = False,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> SuiteReport:
    """Run the assertions of every test file in *paths* over the recorded runs that they name.

    The command that a test names is executed again, replayed from its capture. Only tests whose id, title or
    path contains *name*, and with one of the *tags*, are run. With *strict* a key or parameter that nobody
    knows is an error. Result and trace files go to *out*. *jobs* is how many processes may work: 0 for one
    per core, ``None`` for that if there are many tests; *on* has Ray do it (``ray``, ``ray=ADDRESS``).
    *allow_code* runs the Python files that ``reenact.toml`` names for assertions. *on_outcome* is told of
    each test as it is done.
    """
    return run_suite(
        *paths,
        replay=replay_for_test,
        name=name,
        tags=tags,
        strict=strict,
        out=out,
        jobs=jobs,
        on=on,
        allow_code=allow_code,
        on_outcome=on_outcome,
    )


def replay_for_test(capture: Path, command: str | list[str], directory: Path) -> ReplayReceipt:
    """The receipt of *command*, run in *directory* and replayed from *capture*.

    :class:`FormatError` where no replay came about: there is nothing to judge then.
    """
    words = _split(command) if isinstance(command, str) else command
    with TemporaryDirectory(prefix="reenact-") as scratch:
        receipt = Path(scratch, "receipt.json")
        program = [sys.executable, "-m", _MODULE, str(capture.resolve()), str(receipt), *words]
        try:
            done = subprocess.run(
                program,
                cwd=directory,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = f"the replay was stopped after {TIMEOUT_S} s"
            raise FormatError(reason, json_path=_COMMAND) from None
        if not receipt.is_file():
            reason = f"the replay left no receipt (exit status {done.returncode}): {_last_line(done.stderr)}"
            raise FormatError(reason, json_path=_COMMAND)
        return read_replay_receipt(receipt.read_bytes(), file=f"the receipt of {capture}")


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise FormatError(f"not a command: {error}", json_path=_COMMAND) from None


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _replay(capture: str, receipt: str, *words: str) -> None:
    """What the process of its own does."""
    from reenact.commands.replay import replay_command

    report = replay_command(capture, words)
    Path(receipt).write_bytes(receipt_codec.to_bytes(report.receipt))


if __name__ == "__main__":
    try:
        _replay(*sys.argv[1:])
    except ReenactError as error:
        sys.stderr.write(f"reenact: {error}{os.linesep}")
        sys.exit(2)
