"""A command as a call of the run, and its output in recorded form."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath
from time import monotonic
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

from reenact.boundary import A, Call, Context, Step, current_lane
from reenact.library import HOST_QUESTIONS, asking_module
from reenact.process_state import (
    environment_change_var,
    environment_changes,
    program_watches,
    programs_run_again,
)
from reenact.seams.serving import asks_server_of_run
from reenact.seams.stdlib.places import recorded_path
from reenact.seams.stdlib.sources import is_everywhere, lane_for

_PASS_ON: Final = frozenset({"os", "subprocess"})
Environment: TypeAlias = Mapping[str, str] | None
"""The environment variables of a new program; ``None`` for those of this process."""
EnvironmentChange: TypeAlias = Callable[[Environment], Environment]
"""Changes an environment so that the program's own model calls go through the gateway."""


def set_environment_change(context: Context | None, change: EnvironmentChange | None) -> None:
    """Change the environment of programs with *change*, for the run of *context* or for this process."""
    if change is not None:
        environment_changes[context] = change
    else:
        environment_changes.pop(context, None)


def run_again() -> list[int]:
    """The process ids of programs that were really started in a replay."""
    return list(programs_run_again)


def end_programs() -> None:
    """Kill the programs that were started in a replay and still run."""
    while programs_run_again:
        with suppress(OSError):
            pid = programs_run_again.pop()
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def watch_programs(context: Context, talks_with: Callable[[int], bool]) -> Iterator[None]:
    """In the block, record for each program of the run whether the run *talks_with* it."""
    program_watches[context] = talks_with
    try:
        yield
    finally:
        del program_watches[context]


def _find_environment_change() -> EnvironmentChange:
    lane = lane_for("subprocess")
    of_run = environment_changes.get(lane.context) if lane is not None else None
    return environment_changes.get(None) or of_run or (lambda environment: environment)


@contextmanager
def running() -> Iterator[None]:
    """Treat processes started in the block as part of a process that is already recorded."""
    before = environment_change_var.get()
    environment_change_var.set(before or _find_environment_change())
    try:
        yield
    finally:
        environment_change_var.set(before)


def change_environment(environment: Environment) -> Environment:
    """The environment for a program that is started now."""
    return (environment_change_var.get() or _find_environment_change())(environment)


def is_call(args: object) -> bool:
    """Whether a process that is started here with *args* is a call of a run.

    A client of the run's own server is not: it runs in replay, too, and so does the server's code.
    """
    return lane_for("subprocess") is not None and not asks_server_of_run(_words_of(args))


def is_seen(args: object) -> bool:
    """The same for a process that a library starts; one that only queries this host is no call, either."""
    lane = lane_for("subprocess")
    if lane is None or environment_change_var.get() is not None or not is_everywhere("subprocess", lane):
        return False
    return asking_module(_PASS_ON) not in HOST_QUESTIONS and not asks_server_of_run(_words_of(args))


def _words_of(args: object) -> list[str]:
    words = _words(args)
    return [words] if isinstance(words, str) else words


_POLLED_S: Final = 0.2
"""How often to look at a program's connections while the agent polls it in a loop: a look takes 10 ms."""


class ProcessStart(TypedDict):
    """The answer of a process that was begun."""

    pid: int
    tellsExit: NotRequired[bool]
    """Whether it is recorded when the agent asks for the status without waiting; earlier versions did not."""


class ProcessOutcome(TypedDict):
    """The answer of a process that has ended; its outputs as :func:`text_if_utf8` makes them."""

    returncode: int
    stderr: object
    stdout: object
    printed: NotRequired[object]
    """What it wrote to our own standard output, if that is no terminal."""


class TerminalOutcome(TypedDict):
    """The answer of a process that has ended on a terminal: how, and what it said, piece by piece."""

    status: int
    terminal: list[object]


class Command:
    """A program with its arguments, and the calls that are made with its process."""

    def __init__(self, args: object, options: dict[str, object]) -> None:
        self._request: dict[str, Any] = {"args": _words(args)}
        if options.get("cwd") is not None:
            self._request["cwd"] = recorded_path(options["cwd"])
        if options.get("shell"):
            self._request["shell"] = True
        words = self._request["args"]
        first = (
            shlex.split(words, comments=True) if isinstance(words, str) and _is_splittable(words) else words
        )
        self.program = PurePath(first[0]).name if first and not isinstance(first, str) else str(words)
        """The name of the call's events."""
        self._started_by: str | None = None
        self._pid = 0
        self._looked_s = 0.0

    def call_of_run(self, sent: object) -> Call[ProcessOutcome]:
        """The call that runs the command to its end, with *sent* as its input."""
        request = self._request if sent is None else self._request | {"input": text_if_utf8(sent)}
        return Call("process", self.program, request, empty=empty_outcome)

    def on_terminal(self) -> Call[TerminalOutcome]:
        """The command run from beginning to end, on a terminal of its own."""
        return Call("process", self.program, self._request, empty=lambda: {"status": 0, "terminal": []})

    def call_of_start(self) -> Call[ProcessStart]:
        return Call("process", self.program, {"do": "start", **self._request}, empty=lambda: {"pid": 0})

    def call_of_action(self, what: str, empty: Callable[[], A] | None = None, **details: object) -> Call[A]:
        """A call on the started process, such as a read or a signal.

        *empty* makes the answer of a process that wrote nothing and succeeded.
        """
        known = {name: text_if_utf8(value) for name, value in details.items() if value is not None}
        request = {"do": what, **known}
        return Call("process", self.program, request, lambda: self._facts(what), empty=empty)

    def note_start(self, step: Step[ProcessStart], pid: int) -> bool:
        """Remember the program's *pid* and the *step* that started it; returns whether this is a replay.

        Replay runs the program if the recorded run talked with it over sockets, which are not recorded.
        """
        self._started_by, self._pid = step.call_id, pid
        lane = current_lane()
        is_replay = lane is not None and lane.context.mode == "replay"
        if is_replay:
            programs_run_again.append(pid)
        return is_replay

    def _facts(self, what: str) -> dict[str, object]:
        if self._started_by is None:
            return {}
        facts: dict[str, object] = {"program": self._started_by}
        lane = current_lane()
        talks_with = None if lane is None else program_watches.get(lane.context)
        now_s = monotonic()
        if talks_with is not None and (what != "poll" or now_s - self._looked_s > _POLLED_S):
            self._looked_s = now_s
            if talks_with(self._pid):
                facts["talks"] = True
        return facts


def _words(args: Any) -> str | list[str]:
    if isinstance(args, str | bytes | os.PathLike):
        return _word(args)
    return [_word(arg) for arg in args]


def _word(arg: Any) -> str:
    text = os.fsdecode(arg)
    # The path of this Python differs between machines.
    return "{python}" if text == sys.executable else text


def _is_splittable(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def text_if_utf8(output: object) -> object:
    """Bytes as text if they are UTF-8, so that people can read them and redaction finds secrets."""
    if not isinstance(output, bytes | bytearray | memoryview):
        return output
    try:
        return bytes(output).decode()
    except UnicodeDecodeError:
        return bytes(output)


def as_bytes(output: object) -> Any:
    """The inverse of :func:`text_if_utf8`."""
    return output.encode() if isinstance(output, str) else output


def is_text(options: dict[str, object]) -> bool:
    """Whether a process with these options reads and writes text."""
    return any(options.get(name) for name in ("text", "universal_newlines", "encoding", "errors"))


def outcome(returncode: int, outputs: Sequence[object], printed: bytes = b"") -> ProcessOutcome:
    """The recorded form of a process that has ended."""
    stdout, stderr = map(text_if_utf8, outputs)
    ended: ProcessOutcome = {"returncode": returncode, "stderr": stderr, "stdout": stdout}
    return {**ended, "printed": text_if_utf8(printed)} if printed else ended


def empty_outcome() -> ProcessOutcome:
    """The outcome of a process that wrote nothing and succeeded."""
    return outcome(0, ("", ""))


def outputs(answer: ProcessOutcome, options: dict[str, object]) -> tuple[object, object]:
    """Standard output and standard error of a recorded outcome, as text or bytes."""
    said = answer["stdout"], answer["stderr"]
    return said if is_text(options) else (as_bytes(said[0]), as_bytes(said[1]))
