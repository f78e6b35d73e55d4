"""``reenact update``: run a recorded command again, and record only calls that the capture lacks."""

from __future__ import annotations

from pathlib import Path

import click

from reenact.analysis.brief import plural
from reenact.cli.options import (
    port_option,
    repository_option,
    upstream_option,
    volatile_option,
)
from reenact.cli.terminal import A_PATH, say
from reenact.commands.update import update_command
from reenact.formats.volatile import VolatileRule


@click.command("update")
@click.argument("directory", metavar="DIR", type=A_PATH)
@upstream_option
@port_option
@volatile_option
@repository_option
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    directory: Path,
    upstreams: dict[str, str],
    port: int | None,
    volatile: tuple[VolatileRule, ...],
    repository: str | None,
    words: tuple[str, ...],
) -> int:
    """Run a recorded command again, and record only what differs.

    Calls that the capture in DIR has are answered from it; all other calls really are made. The result
    replaces the capture in one step if COMMAND ends as it did before; otherwise the capture stays as it
    was.

    If the capture has files, COMMAND works in a new folder with them; {workspace} in COMMAND stands for
    it.

    Exit status: that of COMMAND.
    """
    report = update_command(
        directory,
        words,
        upstreams=upstreams,
        volatile=volatile,
        port=port,
        repository=repository,
    )
    answered = f"{plural(report.answered, 'call')} answered from the capture"
    status = report.exit_status
    if report.outcome == "failed":
        say(f"{report.path}: not updated: the command itself failed, with exit status {status}")
    elif report.outcome == "unchanged":
        say(f"{report.path}: unchanged, {answered}")
    else:
        say(f"{report.path}: updated, {answered}, {plural(report.new_events, 'new event')}")
    return status
