"""Captures opened for reading: random access to the events, and verification of finished runs.

The event log is mapped into memory. References to payloads in blobs or in earlier events are resolved on
request.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from reenact.canonical import JsonValue, is_digest
from reenact.errors import DigestMismatch, FormatError, StoreError, relabel_errors
from reenact.formats.capture import (
    CaptureEvent,
    CaptureManifest,
    RunStart,
    RunStartData,
    event_codec,
    read_manifest,
)
from reenact.formats.event import read_head
from reenact.store.rundir import RunDir, RunState

_decode: Final = msgspec.json.Decoder().decode
_DOLLAR: Final = ord("$")
BLOB_MARK: Final = b'"$blob"'
"""In the text of every event that refers to a blob."""
_CACHED_VALUES: Final = 16
_MAPPED_BYTES: Final = 16 * 1024 * 1024
"""How much of a log is in memory while its line starts are searched."""
_MAX_DEPTH: Final = 8
"""How deep references may be nested; a recorder nests two."""
_MAX_PLACES: Final = 16
_MAX_REPEATED_BYTES: Final = 64 * 1024 * 1024
"""How many bytes one payload may refer to more than once; a recorder repeats none."""

_UNREADABLE: Final = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    msgspec.DecodeError,
    RecursionError,
)
"""The errors of a reference that no recorder wrote."""

_Place: TypeAlias = tuple[str, tuple[str, ...]]
"""A call's id, and the path of a value in its request."""
_Sized: TypeAlias = tuple[Any, int, _Place]
"""A value, the size of the texts it was read from, and the place of the first of them."""


class References(msgspec.Struct):
    """Follows the references of one log; see :mod:`reenact.recorder.payloads` for how they are written."""

    find_call: Callable[[str], tuple[int, bytes]]
    """Returns the number and the line of the event that made a call."""
    blob: Callable[[object], bytes]
    """Returns the bytes of a digest."""
    file: str
    """The log, for messages."""
    values: dict[_Place, _Sized] = {}
    """A cache of the values that were resolved last."""

    def resolve(self, value: object) -> Any:
        """*value* of an event with all references replaced by the payloads they refer to."""
        if not isinstance(value, dict | list):
            return value
        try:
            return self._resolve(value, _Allowance(self.file), 0)
        except _UNREADABLE as error:
            reason = f"a payload refers to what is not there ({type(error).__name__}: {error}); record again"
            raise FormatError(reason, file=self.file) from None

    def _resolve(self, value: object, allowance: _Allowance, depth: int) -> object:
        if isinstance(value, list):
            return list(map(self._resolve, value, repeat(allowance), repeat(depth)))
        if isinstance(value, dict):
            if "$blob" in value:
                text = self.blob(value["$blob"])
                allowance.take(value["$blob"], len(text), depth)
                found = _decode(text)
                return self._resolve(found, allowance, depth + 1) if _DOLLAR in text else found
            if "$ref" in value:
                return self._follow_reference(value, allowance)
            if "$json" in value:
                allowance.take(None, 0, depth)
                return self._resolve(_decode(value["$json"]), allowance, depth + 1)
            resolved = map(self._resolve, value.values(), repeat(allowance), repeat(depth))
            return dict(zip(value, resolved, strict=True))
        return value

    def _follow_reference(self, value: dict[str, JsonValue], allowance: _Allowance) -> object:
        place = _place(value)
        found, size_bytes, base = self.values.get(place) or self._value_at(place)
        allowance.take(base, size_bytes, 0)
        if place not in self.values and len(self.values) >= _CACHED_VALUES:
            del self.values[next(iter(self.values))]
        self.values[place] = found, size_bytes, base
        return _append_items(found, [value])

    def _value_at(self, place: _Place) -> _Sized:
        """The value at a place of an earlier request; a chat of N turns is a chain of N references."""
        chain: list[dict[str, JsonValue]] = []
        size_bytes, latest = 0, sys.maxsize
        while (known := self.values.get(place)) is None:
            seq, found, text_bytes = self._find(*place)
            size_bytes += text_bytes
            if seq >= latest:
                raise FormatError(f"the reference to {place[0]} leads in a circle", file=self.file)
            if not isinstance(found, dict) or "$ref" not in found:
                break
            chain.append(found)
            latest, place = seq, _place(found)
        else:
            found, known_bytes, place = known
            size_bytes += known_bytes
        return _append_items(found, chain[::-1]), size_bytes, place

    def _find(self, call_id: str, path: tuple[str, ...]) -> tuple[int, JsonValue, int]:
        """The number of the call's event, the value at *path* of its request, and the size of its text."""
        seq, text = self.find_call(call_id)
        value = _decode(text)["data"]["request"]
        if "$blob" in value:
            text = self.blob(value["$blob"])
            value = _decode(text)
        for key in path:
            value = value[key]
        return seq, value, len(text)


class _Allowance(msgspec.Struct):
    """How much one payload may still resolve: each reference once, and a limited number of bytes again."""

    file: str
    seen: set[object] = set()
    places_in: dict[str, int] = {}
    left_bytes: int = _MAX_REPEATED_BYTES

    def take(self, what: object, size_bytes: int, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            reason = f"a payload has references more than {_MAX_DEPTH} deep within each other"
            raise FormatError(f"{reason}; it was not recorded like that", file=self.file)
        if what is None or (what not in self.seen and self._is_one_of_few(what)):
            self.seen.add(what)
            return
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            reason = f"a payload repeats more than {_MAX_REPEATED_BYTES} bytes of what it refers to"
            raise FormatError(f"{reason}; it was not recorded like that", file=self.file)

    def _is_one_of_few(self, what: object) -> bool:
        """Whether few enough places of one call are referred to; one place may contain another."""
        if not isinstance(what, tuple):
            return True
        places = self.places_in[what[0]] = self.places_in.get(what[0], 0) + 1
        return places <= _MAX_PLACES


def _place(value: dict[str, Any]) -> _Place:
    return value["$ref"]["call"], tuple(value["$ref"]["path"])


def _append_items(found: object, links: Iterable[dict[str, Any]]) -> object:
    """The list *found* as the references *links* continue it, one after the other."""
    is_ours = False
    for link in links:
        items = link["$ref"].get("items")
        if items is None:
            continue
        if not isinstance(found, list):
            raise TypeError(f"a {type(found).__name__} has no items")
        if not is_ours:
            found, is_ours = [*found], True
        if not 0 <= items <= len(found):
            raise IndexError(f"only {len(found)} of {items} items are there")
        del found[items:]
        found += link["then"]
    return found


def blobs_in_line(line: bytes) -> Iterator[str]:
    """The digests of the blobs that the event in *line* refers to, in its order."""
    if BLOB_MARK in line:  # few events do, and a long one takes much longer to decode than to search
        yield from _blobs_in(_decode(line))


def _blobs_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$blob"), str):
            yield value["$blob"]
        for child in value.values():
            yield from _blobs_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from _blobs_in(child)


CHANGED_LINE_ENDS: Final = (
    "the lines end in CRLF, as git or an editor on Windows makes them; have git keep captures as they are, "
    "with '**/captures/** -text' (or their own folder) in .gitattributes, and check them out again"
)


class EventReader:
    """The events of *run* as far as they are written, whatever its state; nothing is verified."""

    def __init__(self, run: RunDir, given: str | None = None) -> None:
        """Errors name the path as it was *given*."""
        self.path = run.path
        self.given = str(run.path) if given is None else given
        self._blobs = run.blobs
        self.events_file = os.path.join(self.given, run.event_log().event_log_path)
        with run.open_events() as stream:
            self._open(stream)

    def _open(self, stream: BinaryIO) -> None:
        is_empty = stream.seek(0, 2) == 0
        self._bytes = b"" if is_empty else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._calls: dict[str, int] = {}
        self._indexed = 0
        self.resolve = References(self._find_call, self.blob, file=self.events_file).resolve
        """Replaces the references in a value of an event by the payloads they refer to."""

    @cached_property
    def _starts(self) -> array[int]:
        return _line_starts(self._bytes)

    @property
    def torn_bytes(self) -> int:
        """The size of the incomplete event after the last whole line."""
        return len(self._bytes) - self.size_bytes

    @property
    def size_bytes(self) -> int:
        """The size of all whole events."""
        return self._bytes.rfind(b"\n") + 1

    def __len__(self) -> int:
        return len(self._starts) - 1

    def line(self, seq: int) -> bytes:
        """The text of the event *seq*, which is also the line of that number."""
        return self._bytes[self._starts[seq - 1] : self._starts[seq] - 1]

    def text(self, first: int, last: int) -> bytes:
        """The lines of these events and of all between them, as in the log."""
        return self._bytes[self._starts[first - 1] : self._starts[last]]

    def view(self, last: int) -> memoryview:
        """The lines of all events up to *last* as in the log, not copied."""
        return memoryview(self._bytes)[: self._starts[last]]

    def lines(self) -> Iterator[bytes]:
        """The texts of all events, in order, without an index of the lines."""
        if "_starts" in self.__dict__:
            yield from map(self.line, range(1, len(self) + 1))
            return
        start = 0
        while (end := self._bytes.find(b"\n", start)) >= 0:
            yield self._bytes[start:end]
            start = end + 1

    def event(self, seq: int) -> CaptureEvent:
        """The event *seq*, typed, with its payloads as stored."""
        try:
            return event_codec.from_bytes(self.line(seq))
        except FormatError as error:
            raise error.at(file=self.events_file, line=seq) from None

    def events(self) -> Iterator[CaptureEvent]:
        """All events, in order."""
        return map(self.event, range(1, len(self._starts)))

    def blob(self, digest: object) -> bytes:
        """The verified bytes of a blob."""
        if not isinstance(digest, str) or not is_digest(digest):
            raise FormatError(f"{digest!r} names no blob", file=self.events_file)
        return self._blobs.get(digest)

    def open_blobs(self) -> AbstractContextManager[Callable[[str], bytes]]:
        """A function like :meth:`blob` that is faster for many blobs."""
        return self._blobs.open_reader()

    def has_blob(self, digest: str) -> bool:
        """Whether the blob exists; it is not read."""
        return not self._blobs.find_missing([digest])

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
            asked = read_head(self.line(self._indexed)).request_call_id
            if asked is not None:
                self._calls.setdefault(asked, self._indexed)
        return self._calls[call_id]


class LoneEventReader(EventReader):
    """An ``events.jsonl`` by itself, as git hands it over; the digest of a blob takes its place."""

    def __init__(self, file: Path) -> None:
        self.path = file
        self.given = self.events_file = str(file)
        with file.open("rb") as stream:
            self._open(stream)

    def blob(self, digest: object) -> bytes:
        return msgspec.json.encode(str(digest))


def read_run_start(log: EventReader) -> RunStartData:
    """The data of ``run_start``, which says who recorded: Python processes, the gateway or both."""
    first = log.event(1) if len(log) else None
    return first.data if isinstance(first, RunStart) else RunStartData()


class CaptureReader(EventReader):
    """The capture in *path*; raises at once if it is missing, unfinished, damaged or changed."""

    def __init__(self, path: str | Path) -> None:
        # Blobs are read later, when the agent may have changed its working directory.
        folder = Path(path).absolute()
        with relabel_errors(str(folder), str(path)):
            run = RunDir(folder)
            state = run.state
            if state is RunState.OPEN:
                raise StoreError(f"{run.path}: the run is still being recorded")
            if state is RunState.INTERRUPTED:
                remedy = f"complete it with: reenact recover {run.path}"
                raise StoreError(f"{run.path}: the run was interrupted; {remedy}")
            self.manifest: CaptureManifest = read_manifest(
                run.read_manifest(), file=str(run.path / "manifest.json")
            )
            super().__init__(run, str(path))
            digest = "sha256:" + sha256(self._bytes).hexdigest()
            if digest != self.manifest.integrity.eventsHash or len(self) != self.manifest.eventCount:
                with run.open_events() as stream:  # says what is wrong
                    verify_events(stream, self.manifest, file=self.events_file)


def verify_events(stream: BinaryIO, manifest: CaptureManifest, *, file: str) -> None:
    """Raise unless the events in *stream* are those that the *manifest* describes."""
    digest, count = sha256(), 0
    while block := stream.read(_MAPPED_BYTES):
        digest.update(block)
        count += block.count(b"\n")
    found, expected = f"sha256:{digest.hexdigest()}", manifest.integrity.eventsHash
    if found != expected:
        stream.seek(0)
        has_other_ends = digest_with_plain_ends(stream) == expected
        reason = f"the events are not those that were recorded: expected {expected}, found {found}"
        raise DigestMismatch(CHANGED_LINE_ENDS if has_other_ends else reason, file=file)
    if count != manifest.eventCount:
        raise FormatError(f"the manifest counts {manifest.eventCount} events, the log has {count}", file=file)


def digest_with_plain_ends(stream: BinaryIO) -> str:
    """The digest of *stream* with every CRLF replaced by LF."""
    digest = sha256()
    for line in stream:
        digest.update(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
    return f"sha256:{digest.hexdigest()}"


def _line_starts(text: bytes | mmap.mmap) -> array[int]:
    """Where each line starts, and at the end where the next one would.

    Only a part of a large log is in memory at a time.
    """
    starts = array("Q", [0])
    at, size_bytes = 0, len(text)
    for limit in range(_MAPPED_BYTES, size_bytes + _MAPPED_BYTES, _MAPPED_BYTES):
        while (end := text.find(b"\n", at, limit)) >= 0:
            at = end + 1
            starts.append(at)
        if isinstance(text, mmap.mmap) and size_bytes > _MAPPED_BYTES:
            start = limit - _MAPPED_BYTES
            text.madvise(mmap.MADV_DONTNEED, start, min(limit, size_bytes) - start)
    return starts
