"""``reenact record``: a command, run as it is and recorded."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

import click

from reenact.cli.brief import plural
from reenact.cli.failure import message_of, printable, say
from reenact.cli.listing import entries
from reenact.cli.table import counted
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import CaptureManifest, RedactionProfile
from reenact.formats.record import ABSENT
from reenact.injected.handover import Handover, ToRecord
from reenact.injected.launch import environment, handed_over, run
from reenact.injected.subject import subject
from reenact.recorder.exit_status import note_exit_status
from reenact.recorder.recovery import recover
from reenact.redaction.profile import PROFILES
from reenact.store.durable import Durability
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState, make_empty_folder


@click.command("record", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", metavar="DIR", help="Where to record; runs/COMMAND-TIME if not given.")
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide; strict where CI is set.")
@click.option("--durability", type=click.Choice(["process", "disk"]), default="process", show_default=True)
@click.argument("words", metavar="[--] COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    output: str | None, redact: RedactionProfile | None, durability: Durability, words: tuple[str, ...]
) -> int:
    """Run a command and record it.

    COMMAND runs as it would without us, and its exit status is ours. The calls of the first Python
    process below it that makes any are recorded, from its start to its end, with no change to its code.
    What was recorded is said on stderr at the end.
    """
    path = Path(output) if output is not None else _new_path(words, datetime.now().astimezone())
    make_empty_folder(path)
    orders = ToRecord(str(path.absolute()), redact, durability)
    try:
        with handed_over(orders) as handover:
            status = run(words, environment(os.environ, handover, "capture"))
            _report(path, status, words, handover)
    finally:
        with suppress(OSError):
            path.rmdir()  # only while nothing is in it
    return status


def _new_path(words: tuple[str, ...], now: datetime) -> Path:
    """``runs/agent-20260131-154500``, or with a number behind it where that is taken."""
    stem = f"{subject(words)}-{now:%Y%m%d-%H%M%S}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())


def _report(path: Path, status: int, words: tuple[str, ...], handover: Handover) -> None:
    if not any(path.iterdir()):
        say(f"nothing was recorded: {_why_silent(handover)}")
        return
    for why in handover.notes("failed").values():
        say(f"not recorded: {why}")
    for pid, why in handover.notes("left-out").items():
        say(f"not recorded: {handover.process(pid)}: {why}")
    try:
        manifest = _finished(path, status)
    except (FormatError, StoreError, OSError) as error:
        say(f"the capture is not whole: {message_of(error)}")
        return
    if manifest is not None:
        _summarise(path, manifest, words)


def _finished(path: Path, exit_status: int) -> CaptureManifest | None:
    """The manifest of what the command left, completed where it was cut off; ``None`` while it goes on."""
    state = RunDir.open(path).state
    if state is RunState.OPEN:
        say(f"{path}: is still being recorded by a process that the command left behind")
        return None
    if state is RunState.INTERRUPTED:
        cut = plural(recover(path).removed_bytes, "byte")
        say(f"{path}: the run was interrupted and has been recovered, {cut} cut")
    return note_exit_status(path, exit_status)


def _summarise(path: Path, manifest: CaptureManifest, words: tuple[str, ...]) -> None:
    kinds = Counter(entry.kind for entry in entries(CaptureReader(path)) if entry.late_for is None)
    say(f"recorded {path}: {plural(manifest.eventCount, 'event')}, {counted(kinds)}")
    if manifest.status != "ok":
        click.echo(f"  the run ended with an error: {printable(str(manifest.error))}", err=True)
    for warning in manifest.warnings if manifest.warnings is not ABSENT else ():
        click.echo(f"  warning: {printable(warning)}", err=True)
    again = f"reenact replay {shlex.quote(str(path))} -- {shlex.join(words)}"
    click.echo(f"  replay it with: {printable(again)}", err=True)


def _why_silent(handover: Handover) -> str:
    for why in handover.notes("left-out").values():
        return why
    if handover.notes("started"):
        return (
            "the program made no call that reenact sees; mark what reaches the outside with @reenact.tool, "
            "and if a process of its own does the work, record that one"
        )
    for why in [*handover.notes("absent").values(), *handover.notes("failed").values()]:
        return why
    return (
        "the command started no Python that reads our PYTHONPATH (python -I and -E do not); programs in "
        "other languages cannot be recorded yet"
    )
