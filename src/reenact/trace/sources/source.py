"""What every kind of artifact gives its readers: a header, and its events in the words of a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import StoreError
from reenact.formats.event import EventHead, RunEvent
from reenact.formats.record import Absent

RunKind: TypeAlias = Literal["capture", "events", "replay-log", "replay-log-legacy", "bundle", "trace"]
"""``events`` is the log of a capture without the rest of it, as ``git difftool`` hands it over."""


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What an artifact says of itself; what it does not say is ``None``."""

    path: str
    kind: RunKind
    state: str | None = None
    """Of a capture: ``open``, ``interrupted``, ``complete`` or ``recovered``."""
    status: str | None = None
    """``ok``, ``error``, or the format's own word; ``None`` while the run is not finished."""
    capture_id: str | None = None
    run_id: str | None = None
    created_at_ms: int | float | None = None
    completed_at_ms: int | float | None = None
    provider: str | None = None
    model: str | None = None
    redaction: str | None = None
    producer: str | None = None
    command: tuple[str, ...] | None = None
    error: str | None = None
    exit_status: int | None = None
    final_output: Any = None
    token_usage: Any = None
    """Where the artifact states the run's use of tokens, not each call's."""
    warnings: tuple[str, ...] = ()
    forked_from: str | None = None
    """Of a fork: its parent's place, as seen from its own folder, and the event at which they part."""
    has_files: bool = False
    """Whether the files among which the run worked were recorded with it."""

    @property
    def is_open(self) -> bool:
        """Whether more events may come."""
        return self.state == "open"


class RecordedRun(NamedTuple):
    """A run that was read whole and found good, as its trace is made from it."""

    events: Iterable[tuple[str, RunEvent]]
    """Each event under the name that it has in a trace."""
    adapter: str
    session_id: str | Absent
    status: str
    """In the words of traces."""
    duration_ms: int | float | None
    """``None`` where the artifact does not say it: then it is what the tools took."""
    is_whole: bool
    """Whether model calls, memory and retries would be there if the run had any."""
    resolve: Callable[[Any], Any]
    """A payload of an event, put together from where its parts are stored."""
    plain: Callable[[Any], Any]
    """The same, without the tags of Python's types."""


class WithoutBlobs:
    """The methods of an artifact whose payloads are all in one file."""

    file: str

    def resolve(self, value: JsonValue) -> JsonValue:
        return value

    def find_directly(self, seq: int) -> None:
        """Nothing is found like that; an event is read after those before it."""

    def borrow_blobs(self, other: RunSource) -> None:
        """There is nothing to look for."""

    def blob(self, digest: object) -> bytes:
        raise StoreError(f"{self.file}: has no blobs, so not {digest}; name the capture")


class RunSource(Protocol):
    """One artifact, opened."""

    @property
    def path(self) -> str: ...

    @property
    def file(self) -> str:
        """The file whose lines the events are, for messages."""

    @property
    def count(self) -> int:
        """The number of the last event read so far."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def read_bytes(self) -> int:
        """How far the pass over the artifact has come."""

    @property
    def torn_bytes(self) -> int:
        """Half an event behind the last whole one."""

    def header(self) -> Header:
        """What the artifact says of itself now."""

    def read_on(self) -> Iterator[EventHead]:
        """The heads of the next block of events; none where there are no more for now."""

    def find_directly(self, seq: int) -> JsonValue:
        """An event with its payloads in their place, found without reading all that is before it; ``None``
        where it cannot be found like that."""

    def raw(self, seq: int) -> Any:
        """An event that has been read, exactly as in the file."""

    def event(self, seq: int) -> RunEvent | None:
        """The same in common words; ``None`` for a line that is no event."""

    def resolve(self, value: Any) -> JsonValue:
        """A payload of an event, put together from where its parts are stored."""

    def borrow_blobs(self, other: RunSource) -> None:
        """Look for payloads in *other* where they are not here; equal digests mean equal payloads."""

    def blob(self, digest: object) -> bytes:
        """The bytes of a payload; :class:`~reenact.errors.StoreError` where they are not here."""

    def close(self) -> None:
        """Close the file."""

    def verify(self) -> None:
        """Raise :class:`~reenact.errors.FormatError` where the artifact is not valid."""
