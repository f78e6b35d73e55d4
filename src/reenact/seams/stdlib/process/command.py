"""A command as the call it is, and its output as text where it is text."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import PurePath
from time import monotonic
from typing import Any, Final, TypeAlias

from reenact.boundary import Call, Context, Step, current_lane
from reenact.library import HOST_QUESTIONS, asking_module
from reenact.seams.serving import asks_server_of_run
from reenact.seams.stdlib.chosen import is_everywhere, lane_for
from reenact.seams.stdlib.places import recorded_path

_PASS_ON: Final = frozenset({"os", "subprocess"})
Environment: TypeAlias = Mapping[str, str] | None
"""What a program is started with; ``None`` for what this process has."""
Leading: TypeAlias = Callable[[Environment], Environment]
"""Changes an environment so that the program's own model calls are seen."""

_leading: Final[dict[Context | None, Leading]] = {}
"""By the identity of an open run's context; ``None`` for all that this process starts."""
_watching: Final[dict[int, Callable[[int], bool]]] = {}
"""By the identity of a context that records: says whether the run talks with a program, by its process id."""
_running: Final[ContextVar[Leading | None]] = ContextVar("reenact_process_running", default=None)


def lead_programs(context: Context | None, leading: Leading | None) -> None:
    """Start programs of the run of *context*, or of this whole process, as *leading* says from now on."""
    key = None if context is None else context
    if leading is not None:
        _leading[key] = leading
    else:
        _leading.pop(key, None)


_run_again: Final[list[int]] = []


def run_again() -> list[int]:
    """The process ids of programs that were really started in a replay."""
    return list(_run_again)


def end_programs() -> None:
    """End the programs that were started in a replay and that nobody has ended."""
    while _run_again:
        with suppress(OSError):
            pid = _run_again.pop()
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def watching_programs(context: Context, talks_with: Callable[[int], bool]) -> Iterator[None]:
    """In the block it is noted of the programs of a recorded run with which it *talks_with*."""
    _watching[id(context)] = talks_with
    try:
        yield
    finally:
        del _watching[id(context)]


def _lead_here() -> Leading:
    lane = lane_for("subprocess")
    found = _leading.get(None) or (_leading.get(lane.context) if lane is not None else None)
    return found or (lambda environment: environment)


@contextmanager
def running() -> Iterator[None]:
    """What is started in the block is part of a process that is recorded already."""
    before = _running.get()
    _running.set(before or _lead_here())
    try:
        yield
    finally:
        _running.set(before)


def led(environment: Environment) -> Environment:
    """*environment* as a program that is started now is to have it."""
    return (_running.get() or _lead_here())(environment)


def is_call(args: object) -> bool:
    """Whether a process that is started here with *args* is a call of a run.

    The clients of a server of the run are none: they run in replay too, and so does what they ask for.
    """
    return lane_for("subprocess") is not None and not asks_server_of_run(_words_of(args))


def is_seen(args: object) -> bool:
    """The same for a process that a library starts. What asks this host about itself is no call either."""
    lane = lane_for("subprocess")
    if lane is None or _running.get() is not None or not is_everywhere("subprocess", lane):
        return False
    return asking_module(_PASS_ON) not in HOST_QUESTIONS and not asks_server_of_run(_words_of(args))


def _words_of(args: object) -> list[str]:
    words = _words(args)
    return [words] if isinstance(words, str) else words


_POLLED_S: Final = 0.2
"""A program that is asked in a loop whether it has ended is not looked at each time: a look takes 10 ms."""


class Command:
    """A program with its arguments; *doing* makes the calls that its process makes of them."""

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
        """What the events are named after."""
        self._started_by: str | None = None
        self._pid = 0
        self._looked_s = 0.0

    def whole(self, sent: object) -> Call:
        """The command run from beginning to end, with *sent* as its input."""
        request = self._request if sent is None else self._request | {"input": plain(sent)}
        return Call("process", self.program, request, empty=_said_nothing)

    def started(self) -> Call:
        """The command begun, to be talked to."""
        return Call("process", self.program, {"do": "start", **self._request}, empty=lambda: {"pid": 0})

    def doing(self, what: str, **details: object) -> Call:
        """Something done with the process after it has begun."""
        known = {name: plain(value) for name, value in details.items() if value is not None}
        request = {"do": what, **known}
        return Call("process", self.program, request, lambda: self._facts(what), empty=_EMPTY.get(what))

    def note_start(self, step: Step, pid: int) -> bool:
        """Know the program by *pid* and by the *step* that began it; whether this is a replay.

        It is run there if the recorded run talked with it over sockets: no recording answers there.
        """
        self._started_by, self._pid = step.call_id, pid
        lane = current_lane()
        is_replay = lane is not None and lane.context.mode == "replay"
        if is_replay:
            _run_again.append(pid)
        return is_replay

    def _facts(self, what: str) -> dict[str, object]:
        if self._started_by is None:
            return {}
        facts: dict[str, object] = {"program": self._started_by}
        lane = current_lane()
        talks_with = None if lane is None else _watching.get(id(lane.context))
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
    # Where this Python lies differs between machines.
    return "{python}" if text == sys.executable else text


def _is_splittable(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def plain(output: object) -> object:
    """Bytes as the text they hold, if they hold text: so they can be read, and secrets in them found."""
    if not isinstance(output, bytes | bytearray | memoryview):
        return output
    try:
        return bytes(output).decode()
    except UnicodeDecodeError:
        return bytes(output)


def as_bytes(output: object) -> Any:
    """The bytes that :func:`plain` was given."""
    return output.encode() if isinstance(output, str) else output


def is_text(options: dict[str, object]) -> bool:
    """Whether a process with these options speaks text."""
    return any(options.get(name) for name in ("text", "universal_newlines", "encoding", "errors"))


def outcome(returncode: int | None, outputs: Sequence[object]) -> dict[str, object]:
    """What is recorded of a process that has ended."""
    stdout, stderr = outputs
    return {"returncode": returncode, "stderr": plain(stderr), "stdout": plain(stdout)}


def _said_nothing() -> dict[str, object]:
    return outcome(0, ("", ""))


_EMPTY: Final[dict[str, Callable[[], object]]] = {
    "communicate": _said_nothing,
    "poll": int,
    "wait": int,
    **dict.fromkeys(("kill", "send_signal", "signal", "terminate"), dict),
    **dict.fromkeys(("read", "readexactly", "readline", "readuntil"), str),
}
"""What a process that said nothing and ended well answers, by what is done with it; it takes no input."""


def outputs(answer: dict[str, object], options: dict[str, object]) -> tuple[object, object]:
    """Standard output and standard error of a recorded outcome, as text or bytes."""
    said = answer["stdout"], answer["stderr"]
    return said if is_text(options) else (as_bytes(said[0]), as_bytes(said[1]))
