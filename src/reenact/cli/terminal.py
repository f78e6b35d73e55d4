"""Lines on stdout: coloured on a terminal, plain elsewhere; never steered by what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import Final, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size

from reenact.cli.failure import printable

_WIDTH: Final = 120
"""Where there is no terminal and no ``COLUMNS``."""


class Cell(NamedTuple):
    """A piece of a line; *width* 0 is as wide as the text, a negative one puts the text to the right."""

    text: str
    style: str = ""
    width: int = 0

    def fitted(self) -> str:
        text = printable(self.text)
        width = abs(self.width)
        if not width:
            return text
        if cell_len(text) > width:
            return set_cell_size(text, width - 1) + "…"
        padding = " " * (width - cell_len(text))
        return padding + text if self.width < 0 else text + padding


Line: TypeAlias = tuple[Cell, ...]


def width() -> int:
    """How many columns there are."""
    return get_terminal_size((_WIDTH, 24)).columns


def printer() -> Callable[[Line], None]:
    """What writes a line to stdout."""
    return _coloured() if sys.stdout.isatty() else _plain


def _plain(line: Line) -> None:
    sys.stdout.write("".join(cell.fitted() for cell in line).rstrip() + "\n")


def _coloured() -> Callable[[Line], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def write(line: Line) -> None:
        text = Text.assemble(*((cell.fitted(), cell.style) for cell in line))
        text.rstrip()
        console.print(text, soft_wrap=True)

    return write
