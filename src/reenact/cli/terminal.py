"""What verbs write, and how they end: lines, JSON, a progress bar, errors as one line and an exit status.

Nothing that was recorded steers the terminal.

1    CheckFailed, Diverged                 it differs, fails or is rejected
2    FormatError, StoreError, OSError      the input cannot be read or is invalid
     RecursionError                        likewise: only what was given is nested so deeply
3    UsageError, click's usage errors      wrong usage
70   anything else                         a defect of reenact (``EX_SOFTWARE``)
130  KeyboardInterrupt                     Ctrl-C, as shells say it
141  BrokenPipeError                       the reader of our output went away, likewise
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
    if isinstance(error, FormatError | StoreError | OSError | RecursionError | MemoryError | click.FileError):
        return INVALID
    if isinstance(error, UsageError | click.ClickException):
        return WRONG_USAGE
    return DEFECT


def message_of(error: BaseException) -> str:
    """What the user reads: the place first, the remedy last."""
    if isinstance(error, RecursionError):
        return "the input holds values that are nested too deeply to be read"
    if isinstance(error, MemoryError):
        return "there is not enough memory to read the input"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return "the working folder was removed; go to another one"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = " ".join(error.format_message().split())  # click lists choices on lines of their own
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
    quoted = []
    for word in words:
        if word.isprintable():
            quoted.append(shlex.quote(word))
        else:
            signs = (sign if sign.isprintable() and sign not in "\\'" else _octal(sign) for sign in word)
            quoted.append(f"$'{''.join(signs)}'")
    return " ".join(quoted)


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


A_PATH: Final = click.Path(path_type=Path, readable=False)
"""A path that is looked at by whoever opens it, so that what is wrong with it is said alike everywhere."""
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
"""Where there is no terminal and no ``COLUMNS``."""


class Cell(NamedTuple):
    """A piece of a line; *width* 0 is as wide as the text, a negative one puts the text to the right."""

    text: str
    style: str = ""
    width: int = 0

    def fit(self) -> str:
        from rich.cells import cell_len, set_cell_size  # slow to import

        text = printable(self.text)
        width = abs(self.width)
        if not width:
            return text
        if cell_len(text) > width:
            return set_cell_size(text, width - 1) + "…"
        padding = " " * (width - cell_len(text))
        return padding + text if self.width < 0 else text + padding


TextLine: TypeAlias = tuple[Cell, ...]


def width() -> int:
    """How many columns there are."""
    return get_terminal_size((_WIDTH, 24)).columns


def printer() -> Callable[[TextLine], None]:
    """What writes a line to stdout."""
    return _coloured_printer() if sys.stdout.isatty() else _write_plain


def _write_plain(line: TextLine) -> None:
    sys.stdout.write("".join(map(Cell.fit, line)).rstrip() + "\n")


def _coloured_printer() -> Callable[[TextLine], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def write(line: TextLine) -> None:
        text = Text.assemble(*((cell.fit(), cell.style) for cell in line))
        text.rstrip()
        console.print(text, soft_wrap=True)

    return write


_SUSPECT: Final = re.compile(r"[^\n -~]")


def safe_json(value: JsonValue, indent: int | None = 2) -> str:
    """*value* as JSON text that means the same everywhere."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _SUSPECT.sub(lambda found: _safe(found[0]), text)


def _safe(mark: str) -> str:
    return mark if mark.isprintable() else json.dumps(mark)[1:-1]


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_cell(value: JsonValue) -> JsonValue:
    """Text that a spreadsheet would run as a formula is quoted the way spreadsheets quote it."""
    if not isinstance(value, str):
        return value
    text = "".join(sign if sign.isprintable() else "�" for sign in value)
    return f"'{text}" if value.startswith(_FORMULA) else text


LARGE_BYTES: Final = 16 * 1024 * 1024
"""From here on work may take a second; smaller files get no bar."""

MANY: Final = 2000
"""The same where things are counted, not bytes."""


@contextmanager
def progress_bar(total: int, what: str, *, least: int = LARGE_BYTES) -> Iterator[Callable[[int], None]]:
    """A function that is told how many bytes are done more; quiet where nobody looks or it is over soon.

    With *least* something else than bytes is counted, and fewer than that are over soon.
    """
    if total < least or not (sys.stdout.isatty() or sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # What is printed meanwhile goes above the bar, but never from a file's stream to the terminal's.
    with Progress(
        console=Console(stderr=not sys.stdout.isatty()),
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda more: progress.update(task, advance=more)
