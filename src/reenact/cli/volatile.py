"""The option by which verbs take rules for values that may differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from reenact.errors import FormatError
from reenact.formats.volatile import VolatileRule


def _read(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> tuple[VolatileRule, ...]:
    try:
        return tuple(map(VolatileRule.parse, texts))
    except FormatError as error:
        raise click.BadParameter(str(error), context, option) from None


volatile_option: Final[Callable[[Any], Any]] = click.option(
    "--volatile",
    metavar="RULE",
    multiple=True,
    callback=_read,
    help="A value that may differ: [CALL] PATH [=~ MASK]; repeatable.",
)
