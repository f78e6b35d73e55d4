"""Captures opened for reading: random access to the events of any, a verified view of finished ones.

The event log is mapped, not loaded. Payloads that live elsewhere, in blobs or in earlier events, are
put back where they belong when they are asked for.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import is_digest
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.formats.capture import CaptureEvent, CaptureManifest, event_codec, read_manifest
from reenact.store.references import References
from reenact.store.rundir import RunDir, RunState

CHANGED_LINE_ENDS: Final = (
    "the lines end in CRLF, as git or an editor on Windows makes them; have git keep captures as they are, "
    "with 'captures/** -text' in .gitattributes, and check them out again"
)


class EventLog:
    """The events of *run* as far as they are written, whatever its state; nothing is verified."""

    def __init__(self, run: RunDir) -> None:
        self.path = run.path
        self._blobs = run.blobs
        self.events_file = str(run.events_path)
        self._bytes = _mapped(run)
        self._starts = _line_starts(self._bytes)
        self._calls: dict[str, int] = {}
        self._indexed = 0
        self._references = References(self._find_call, self.blob, file=self.events_file)

    @property
    def torn_bytes(self) -> int:
        """What stands behind the last whole line: half an event."""
        return len(self._bytes) - self._starts[-1]

    @property
    def size_bytes(self) -> int:
        """The size of all whole events."""
        return self._starts[-1]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def line(self, seq: int) -> bytes:
        """The text of the event *seq*, which is also the line of that number."""
        return self._bytes[self._starts[seq - 1] : self._starts[seq] - 1]

    def lines(self) -> Iterator[bytes]:
        """All events' texts, in order."""
        return (self.line(seq) for seq in range(1, len(self) + 1))

    def event(self, seq: int) -> CaptureEvent:
        """The event *seq*, typed, with its payloads as stored."""
        try:
            return event_codec.from_bytes(self.line(seq))
        except FormatError as error:
            raise error.at(file=self.events_file, line=seq) from None

    def events(self) -> Iterator[CaptureEvent]:
        """All events, in order."""
        return (self.event(seq) for seq in range(1, len(self) + 1))

    def resolved(self, value: Any) -> Any:
        """*value*, read from an event, with every stored-elsewhere payload in its place."""
        return self._references.resolved(value)

    def blob(self, digest: object) -> bytes:
        """The verified bytes of a blob."""
        if not isinstance(digest, str) or not is_digest(digest):
            raise FormatError(f"{digest!r} names no blob", file=self.events_file)
        return self._blobs.get(digest)

    def check_blobs(self, digests: Iterator[str]) -> None:
        """Raise for the first of *digests* whose blob is missing or damaged."""
        for digest in digests:
            self._blobs.check(digest)

    def _find_call(self, call_id: str) -> tuple[int, bytes]:
        seq = self._seq_of(call_id)
        return seq, self.line(seq)

    def _seq_of(self, call_id: str) -> int:
        while call_id not in self._calls and self._indexed < len(self):
            self._indexed += 1
            head = _head(self.line(self._indexed))
            if head is not None:
                self._calls.setdefault(head, self._indexed)
        return self._calls[call_id]


class CaptureReader(EventLog):
    """The capture in *path*; raises at once where it is missing, unfinished, damaged or changed."""

    def __init__(self, path: str | Path) -> None:
        RunDir.open(Path(path))  # what is wrong with it is said of the path as it was given
        # Blobs are read later, when the agent may have gone to another directory.
        run = RunDir(Path(path).absolute())
        _refuse_unfinished(run)
        self.manifest: CaptureManifest = read_manifest(
            run.read_manifest(), file=str(run.path / "manifest.json")
        )
        super().__init__(run)
        self._check_hash()
        self._check_count()

    def _check_hash(self) -> None:
        found = "sha256:" + sha256(self._bytes).hexdigest()
        expected = self.manifest.integrity.eventsHash
        if found != expected:
            reason = f"the events are not those that were recorded: expected {expected}, found {found}"
            raise DigestMismatch(
                CHANGED_LINE_ENDS if self._has_other_ends() else reason, file=self.events_file
            )

    def _has_other_ends(self) -> bool:
        """Whether all that was changed is how lines end."""
        text = self._bytes[:].replace(b"\r\n", b"\n")
        return self.manifest.integrity.eventsHash == "sha256:" + sha256(text).hexdigest()

    def _check_count(self) -> None:
        if len(self) != self.manifest.eventCount:
            raise FormatError(
                f"the manifest counts {self.manifest.eventCount} events, the log has {len(self)}",
                file=self.events_file,
            )


class _CallHead(msgspec.Struct):
    callId: str | None = None  # noqa: N815 — the wire's own name
    request: msgspec.Raw = msgspec.Raw()


class _EventHead(msgspec.Struct):
    data: _CallHead


_decode_head: Final = msgspec.json.Decoder(_EventHead).decode


def _head(line: bytes) -> str | None:
    """The id of the call that *line* makes; ``None`` for other events."""
    data = _decode_head(line).data
    return data.callId if bytes(data.request) else None


def _refuse_unfinished(run: RunDir) -> None:
    if run.state is RunState.OPEN:
        raise StoreError(f"{run.path}: the run is still being recorded")
    if run.state is RunState.INTERRUPTED:
        raise StoreError(f"{run.path}: the run was interrupted; complete it with: reenact recover {run.path}")


def _mapped(run: RunDir) -> bytes | mmap.mmap:
    with run.open_events() as stream:
        if stream.seek(0, 2) == 0:
            return b""
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _line_starts(text: bytes | mmap.mmap) -> array[int]:
    """Where each line starts, and at the end where the next one would."""
    starts = array("Q", [0])
    end = text.find(b"\n")
    while end >= 0:
        starts.append(end + 1)
        end = text.find(b"\n", end + 1)
    return starts
