"""The output of verbs: lines, JSON, a progress bar, errors as one line and an exit status.

Recorded text cannot send control sequences to the terminal.

1    CheckFailed, Diverged                 it differs, fails or is rejected
2    FormatError, StoreError, OSError      the input cannot be read or is invalid
     RecursionError                        the input is nested too deeply
3    UsageError, click's usage errors      wrong usage
70   anything else                         a defect of reenact (``EX_SOFTWARE``)
130  KeyboardInterrupt                     Ctrl-C, with the status that shells use
141  BrokenPipeError                       the reader of our output closed it, as in shells
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Final, NamedTuple, TypeAlias

import click

from reenact.canonical import JsonValue
from reenact.errors import CheckFailed, Diverged, FormatError, StoreError, UsageError, describe_os_error

DIFFERS: Final = 1
INVALID: Final = 2
WRONG_USAGE: Final = 3
DEFECT: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

DEBUG_VARIABLE: Final = "REENACT_DEBUG"


def open_closed_streams() -> None:
    """Open the null device in the place of closed standard streams.

    Otherwise a file that we open next would get such a stream's number, and our children would write into it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null != number:
                os.close(null)
            else:
                os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def report(error: BaseException) -> int:
    """Print *error* as one line on stderr and return its exit status."""
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
    """The exit status for *error*."""
    if isinstance(error, CheckFailed | Diverged):
        return DIFFERS
    if isinstance(error, FormatError | StoreError | OSError | RecursionError | MemoryError | click.FileError):
        return INVALID
    if isinstance(error, UsageError | click.ClickException):
        return WRONG_USAGE
    return DEFECT


def message_of(error: BaseException) -> str:
    """The message for the user: the place first, the remedy last."""
    if isinstance(error, RecursionError):
        return "the input holds values that are nested too deeply to be read"
    if isinstance(error, MemoryError):
        return "there is not enough memory to read the input"
    if isinstance(error, OSError) and error.filename is not None:
        return describe_os_error(error)
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return "the working folder was removed; go to another one"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = " ".join(error.format_message().split())  # click lists choices on separate lines
        return f"{message.rstrip('.')}; see: {error.ctx.command_path} --help"
    if isinstance(error, click.ClickException):
        return error.format_message()
    return str(error)


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _defect(error: BaseException) -> str:
    return (
        f"internal error: {type(error).__name__}: {error} (set {DEBUG_VARIABLE}=1 for the traceback, "
        "and please report it)"
    )


def printable(text: str) -> str:
    """Escape control characters, so that *text* is one line and harmless to the terminal."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )


def say(message: str) -> None:
    """Print one line on stderr that begins with our name."""
    sys.stderr.write(f"reenact: {printable(message)}\n")


def shell_line(words: Iterable[str]) -> str:
    """Quote *words* for a shell; control characters become escapes."""
    quoted = []
    for word in words:
        if word.isprintable():
            quoted.append(shlex.quote(word))
        else:
            signs = (sign if sign.isprintable() and sign not in "\\'" else _octal(sign) for sign in word)
            quoted.append(f"$'{''.join(signs)}'")
    return " ".join(quoted)


def _octal(sign: str) -> str:
    """Escape in octal: it always has three digits, unlike ``\\x`` in some shells."""
    names = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
    return names.get(sign) or "".join(f"\\{byte:03o}" for byte in os.fsencode(sign))


def escape_on_output() -> None:
    """Let stdout and stderr escape characters that their encoding lacks."""
    codecs.register_error("reenact-escape", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="reenact-escape")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escape as JSON does, so that JSON output stays valid and means the same."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    units = signs.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end


def _discard_stdout() -> None:
    """Keep the interpreter's last flush from complaining about the same pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


A_PATH: Final = click.Path(path_type=Path, readable=False)
"""click does not check the path; the function that opens it reports errors, the same for all verbs."""
JOBS: Final = click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(0),
    default=1,
    help="Number of processes; 0 for all cores.",
)
ON: Final = click.option(
    "--on", metavar="ENGINE", help="Run the work on Ray: ray, or ray=ADDRESS for a cluster."
)
_WIDTH: Final = 120
"""The width without a terminal and without ``COLUMNS``."""


class Cell(NamedTuple):
    """A piece of a line; *width* 0 fits the text, a negative one aligns it to the right."""

    text: str
    style: str = ""
    width: int = 0

    def fit(self) -> str:
        from rich.cells import cell_len, set_cell_size  # slow to import

        text = self.text if self.text.isprintable() else printable(self.text)
        width = abs(self.width)
        if not width:
            return text
        if cell_len(text) > width:
            return set_cell_size(text, width - 1) + "…"
        padding = " " * (width - cell_len(text))
        return padding + text if self.width < 0 else text + padding


TextLine: TypeAlias = tuple[Cell, ...]


def width() -> int:
    """The number of columns of the terminal."""
    return get_terminal_size((_WIDTH, 24)).columns


def write_line(line: TextLine) -> None:
    """Write *line* to stdout, in colour on a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.write("".join(map(Cell.fit, line)).rstrip() + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble(*((cell.fit(), cell.style) for cell in line))
    text.rstrip()
    Console(highlight=False).print(text, soft_wrap=True)


_SUSPECT: Final = re.compile(r"[^\n -~]")


def safe_json(value: JsonValue, indent: int | None = 2) -> str:
    """*value* as JSON text with all unprintable characters escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _SUSPECT.sub(lambda found: _escape_mark(found[0]), text)


def _escape_mark(mark: str) -> str:
    return mark if mark.isprintable() else json.dumps(mark)[1:-1]


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_cell(value: JsonValue) -> JsonValue:
    """Quote text that a spreadsheet would run as a formula."""
    if not isinstance(value, str):
        return value
    text = "".join(sign if sign.isprintable() else "�" for sign in value)
    return f"'{text}" if value.startswith(_FORMULA) else text


LARGE_BYTES: Final = 16 * 1024 * 1024
"""Smaller files are read within a second and get no bar."""

MANY: Final = 2000
"""The same limit for a number of items."""


@contextmanager
def progress_bar(total: int, what: str, *, least: int = LARGE_BYTES) -> Iterator[Callable[[int], None]]:
    """Give the block a function that takes the number of bytes, or items, done since its last call.

    No bar is shown without a terminal, or for a *total* below *least*.
    """
    if total < least or not (sys.stdout.isatty() or sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # Other output goes above the bar, but output to a file is never redirected to the terminal.
    with Progress(
        console=Console(stderr=not sys.stdout.isatty()),
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.update(task, advance=more)
