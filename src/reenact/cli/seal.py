"""``reenact seal``: sign what a run was."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import click

from reenact import canonical
from reenact._version import __version__
from reenact.analysis.brief import plural
from reenact.check.publishing.publisher import Publisher
from reenact.check.seals.keys import key_id, read_private_key
from reenact.check.seals.sealing import event_leaves, log_leaves, signed, tree_of
from reenact.cli.command import A_PATH
from reenact.cli.failure import printable
from reenact.cli.sealed_run import RunLog, default_seal, default_secret
from reenact.formats.record import ABSENT, Absent
from reenact.formats.seal import (
    SEAL_VERSION,
    SEED_BYTES,
    Seal,
    SealedCapture,
    SealedLine,
    SealedLog,
    Tree,
    head_to_bytes,
    line_to_bytes,
)
from reenact.store.outfile import open_output, refuse_without_neighbour
from reenact.store.rundir import RunDir
from reenact.trace.normalize import rfc3339


@click.command("seal")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "--key",
    "key_path",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="Your private key.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    help="Where the seal goes.",
)
@click.option("--force", is_flag=True, help="Replace seal and secret if they are there.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def command(path: Path, key_path: Path, output: Path | None, force: bool, as_json: bool) -> None:
    """Sign what a run was.

    Then parts of it can be published and proved. PATH is a capture directory or a REPLAY.jsonl. The seal goes
    to PATH.seal.json, for everybody; its secret to PATH.seal.secret, readable by you alone: it is needed to
    publish and to disclose.
    """
    key = read_private_key(key_path.read_bytes(), file=str(key_path))
    run = RunLog(path)
    seal_path = output or default_seal(path)
    refuse_without_neighbour(seal_path, "its secret")
    seed = secrets.token_bytes(SEED_BYTES)
    with (
        open_output(default_secret(seal_path), replace=force, private=True) as secret,
        open_output(seal_path, replace=force) as file,
    ):
        seal = _seal(run, seed, _sealed_log(run, seed, secret))
        file.write(signed(seal, key))
    _tell(seal_path, seal, key_id(key.public_key()), as_json)


def _tell(seal_path: Path, seal: Seal, keyid: str, as_json: bool) -> None:
    secret_path = default_secret(seal_path)
    events = None if seal.capture is ABSENT else seal.capture.events.count
    lines = seal.log.lines.count
    if as_json:
        files = {"seal": str(seal_path), "secret": str(secret_path)}
        click.echo(json.dumps({**files, "events": events, "lines": lines, "key": keyid}, indent=2))
        return
    counted = "" if events is None else f"{plural(events, 'event')}, "
    click.echo(printable(f"{seal_path}: {counted}{plural(lines, 'line')} of log sealed"))
    click.echo(printable(f"{secret_path}: the secret; keep it, and never publish it"))
    click.echo(f"key {keyid}")


def _sealed_log(run: RunLog, seed: bytes, secret: BinaryIO) -> Tree:
    """Write the log in all its forms to *secret*; the tree over it."""
    publisher = Publisher(run.events(), run.dialect, seed, outputs=run.outputs())

    def lines() -> Iterator[SealedLine]:
        for event in run.events():
            line = publisher.sealed(event)
            secret.write(line_to_bytes(line))
            yield line

    secret.write(head_to_bytes(seed))
    return tree_of(log_leaves(lines(), seed))


def _seal(run: RunLog, seed: bytes, lines: Tree) -> Seal:
    alone = run.trajectory_hash() if run.capture is None else ABSENT
    return Seal(
        version=SEAL_VERSION,
        sealedAt=rfc3339(datetime.now(UTC)),
        producer=f"reenact/{__version__}",
        log=SealedLog(dialect=run.dialect.name, lines=lines, trajectoryHash=alone),
        capture=_sealed_capture(run, seed),
    )


def _sealed_capture(run: RunLog, seed: bytes) -> SealedCapture | Absent:
    if run.capture is None:
        return ABSENT
    manifest = run.capture.manifest
    return SealedCapture(
        captureId=manifest.captureId,
        runId=manifest.runId,
        manifestHash=canonical.digest_of_bytes(RunDir.open(run.path).read_manifest()),
        eventsHash=manifest.integrity.eventsHash,
        events=tree_of(event_leaves(run.capture.lines(), seed)),
    )
