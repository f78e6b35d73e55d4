"""The events of a fork: the parent's events up to the fork point, with the fork's ids, then its own events.

A fork stores only its own events and reads the shared ones from its parent. The digest of the fork covers
both, so that a later change of the parent is detected.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from reenact.canonical import encode_clean
from reenact.errors import DigestMismatch

MAX_GENERATIONS: Final = 64
"""The longest chain of forks of forks."""
PORTION_LINES: Final = 256
"""As many lines as fit into the processor's cache; changing all lines at once takes a third longer."""


class RunIds(NamedTuple):
    """The ids that every event of a run has."""

    capture_id: str
    run_id: str


class SharedEvents(msgspec.Struct, frozen=True, rename="camel"):
    """What the manifest of a fork says about its parent."""

    capture_id: str
    path: str
    events: int
    events_hash: str


class ForkedFrom(msgspec.Struct, frozen=True):
    """The members of a manifest's ``fork`` that are needed to read the events."""

    parent: SharedEvents
    stored: str

    @property
    def is_part(self) -> bool:
        """Whether only the parent stores the shared events."""
        return self.stored == "suffix"


def join_events(
    shared: BinaryIO, own: BinaryIO, parent: SharedEvents, *, was: RunIds, now: RunIds, fork: Path
) -> BinaryIO:
    """The whole log of *fork*, open for reading: the parent's events in *shared*, then its *own*."""
    joined = _unnamed_file()
    try:
        digest = sha256()
        with_ids = portion_changer(was, now)
        shared_lines = islice(shared, max(0, parent.events))
        while lines := list(islice(shared_lines, PORTION_LINES)):
            portion = b"".join(lines)
            digest.update(portion)
            joined.write(with_ids(portion, len(lines)))
        if f"sha256:{digest.hexdigest()}" != parent.events_hash:
            place = os.path.normpath(fork / parent.path)
            raise DigestMismatch(
                f"its parent, capture {parent.capture_id} in {place}, was changed before they part; "
                "put back what it was, or make the fork again",
                file=str(fork),
            )
        shutil.copyfileobj(own, joined)
        joined.flush()
        joined.seek(0)
    except BaseException:
        joined.close()
        raise
    return joined


def ids_changer(was: RunIds, now: RunIds) -> Callable[[bytes], bytes]:
    """A function that replaces the ids of a run in one event line; they come first and after the data."""
    head, new_head = (b'{"captureId":%b,' % encode_clean(ids.capture_id) for ids in (was, now))
    run_id, new_run_id = (b',"runId":%b,"seq":' % encode_clean(ids.run_id) for ids in (was, now))

    def with_ids(line: bytes) -> bytes:
        place = line.rfind(run_id)
        if not line.startswith(head) or place < 0:
            return line  # of another run, or not written by reenact
        return b"".join((new_head, line[len(head) : place], new_run_id, line[place + len(run_id) :]))

    return with_ids


def portion_changer(was: RunIds, now: RunIds) -> Callable[[bytes, int], bytes]:
    """The same for many lines at once; takes a tenth of the time if nothing else looks like the ids."""
    head, new_head = (b'\n{"captureId":%b,' % encode_clean(ids.capture_id) for ids in (was, now))
    run_id, new_run_id = (b',"runId":%b,"seq":' % encode_clean(ids.run_id) for ids in (was, now))
    with_ids = ids_changer(was, now)

    def change(lines: bytes, count: int) -> bytes:
        parts = lines.split(run_id)
        if len(parts) != count + 1 or not lines.startswith(head[1:]):
            return b"".join(map(with_ids, lines.splitlines(keepends=True)))
        changed = new_run_id.join(parts).replace(head, new_head)
        return new_head[1:] + changed[len(head) - 1 :]

    return change


def _unnamed_file() -> BinaryIO:
    """A temporary file, in memory if the system can do that; closing removes it."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("reenact-fork", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile()
