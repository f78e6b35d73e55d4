"""``reenact record``: a command, run as it is and recorded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import click

from reenact.analysis.artifact import open_artifact
from reenact.analysis.brief import plural
from reenact.cli.failure import message_of, printable, say, shell_line
from reenact.cli.table import counted
from reenact.cli.volatile import volatile_option
from reenact.errors import StoreError, UsageError
from reenact.formats.capture import CaptureManifest, PrintedLines, RedactionProfile
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.server import Gateway
from reenact.gateway.upstreams import upstreams_of, variables
from reenact.injected.handover import Handover, ToRecord
from reenact.injected.launch import addressed, diverted, handover_folder, injecting, run
from reenact.injected.output import Printed
from reenact.injected.served import ServedCapture
from reenact.injected.subject import subject
from reenact.recorder.exit_status import note_exit_status
from reenact.recorder.joining import join_parts
from reenact.recorder.recovery import recover
from reenact.redaction import PLACEHOLDER, PROFILES
from reenact.run.capturing import Identity
from reenact.run.rules import project_beside
from reenact.store.durable import Durability
from reenact.store.place import put_in_place, staging_folder
from reenact.store.rundir import RunDir, RunState, claim_folder

_EXAMPLES: Final = "OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL or OLLAMA_HOST"


@click.command("record", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", metavar="DIR", help="Where to record; runs/COMMAND-TIME if not given.")
@click.option("--force", is_flag=True, help="Replace the capture in DIR, once there is a new one.")
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide; strict where CI is set.")
@click.option("--durability", type=click.Choice(["process", "disk"]), default="process", show_default=True)
@click.option("--upstream", metavar="NAME=URL", multiple=True, help="Who is behind the gateway's /NAME.")
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one if not given.")
@click.option("--print-env", is_flag=True, help="Print the variables that lead to the gateway, and end.")
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
    upstream: tuple[str, ...],
    port: int | None,
    print_env: bool,
    words: tuple[str, ...],
) -> int:
    """Run a command and record it.

    COMMAND runs as it would without us, and its exit status is ours. The calls of its Python processes
    are recorded, from their start to their end, with no change to their code.
    Programs in other languages are recorded as they call their model: the variables from which they read
    its base URL lead to a gateway on this host, which passes on what it is asked. {gateway} in COMMAND
    stands for its address. What was recorded is said on stderr at the end.
    """
    upstreams = upstreams_of(os.environ, upstream)
    project_beside(Path.cwd())  # what is wrong with it is said before anything runs
    if print_env:
        return _print_environment(port)
    if not words:
        raise click.MissingParameter(ctx=context, param=context.command.params[-1])
    path = Path(output) if output is not None else _new_path(words, datetime.now().astimezone())
    if force and output is None:
        raise UsageError("--force replaces the capture in -o DIR; say which")
    is_replaced = force and _holds_capture(path)
    new = staging_folder(path) if is_replaced else path
    claim = claim_folder(new)
    identity = Identity.new()
    served = ServedCapture(
        new.absolute(),
        words,
        upstreams,
        redact=redact,
        durability=durability,
        volatile=volatile,
        identity=identity,
    )
    status: int | None = None
    try:
        with handover_folder() as handover:
            with served.served(port=port or 0, on_call=handover.note_gateway_call) as gateway:
                environ, changes = diverted(os.environ, gateway.address)
                handover.give(ToRecord(str(new.absolute()), redact, durability, identity, changes, volatile))
                printed = Printed(identity.salt)
                status = run(
                    addressed(words, gateway.address),
                    injecting(environ, handover, "capture"),
                    printed=printed,
                )
            claim.remove()
            manifest = _finish(new, Ended(status, printed.end()), handover, gateway)
            if manifest is not None and is_replaced:
                put_in_place(new, path)
            if manifest is not None:
                again = _again(path, port, served.redacted_words())
                _summarise(path, manifest, again, _why_silent(handover, gateway), status)
    except Exception as error:
        if status is None:
            raise
        # The command has done its work: what became of the recording is told, and changes nothing of that.
        say(f"the capture is not whole: {message_of(error)}")
    finally:
        claim.remove()
        with suppress(OSError):
            new.rmdir()  # only while nothing is in it
    return status


def _print_environment(port: int | None) -> int:
    if port is None:
        raise UsageError("--print-env: a free port is known only while a command runs; fix one with --port N")
    for name, value in variables(f"http://127.0.0.1:{port}", os.environ).items():
        click.echo(f"{name}={shlex.quote(value)}")
    return 0


def _new_path(words: tuple[str, ...], now: datetime) -> Path:
    """``runs/agent-20260131-154500``, or with a number behind it where that is taken."""
    stem = f"{subject(words)}-{now:%Y%m%d-%H%M%S}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())


def _again(path: Path, port: int | None, words: Sequence[str]) -> str:
    """The command that replays what was recorded; what is printed here may end in a log of CI."""
    options = [] if port is None else ["--port", str(port)]
    line = shell_line(["reenact", "replay", str(path), *options, "--", *words])
    is_redacted = any(PLACEHOLDER.search(word) for word in words)
    return f"{line} (with your own values for <secret:…>)" if is_redacted else line


class Ended(NamedTuple):
    """What the one who waited for the command knows of it."""

    status: int
    printed: PrintedLines


def _holds_capture(path: Path) -> bool:
    """Whether there is a capture to be replaced; one that is being recorded is not."""
    if not path.exists():
        return False
    with suppress(StoreError):
        if RunDir.open(path).state is RunState.OPEN:
            raise UsageError(f"{path}: is being recorded; wait until it ends")
        return True
    return False


def _finish(path: Path, ended: Ended, handover: Handover, gateway: Gateway) -> CaptureManifest | None:
    """Complete what the command left in *path*; ``None`` where that is no whole capture, which is said."""
    if not path.is_dir():
        say(f"the capture is lost: {path} was removed while the command ran")
        return None
    if not any(path.iterdir()):
        failed = f"the command itself failed with exit status {ended.status}; " if ended.status else ""
        say(f"nothing was recorded: {failed}{_why_silent(handover, gateway)}")
        return None
    for why in handover.notes("failed").values():
        say(f"not recorded: {why}")
    for pid, why in handover.notes("left-out").items():
        say(f"not recorded: {handover.process(pid)}: {why}")
    return _completed(path, ended)


def _completed(path: Path, ended: Ended) -> CaptureManifest | None:
    state = RunDir.open(path).state
    if state is RunState.OPEN:
        say(f"{path}: is still being recorded by a process that the command left behind")
        return None
    if state is RunState.INTERRUPTED:
        cut = plural(recover(path).removed_bytes, "byte")
        say(f"{path}: the run was interrupted and has been recovered, {cut} cut")
    join_parts(path)
    return note_exit_status(path, ended.status, ended.printed)


def _summarise(path: Path, manifest: CaptureManifest, again: str, silent: str, exit_status: int) -> None:
    with open_artifact(path) as artifact:
        artifact.index()
        kinds = artifact.counts().kinds
    say(f"recorded {path}: {plural(manifest.eventCount, 'event')}, {counted(kinds)}")
    if exit_status:
        click.echo(f"  the command itself failed, with exit status {exit_status}", err=True)
    if manifest.status != "ok" and manifest.error != f"exit status {exit_status}":
        click.echo(f"  the run ended with an error: {printable(str(manifest.error))}", err=True)
    if not kinds:
        click.echo(f"  warning: {printable(silent)}", err=True)
    for warning in manifest.warnings if manifest.warnings is not ABSENT else ():
        click.echo(f"  warning: {printable(warning)}", err=True)
    click.echo(f"  replay it with: {again}", err=True)


def _why_silent(handover: Handover, gateway: Gateway) -> str:
    for why in handover.notes("left-out").values():
        return why
    for name in gateway.unknown_names:
        return (
            f"a request for /{name} came to the gateway, but no upstream has this name; "
            f"add it with --upstream {name}=URL"
        )
    if handover.notes("started"):
        return (
            "the program made no call that reenact sees; mark what reaches the outside with @reenact.tool, "
            "and if a process of its own does the work, record that one"
        )
    for why in [*handover.notes("absent").values(), *handover.notes("failed").values()]:
        return why
    return (
        "the command started no Python that reads our PYTHONPATH (python -I and -E do not), and nothing came "
        f"to the gateway; let the agent take its base URL from {_EXAMPLES}, or give it {{gateway}}/NAME "
        "in its arguments or, with --port, in its configuration"
    )
