"""``reenact update``: a recorded command again, answered as far as its capture goes, and recorded beyond."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reenact.analysis.brief import plural
from reenact.cli.terminal import A_PATH, say
from reenact.cli.volatile import volatile_option
from reenact.commands.update import update_command
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import upstreams_of


@click.command("update")
@click.argument("directory", metavar="DIR", type=A_PATH)
@click.option(
    "--upstream", metavar="NAME=URL", multiple=True, help="Forward the gateway's /NAME to this URL."
)
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one by default.")
@volatile_option
@click.option(
    "--repository", metavar="FOLDER", help="The git repository with the files that the capture only names."
)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    directory: Path,
    upstream: tuple[str, ...],
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
    known = upstreams_of(os.environ, upstream)
    upstreams = {name: known[name] for name in (each.partition("=")[0] for each in upstream)}
    report = update_command(
        directory, words, upstreams=upstreams, volatile=volatile, port=port, repository=repository
    )
    answered = f"{plural(report.answered, 'call')} answered from the capture"
    status = report.exit_status
    if report.outcome == "failed":
        say(f"{directory}: left as it was: the command itself failed, with exit status {status}")
    elif report.outcome == "unchanged":
        say(f"{directory}: unchanged, {answered}")
    else:
        say(f"{directory}: updated, {answered}, {plural(report.new_events, 'new event')}")
    return status
