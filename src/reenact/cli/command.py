"""Running the click command of one verb."""

from __future__ import annotations

from importlib import import_module

import click


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
    try:
        with command.make_context(f"reenact {verb}", arguments) as context:
            status = command.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return status if isinstance(status, int) else 0
