"""What verbs write: lines, JSON, a progress bar; never steered by what was recorded."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Final, NamedTuple, TypeAlias

import click

from reenact.cli.failure import printable

A_PATH: Final = click.Path(path_type=Path, readable=False)
"""A path that is looked at by whoever opens it, so that what is wrong with it is said alike everywhere."""
JOBS: Final = click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(0), default=1, help="Processes; 0 for all cores."
)
ON: Final = click.option("--on", metavar="ENGINE", help="Have Ray do it: ray, or ray=ADDRESS for a cluster.")
_WIDTH: Final = 120
"""Where there is no terminal and no ``COLUMNS``."""


class Cell(NamedTuple):
    """A piece of a line; *width* 0 is as wide as the text, a negative one puts the text to the right."""

    text: str
    style: str = ""
    width: int = 0

    def fitted(self) -> str:
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
    return _coloured() if sys.stdout.isatty() else _plain


def _plain(line: TextLine) -> None:
    sys.stdout.write("".join(cell.fitted() for cell in line).rstrip() + "\n")


def _coloured() -> Callable[[TextLine], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def write(line: TextLine) -> None:
        text = Text.assemble(*((cell.fitted(), cell.style) for cell in line))
        text.rstrip()
        console.print(text, soft_wrap=True)

    return write


_SUSPECT: Final = re.compile(r"[^\n -~]")


def safe_json(value: Any, indent: int | None = 2) -> str:
    """*value* as JSON text that means the same everywhere."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _SUSPECT.sub(lambda found: _safe(found[0]), text)


def _safe(mark: str) -> str:
    return mark if mark.isprintable() else json.dumps(mark)[1:-1]


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_cell(value: Any) -> Any:
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
