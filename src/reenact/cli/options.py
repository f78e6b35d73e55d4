"""The options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import click

from reenact.cli.terminal import A_PATH
from reenact.errors import FormatError
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import read_upstreams

Decorated = TypeVar("Decorated", bound=Callable[..., object])


class Option(Protocol):
    """A decorator that gives a verb one more option."""

    def __call__(self, command: Decorated, /) -> Decorated: ...


def _read_rules(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> tuple[VolatileRule, ...]:
    try:
        return tuple(map(VolatileRule.parse, texts))
    except FormatError as error:
        raise click.BadParameter(str(error), context, option) from None


volatile_option: Final[Option] = click.option(
    "--volatile",
    metavar="RULE",
    multiple=True,
    callback=_read_rules,
    help="A value that may differ: [CALL] PATH [=~ MASK]; repeatable.",
)
upstream_option: Final[Option] = click.option(
    "--upstream",
    "upstreams",
    metavar="NAME=URL",
    multiple=True,
    callback=lambda _context, _option, texts: read_upstreams(texts),
    help="Forward the gateway's /NAME to this URL.",
)
port_option: Final[Option] = click.option(
    "--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one by default."
)
network_option: Final[Option] = click.option(
    "--network", is_flag=True, help="Let programs other than Python reach other machines."
)
allow_option: Final[Option] = click.option(
    "--allow", "allowed", metavar="HOST:PORT", multiple=True, help="Let COMMAND reach this address."
)
repository_option: Final[Option] = click.option(
    "--repository", metavar="FOLDER", help="The git repository with the files that the capture only names."
)
allow_code_option: Final[Option] = click.option(
    "--allow-code",
    is_flag=True,
    envvar="REENACT_ALLOW_CODE",
    help="Run the Python files that reenact.toml names for assertions.",
)
on_miss_option: Final[Option] = click.option(
    "--on-miss",
    type=click.Choice(["fail", "nearest", "live"]),
    default="fail",
    show_default=True,
    help="What to do with a call that was not recorded.",
)


def request_options(function: Decorated) -> Decorated:
    """Add the options that change model requests."""
    for option in (
        click.option("--temperature", metavar="T", type=float, help="Use this temperature."),
        click.option("--system", metavar="FILE", type=A_PATH, help="Use the system prompt in FILE."),
        click.option("--model", metavar="NAME", help="Use this model."),
    ):
        function = option(function)
    return function
