"""Builds a capture from a foreign recording: an importer reports calls, and they become redacted events.

Everything passes through the recorder's own context, so secrets that a recording hides never reach the disk.
Missing parts, losses and unknown fields of the source are counted here and listed in the manifest.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import msgspec

from reenact._version import __version__
from reenact.boundary import Lane, enter_context, running_in
from reenact.canonical import JsonValue, as_unicode, is_unicode
from reenact.errors import StoreError
from reenact.formats.capture import (
    BLOB_THRESHOLD_BYTES,
    EVENT_LOG_NAME,
    NO_MODEL,
    RECORDING_FAILED,
    CaptureSeed,
    Fidelity,
    Imported,
    ImportedSource,
    ImportLoss,
    Redaction,
    RunStatus,
)
from reenact.formats.record import ABSENT
from reenact.gateway.lane import LANE
from reenact.importers.known_ids import KnownIds
from reenact.importers.source import UNFIT, JsonObject, Unfit, expect_object, reason_of, type_mismatch
from reenact.recorder.importing import ImportingContext
from reenact.recorder.sink import FileCaptureSink
from reenact.redaction import Redactor, default_profile
from reenact.run.capturing import Identity
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.seams.http.exchange import Exchange
from reenact.seams.http.message import Head, Undecodable, decoder, header_value
from reenact.seams.http.request import Sent
from reenact.seams.stdlib import NOTHING

Fields = Mapping[str, JsonValue]
Line = int | Callable[[], int | None] | None
"""A line number in the source, or a function that finds it."""

FIDELITIES: Final[tuple[Fidelity, ...]] = ("replayable", "tools", "judgeable", "viewable")
_MAX_LOSSES: Final = 1_000
"""The number of losses listed in a manifest; all of them are counted."""
_MAX_UNKNOWN: Final = 1_000
_OTHERS: Final = "…"
"""The name under which unknown fields beyond that number are counted."""
LEFT_OUT: Final = ": left out"
"""The suffix for a known member that may hold anything and is not in the capture."""
_NS_PER_MS: Final = 1_000_000
_MOST_DIGITS: Final = 18
_WRITE_BYTES: Final = 64 * 1024
"""Events are written each time this much of a source was read, and then freed."""
_MOST_WAITING: Final = 1_000
"""The number of events that may come before the first one with a time, or after a turn in progress."""
NO_TIME: Final = (None, "", 0)
"""What sources write if they know no time."""
_LATEST_MS: Final = 10**14
"""After the year 5000; later times are not plausible."""


class KnownFields(frozenset[str]):
    """The names of an object's fields, with the known fields of the objects inside them.

    ``None`` marks objects that may hold anything and are not imported; the manifest lists them as left out.
    """

    inner: dict[str, AbstractSet[str] | None]
    plain: frozenset[str]
    """The fields without inner objects to check."""

    def __new__(cls, *names: str, **inner: AbstractSet[str] | None) -> KnownFields:
        made = super().__new__(cls, (*names, *inner))
        made.inner, made.plain = inner, frozenset(names) - inner.keys()
        return made

    def inner_objects(
        self, place: str, value: Fields
    ) -> Iterator[tuple[str, Fields, AbstractSet[str] | None]]:
        """The inner objects of *value*, alone or in lists, with the fields that are known of them."""
        for name, known in self.inner.items():
            child = value.get(name)
            for each in child if isinstance(child, list) else (child,):
                if isinstance(each, dict) and each:
                    yield f"{place}.{name}" if place else name, each, known


class ToolRequest(msgspec.Struct, frozen=True):
    """A tool call that a model asked for."""

    name: str
    arguments: JsonValue
    id: str | None = None
    line: Line = None
    """The line in the source."""
    is_in_text: bool = False
    """Whether the model named it in its text alone, so that its answer has no call."""

    def to_json(self) -> JsonObject:
        # In canonical order, so that an answer can be written without sorting.
        if self.id is None:
            return {"arguments": self.arguments, "name": self.name}
        return {"arguments": self.arguments, "id": self.id, "name": self.name}


class ModelTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A model call as a transcript shows it: the new messages, and the answer."""

    messages: list[JsonObject] = []
    """Messages since the previous answer in the same lane: objects with ``role`` and ``content``."""
    text: str = ""
    reasoning: str = ""
    tools: tuple[ToolRequest, ...] = ()
    provider: str = "unknown"
    model: str = "unknown"
    usage: JsonObject | None = None
    """With the names of a capture: ``inputTokens``, ``outputTokens`` and so on."""
    stop_reason: str | None = None
    error: str | None = None
    asked_ms: float | None = None
    answered_ms: float | None = None
    lane: str = "0"
    is_aside: bool = False
    """Whether a subagent made it, whose last text is not the output of the run."""


class ImportCounts(msgspec.Struct):
    """The numbers of calls and notes found in a source."""

    model_calls: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    requests: int = 0
    """HTTP requests to other servers than models."""
    notes: int = 0


class ImportedRun(msgspec.Struct, frozen=True):
    """One capture that was made from a source."""

    path: str
    source: str
    format: str
    fidelity: Fidelity
    counts: ImportCounts
    missing: list[str]
    unknown: dict[str, int]
    losses: list[ImportLoss]
    loss_count: int

    @property
    def is_whole(self) -> bool:
        """Whether everything that the importer knows is in the capture."""
        return self.loss_count == 0


class ImportSource(Protocol):
    """The source of a run."""

    name: str
    started_ms: int
    """The time of its last change, for sources without times."""
    is_json: bool
    """Whether everything read so far is strict JSON."""
    position: int
    """The number of bytes read so far."""

    def identity(self) -> ImportedSource:
        """Name, size and digest, after all of it was read."""


class RunBuilder:
    """One capture in progress; :meth:`finish` completes it, :meth:`discard` deletes it."""

    def __init__(
        self,
        path: Path,
        source: ImportSource,
        *,
        format: str,  # noqa: A002 — the usual name
        importer: str,
        fidelity: Fidelity,
        identity: Identity,
        started_ms: float | None = None,
        upstreams: Mapping[str, str] | None = None,
        redact: Redact = None,
    ) -> None:
        """*upstreams*: the addresses of the models, by name, if the requests came through a gateway."""
        self.path = path
        self.counts = ImportCounts()
        self._source = source
        self._format = format
        self._importer = importer
        self._fidelity: Fidelity = fidelity
        self._missing: dict[str, None] = {}
        self._unknown: Counter[str] = Counter()
        self._losses: list[ImportLoss] = []
        self._loss_count = 0
        self._line: Line = None
        """The line on which the part begins that an importer is reading."""
        self._now_ms = source.started_ms
        self._has_begun = False
        self._waiting: list[tuple[str, JsonObject, bool]] = []
        """What was told before any time: type, data, and whether that is JSON to the letter."""
        self._held_notes: list[tuple[JsonObject, float | None]] | None = None
        """Notes that come behind the turn that is under way, with their times; ``None`` without one."""
        self._open_tools: dict[str, tuple[str, str]] = {}
        """The id and lane of each call without a result, by the id in the source."""
        self._call_ids = KnownIds()
        self._written_to = 0
        """The position in the source at the last write."""
        named, values = profile_and_secrets(redact)
        profile = named or default_profile(os.environ)
        self._redactor: Redactor = make_redactor(profile, values, identity.salt)
        seed = CaptureSeed(
            version=1,
            captureId=identity.capture_id,
            runId=identity.run_id,
            createdAt=self._now_ms,
            mode="capture",
            model=NO_MODEL,
            eventLogPath=EVENT_LOG_NAME,
            redaction=Redaction(enabled=profile != "none", profile=profile, salt=identity.salt.hex()),
            producer=f"reenact {__version__}",
            blobThresholdBytes=BLOB_THRESHOLD_BYTES,
            standIns=NOTHING,
        )
        self._sink = FileCaptureSink(path)
        self._context = ImportingContext(self._sink, seed, self._redactor, now_ns=self._clock_ns)
        self._lanes: dict[str, Lane] = {}
        self._latest_model: dict[str, str] = {}
        """The latest model call of each lane."""
        self.final_output: JsonValue = None
        self._speaks_aside = True
        """Whether only subagents have said something so far."""
        self.part = ""
        """The file below the source that is read now, for losses."""
        self.error: str | None = None
        """The error message if the run failed."""
        self._is_of_gateway = upstreams is not None
        self._upstreams = upstreams
        if isinstance(started_ms, int | float) and 0 <= started_ms < _LATEST_MS:
            self._begin(int(started_ms))

    def _begin(self, time_ms: int | None = None) -> None:
        """The run began then, or when its source was last changed, which is later than all it tells."""
        if self._has_begun:
            return
        self._now_ms = self._now_ms if time_ms is None else time_ms
        self._context.start(self._now_ms)
        self._has_begun = True
        upstreams = self._upstreams
        self._context.record_event("run_start", {} if upstreams is None else {"upstreams": dict(upstreams)})
        for event_type, data, is_json in self._waiting:
            self._context.record_reported(event_type, data, self._now_ms, is_json=is_json)
        self._waiting = []

    def _clock_ns(self) -> int:
        return self._now_ms * _NS_PER_MS

    def at(self, time_ms: float | None) -> None:
        """Set the time of the following events; it never runs backwards, and the first starts the run."""
        if time_ms is None or not 0 <= time_ms < _LATEST_MS:
            return
        if not self._has_begun:
            self._begin(int(time_ms))
        elif self._now_ms < time_ms:
            self._now_ms = int(time_ms)

    # What is not in the capture

    def note_missing(self, *what: str) -> None:
        """Note parts of a recording that the source does not have."""
        self._missing.update(dict.fromkeys(what))

    def count_unknown(self, place: str, fields: Iterable[str]) -> None:
        """Count fields of *place* that the importer does not know."""
        for field in fields:
            name = f"{place}.{field}" if place else str(field)
            if name not in self._unknown and len(self._unknown) >= _MAX_UNKNOWN:
                name = _OTHERS
            self._unknown[name] += 1

    def check_fields(self, place: str, value: object, known: AbstractSet[str]) -> JsonObject:
        """Return *value*, which must be an object, and count its fields that are not *known*."""
        # A fast path that nearly always applies: every object of a source passes here.
        if isinstance(value, dict) and value.keys() <= (
            known.plain if isinstance(known, KnownFields) else known
        ):
            return value
        found = expect_object(place or "the document", value)
        self.count_unknown(place, (name for name in found if name not in known))
        if isinstance(known, KnownFields):
            for inner_place, inner, inner_known in known.inner_objects(place, found):
                if inner_known is None:
                    self.note_missing(inner_place + LEFT_OUT)
                else:
                    self.check_fields(inner_place, inner, inner_known)
        return found

    def objects(self, place: str, value: object, line: Line = None) -> list[JsonObject]:
        """The objects in the list at *place*; other items, or a value that is not a list, are losses."""
        if value is not None and not isinstance(value, list):
            self.note_loss(str(type_mismatch(place, "a list", value)), line)
            return []
        found = [each for each in value or () if isinstance(each, dict)]
        if value and len(found) != len(value):
            for each in value:
                if not isinstance(each, dict):
                    self.note_loss(str(type_mismatch(f"an item of {place}", "an object", each)), line)
        return found

    def note_loss(self, reason: str, line: Line = None) -> None:
        """Note a part of the source that could not be read; without a *line*, it is the part being read."""
        self._loss_count += 1
        line = line_of(self._line if line is None else line)
        if len(self._losses) < _MAX_LOSSES:
            reason = f"{self.part}: {reason}" if self.part else reason
            redacted = as_unicode(self._redactor.redact_text(reason))
            self._losses.append(ImportLoss(reason=redacted, line=ABSENT if line is None else line))

    def attempt(
        self, line: Line, read: Callable[..., object], *given: object, what: str = "the line"
    ) -> None:
        """Let an importer *read* one part of the source; if it does not fit, note a loss and continue."""
        self._line = line
        try:
            read(*given)
        except UNFIT as error:
            self.note_loss(f"{what} cannot be read: {reason_of(error)}")
        self._line = None

    def lower(self, fidelity: Fidelity) -> None:
        """Lower the fidelity of the run to at most *fidelity*."""
        if FIDELITIES.index(fidelity) > FIDELITIES.index(self._fidelity):
            self._fidelity = fidelity

    def time_ms(self, time: JsonValue, line: Line = None) -> float | None:
        """A time that the source tells; one that cannot be read is a loss."""
        found = iso_ms(time)
        if found is None and time not in NO_TIME:
            self.note_loss(str(type_mismatch("the time", "a date or a count of seconds", time)), line)
        return found

    # What is in the capture

    def exchange(
        self,
        sent: Sent,
        head: Head,
        body: bytes,
        *,
        is_decoded: bool = False,
        answered_ms: float | None = None,
    ) -> None:
        """Record an HTTP request and its answer, in the same way as one of a live client.

        *is_decoded* says that the content coding named in *head* was already removed. Server-sent events
        become pieces, one per event. A body whose coding cannot be decoded here is left out, because it
        cannot be searched for secrets.
        """
        if not is_unicode(sent.method + sent.url):
            raise Unfit("its method or address has half a character")
        if answered_ms is None:
            self.at(_date_ms(head))
        self._begin()
        plain = body if is_decoded else self._undo_coding(head, body)
        if plain is None:
            self.note_loss(
                f"{sent.method} {sent.url}: the answer cannot be decoded: {head.content_encoding!r}"
            )
            return
        if not is_decoded and _is_cut_off(head.content_encoding, body):
            self.note_loss(f"{sent.method} {sent.url}: the answer was cut off; the part before that is read")
        is_coded = plain is not body
        media_type = header_value(head.headers, "content-type").partition(";")[0].strip().lower()
        chunks = _stream_chunks(media_type, plain)
        lane = self._lane(LANE) if self._is_of_gateway else None
        with enter_context(self._context) as root, running_in(lane or root):
            exchange = Exchange(sent, is_streamed=chunks is not None, is_elsewhere=True)
            exchange.open()
            self.at(answered_ms)
            if chunks is not None:
                exchange.begin_answer(head.for_decoded_body(None) if head.content_encoding else head)
                for chunk in chunks:
                    exchange.receive(chunk)
                exchange.end()
            elif head.content_encoding and not is_coded:
                exchange.take_whole(head, plain)
            else:
                exchange.begin_answer(head)
                exchange.receive(body)
                exchange.end()
        if exchange.asks_model:
            self.counts.model_calls += 1
        else:
            self.counts.requests += 1

    def _undo_coding(self, head: Head, body: bytes) -> bytes | None:
        """*body* without its content coding; unchanged if already decoded, ``None`` for an unknown coding."""
        names = [name.strip().lower() for name in head.content_encoding.split(",")]
        codings = [name for name in names if name not in ("", "identity")]
        if not codings or not body:
            return body
        _load_coders(codings)
        decode = decoder(head.content_encoding)
        if decode is None:
            return None
        try:
            plain = decode(body)
        except Undecodable:
            return body
        return plain if plain or not body else body

    def model_turn(self, turn: ModelTurn) -> None:
        """Record a model call that a transcript describes."""
        self.counts.model_calls += 1
        self.at(turn.asked_ms)
        request: JsonObject = {"messages": [*turn.messages]}
        before = self._latest_model.get(turn.lane)
        if before is not None:
            request["after"] = before
        call_id = self._latest_model[turn.lane] = self._context.new_call_id()
        model, provider = _name_of(turn.model), _name_of(turn.provider)
        self._record(
            "llm_request",
            {
                "callId": call_id,
                "derived": True,
                "lane": turn.lane,
                "model": model,
                "provider": provider,
                "request": request,
            },
        )
        self.at(turn.answered_ms)
        answer: JsonObject = {}
        if turn.reasoning:
            answer["reasoning"] = turn.reasoning
        if turn.text:
            answer["text"] = turn.text
            if not turn.is_aside or self._speaks_aside:
                self.final_output, self._speaks_aside = turn.text, turn.is_aside
        if turn.tools:
            answer["tool_calls"] = [each.to_json() for each in turn.tools]
        data: JsonObject = {
            "callId": call_id,
            "derived": True,
            "model": model,
            "provider": provider,
            "response": answer,
            "stopReason": None if turn.stop_reason is None else _name_of(turn.stop_reason),
            "usage": turn.usage or None,
        }
        if turn.error is not None:
            data["modelError"] = {"type": "error", "message": turn.error}
        self._record("llm_response", data)

    def tool_call(
        self, own_id: str, tool: str, args: JsonValue, *, time_ms: float | None = None, lane: str = "0"
    ) -> bool:
        """Record a tool call; false if its id was used before."""
        if own_id in self._call_ids:
            return False
        self._call_ids[own_id] = ""
        self.counts.tool_calls += 1
        self.at(time_ms)
        call_id = self._context.new_call_id()
        self._record(
            "tool_call",
            {"args": args, "callId": call_id, "derived": True, "lane": lane, "tool": _name_of(tool)},
        )
        self._open_tools[own_id] = call_id, lane
        return True

    def tool_result(
        self,
        own_id: str,
        result: JsonValue,
        *,
        is_error: bool = False,
        time_ms: float | None = None,
        line: Line = None,
    ) -> bool:
        """Record the result of a tool; a result without a call is a loss, and returns false."""
        call_id, _ = self._open_tools.pop(own_id, (None, ""))
        if call_id is None:
            what = "a second result" if own_id in self._call_ids else "the result of a call that is not there"
            self.note_loss(f"{what}: {own_id}", line)
            return False
        self.counts.tool_results += 1
        self.at(time_ms)
        outcome: JsonObject = {"callId": call_id, "ok": not is_error, "derived": True}
        if is_error:
            message = result if isinstance(result, str) else msgspec.json.encode(result).decode()
            outcome["error"] = {"type": "ToolError", "message": message}
        else:
            outcome["result"] = result
        self._record("tool_result", outcome)
        return True

    def is_open(self, own_id: str) -> bool:
        """Whether the call with this id has no result yet."""
        return own_id in self._open_tools

    def note(self, kind: str, details: JsonValue, *, time_ms: float | None = None, lane: str = "0") -> None:
        """Record any other entry of the source."""
        self.counts.notes += 1
        data: JsonObject = {"type": _name_of(kind), "details": details, "lane": lane, "derived": True}
        if self._held_notes is not None:
            self._held_notes.append((data, time_ms))
            if len(self._held_notes) < _MOST_WAITING:
                return
            self.release_notes()
            return
        self.at(time_ms)
        self._record("state_mutation", data)

    def hold_notes(self) -> None:
        """A turn is under way that began before the notes that follow: they come behind it."""
        if self._held_notes is None:
            self._held_notes = []

    def release_notes(self) -> None:
        """The turn is told."""
        held, self._held_notes = self._held_notes, None
        for data, time_ms in held or ():
            self.at(time_ms)
            self._record("state_mutation", data)

    def _record(self, event_type: str, data: JsonObject) -> None:
        source = self._source
        if not self._has_begun:
            self._waiting.append((event_type, data, source.is_json))
            if len(self._waiting) >= _MOST_WAITING:
                self._begin()
            return
        self._context.record_reported(event_type, data, self._now_ms, is_json=source.is_json)
        if source.position - self._written_to > _WRITE_BYTES:
            self._written_to = source.position
            self._context.write_reported()

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(self._context, name)
        return lane

    def finish(self) -> ImportedRun:
        """Complete the capture, or raise: the source still exists, so half a capture is not kept."""
        self.release_notes()
        self._begin()
        if isinstance(self._context.failed_by, StoreError):
            raise self._context.failed_by
        if self._open_tools:
            self.note_missing("results of tool calls that the source does not answer")
        if self._loss_count == 0 and self._context.warnings:
            self.note_loss(self._context.warnings[0].removeprefix(f"{RECORDING_FAILED}, "))
        source = self._source.identity()
        name = as_unicode(self._redactor.of_names.redact_text(source.name))
        imported = Imported(
            format=self._format,
            importer=self._importer,
            fidelity=self._fidelity,
            source=msgspec.structs.replace(source, name=name),
            missing=list(self._missing),
            unknown=self._redacted_unknown(),
            losses=self._losses,
            lossCount=self._loss_count,
        )
        status: RunStatus = "ok" if self.error is None else "error"
        manifest = self._context.finalize(status, self.error, self.final_output, imported=imported)
        if manifest is None:
            raise StoreError(f"{self.path}: the capture could not be completed; import it again elsewhere")
        return ImportedRun(
            path=str(self.path),
            source=imported.source.name,
            format=self._format,
            fidelity=self._fidelity,
            counts=self.counts,
            missing=imported.missing,
            unknown=dict(imported.unknown),
            losses=self._losses,
            loss_count=self._loss_count,
        )

    def _redacted_unknown(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for name, count in self._unknown.items():
            found[as_unicode(self._redactor.redact_text(name))] += count
        return dict(found)

    def discard(self) -> None:
        """Delete the capture: there was nothing to import."""
        if self._has_begun:
            self._sink.discard()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was imported so far."""
        return self.counts == ImportCounts()


def line_of(line: Line) -> int | None:
    """The number of a line, found now if it was not known."""
    return line() if callable(line) else line


def _name_of(name: JsonValue) -> str:
    """A name as events have it: text without lone surrogates."""
    text = name if isinstance(name, str) else str(name)
    return (text if text.isascii() else text.encode("utf-8", "replace").decode()) or "unknown"


def kind_of(entry: Fields) -> str:
    """The type of an entry, always as text."""
    kind = entry.get("type")
    return kind if isinstance(kind, str) else str(kind)


def text_of(content: object) -> str:
    """The text of a message's content, which is a text or a list with text parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    return ""


def usage_counts(usage: JsonValue, names: Mapping[str, str]) -> JsonObject | None:
    """Token counts with the names of a capture, for the names of the source in *names*, the best first."""
    if not isinstance(usage, dict):
        return None
    counts: JsonObject = {}
    for theirs, ours in names.items():
        if (count := _count_of(usage.get(theirs))) is not None:
            counts.setdefault(ours, count)
    return counts or None


def _count_of(value: JsonValue) -> int | None:
    """A count, which some tools write as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < _MOST_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def iso_ms(time: JsonValue) -> float | None:
    """A time of a transcript: ISO 8601, or seconds or milliseconds since the epoch."""
    if isinstance(time, str):
        try:
            found = datetime.fromisoformat(time)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError):
            return None
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < _LATEST_MS:
        return None
    return float(time) if time > 10**11 else time * 1000.0


def _date_ms(head: Head) -> float | None:
    date = header_value(head.headers, "date")
    return _parsed_date_ms(date) if date else None


@lru_cache(maxsize=64)
def _parsed_date_ms(date: str) -> float | None:
    # Many answers have the same date, which has a resolution of one second.
    try:
        return parsedate_to_datetime(date).timestamp() * 1000
    except (ValueError, OverflowError, TypeError):
        return None


def _is_cut_off(content_encoding: str, body: bytes) -> bool:
    """Whether a compressed *body* is incomplete; only gzip shows this."""
    if content_encoding.strip().lower() not in ("gzip", "x-gzip"):
        return False
    inflater = zlib.decompressobj(31)
    try:
        inflater.decompress(body)
    except zlib.error:
        return False
    return bool(body) and not inflater.eof


def _load_coders(codings: Collection[str]) -> None:
    """Import the libraries for these *codings*, because :func:`decoder` uses only loaded ones."""
    for coding, modules in (("br", ("brotli", "brotlicffi")), ("zstd", ("zstandard",))):
        if coding in codings:
            for module in modules:
                try:
                    __import__(module)
                except ImportError:
                    continue
                break


def _stream_chunks(media_type: str, body: bytes) -> list[bytes] | None:
    """The events of a stream that was saved as a whole; ``None`` if it is not a stream."""
    if media_type == "text/event-stream":
        # The chunk boundaries are not recorded; an empty line ends an event, with either kind of line end.
        mark = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    elif media_type in ("application/x-ndjson", "application/jsonl", "application/stream+json"):
        mark = b"\n"
    else:
        return None
    parts = body.split(mark)
    chunks = [part + mark for part in parts[:-1]]
    return [*chunks, parts[-1]] if parts[-1] else chunks
