"""Processes on an event loop, recorded at the loop itself, below streams, anyio and MCP.

A process is recorded as one stream: its output in pieces, the ends of its pipes, and its exit. Each write to
it is a call. In replay no process is started: a transport gives the protocol the recorded pieces, each only
after the agent has written as much to the process as when the piece was recorded.
"""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from typing import Any, Final

import msgspec

from reenact.boundary import Step, crossing, current_lane, no_answer, outside
from reenact.seams.patches import Patch
from reenact.seams.stdlib.process.command import (
    Command,
    ProcessStart,
    as_bytes,
    is_seen,
    running,
    text_if_utf8,
)
from reenact.seams.stdlib.sources import lane_for

_STDIN: Final = 0
_NAMES: Final = ("stdin", "stdout", "stderr")


def exec_as_call(original: Callable[..., Any]) -> Callable[..., object]:
    """``subprocess_exec`` of an event loop, but a process that a library starts is recorded or answered."""

    async def subprocess_exec(
        loop: object, factory: Any, program: object, *args: object, **options: object
    ) -> object:
        if not is_seen([program, *args]):
            return await original(loop, factory, program, *args, **options)
        return await _start(
            Command([program, *args], options),
            factory,
            options,
            lambda made: original(loop, made, program, *args, **options),
        )

    return subprocess_exec


def shell_as_call(original: Callable[..., Any]) -> Callable[..., object]:
    """The same for ``subprocess_shell``."""

    async def subprocess_shell(loop: object, factory: Any, cmd: object, **options: object) -> object:
        if not is_seen(cmd):
            return await original(loop, factory, cmd, **options)
        command = Command(cmd, options | {"shell": True})
        return await _start(command, factory, options, lambda made: original(loop, made, cmd, **options))

    return subprocess_shell


PATCHES: Final = [
    Patch(BaseEventLoop, "subprocess_exec", exec_as_call),
    Patch(BaseEventLoop, "subprocess_shell", shell_as_call),
]


async def _start(
    command: Command, factory: Callable[[], object], options: dict[str, object], create: Callable[..., Any]
) -> tuple[object, object]:
    # An empty answer would never tell the protocol that the process has ended, so there is none.
    boundary = crossing(msgspec.structs.replace(command.call_of_start(), empty=None), streaming=True)
    step = await boundary.__aenter__()
    protocol = factory()
    if not step.live:
        replayed = _Replayed(command, boundary, step, protocol, options)
        return replayed, protocol
    lane = current_lane()
    if lane is not None and lane.context.mode == "replay":
        # The recorded run talked with it over a socket, so it is really run, without its recorded pieces.
        with boundary.inside(), running(), outside():
            transport, _ = await create(lambda: protocol)
        step.answer = {"pid": transport.get_pid()}
        command.note_start(step, transport.get_pid())
        boundary.__exit__(None, None, None)
        return transport, protocol
    recording = _RecordingProtocol(command, boundary, step, protocol, _pipes_in(options))
    try:
        with boundary.inside(), running(), outside():
            transport, _ = await create(lambda: recording)
    except BaseException as error:
        boundary.__exit__(type(error), error, None)
        raise
    return _Recorded(transport, recording), protocol


def _pipes_in(options: dict[str, object]) -> list[int]:
    """The file descriptors of a process that are pipes to this process."""
    pipe = asyncio.subprocess.PIPE
    return [fd for fd, name in enumerate(_NAMES) if options.get(name, pipe) == pipe]


class _RecordingProtocol(asyncio.SubprocessProtocol):
    """Wraps the *protocol* of a live process and records what it receives."""

    def __init__(
        self, command: Command, boundary: crossing[ProcessStart], step: Any, protocol: Any, pipes: list[int]
    ) -> None:
        self.command = command
        self.writes = 0
        """The number of writes to the process; closing its input counts as one."""
        self._writes_noted = 0
        self._boundary = boundary
        self._step = step
        self._protocol = protocol
        self._open_outputs = {*pipes} - {_STDIN}
        self._is_lost = False
        self._is_over = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._step.answer = {"pid": transport.get_pid()}
        self.command.note_start(self._step, transport.get_pid())
        self._step.begin(self._abandon)
        self._protocol.connection_made(_Recorded(transport, self))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._record({"fd": fd, "data": text_if_utf8(data)})
        self._protocol.pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._record({"fd": fd, "lost": True})
        self._open_outputs.discard(fd)
        self._end_if_done()
        self._protocol.pipe_connection_lost(fd, exc)

    def process_exited(self) -> None:
        self._record({"exited": self._transport.get_returncode()})
        self._protocol.process_exited()

    def connection_lost(self, exc: Exception | None) -> None:
        self._record({"over": True})
        self._is_lost = True
        self._end_if_done()
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _record(self, piece: dict[str, object]) -> None:
        if not self._is_over:
            if self.writes > self._writes_noted:
                # A separate piece, so that replay renames the next one with the names written until then.
                self._writes_noted = self.writes
                self._step.piece({"writes": self.writes})
            self._step.piece(piece)

    def _end_if_done(self) -> None:
        # uvloop may report a lost pipe after the end of the process.
        if self._is_lost and not self._open_outputs:
            self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._boundary.__exit__(None, None, None)

    def _abandon(self) -> None:
        self._record({"left": True})
        self._end()


class _Recorded:
    """A live transport; signals and writes to the process are recorded."""

    def __init__(self, transport: Any, recording: _RecordingProtocol) -> None:
        self._transport = transport
        self._recording = recording

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def get_pipe_transport(self, fd: int) -> object:
        pipe = self._transport.get_pipe_transport(fd)
        return _RecordedInput(pipe, self._recording) if fd == _STDIN and pipe is not None else pipe

    def send_signal(self, signal: int) -> None:
        _act_as_call(
            self._recording.command,
            "send_signal",
            lambda: self._transport.send_signal(signal),
            number=int(signal),
        )

    def terminate(self) -> None:
        _act_as_call(self._recording.command, "terminate", self._transport.terminate)

    def kill(self) -> None:
        _act_as_call(self._recording.command, "kill", self._transport.kill)


class _RecordedInput:
    def __init__(self, pipe: Any, recording: _RecordingProtocol) -> None:
        self._pipe = pipe
        self._recording = recording

    def __getattr__(self, name: str) -> object:
        return getattr(self._pipe, name)

    def write(self, data: Any) -> None:
        data = bytes(data)
        if data:
            self._recording.writes += 1
            _act_as_call(
                self._recording.command, "write", lambda: self._pipe.write(data), stream="stdin", data=data
            )

    def writelines(self, lines: Any) -> None:
        self.write(b"".join(lines))

    def write_eof(self) -> None:
        self._count_end()
        self._pipe.write_eof()

    def close(self) -> None:
        self._count_end()
        self._pipe.close()

    def _count_end(self) -> None:
        if not self._pipe.is_closing():
            self._recording.writes += 1


def _act_as_call(command: Command, what: str, act: Callable[[], object], **details: object) -> None:
    """Do *act* as a call on the process; outside a run, just do it."""
    if lane_for("subprocess") is None:
        act()
        return
    empty = None if what == "write" else no_answer
    with crossing(command.call_of_action(what, empty, **details)) as step:
        if step.live:
            act()


class _Replayed(asyncio.SubprocessTransport):
    """A transport without a process: gives the protocol the recorded pieces in order."""

    def __init__(
        self,
        command: Command,
        boundary: crossing[ProcessStart],
        step: Step[ProcessStart],
        protocol: Any,
        options: dict[str, object],
    ) -> None:
        super().__init__()
        self._command = command
        self._boundary = boundary
        self._step = step
        self._protocol = protocol
        self._pid = step.answer["pid"]
        self._returncode: int | None = None
        self._given = self._writes = 0
        self._more = asyncio.Event()
        self._exited = asyncio.Event()
        self._open_outputs = {*_pipes_in(options)} - {_STDIN}
        self._pipes = {fd: _ReplayedPipe(self, fd) for fd in _pipes_in(options)}
        protocol.connection_made(self)
        with outside():  # it is not a task of the agent
            self._feed_task = asyncio.get_running_loop().create_task(self._feed())

    async def _feed(self) -> None:
        is_over = False
        for piece in self._step.pieces():
            while not self._has_enough_input(piece):
                self._more.clear()
                await self._more.wait()
            if "writes" in piece:
                continue
            # One piece at a time, so that the agent can read it before the next one comes.
            await asyncio.sleep(0)
            if "data" in piece:
                self._protocol.pipe_data_received(piece["fd"], as_bytes(piece["data"]))
            elif "lost" in piece:
                self._close_pipe(piece["fd"])
            elif "exited" in piece:
                self._returncode = piece["exited"]
                self._exited.set()
                self._protocol.process_exited()
            elif "over" in piece:
                is_over = True
                self._protocol.connection_lost(None)
        for fd in self._open_outputs.copy() if is_over else ():  # some captures lack the end of the last pipe
            self._close_pipe(fd)
        self._boundary.__exit__(None, None, None)

    def _close_pipe(self, fd: int) -> None:
        self._open_outputs.discard(fd)
        self._pipes[fd].is_closed = True
        self._protocol.pipe_connection_lost(fd, None)

    def _has_enough_input(self, piece: dict[str, Any]) -> bool:
        if "writes" in piece:
            return self._writes >= int(piece["writes"])
        return self._given >= int(piece.get("after", 0))  # in captures of earlier versions

    def count_input(self, count: int) -> None:
        self._given += count
        self._writes += 1
        self._more.set()

    def do(self, what: str, **details: object) -> None:
        _act_as_call(self._command, what, lambda: None, **details)

    def get_pid(self) -> Any:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._returncode

    def get_pipe_transport(self, fd: int) -> Any:
        return self._pipes.get(fd)

    def send_signal(self, signal: int) -> None:
        self.do("send_signal", number=int(signal))

    def terminate(self) -> None:
        self.do("terminate")

    def kill(self) -> None:
        self.do("kill")

    def close(self) -> None:
        """Nothing to do: what follows a close is among the recorded pieces."""

    def is_closing(self) -> bool:
        return self._exited.is_set()

    async def _wait(self) -> int | None:
        """For asyncio's ``Process``, which waits by this method."""
        await self._exited.wait()
        return self._returncode


class _ReplayedPipe(asyncio.Transport):
    """One pipe of a process that does not exist."""

    def __init__(self, process: _Replayed, fd: int) -> None:
        super().__init__()
        self._process = process
        self._fd = fd
        self.is_closed = False

    def write(self, data: Any) -> None:
        data = bytes(data)
        if data:
            self._process.do("write", stream="stdin", data=data)
            self._process.count_input(len(data))

    def writelines(self, lines: Any) -> None:
        self.write(b"".join(lines))

    def write_eof(self) -> None:
        self.close()

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self._fd == _STDIN:
                self._process.count_input(1)

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nothing arrives from a process, so there is nothing to pause."""

    def resume_reading(self) -> None:
        """Nothing was paused."""
