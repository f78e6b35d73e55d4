"""What a person types at the terminal: each line is the answer of a tool, which replay gives again.

Input from a file or a pipe is not recorded: a replay is given it, as it is given the command's arguments.
Programs that read single keys themselves are not seen.
"""

from __future__ import annotations

import bdb
import builtins
import getpass
import io
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, TypeAlias, TypeVar

from reenact.boundary import Call, crossing, outside
from reenact.seams.patches import Patch, attach, detach

_Ask: TypeAlias = Callable[..., str]
_T = TypeVar("_T")


def streams_at_terminal() -> list[str]:
    """``stdin`` if this process reads from a terminal, and then ``stdout`` if it writes to one, too."""
    try:
        names = [name for name in ("stdin", "stdout") if getattr(sys, name).isatty()]
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed
        return []
    return names if "stdin" in names else []


@contextmanager
def typed_input(terminal: Collection[str]) -> Iterator[None]:
    """In the block, what the program reads was typed, if ``stdin`` is among the streams at the *terminal*."""
    if "stdin" not in terminal:
        yield
        return
    before = sys.stdin
    coding, errors = getattr(before, "encoding", None), getattr(before, "errors", None)
    lines: IO[str] = io.TextIOWrapper(io.BufferedReader(_TypedBytes()), coding, errors)
    patches = _patches("stdout" if "stdout" not in terminal else "stderr")
    attach(patches)
    sys.stdin = lines
    try:
        yield
    finally:
        if sys.stdin is lines:
            sys.stdin = before
        detach(patches)


def _patches(prompted: str) -> list[Patch]:
    """The patches, with the stream to which Python prints a prompt unless a library edits the line."""

    def ask(original: _Ask) -> _Ask:
        def input(prompt: object = "", /) -> str:  # noqa: A001 — it stands for that
            if isinstance(sys._getframe(1).f_locals.get("self"), bdb.Bdb):  # noqa: SLF001
                return original(prompt)  # a person debugs the run
            stream = "stdout" if "readline" in sys.modules else prompted
            call = Call[str | None]("tool", "input", {"prompt": str(prompt)})
            with crossing(call, again=lambda: _show(str(prompt), stream)) as step:
                if step.live:
                    with outside():
                        step.answer = original(prompt)
                elif step.answer is not None:
                    _show(f"{step.answer}\n")
            return _expect(step.answer)

        return input

    def ask_secretly(original: _Ask) -> _Ask:
        def getpass(prompt: str = "Password: ", stream: Any = None, **options: Any) -> str:
            call = Call[dict[str, str] | None]("tool", "getpass", {"prompt": str(prompt)})
            with (crossed := crossing(call, again=lambda: _show(str(prompt)))) as step:
                if step.live:
                    with outside():
                        secret = original(prompt, stream, **options)
                    if crossed.lane is not None:
                        crossed.lane.context.hide(secret)
                    step.answer = {"password": secret}
                else:
                    _show("\n")
            return _expect(step.answer)["password"]

        return getpass

    return [Patch(builtins, "input", ask), Patch(getpass, "getpass", ask_secretly)]


def _expect(answer: _T | None) -> _T:
    if answer is None:
        raise EOFError("a lenient replay does not know what would have been typed")
    return answer


def _show(text: str, stream: str = "stderr") -> None:
    """Show a person what the terminal showed then. On ``stderr`` it is no output of the program."""
    with outside(), suppress(AttributeError, OSError, ValueError):
        output = getattr(sys, stream)
        output.write(text)
        output.flush()


class _TypedBytes(io.RawIOBase):
    """What ``sys.stdin`` reads: a line at a time, as a terminal gives it."""

    _rest = b""

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDIN

    def isatty(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            with crossing(Call[str]("tool", "stdin", {})) as step:
                if step.live:
                    line = io.FileIO(_STDIN, closefd=False).read(len(buffer)) or b""
                    step.answer = line.decode("utf-8", "surrogateescape")
            self._rest = (step.answer or "").encode("utf-8", "surrogateescape")
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


_STDIN: Final = 0
