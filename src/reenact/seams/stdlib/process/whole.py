"""Programs that are run from beginning to end in one call."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

from reenact.boundary import crossing, outside
from reenact.seams.patches import Patch
from reenact.seams.stdlib.process.command import (
    Command,
    ProcessOutcome,
    as_bytes,
    is_call,
    is_seen,
    outcome,
    outputs,
    running,
)
from reenact.seams.stdlib.sources import as_it_was

_run: Callable[..., subprocess.CompletedProcess[Any]] = as_it_was(subprocess, "run")
_check_output: Final = as_it_was(subprocess, "check_output")
_run_shell: Callable[[Any], int] = as_it_was(os, "system")
_open_pipe: Final = as_it_was(os, "popen")
_STDOUT: Final = 1
_READ_BYTES: Final = 1 << 16
_LAST_WORDS_S: Final = 0.1
"""How long programs that outlive the one that was run may still print."""


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
            with running(), _forward_printed(options) as printed:
                done = _run(*popenargs, input=input, **options)
            step.answer = outcome(done.returncode, (done.stdout, done.stderr), bytes(printed))
        else:
            _print_again(step.answer)
    completed = subprocess.CompletedProcess(args, step.answer["returncode"], *outputs(step.answer, options))
    if check:
        completed.check_returncode()
    return completed


@contextmanager
def _forward_printed(options: dict[str, object]) -> Iterator[bytearray]:
    """Let a program that would write to our standard output do so through a pipe, and keep what it wrote.

    A terminal stays the program's own: it may ask it for its size, or read from it.
    """
    printed = bytearray()
    if not _is_ours(options.get("stdout")) or options.get("capture_output") or os.isatty(_STDOUT):
        yield printed
        return
    reading, writing = os.pipe()
    rest = os.dup(reading)
    is_left = Event()
    with outside():
        passing = Thread(
            target=_pass_on, args=(reading, printed, is_left), name="reenact-output", daemon=True
        )
        passing.start()
    options["stdout"] = writing
    try:
        yield printed
    finally:
        os.close(writing)
        passing.join(_LAST_WORDS_S)
        if passing.is_alive():
            is_left.set()
            with outside():
                leave_output(rest, _STDOUT)
        os.close(rest)


def _is_ours(stdout: object) -> bool:
    with suppress(OSError, ValueError):
        number = getattr(stdout, "fileno", lambda: stdout)()
        return number is None or number == _STDOUT
    return False


def _pass_on(reading: int, printed: bytearray, is_left: Event) -> None:
    """Forward until no program has the pipe any more, the rest is left, or our own output is closed."""
    with os.fdopen(reading, "rb", buffering=0) as pipe, suppress(OSError):
        while not is_left.is_set() and (piece := pipe.read(_READ_BYTES)):
            printed += piece
            _print(piece)


def leave_output(reading: int, to: int) -> None:
    """Let a program of its own forward what comes from *reading*: programs in the background may outlive us.

    It is no child of this process, which may wait for any of its children.
    """
    # A shell gives /dev/null as input to what it leaves, so the pipe comes as another descriptor.
    words = ["/bin/sh", "-c", "cat <&2 2>/dev/null &"]
    with suppress(OSError):
        _run(words, stdin=subprocess.DEVNULL, stdout=to, stderr=reading, check=False)


def _print_again(answer: ProcessOutcome) -> None:
    with suppress(OSError):
        _print(as_bytes(answer.get("printed", b"")))


def _print(piece: bytes) -> None:
    while piece:
        piece = piece[os.write(_STDOUT, piece) :]


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
    options: dict[str, object] = {"shell": True}
    with crossing(Command(command, options).call_of_run(None)) as step:
        if step.live:
            with running(), _forward_printed(options) as printed:
                status = _run_through_pipe(command, options) if "stdout" in options else _run_shell(command)
            step.answer = outcome(status, (None, None), bytes(printed))
        else:
            _print_again(step.answer)
    returncode: int = step.answer["returncode"]
    return returncode


def _run_through_pipe(command: object, options: dict[str, object]) -> int:
    """Run *command* as ``os.system`` does; returns its wait status."""
    returncode = _run(command, **options).returncode
    return -returncode if returncode < 0 else returncode << 8


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
