"""Completing a run that was killed: every event that was acknowledged stays, a torn last line is cut."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from time import time
from typing import Final

import msgspec

from reenact.canonical import encode_clean
from reenact.formats.capture import (
    INTERRUPTED,
    NO_MODEL,
    CaptureManifest,
    LlmRequest,
    Model,
    read_events,
    read_seed,
    write_manifest,
)
from reenact.recorder.sink import Ending, finished_manifest
from reenact.store.rundir import Recovery, reopen_for_recovery

_SEED_NAME: Final = "manifest.open.json"


class Recovered(msgspec.Struct, frozen=True):
    """What recovery found."""

    manifest: CaptureManifest
    removed_bytes: int
    """How much of a torn last line was cut."""


def recover(path: str | Path) -> Recovered:
    """Complete the interrupted capture in *path*.

    Raises :class:`~reenact.errors.StoreError` where there is nothing to recover or the run is still
    being recorded, :class:`~reenact.errors.FormatError` where more than the last line is damaged; the
    directory is left as it is then.
    """
    recovery = reopen_for_recovery(Path(path))
    try:
        manifest = _manifest(recovery)
        removed_bytes = recovery.events.torn_bytes
        marker = encode_clean({"recoveredAt": int(time() * 1000), "removedBytes": removed_bytes})
        recovery.finish(write_manifest(manifest), marker + b"\n")
    except BaseException:
        recovery.abandon()
        raise
    return Recovered(manifest, removed_bytes)


def _manifest(recovery: Recovery) -> CaptureManifest:
    seed = read_seed(recovery.read_manifest(), file=str(recovery.path / _SEED_NAME))
    last_ms, model = int(seed.createdAt), NO_MODEL
    with recovery.open_events() as stream:
        events = read_events(stream, file=str(recovery.events_path))
        for _, event in islice(events, recovery.events.count):
            last_ms = int(event.ts)
            if model is NO_MODEL and isinstance(event, LlmRequest):
                model = Model(provider=event.data.provider, model=event.data.model)
    ending = Ending("error", last_ms, model, INTERRUPTED)
    return finished_manifest(seed, ending, recovery.events.count, recovery.events.sha256_hex)
