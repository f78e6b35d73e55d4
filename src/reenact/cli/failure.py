"""Errors on the command line: one line on stderr and an exit status.

1    CheckFailed, Diverged                 it differs, fails or is rejected
2    FormatError, StoreError, OSError      the input cannot be read or is invalid
3    UsageError, click's usage errors      wrong usage
70   anything else                         a defect of reenact (``EX_SOFTWARE``)
130  KeyboardInterrupt                     Ctrl-C, as shells say it
141  BrokenPipeError                       the reader of our output went away, likewise
"""

from __future__ import annotations

import codecs
import io
import os
import shlex
import sys
import traceback
from collections.abc import Iterable
from typing import Final

import click

from reenact.errors import CheckFailed, Diverged, FormatError, StoreError, UsageError

DIFFERS: Final = 1
INVALID: Final = 2
WRONG_USAGE: Final = 3
DEFECT: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

DEBUG_VARIABLE: Final = "REENACT_DEBUG"


def report(error: BaseException) -> int:
    """Say on stderr what went wrong, in one line; the exit status that goes with it."""
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):
        _discard_stdout()
        return BROKEN_PIPE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    status = status_of(error)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    say(_defect(error) if status == DEFECT else message_of(error))
    return status


def status_of(error: BaseException) -> int:
    """The exit status that *error* means."""
    if isinstance(error, CheckFailed | Diverged):
        return DIFFERS
    if isinstance(error, FormatError | StoreError | OSError | click.FileError):
        return INVALID
    if isinstance(error, UsageError | click.ClickException):
        return WRONG_USAGE
    return DEFECT


def message_of(error: BaseException) -> str:
    """What the user reads: the place first, the remedy last."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = " ".join(error.format_message().split())  # click lists choices on lines of their own
        return f"{message.rstrip('.')}; see: {error.ctx.command_path} --help"
    if isinstance(error, click.ClickException):
        return error.format_message()
    return str(error)


def _defect(error: BaseException) -> str:
    return (
        f"internal error: {type(error).__name__}: {error} (set {DEBUG_VARIABLE}=1 for the traceback, "
        "and please report it)"
    )


def printable(text: str) -> str:
    """*text* in one line that cannot steer the terminal: names of files and contents of logs are not ours."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def say(message: str) -> None:
    """One line on stderr that names its speaker."""
    sys.stderr.write(f"reenact: {printable(message)}\n")


def shell_line(words: Iterable[str]) -> str:
    """*words* as a line that a shell reads back as they are; control characters are written as escapes."""
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(sign if sign.isprintable() and sign not in "\\'" else _octal(sign) for sign in word)
    return f"$'{escaped}'"


def _octal(sign: str) -> str:
    """Octal, because it ends after three digits whatever follows, unlike ``\\x`` in some shells."""
    names = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
    return names.get(sign) or "".join(f"\\{byte:03o}" for byte in os.fsencode(sign))


def escape_on_output() -> None:
    """Let stdout and stderr write an escape where their encoding has no code for a sign."""
    codecs.register_error("reenact-escape", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="reenact-escape")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escapes that are those of JSON too, so that a string in a JSON text stays what it is."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    units = signs.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end


def _discard_stdout() -> None:
    """Keep the interpreter's last flush from complaining about the same pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
