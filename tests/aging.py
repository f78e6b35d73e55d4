"""Recordings of another day."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import msgspec

from reenact.canonical import encode_clean
from reenact.formats.capture import with_own_digest, write_manifest
from reenact.store.reader import CaptureReader

THREE_DAYS_MS = 3 * 24 * 3600 * 1000


def make_older(path: Path, by_ms: float = THREE_DAYS_MS, *, from_seq: int = 1) -> None:
    """Let the recording in *path* be so much older, from an event on."""
    reader = CaptureReader(path)
    events = [json.loads(line) for line in reader.lines()]
    for event in events[from_seq - 1 :]:
        event["ts"] -= by_ms
    log = b"".join(encode_clean(event) + b"\n" for event in events)
    (path / "events.jsonl").write_bytes(log)
    manifest = reader.manifest
    assert manifest.completedAt
    manifest = msgspec.structs.replace(
        manifest,
        createdAt=manifest.createdAt - by_ms,
        completedAt=manifest.completedAt - by_ms,
        integrity=msgspec.structs.replace(manifest.integrity, eventsHash=f"sha256:{sha256(log).hexdigest()}"),
    )
    (path / "manifest.json").write_bytes(write_manifest(with_own_digest(manifest)))
