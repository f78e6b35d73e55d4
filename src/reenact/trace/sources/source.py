"""The interface of all artifact readers: a header, and events in the form of capture events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import StoreError
from reenact.formats.event import EventHead, RunEvent
from reenact.formats.record import Absent

RunKind: TypeAlias = Literal["capture", "events", "replay-log", "replay-log-legacy", "bundle", "trace"]
"""``events`` is the event log of a capture by itself, as ``git difftool`` passes it."""


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Facts about a run from its artifact; unknown ones are ``None``."""

    path: str
    kind: RunKind
    state: str | None = None
    """The state of a capture: ``open``, ``interrupted``, ``complete`` or ``recovered``."""
    status: str | None = None
    """``ok``, ``error``, or another word of the format; ``None`` while the run is not finished."""
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
    """The token counts of the whole run, if the artifact has them."""
    warnings: tuple[str, ...] = ()
    forked_from: str | None = None
    """For a fork: the path of its parent, relative to the fork, and the event of the fork point."""
    has_files: bool = False
    """Whether the files of the workspace were recorded."""

    @property
    def is_open(self) -> bool:
        """Whether more events may come."""
        return self.state == "open"


class RecordedRun(NamedTuple):
    """A complete, valid run, from which a trace is made."""

    events: Iterable[tuple[str, RunEvent]]
    """Each event with its name in the trace."""
    adapter: str
    session_id: str | Absent
    status: str
    """The status as traces write it."""
    duration_ms: int | float | None
    """``None`` if the artifact does not have it; then it is the sum of the tool latencies."""
    is_whole: bool
    """Whether the artifact would contain model calls, memory and retries of the run."""
    resolve: Callable[[Any], Any]
    """Replaces the references in a payload by the values they refer to."""
    plain: Callable[[Any], Any]
    """The same, without the tags of Python's types."""


class WithoutBlobs:
    """The methods of an artifact whose payloads are all in one file."""

    file: str

    def resolve(self, value: JsonValue) -> JsonValue:
        return value

    def find_directly(self, seq: int) -> None:
        """``None``: an event is read after all those before it."""

    def borrow_blobs(self, other: RunSource) -> None:
        """Does nothing: there are no references to blobs."""

    def blob(self, digest: object) -> bytes:
        raise StoreError(f"{self.file}: has no blobs, so not {digest}; name the capture")


class RunSource(Protocol):
    """An open artifact that holds a run."""

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
        """The number of bytes read so far."""

    @property
    def torn_bytes(self) -> int:
        """The size of an incomplete event at the end."""

    def header(self) -> Header:
        """The facts about the run as they are now."""

    def read_on(self) -> Iterator[EventHead]:
        """The heads of the next block of events; none if there are no more at present."""

    def find_directly(self, seq: int) -> JsonValue:
        """An event with its references resolved, found without reading all events before it; ``None`` if that
        is not possible."""

    def raw(self, seq: int) -> Any:
        """An event that has been read, exactly as in the file."""

    def event(self, seq: int) -> RunEvent | None:
        """The same as an event of a capture; ``None`` for a line that is not an event."""

    def resolve(self, value: Any) -> JsonValue:
        """Replace the references in a payload by the values they refer to."""

    def borrow_blobs(self, other: RunSource) -> None:
        """Read blobs that are missing here from *other*; equal digests mean equal blobs."""

    def blob(self, digest: object) -> bytes:
        """The bytes of a blob; :class:`~reenact.errors.StoreError` if they are missing."""

    def close(self) -> None:
        """Close the file."""

    def verify(self) -> None:
        """Raise :class:`~reenact.errors.FormatError` if the artifact is not valid."""
