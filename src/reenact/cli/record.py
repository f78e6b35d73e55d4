"""``reenact record``: run a command and record it."""

from __future__ import annotations

import os
import shlex
from collections import Counter

import click

from reenact.analysis.brief import plural
from reenact.cli.options import (
    port_option,
    upstream_option,
    volatile_option,
)
from reenact.cli.table import describe_counts
from reenact.cli.terminal import message_of, printable, say, shell_line
from reenact.commands.record import RecordingReport, record_command
from reenact.errors import UsageError
from reenact.formats.capture import CaptureManifest, RedactionProfile
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import variables
from reenact.redaction import PLACEHOLDER, PROFILES
from reenact.store.durable import Durability
from reenact.workspace.recording import Base
from reenact.workspace.scan import LIMIT_BYTES


@click.command("record", context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Where to record, a folder or an address [runs/COMMAND-TIME].",
)
@click.option("--force", is_flag=True, help="Replace the capture in DIR when the new one is complete.")
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide [default; strict if CI is set].")
@click.option("--durability", type=click.Choice(["process", "disk"]), default="process", show_default=True)
@upstream_option
@port_option
@click.option("--print-env", is_flag=True, help="Print the environment variables of the gateway, and exit.")
@click.option(
    "--workspace",
    metavar="[DIR]",
    is_flag=False,
    flag_value=".",
    help="Also record the files of DIR [this folder]: at the start, around each call, at the end.",
)
@click.option(
    "--workspace-base",
    type=click.Choice(["git"]),
    help="Do not store files that equal the commit's; git has them.",
)
@click.option(
    "--workspace-limit",
    metavar="MIB",
    type=click.FloatRange(min=0),
    help="Leave out files larger than this [16].",
)
@volatile_option
@click.argument("words", metavar="[--] COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    context: click.Context,
    output: str | None,
    force: bool,
    redact: RedactionProfile | None,
    durability: Durability,
    volatile: tuple[VolatileRule, ...],
    upstreams: dict[str, str],
    port: int | None,
    print_env: bool,
    workspace: str | None,
    workspace_base: Base | None,
    workspace_limit: float | None,
    words: tuple[str, ...],
) -> int:
    """Run a command and record it.

    COMMAND runs as usual, and reenact exits with its exit status. The calls of its Python processes are
    recorded from start to end, without any change to their code. At the end a summary goes to stderr.

    Programs in other languages are recorded by their model calls: the environment variables that hold
    the model's base URL point to a gateway on this machine, which forwards every request. {gateway} in
    COMMAND stands for the gateway's address.

    With --workspace the files of a folder are recorded too, except ignored files (.gitignore), large
    files and files whose names suggest keys. {workspace} in COMMAND stands for the folder.
    """
    if print_env:
        return _print_environment(port)
    if not words:
        raise click.MissingParameter(ctx=context, param=context.command.params[-1])
    if force and output is None:
        raise UsageError("--force replaces the capture in -o DIR; say which")
    if workspace is None and (workspace_base, workspace_limit) != (None, None):
        raise UsageError("--workspace-base and --workspace-limit say how files are recorded; add --workspace")
    report = record_command(
        words,
        output,
        replace=force,
        redact=redact,
        durability=durability,
        upstreams=upstreams,
        volatile=volatile,
        port=port,
        workspace=workspace,
        workspace_base=workspace_base,
        workspace_limit_bytes=LIMIT_BYTES if workspace_limit is None else int(workspace_limit * 2**20),
    )
    for note in report.notes:
        say(note)
    if report.manifest is not None:
        _summarise(report, report.manifest, _replay_line(report, port, has_files=workspace is not None))
    problem = report.problem
    if report.kept is not None and problem is not None:
        say(f"the capture is not stored: {message_of(problem)}")
        say(f"it is kept in {report.kept}; store it with: reenact push {report.kept} ADDRESS")
    elif problem is not None:
        say(f"the capture is incomplete: {message_of(problem)}")
    return report.exit_status


def _print_environment(port: int | None) -> int:
    if port is None:
        raise UsageError("--print-env: a free port is known only while a command runs; fix one with --port N")
    for name, value in variables(f"http://127.0.0.1:{port}", os.environ).items():
        click.echo(f"{name}={shlex.quote(value)}")
    return 0


def _replay_line(report: RecordingReport, port: int | None, *, has_files: bool) -> str:
    """The command that replays the recording, without secrets: CI logs may keep it."""
    options = [] if port is None else ["--port", str(port)]
    options += ["--workspace"] if has_files else []
    line = shell_line(["reenact", "replay", report.path, *options, "--", *report.command])
    is_redacted = any(PLACEHOLDER.search(word) for word in report.command)
    return f"{line} (with your own values for <secret:…>)" if is_redacted else line


def first_line(report: RecordingReport) -> str:
    """The first line that describes a recording."""
    if report.notes:
        return report.notes[0]
    if report.manifest is None:
        return f"the capture is incomplete: {message_of(report.problem)}" if report.problem else ""
    return _recorded_line(report, report.manifest)


def _recorded_line(report: RecordingReport, manifest: CaptureManifest) -> str:
    return f"recorded {report.path}: {plural(manifest.eventCount, 'event')}, {describe_counts(report.steps)}"


def _summarise(report: RecordingReport, manifest: CaptureManifest, replay_line: str) -> None:
    exit_status = report.exit_status
    say(_recorded_line(report, manifest))
    if exit_status:
        click.echo(f"  the command itself failed, with exit status {exit_status}", err=True)
    if manifest.status != "ok" and manifest.error != f"exit status {exit_status}":
        click.echo(f"  the run ended with an error: {printable(str(manifest.error))}", err=True)
    if not report.steps:
        click.echo(f"  warning: {printable(report.silence)}", err=True)
    if report.left_out:
        reasons = Counter(found.why for found in report.left_out)
        listed = ", ".join(f"{count} {why}" for why, count in reasons.items())
        click.echo(f"  files left out: {listed}; list them with: reenact files {report.path}", err=True)
    for warning in manifest.warnings if manifest.warnings is not ABSENT else ():
        click.echo(f"  warning: {printable(warning)}", err=True)
    click.echo(f"  replay it with: {replay_line}", err=True)
