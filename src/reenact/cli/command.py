"""Running the click command of one verb."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

import click

A_PATH: Final = click.Path(path_type=Path, readable=False)
"""A path that is looked at by whoever opens it, so that what is wrong with it is said alike everywhere."""


def load(verb: str) -> click.Command:
    """The click command of a verb of the table."""
    command = import_module(f"reenact.cli.{verb}").command
    assert isinstance(command, click.Command)
    return command


def invoke(verb: str, arguments: list[str]) -> int:
    """Run *verb*; its exit status is what its function returns, 0 for ``None``.

    click's own ``main`` is passed by, because it chooses other exit statuses than ours.
    """
    command = load(verb)
    command.context_settings.setdefault("help_option_names", ["-h", "--help"])
    try:
        with command.make_context(f"reenact {verb}", arguments) as context:
            status = command.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return status if isinstance(status, int) else 0
