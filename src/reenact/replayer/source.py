"""The recorded run as replay sees it: calls with their outcomes, by lane, and a strict cursor over all.

Indexing reads the head of each event only; payloads are decoded when their call comes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.errors import FormatError
from reenact.formats.capture import CaptureEvent, CaptureManifest
from reenact.store.reader import CaptureReader

_NOT_MATCHED: Final = ("lane", "parent", "value", "valueHash")


class _Data(msgspec.Struct):
    callId: str | None = None  # noqa: N815 — the wire's own names
    lane: str = "0"
    parent: str | None = None
    tool: str | None = None
    source: str | None = None
    key: str | None = None
    provider: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    request: msgspec.Raw = msgspec.Raw()
    requestHash: str | None = None  # noqa: N815
    derived: bool = False
    inline: bool = False
    cancelled: bool = False
    opened: int | None = None
    opening: int = 0


class _Head(msgspec.Struct):
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    seq: int
    ts: int | float
    type: str
    data: _Data


_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode: Final = msgspec.json.Decoder().decode


class RecordedCall:
    """One recorded call, or instant, and where its outcome is."""

    __slots__ = (
        "call_id",
        "due_after",
        "ended_ms",
        "inline",
        "is_stream",
        "lane",
        "made_ms",
        "name",
        "never_ends",
        "opening",
        "outcome_seq",
        "parent",
        "request_digest",
        "seq",
        "taken",
        "type",
    )

    def __init__(self, head: _Head, name: str, request_digest: bytes | None) -> None:
        self.seq = head.seq
        self.type = head.type
        self.name = name
        """The tool's name; source and key of a value from outside; empty for a model call."""
        self.lane = head.data.lane
        self.parent = head.data.parent
        self.call_id = head.data.callId
        self.request_digest = request_digest
        """Over the whole request; ``None`` for an instant, whose request is its event's own fields."""
        self.made_ms = head.ts
        self.ended_ms = head.ts
        self.outcome_seq = head.seq if head.data.callId is None else 0
        """0 until the outcome is found, and for ever where the recording broke off before it."""
        self.due_after = self.outcome_seq
        """The outcome is due when every event up to this one has happened."""
        self.is_stream = False
        """Its answer begins when it is due; its outcome comes when the agent has read it."""
        self.opening = sys.maxsize
        """Streams that became due after the same event began in this order, before the event after it."""
        self.inline = False
        """The answer came without the call giving way to the event loop."""
        self.never_ends = True
        """The caller went away before there was an answer: cancelled, or the recording broke off."""
        self.taken = False

    def end(self, head: _Head) -> None:
        """*head* is this call's outcome."""
        data = head.data
        self.outcome_seq = head.seq
        self.ended_ms = head.ts
        self.due_after = head.seq - 1
        if data.opened is not None:
            self.is_stream, self.due_after, self.opening = True, data.opened, data.opening
        self.inline = data.inline
        self.never_ends = data.cancelled and data.opened is None

    @property
    def is_instant(self) -> bool:
        return self.call_id is None


class ReplaySource:
    """A capture opened for replay; raises at once where it is missing, damaged or not replayable."""

    def __init__(self, path: str | Path) -> None:
        self.reader = CaptureReader(path)
        self.calls: list[RecordedCall] = []
        """All calls and instants, in recorded order."""
        self.by_seq: dict[int, RecordedCall] = {}
        """The call to which the event of that number belongs, be it the call or its outcome."""
        self.times_ms: list[int | float] = []
        self._cursor = 1
        self._index()

    # The seed's contract: a strict cursor over the events

    def manifest(self) -> CaptureManifest:
        return self.reader.manifest

    def peek(self) -> CaptureEvent | None:
        """The next event, left where it is."""
        return self.reader.event(self._cursor) if self.remaining() else None

    def next(self, expected_type: str) -> CaptureEvent | None:
        """The next event if it is of *expected_type*; nothing is ever skipped to find one."""
        event = self.peek()
        if event is None or type(event).__struct_config__.tag != expected_type:
            return None
        self._cursor += 1
        return event

    def remaining(self) -> int:
        """How many events the cursor has not passed."""
        return len(self.reader) + 1 - self._cursor

    # What the engine needs

    def data(self, seq: int) -> dict[str, Any]:
        """The ``data`` of an event, as stored."""
        data: dict[str, Any] = _decode(self.reader.line(seq))["data"]
        return data

    def request(self, call: RecordedCall) -> Any:
        """What the call asked, whole."""
        data = self.data(call.seq)
        if call.is_instant:
            return {key: value for key, value in data.items() if key not in _NOT_MATCHED}
        return self.reader.resolved(data["args"] if "args" in data else data.get("request"))

    def blob_digests(self) -> Iterator[str]:
        """Every blob that the events refer to."""
        for line in self.reader.lines():
            if b'"$blob"' in line:
                yield from _blobs_in(_decode(line)["data"])

    def _index(self) -> None:
        open_calls: dict[str, RecordedCall] = {}
        manifest = self.reader.manifest
        for number, line in enumerate(self.reader.lines(), 1):
            try:
                head = _decode_head(line)
            except msgspec.DecodeError as error:
                raise FormatError(str(error), file=str(self.reader.path), line=number) from None
            if head.seq != number or head.captureId != manifest.captureId or head.runId != manifest.runId:
                raise FormatError("the event belongs elsewhere", file=str(self.reader.path), line=number)
            self.times_ms.append(head.ts)
            if not head.data.derived:
                self._index_event(head, open_calls)

    def _index_event(self, head: _Head, open_calls: dict[str, RecordedCall]) -> None:
        data = head.data
        if data.callId is not None and data.callId in open_calls:
            call = open_calls.pop(data.callId)
            call.end(head)
        elif data.callId is not None:
            call = RecordedCall(head, _name(head), _request_digest(data))
            open_calls[data.callId] = call
            self.calls.append(call)
        elif head.type in ("nondeterministic", "state_mutation"):
            call = RecordedCall(head, _name(head), None)
            call.never_ends = False
            self.calls.append(call)
        else:
            return
        self.by_seq[head.seq] = call


def _name(head: _Head) -> str:
    data = head.data
    if data.tool is not None:
        return data.tool
    return f"{data.source}/{data.key}" if data.source is not None and data.key is not None else ""


def _request_digest(data: _Data) -> bytes:
    if data.requestHash is not None:
        return bytes.fromhex(data.requestHash.removeprefix("sha256:"))
    text = bytes(data.args) or bytes(data.request) or b"null"
    if text.startswith(b'{"$blob":'):
        return bytes.fromhex(_decode(text)["$blob"].removeprefix("sha256:"))
    return sha256(text).digest()


def _blobs_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$blob" in value:
            yield value["$blob"]
        for child in value.values():
            yield from _blobs_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from _blobs_in(child)


def instant_digest(request: dict[str, Any]) -> bytes:
    """What identifies an instant."""
    return sha256(encode_clean(request)).digest()
