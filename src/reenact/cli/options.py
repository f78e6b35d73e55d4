"""The options that several verbs share, and what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol, TypeVar

import click

from reenact import canonical
from reenact.cli.terminal import A_PATH
from reenact.errors import FormatError, StoreError, UsageError
from reenact.forks.change import ForkChange, error_type
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import read_upstreams
from reenact.providers import RequestChange

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


def read_change_options(
    settings: Iterable[str],
    replace: Path | None,
    error: str | None,
    model: str | None,
    system: Path | None,
    temperature: float | None,
) -> ForkChange:
    """Build the change of a fork.

    *settings* are texts such as ``$.due="Friday"``, *replace* is a file with JSON, *system* a text file.
    """
    if error is not None:
        error_type(error)
    change = ForkChange(
        set=dict(map(_read_setting, settings)),
        replace=() if replace is None else (_read_replacement(replace),),
        error=error or "",
    ).with_request(read_request_options(model, system, temperature))
    change.check()
    return change


def read_request_options(model: str | None, system: Path | None, temperature: float | None) -> RequestChange:
    """Build the change of model requests."""
    if model is not None and not model.strip():
        raise UsageError("--model: is empty; name the model to ask")
    prompt = None if system is None else _read_prompt(system)
    change = RequestChange(model or "", prompt, temperature)
    change.check()
    return change


def _read_prompt(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8", file=str(file)) from None
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None


def _read_setting(text: str) -> tuple[str, object]:
    path, mark, value = text.partition("=")
    if not mark:
        raise UsageError(f"--set {text}: write PATH=VALUE, as '$.due=\"Friday\"'")
    try:
        return path, canonical.read_json(value.encode("utf-8", "surrogateescape"))
    except FormatError as error:
        if not error.reason.startswith("not JSON"):
            raise UsageError(f"--set {text}: {error.reason}") from None
        quoted = json.dumps(value)
        raise UsageError(f"--set {text}: {value} is not JSON; a text is written '{path}={quoted}'") from None


def _read_replacement(file: Path) -> object:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None
    try:
        return canonical.read_json(text)
    except FormatError as error:
        raise FormatError(f"is {error.reason}; put a text in quotes", file=str(file)) from None
