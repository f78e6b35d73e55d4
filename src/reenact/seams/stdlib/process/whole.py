"""Programs that are run from beginning to end in one call."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable
from typing import Any, Final

from reenact.boundary import crossing
from reenact.seams.patches import Patch
from reenact.seams.stdlib.process.command import Command, is_call, is_seen, outcome, outputs, running
from reenact.seams.stdlib.sources import as_it_was

_run: Callable[..., subprocess.CompletedProcess[Any]] = as_it_was(subprocess, "run")
_check_output: Final = as_it_was(subprocess, "check_output")
_run_shell: Callable[[Any], int] = as_it_was(os, "system")
_open_pipe: Final = as_it_was(os, "popen")


def run(
    *popenargs: Any,
    input: Any = None,  # noqa: A002 — the parameter's own name
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    args = popenargs[0] if popenargs else options["args"]
    if not is_call(args):
        return _run(*popenargs, input=input, check=check, **options)
    with crossing(Command(args, options).call_of_run(input)) as step:
        if step.live:
            with running():
                done = _run(*popenargs, input=input, **options)
            step.answer = outcome(done.returncode, (done.stdout, done.stderr))
    completed = subprocess.CompletedProcess(args, step.answer["returncode"], *outputs(step.answer, options))
    if check:
        completed.check_returncode()
    return completed


def call(*popenargs: object, **options: Any) -> int:
    return run(*popenargs, **options).returncode


def check_call(*popenargs: Any, **options: Any) -> int:
    returncode = call(*popenargs, **options)
    if returncode:
        raise subprocess.CalledProcessError(returncode, popenargs[0] if popenargs else options["args"])
    return 0


def check_output(*popenargs: object, **options: object) -> object:
    if "stdout" in options or "check" in options:
        return _check_output(*popenargs, **options)  # raises Python's own error
    return run(*popenargs, stdout=subprocess.PIPE, check=True, **options).stdout


def getstatusoutput(cmd: str, **options: Any) -> tuple[int, str]:
    done = run(cmd, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return done.returncode, done.stdout.removesuffix("\n")


def getoutput(cmd: str, **options: object) -> str:
    return getstatusoutput(cmd, **options)[1]


def system(command: object) -> int:
    if not is_call(command):
        return _run_shell(command)
    with crossing(Command(command, {"shell": True}).call_of_run(None)) as step:
        if step.live:
            with running():
                step.answer = outcome(_run_shell(command), (None, None))
    returncode: int = step.answer["returncode"]
    return returncode


def _system(original: Callable[[object], int]) -> Callable[[object], int]:
    """The patch for libraries' calls."""
    return lambda command: system(command) if is_seen(command) else original(command)


PATCHES: Final = [Patch(os, "system", _system)]


def popen(cmd: str, mode: str = "r", buffering: int = -1) -> object:
    if mode != "r" or not is_call(cmd):
        return _open_pipe(cmd, mode, buffering)
    done = run(cmd, shell=True, text=True, stdout=subprocess.PIPE)
    return _Output(done.stdout, done.returncode)


class _Output(io.StringIO):
    """A program's output; closing it returns the status, as for ``os.popen``."""

    def __init__(self, text: str, returncode: int) -> None:
        super().__init__(text)
        self._status = returncode << 8 if returncode > 0 else returncode

    def close(self) -> int | None:  # type: ignore[override]
        super().close()
        return self._status or None
