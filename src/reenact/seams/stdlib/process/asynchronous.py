"""``asyncio.create_subprocess_exec`` and ``create_subprocess_shell``."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from typing import Any, Final

from reenact.boundary import Call, crossing, current_lane, no_answer
from reenact.seams.stdlib.process.command import (
    Command,
    ProcessStart,
    as_bytes,
    empty_outcome,
    is_call,
    outcome,
    outputs,
    running,
    text_if_utf8,
)
from reenact.seams.stdlib.sources import as_it_was

_execute: Final = as_it_was(asyncio, "create_subprocess_exec")
_run_shell: Final = as_it_was(asyncio, "create_subprocess_shell")


async def execute(program: Any, *args: Any, **options: Any) -> object:
    if not is_call([program, *args]):
        return await _execute(program, *args, **options)
    command = Command([program, *args], options)
    return await _start(command, options, lambda: _execute(program, *args, **options))


async def shell(cmd: Any, **options: Any) -> object:
    if not is_call(cmd):
        return await _run_shell(cmd, **options)
    command = Command(cmd, options | {"shell": True})
    return await _start(command, options, lambda: _run_shell(cmd, **options))


async def _start(command: Command, options: dict[str, object], create: Any) -> object:
    real = None
    async with crossing(command.call_of_start()) as step:
        if step.live:
            with running():
                real = await create()
            step.answer = {"pid": real.pid, "tellsExit": True}
    if real is not None and command.note_start(step, real.pid):
        return real
    return Process(command, options, step.answer, real)


class Process:
    """An ``asyncio.subprocess.Process`` that holds the real one while recording, and none in replay."""

    __class__ = asyncio.subprocess.Process  # type: ignore[assignment]  # for isinstance

    def __init__(
        self,
        command: Command,
        options: dict[str, object],
        start: ProcessStart,
        real: asyncio.subprocess.Process | None,
    ) -> None:
        self.pid = start["pid"]
        self._tells_exit = start.get("tellsExit", False)
        self._returncode: int | None = None
        self._command = command
        self._real: Any = real
        self.stdin = self._pipe(options, "stdin", Writer)
        self.stdout = self._pipe(options, "stdout", Reader)
        self.stderr = self._pipe(options, "stderr", Reader)

    @property
    def returncode(self) -> int | None:
        """Known as soon as the process has ended, whether it was waited for or not."""
        is_gone = self._real is None and current_lane() is None
        if self._returncode is None and self._tells_exit and not is_gone:
            call: Call[int | None] = self._command.call_of_action("returncode", int)
            with crossing(call) as step:
                if step.live:
                    step.answer = self._real.returncode
            self._returncode = step.answer
        return self._returncode

    def _pipe(self, options: dict[str, object], name: str, kind: Any) -> object:
        if options.get(name) != subprocess.PIPE:
            return None
        return kind(self._command, name, getattr(self._real, name, None))

    async def communicate(self, input: bytes | None = None) -> tuple[object, object]:  # noqa: A002
        async with crossing(self._command.call_of_action("communicate", empty_outcome, input=input)) as step:
            if step.live:
                answer = await self._real.communicate(input)
                step.answer = outcome(self._real.returncode, answer)
        self._returncode = step.answer["returncode"]
        return outputs(step.answer, {})

    async def wait(self) -> int:
        async with crossing(self._command.call_of_action("wait", int)) as step:
            if step.live:
                step.answer = await self._real.wait()
        self._returncode = step.answer
        return step.answer

    def send_signal(self, signal: int) -> None:
        self._signal("send_signal", signal)

    def terminate(self) -> None:
        self._signal("terminate")

    def kill(self) -> None:
        self._signal("kill")

    def _signal(self, method: str, *number: int) -> None:
        details = {"number": int(number[0])} if number else {}
        with crossing(self._command.call_of_action(method, no_answer, **details)) as step:
            if step.live:
                getattr(self._real, method)(*number)


class _Pipe:
    def __init__(self, command: Command, name: str, real: Any) -> None:
        self._command = command
        self._name = name
        self._real = real


class Reader(_Pipe):
    """The reading methods of an ``asyncio.StreamReader``."""

    __class__ = asyncio.StreamReader  # type: ignore[assignment]

    async def read(self, n: int = -1) -> bytes:
        return await self._read("read", n)

    async def readline(self) -> bytes:
        return await self._read("readline")

    async def readexactly(self, n: int) -> bytes:
        return await self._read("readexactly", n)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        return await self._read("readuntil", separator)

    def at_eof(self) -> bool:
        with crossing(self._command.call_of_action("at_eof", lambda: True, stream=self._name)) as step:
            if step.live:
                step.answer = self._real.at_eof()
        return step.answer

    def exception(self) -> Exception | None:
        return None if self._real is None else self._real.exception()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := await self.readline():
            yield line

    async def _read(self, method: str, *args: object) -> bytes:
        details = {"limit": args[0]} if args else {}
        call: Call[object] = self._command.call_of_action(method, str, stream=self._name, **details)
        async with crossing(call) as step:
            if step.live:
                step.answer = text_if_utf8(await getattr(self._real, method)(*args))
        data: bytes = as_bytes(step.answer)
        return data


class Writer(_Pipe):
    """The writing methods of an ``asyncio.StreamWriter``."""

    __class__ = asyncio.StreamWriter  # type: ignore[assignment]

    def write(self, data: bytes) -> None:
        with crossing(self._command.call_of_action("write", stream=self._name, data=data)) as step:
            if step.live:
                self._real.write(data)

    def writelines(self, data: Any) -> None:
        self.write(b"".join(data))

    async def drain(self) -> None:
        if self._real is not None:
            await self._real.drain()

    _is_closed = False

    def write_eof(self) -> None:
        if self._real is not None:
            self._real.write_eof()

    def can_write_eof(self) -> bool:
        return True

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self._real is None else self._real.get_extra_info(name, default)

    def close(self) -> None:
        self._is_closed = True
        if self._real is not None:
            self._real.close()

    async def wait_closed(self) -> None:
        if self._real is not None:
            await self._real.wait_closed()

    def is_closing(self) -> bool:
        return self._is_closed if self._real is None else self._real.is_closing()
