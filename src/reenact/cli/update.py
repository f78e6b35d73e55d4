"""``reenact update``: a recorded command again, answered as far as its capture goes, and recorded beyond."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reenact.analysis.brief import plural
from reenact.cli.failure import say
from reenact.cli.terminal import A_PATH
from reenact.cli.volatile import volatile_option
from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.capture import CaptureManifest, PrintedLines
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.handover import Handover, ToUpdate
from reenact.injected.launch import addressed, diverted, handover_folder, injecting, run
from reenact.injected.output import Printed
from reenact.injected.processes import beginning
from reenact.injected.served import ServedUpdate
from reenact.recorder.exit_status import note_exit_status
from reenact.run.merging import UpdatedCapture, UpdateHalf, halves_from
from reenact.run.rules import project_rules
from reenact.store.reader import CaptureReader


@click.command("update")
@click.argument("directory", metavar="DIR", type=A_PATH)
@click.option("--upstream", metavar="NAME=URL", multiple=True, help="Who is behind the gateway's /NAME.")
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one if not given.")
@volatile_option
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    directory: Path,
    upstream: tuple[str, ...],
    port: int | None,
    volatile: tuple[VolatileRule, ...],
    words: tuple[str, ...],
) -> int:
    """Run a recorded command again, and record only what differs.

    Calls that the capture in DIR still has are answered from it; others are really made, by Python processes
    and through the gateway alike. What comes of it takes the capture's place in one step when COMMAND has
    ended as it did before; otherwise the capture stays as it was. The exit status is that of COMMAND.
    """
    project_rules(Path.cwd())  # what is wrong with them is said before anything runs
    reader = CaptureReader(directory)
    began, recorded = beginning(reader), reader.manifest.exitStatus
    upstreams = upstreams_of(os.environ, upstream)
    named = {each.partition("=")[0] for each in upstream}
    upstreams |= {name: url for name, url in (began.upstreams or {}).items() if name not in named}
    updated = UpdatedCapture(directory)
    updated.open()
    try:
        with handover_folder() as handover:
            served = ServedUpdate(directory, upstreams, updated.blobs.root, volatile=volatile)
            with served.served(port=port or 0, on_call=handover.note_gateway_call) as gateway:
                environ, changes = diverted(os.environ, gateway.address)
                orders = ToUpdate(
                    str(directory.absolute()), changes, str(updated.blobs.root.absolute()), volatile
                )
                handover.give(orders)
                if began.python is not ABSENT or began.upstreams is ABSENT:
                    environ = injecting(environ, handover, "capture", _salt_of(reader.manifest))
                printed = Printed(_salt_of(reader.manifest))
                status = run(addressed(words, gateway.address), environ, printed=printed)
            halves = _halves(directory, handover, served)
        if status != (0 if recorded is ABSENT else recorded):
            say(f"{directory}: left as it was: the command itself failed, with exit status {status}")
            return status
        updated.merge(halves)
        _put_in_place(directory, updated, status, printed.end())
    finally:
        updated.discard()  # what was accepted is not there any more
    return status


def _salt_of(manifest: CaptureManifest) -> bytes:
    salt = manifest.redaction.salt
    return bytes.fromhex(salt) if salt is not ABSENT else b""


def _halves(directory: Path, handover: Handover, served: ServedUpdate) -> list[UpdateHalf]:
    """What the processes that are part of the run came to, and the gateway; others have made no call."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    for why in [*handover.notes("failed").values(), *handover.notes("left-out").values()]:
        raise StoreError(f"{directory}: left as it was: {why}")
    told = handover.notes("updated")
    for pid in handover.notes("plays"):
        if pid not in told:
            raise StoreError(f"{directory}: left as it was: {handover.process(pid)} did not end by itself")
    halves = sorted(halves_from(told.values()), key=lambda half: str(half.root))
    through_gateway = served.half()
    if through_gateway.has_acted or beginning(served.context.source.reader).upstreams is not ABSENT:
        halves.append(through_gateway)
    if not any(half.has_acted for half in halves):
        raise CheckFailed(f"{directory}: left as it was: the command made no call that reenact sees")
    return halves


def _put_in_place(directory: Path, updated: UpdatedCapture, status: int, printed: PrintedLines) -> None:
    answered = f"{plural(updated.answered, 'call')} answered from the capture"
    if not updated.is_changed:
        say(f"{directory}: unchanged, {answered}")
        return
    note_exit_status(updated.folder, status, printed)
    updated.accept()
    say(f"{directory}: updated, {answered}, {plural(updated.asked, 'new event')}")
