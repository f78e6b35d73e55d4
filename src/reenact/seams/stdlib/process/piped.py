"""``subprocess.Popen``: a process that the agent talks to; each read, write, wait or signal is a call."""

from __future__ import annotations

import copyreg
import io
import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import signature
from types import FrameType
from typing import Any, Final

from reenact.boundary import Call, crossing, current_lane, no_answer
from reenact.seams.patches import Patch
from reenact.seams.stdlib.process.command import (
    Command,
    as_bytes,
    change_environment,
    empty_outcome,
    is_call,
    is_seen,
    is_text,
    outcome,
    outputs,
    running,
    text_if_utf8,
)
from reenact.seams.stdlib.stand_ins import StandInMeta, reduce_class

_popen: Final = subprocess.Popen
_SIGNATURE: Final = signature(subprocess.Popen)


def _init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        """Of the real class, which libraries use: turn the new object into a stand-in, too."""
        started = args[0] if args else kwargs.get("args", ())
        # Processes of an event loop are recorded at the loop's own methods.
        if _is_of_loop(sys._getframe(1)) or not is_seen(started):  # noqa: SLF001
            environment = change_environment(kwargs.get("env"))
            if environment is not None:
                kwargs["env"] = environment
            original(self, *args, **kwargs)
        else:
            kind: Any = type(self)
            self.__class__ = _recording_class(kind)
            self.__init__(*args, **kwargs)

    return __init__


def _is_of_loop(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(("asyncio.", "uvloop"))


@cache
def _recording_class(kind: Any) -> object:
    """A subclass of *kind* whose processes are recorded."""
    return Popen if kind is _popen else _Kind(kind.__name__, (Popen, kind), {})


PATCHES: Final = [Patch(subprocess.Popen, "__init__", _init)]


class _Kind(StandInMeta):
    """The metaclass of :class:`Popen`: calling it outside a run calls the real class."""

    def __call__(cls, *args: Any, **kwargs: Any) -> object:  # noqa: N805 — it is a metaclass
        started = args[0] if args else kwargs.get("args", ())
        return super().__call__(*args, **kwargs) if is_call(started) else _popen(*args, **kwargs)


copyreg.pickle(_Kind, reduce_class)


class Popen(subprocess.Popen[Any], metaclass=_Kind):
    """A ``Popen`` that holds the real process while recording, and none in replay."""

    __supertype__ = subprocess.Popen

    _child_created = False  # so that the base class has nothing to reap

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._options = _SIGNATURE.bind(*args, **kwargs).arguments
        self.args = self._options["args"]
        self.returncode = None
        self.encoding, self.errors = self._options.get("encoding"), self._options.get("errors")
        self.pipesize = self._options.get("pipesize", -1)
        self.text_mode = (
            self.encoding
            or self.errors
            or self._options.get("text")
            or self._options.get("universal_newlines")
        )
        if self.text_mode and self.encoding is None:
            self.encoding = subprocess._text_encoding()  # type: ignore[attr-defined]  # noqa: SLF001
        self._command = Command(self.args, self._options)
        self._real: subprocess.Popen[Any] | None = None
        with crossing(self._command.call_of_start()) as step:
            if step.live:
                with running():
                    self._real = _popen(*args, **kwargs)
                step.answer = {"pid": self._real.pid}
        if self._real is not None and self._command.note_start(step, self._real.pid):
            self._become_real(self._real)
            return
        self.pid = step.answer["pid"]
        self.stdin = self._stream("stdin")
        self.stdout = self._stream("stdout")
        self.stderr = self._stream("stderr")

    def _become_real(self, process: subprocess.Popen[Any]) -> None:
        vars(self).clear()
        vars(self).update(vars(process))
        process._child_created = False  # type: ignore[attr-defined]  # noqa: SLF001 — it has nothing to reap
        self.__class__ = type(process)  # type: ignore[assignment]  # a base class of its own

    def _stream(self, name: str) -> Any:
        if self._options.get(name) != subprocess.PIPE:
            return None
        pipe = _Pipe(self._command, name, getattr(self._real, name, None))
        if self._options.get("bufsize") == 0:
            return pipe
        buffered: Any = io.BufferedWriter(pipe) if name == "stdin" else io.BufferedReader(pipe)
        if not is_text(self._options):
            return buffered
        kind = {name: self._options[name] for name in ("encoding", "errors") if name in self._options}
        is_by_line = name == "stdin" and self._options.get("bufsize") == 1
        return io.TextIOWrapper(buffered, write_through=name == "stdin", line_buffering=is_by_line, **kind)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[object, object]:  # noqa: A002
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):  # as Python's own one
                self.stdin.flush()
        with crossing(self._command.call_of_action("communicate", empty_outcome, input=input)) as step:
            if step.live:
                answer = self._process.communicate(input, timeout)
                step.answer = outcome(self._process.returncode, answer)
        self.returncode = step.answer["returncode"]
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return outputs(step.answer, self._options)

    def wait(self, timeout: float | None = None) -> int:
        if self._is_gone():
            self.returncode = 0
        if self.returncode is None:
            with crossing(self._command.call_of_action("wait", int)) as step:
                if step.live:
                    step.answer = self._process.wait(timeout)
            self.returncode = step.answer
        return self.returncode

    def poll(self) -> int | None:
        if self._is_gone():
            self.returncode = 0
        if self.returncode is None:
            call: Call[int | None] = self._command.call_of_action("poll", int)
            with crossing(call) as step:
                if step.live:
                    step.answer = self._process.poll()
            self.returncode = step.answer
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self._is_gone():
            return
        with crossing(self._command.call_of_action("signal", no_answer, number=int(sig))) as step:
            if step.live:
                self._process.send_signal(sig)

    def _is_gone(self) -> bool:
        """Whether it is left over from a replay that has ended: no real process exists, and no answer."""
        return self._real is None and self.returncode is None and current_lane() is None

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    @property
    def _process(self) -> subprocess.Popen[Any]:
        assert self._real is not None, "only a live process is asked"
        return self._real


_log: Final = logging.getLogger("reenact")


class _Pipe(io.RawIOBase):
    """One end of a pipe: each read and write is recorded, with its boundaries."""

    def __init__(self, command: Command, name: str, real: Any) -> None:
        self._command = command
        self._name = name
        self._real = real
        # Below all buffers of the real stream, which stay empty.
        self._raw = getattr(getattr(real, "buffer", real), "raw", real)

    def readable(self) -> bool:
        return self._name != "stdin"

    def writable(self) -> bool:
        return self._name == "stdin"

    _is_told = False

    def fileno(self) -> int:
        if self._raw is None:
            raise io.UnsupportedOperation(
                "fileno: the program is not run in a replay, so this is no real pipe"
            )
        lane = current_lane()
        if lane is not None and lane.within is None and not self._is_told:
            self._is_told = True
            _log.warning(
                "%s: its %s is used by its descriptor (select, os.read); a replay has none: read it in a "
                "thread or with asyncio",
                self._command.program,
                self._name,
            )
        return self._raw.fileno()  # type: ignore[no-any-return]

    def readinto(self, buffer: Any, /) -> int | None:
        call: Call[object] = self._command.call_of_action("read", str, stream=self._name)
        with crossing(call) as step:
            if step.live:
                step.answer = text_if_utf8(self._raw.read(len(buffer)))
        if step.answer is None:  # the pipe does not block, and nothing is there
            return None
        data = as_bytes(step.answer)
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any, /) -> int:
        call: Call[int] = self._command.call_of_action("write", stream=self._name, data=bytes(data))
        with crossing(call) as step:
            if step.live:
                step.answer = self._raw.write(data)
        return step.answer

    def close(self) -> None:
        super().close()
        if self._real is not None:
            self._real.close()
