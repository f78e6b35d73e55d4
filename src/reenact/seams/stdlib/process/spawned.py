"""Programs started without ``subprocess``: by ``os.posix_spawn`` and ``os.waitpid``, or by ``pty.spawn``.

A spawned program whose outputs are redirected is not recorded, and refused in replay, because the reads of
its output are not seen. The output of a program on a terminal goes to its reader in the recorded pieces.
"""

from __future__ import annotations

import os
import pty
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from reenact.boundary import Call, crossing, outside
from reenact.process_state import spawned_programs
from reenact.seams.patches import Patch
from reenact.seams.stdlib.process.command import Command, as_bytes, is_seen, running, text_if_utf8
from reenact.seams.stdlib.sources import lane_for

_STDOUT: Final = 1


def _posix_spawn(original: Callable[..., int]) -> Callable[..., int]:
    def posix_spawn(path: Any, argv: Any, env: Mapping[object, object], /, **options: Any) -> int:
        if not is_seen(argv) or _redirects(options.get("file_actions")):
            return original(path, argv, env, **options)
        command = Command([path, *list(argv)[1:]], {})
        with crossing(command.call_of_start()) as step:
            if step.live:
                with running():
                    step.answer = {"pid": original(path, argv, env, **options)}
        pid = int(step.answer["pid"])
        spawned_programs[pid] = command
        return pid

    return posix_spawn


def _redirects(actions: Iterable[Any] | None) -> bool:
    return any(action[0] == os.POSIX_SPAWN_DUP2 for action in actions or ())


def _waitpid(original: Callable[[int, int], tuple[int, int]]) -> Callable[[int, int], tuple[int, int]]:
    def waitpid(pid: int, options: int, /) -> tuple[int, int]:
        command = spawned_programs.get(pid)
        if command is None or lane_for("subprocess") is None:
            return original(pid, options)
        call: Call[int | None] = command.call_of_action("wait", int, options=options or None)
        with crossing(call) as step:
            if step.live:
                found, status = original(pid, options)
                step.answer = status if found else None
        if step.answer is None:
            return 0, 0
        del spawned_programs[pid]
        return pid, int(step.answer)

    return waitpid


def _read(fd: int) -> bytes:
    return os.read(fd, 1024)


def _pty_spawn(original: Callable[..., int]) -> Callable[..., int]:
    def spawn(
        argv: Any, master_read: Callable[[int], bytes] = _read, *rest: object, **options: object
    ) -> int:
        if not is_seen(argv):
            return original(argv, master_read, *rest, **options)
        words = [argv] if isinstance(argv, str) else list(argv)
        with crossing(Command(words, {}).on_terminal()) as step:
            if step.live:
                heard: list[bytes] = []
                with running(), outside():  # the fork that becomes the program is no process of the run
                    status = original(argv, _record_reads(master_read, heard), *rest, **options)
                step.answer = {"status": status, "terminal": [text_if_utf8(piece) for piece in heard]}
                return status
        for piece in step.answer["terminal"]:
            if shown := _hand_over(as_bytes(piece), master_read):
                os.write(_STDOUT, shown)
        return int(step.answer["status"])

    return spawn


def _record_reads(master_read: Callable[[int], bytes], heard: list[bytes]) -> Callable[[int], bytes]:
    def read(fd: int) -> bytes:
        piece = _read(fd)
        if not piece:
            return piece
        heard.append(piece)
        return _hand_over(piece, master_read)

    return read


def _hand_over(piece: bytes, master_read: Callable[[int], bytes]) -> bytes:
    """What the terminal's reader returns for *piece*, which it reads from a pipe."""
    reading, writing = os.pipe()
    try:
        os.write(writing, piece)
        return master_read(reading)
    finally:
        os.close(writing)
        os.close(reading)


PATCHES: Final = [
    Patch(os, "posix_spawn", _posix_spawn),
    Patch(os, "posix_spawnp", _posix_spawn),
    Patch(os, "waitpid", _waitpid),
    Patch(pty, "spawn", _pty_spawn),
]
