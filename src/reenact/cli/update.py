"""``reenact update``: a recorded command again, answered as far as its capture goes, and recorded beyond."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli.failure import say
from reenact.cli.terminal import A_PATH
from reenact.cli.volatile import volatile_option
from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.injected.handover import Handover, ToUpdate, Updated
from reenact.injected.launch import handover_folder, injecting, run
from reenact.injected.processes import beginning
from reenact.recorder.exit_status import note_exit_status
from reenact.run.rules import project_rules
from reenact.store.place import discard, put_in_place
from reenact.store.reader import CaptureReader


@click.command("update")
@click.argument("directory", metavar="DIR", type=A_PATH)
@volatile_option
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(directory: Path, volatile: tuple[VolatileRule, ...], words: tuple[str, ...]) -> int:
    """Run a recorded command again, and record only what differs.

    Calls that the capture in DIR still has are answered from it; others are really made. What comes of it
    takes the capture's place in one step when COMMAND has ended as it did before; otherwise the capture
    stays as it was. The exit status is that of COMMAND.
    """
    project_rules(Path.cwd())  # what is wrong with them is said before anything runs
    reader = CaptureReader(directory)
    if beginning(reader).upstreams is not ABSENT:
        raise UsageError(f"{directory}: was recorded through the gateway; record it anew")
    recorded, redaction = reader.manifest.exitStatus, reader.manifest.redaction
    salt = bytes.fromhex(redaction.salt) if redaction.salt is not ABSENT else b""
    with handover_folder() as handover:
        handover.give(ToUpdate(str(directory.absolute()), volatile))
        status = run(words, injecting(os.environ, handover, "capture", salt))
        try:
            updated = _the_one(directory, handover)
        except BaseException:
            for each in _updates(handover):
                discard(Path(each.folder))
            raise
    if status != (0 if recorded is ABSENT else recorded):
        discard(Path(updated.folder))
        say(f"{directory}: left as it was: the command itself failed, with exit status {status}")
        return status
    _put_in_place(directory, updated, status)
    return status


def _updates(handover: Handover) -> list[Updated]:
    return [msgspec.json.decode(text, type=Updated) for text in handover.notes("updated").values()]


def _the_one(directory: Path, handover: Handover) -> Updated:
    """What the process came to that is the recorded one; others have made no call."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    for why in [*handover.notes("failed").values(), *handover.notes("left-out").values()]:
        raise StoreError(f"{directory}: left as it was: {why}")
    updates = _updates(handover)
    acted = [each for each in updates if each.answered or each.asked]
    if len(acted) > 1:
        raise UsageError(f"{directory}: left as it was: several programs made calls; record it anew")
    for each in updates:
        if acted and each is not acted[0]:
            discard(Path(each.folder))
    if not acted:
        raise CheckFailed(f"{directory}: left as it was: the command made no call that reenact sees")
    return acted[0]


def _put_in_place(directory: Path, updated: Updated, status: int) -> None:
    answered = f"{plural(updated.answered, 'call')} answered from the capture"
    if not updated.is_changed:
        discard(Path(updated.folder))
        say(f"{directory}: unchanged, {answered}")
        return
    note_exit_status(Path(updated.folder), status)
    put_in_place(Path(updated.folder), directory)
    say(f"{directory}: updated, {answered}, {plural(updated.asked, 'new event')}")
