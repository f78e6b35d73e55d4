"""Finished captures as columns: what nearly all runs of a corpus are, decoded in one go.

It adds the rows that :mod:`reenact.corpus.rows` adds for a run of any kind, in a fifth of the time. What is
odd in any way is left to that one.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from reenact.analysis.brief import tidy_number
from reenact.analysis.index import Tokens
from reenact.canonical import is_digest
from reenact.corpus.messages import AnswerAsStored, ExchangeAsStored, add_messages
from reenact.corpus.tables import (
    MAX_TEXT_BYTES,
    TableRows,
    clean_name,
    clean_text,
    int_or_none,
    text_or_none,
    time_us,
)
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import CaptureManifest, read_manifest
from reenact.formats.event import (
    ASKING,
    NO_PAYLOAD,
    OUTSIDE,
    EventHead,
    EventHeadData,
    event_kind,
    event_name,
    read_head,
)
from reenact.formats.record import ABSENT
from reenact.store.paths import OPEN_FILE
from reenact.store.reader import References
from reenact.store.rundir import EVENTS, MANIFEST, OPEN_MANIFEST, RECORDING_LOCK, RECOVERED, RunDir, RunState
from reenact.trace.sources.capture import capture_header
from reenact.trace.sources.source import Header
from reenact.values.tags import plain

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_CHUNK_BYTES: Final = 1 << 20
_TOKENS: Final = ("inputTokens", "outputTokens", "cachedInputTokens")


class _EventData(EventHeadData, gc=False):
    """What rows need of an event's data; payloads as they are written."""

    result: msgspec.Raw = NO_PAYLOAD
    response: msgspec.Raw = NO_PAYLOAD
    pieces: msgspec.Raw = NO_PAYLOAD
    text: msgspec.Raw = NO_PAYLOAD
    argv: msgspec.Raw = NO_PAYLOAD
    finalOutput: msgspec.Raw = NO_PAYLOAD  # noqa: N815


class _Event(EventHead, gc=False):
    data: _EventData
    time: str = ""


class _EventText(msgspec.Struct, gc=False):
    """The same with the text of its data."""

    seq: int
    ts: int | float
    type: str
    data: msgspec.Raw
    captureId: str = ""  # noqa: N815
    runId: str = ""  # noqa: N815
    version: int = 0
    time: str = ""
    order: list[str] = []


# All lines at once, which takes half of the time.
_read_events: Final = msgspec.json.Decoder(_Event).decode_lines
_read_texts: Final = msgspec.json.Decoder(_EventText).decode_lines
_read_data: Final = msgspec.json.Decoder(_EventData).decode_lines
_decode: Final = msgspec.json.Decoder().decode


class FinishedCapture:
    """A finished capture of the plain form, both of its files in memory."""

    def __init__(self, folder: str, manifest: CaptureManifest, state: RunState, text: bytes) -> None:
        self.folder = folder
        self.manifest = manifest
        self.state = state
        self.text = text
        self._references: References | None = None

    @classmethod
    def load(cls, folder: str) -> FinishedCapture | None:
        """The capture in *folder*; ``None`` where it is not of the plain form, whole or not."""
        if _is_there(f"{folder}/{OPEN_MANIFEST}") or _is_there(f"{folder}/{RECORDING_LOCK}"):
            return None
        try:
            manifest = read_manifest(_read_file(f"{folder}/{MANIFEST}"), file=MANIFEST)
            text = _read_file(f"{folder}/{EVENTS}")
            if not text.isascii():
                text.decode()  # what is passed over is not looked at otherwise
        except (FormatError, OSError, UnicodeDecodeError):
            return None
        is_plain = manifest.fork is ABSENT and manifest.eventLogPath == EVENTS
        if not is_plain or b"\r" in text or not text.startswith(b"{") or not text.endswith(b"\n"):
            return None
        is_recovered = _is_there(f"{folder}/{RECOVERED}")
        return cls(folder, manifest, RunState.RECOVERED if is_recovered else RunState.COMPLETE, text)

    def resolve(self, value: object) -> object:
        """A payload, put together from where its parts are stored."""
        if not isinstance(value, dict | list):
            return value
        if self._references is None:
            self._references = References(self._find_call, self.blob, file=f"{self.folder}/{EVENTS}")
        return self._references.resolve(value)

    def close(self) -> None:
        """Let go of what leads back here, so that nothing is left to be collected."""
        self._references = None

    def blob(self, digest: object) -> bytes:
        """The bytes of a payload."""
        if not isinstance(digest, str) or not is_digest(digest):
            raise FormatError(f"{digest!r} names no blob", file=f"{self.folder}/{EVENTS}")
        return RunDir(Path(self.folder)).blobs.get(digest)

    def _find_call(self, call_id: str) -> tuple[int, bytes]:
        return self._request_lines[call_id]

    @cached_property
    def _request_lines(self) -> dict[str, tuple[int, bytes]]:
        """By call, the number and the line of the event that made it."""
        found: dict[str, tuple[int, bytes]] = {}
        for number, line in enumerate(self.text.split(b"\n")[:-1], 1):
            if (call_id := read_head(line).request_call_id) is not None:
                found.setdefault(call_id, (number, line))
        return found


def _is_there(path: str) -> bool:
    return os.access(path, os.F_OK, follow_symlinks=False)


def _read_file(path: str) -> bytes:
    fd = os.open(path, OPEN_FILE)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        pieces = [os.read(fd, status.st_size + 1)]
        while len(pieces[-1]) > (status.st_size if len(pieces) == 1 else 0):  # it has grown
            pieces.append(os.read(fd, _CHUNK_BYTES))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(fd)


def add_capture(capture: FinishedCapture, name: str, into: TableRows) -> bool:
    """Add the rows of the run called *name*; whether it was plain enough for that."""
    has_texts = "data" in into.needed.get("events", ())
    try:
        run = _Run(capture, name, with_texts=has_texts)
    except _UNREADABLE:
        return False
    if not run.is_counted or run.may_have_retries():
        return False
    if "calls" in into.needed:
        run.add_columns("calls", _CALL_COLUMNS, into)
    if "runs" in into.needed:
        run.add_run(into)
    if "messages" in into.needed:
        add_messages(name, run.exchanges(), capture, into)
    if "events" in into.needed:
        run.add_columns("events", _EVENT_COLUMNS, into)
    into.text_bytes += 2 * len(capture.text)
    return True


class _Run:
    """The events of a capture, and which of them began and ended its calls."""

    def __init__(self, capture: FinishedCapture, name: str, *, with_texts: bool) -> None:
        """*with_texts* if what all data say is to be told as text; raises what msgspec raises."""
        self.capture = capture
        self.name = name
        events: list[_Event] | list[_EventText]
        if with_texts:
            events = _read_texts(capture.text)
            self.texts: list[msgspec.Raw] = [event.data for event in events]
            self.data: list[_EventData] = _read_data(b"\n".join(self.texts))
        else:
            events = _read_events(capture.text)
            self.data = [event.data for event in events]
        count = len(events)
        is_numbered = [event.seq for event in events] == [*range(1, count + 1)]
        self.is_counted = is_numbered and len(self.data) == count and _has_lines(capture.text, count)
        self.types = [event.type for event in events]
        self.times = [event.ts for event in events]
        self.start_ms = self.times[0] if events else 0
        self.began: list[int] = []
        """By call, the place of the event that began it."""
        self.ended: list[int] = []
        """That of its outcome; -1 where there is none, that of the call where it is its own outcome."""
        self.within: list[int] = []
        """The number of the call inside which it was made, -1 outside of any."""
        self._find_calls()
        data, types = self.data, self.types
        self.kinds = [clean_name(event_kind(types[place], data[place])) for place in self.began]
        self.names = [clean_name(event_name(types[place], data[place])) for place in self.began]
        self.outcomes = [None if place < 0 else data[place] for place in self.ended]
        self.states = list(map(_state, self.outcomes))

    def _find_calls(self) -> None:
        began, ended, within = self.began, self.ended, self.within
        waiting: dict[str, int] = {}
        for place, (what, data) in enumerate(zip(self.types, self.data, strict=True)):
            call_id = data.callId
            if call_id in waiting and what not in ASKING:
                ended[waiting.pop(call_id)] = place
            elif what not in OUTSIDE:
                within.append(-1 if data.parent is None else waiting.get(data.parent, -1))
                began.append(place)
                # A read of state has an id for what happens inside it, but is written when it is over.
                if call_id is None or what == "state_mutation":
                    ended.append(place)
                else:
                    waiting[call_id] = len(ended)
                    ended.append(-1)

    def may_have_retries(self) -> bool:
        """Whether a call that failed is followed by one of the same name, in its lane and around it."""
        if "error" not in self.states:
            return False
        failed: dict[tuple[str, int], tuple[str, str]] = {}
        for call, (state, kind, name) in enumerate(zip(self.states, self.kinds, self.names, strict=True)):
            lane = clean_name(self.data[self.began[call]].lane), self.within[call]
            if failed.pop(lane, None) == (kind, name):
                return True
            if state == "error":
                failed[lane] = kind, name
        return False

    def add_columns(self, table: str, columns: Mapping[str, _Cells], into: TableRows) -> None:
        """The columns that are needed, each as a whole."""
        rows = into.rows[table]
        for column in into.needed[table]:
            rows[column] += columns[column](self, into)

    def add_run(self, into: TableRows) -> None:
        """The row of the run itself."""
        capture, times = self.capture, self.times
        argv = _decode_payload(self.data[0].argv) if times else None
        command = tuple(map(str, argv)) if isinstance(argv, list) and argv else None
        output = None
        if times and self.types[-1] == "run_end":
            with suppress(FormatError, StoreError):
                output = plain(capture.resolve(_decode_payload(self.data[-1].finalOutput)))
        tokens = None
        if any([data.usage for data in self.data]):  # noqa: C419 — a list is faster
            tokens = Tokens(*(sum(filter(None, self.tokens(name))) for name in _TOKENS))
        facts = RunFacts(
            events=len(times),
            steps=len(self.began),
            errors=self.states.count("error"),
            tokens=tokens,
            duration_ms=tidy_number(float(max(times) - self.start_ms)) if times else 0,
            size_bytes=len(capture.text),
        )
        header = capture_header(capture.folder, capture.manifest, capture.state, command, output)
        add_run(self.name, header, facts, into)

    def tokens(self, name: str) -> list[int | None]:
        """What each call used; a call of no model has none where it says nothing."""
        found: list[int | None] = [0 if kind == "model" else None for kind in self.kinds]
        for call, data in enumerate(self.outcomes):
            if data is not None and data.usage:
                count = data.usage.get(name)
                if count and isinstance(count, int) and 0 <= count < 2**32:
                    found[call] = count
        return found

    def exchanges(self) -> Iterator[ExchangeAsStored]:
        """The model calls."""
        for place, kind, ended in zip(self.began, self.kinds, self.outcomes, strict=True):
            if kind == "model":
                data, answer = self.data[place], None
                if ended is not None:
                    response, pieces = ended.response, ended.pieces
                    is_whole = b'"$' not in bytes(response) and b'"$' not in bytes(pieces)
                    said = _decode_payload(response), _decode_payload(pieces), _decode_payload(ended.text)
                    answer = AnswerAsStored(str(ended.provider), said[0], said[1], said[2], is_whole)
                marks = bytes(data.request).count(b'"$')
                yield ExchangeAsStored(place + 1, data.lane, _decode_payload(data.request), marks, answer)


def _has_lines(text: bytes, count: int) -> bool:
    """Whether *text* ends with its line number *count*; counting all takes three times as long."""
    end = -1
    for _ in range(count):
        end = text.find(b"\n", end + 1)
        if end < 0:
            return False
    return end == len(text) - 1


def _state(outcome: _EventData | None) -> str:
    if outcome is None:
        return "open"
    if outcome.cancelled:
        return "cancelled"
    is_error = (
        not outcome.ok
        or outcome.error is not None
        or outcome.modelError is not None
        or outcome.exitCode is not None
    )
    return "error" if is_error else "ok"


def _decode_payload(raw: msgspec.Raw) -> object:
    return None if raw is NO_PAYLOAD else _decode(raw)


# Columns

_Cells: TypeAlias = Callable[[_Run, TableRows], Iterable[Any]]
"""All cells of one column."""


def _times_us(times: Sequence[float]) -> list[int | None]:
    if times and time_us(min(times)) is not None and time_us(max(times)) is not None:
        return [int(at_ms) * 1000 for at_ms in times]
    return list(map(time_us, times))


def _latencies(run: _Run, _: TableRows) -> Iterator[float | None]:
    times, start_ms = run.times, run.start_ms
    for began, ended, data in zip(run.began, run.ended, run.outcomes, strict=True):
        if data is not None and data.latencyMs is not None:
            yield float(data.latencyMs)
        elif ended < 0 or ended == began:
            yield None
        else:
            yield times[ended] - start_ms - float(times[began] - start_ms)


def _utilities(run: _Run, _: TableRows) -> list[float | None]:
    stated = [None if data is None else data.utility for data in run.outcomes]
    # As exact as an index of steps has it.
    return [None if utility is None else array("f", [utility])[0] for utility in stated]


def _tool_payloads(run: _Run, into: TableRows, raws: Iterable[msgspec.Raw]) -> Iterator[str | None]:
    """A payload of each call, as JSON text; ``None`` where there is none, or what it refers to is gone."""
    for raw, kind in zip(raws, run.kinds, strict=True):
        if kind != "tool" or raw is NO_PAYLOAD:
            yield None
            continue
        text = str(raw, "utf-8")
        if '"$' in text:
            yield _resolved_payload(run, _decode(raw), into)
        else:
            yield None if text == "null" or len(text) > MAX_TEXT_BYTES else text


def _arguments(run: _Run, into: TableRows) -> Iterator[str | None]:
    return _tool_payloads(run, into, [run.data[place].args for place in run.began])


def _results(run: _Run, into: TableRows) -> Iterator[str | None]:
    raws = [NO_PAYLOAD if outcome is None else outcome.result for outcome in run.outcomes]
    return _tool_payloads(run, into, raws)


def _errors(run: _Run, into: TableRows) -> list[str | None]:
    found: list[str | None] = [None] * len(run.states)
    for call, outcome in enumerate(run.outcomes):
        if run.states[call] == "error" and outcome is not None:
            error = outcome.error
            if outcome.exitCode:
                error = {"type": "exit_code", "message": str(outcome.exitCode)}
            found[call] = _resolved_payload(run, error or outcome.modelError, into)
    return found


def _resolved_payload(run: _Run, value: object, into: TableRows) -> str | None:
    try:
        return into.add_json(plain(run.capture.resolve(value)))
    except (FormatError, StoreError):
        return None


def _names_of(kind: str, run: _Run) -> list[str | None]:
    return [name if each == kind else None for each, name in zip(run.kinds, run.names, strict=True)]


def _event_names(run: _Run, _: TableRows) -> list[str | None]:
    return [
        clean_text(event_name(what, data)) or None for what, data in zip(run.types, run.data, strict=True)
    ]


def _texts(run: _Run, _: TableRows) -> list[str | None]:
    texts: list[str | None] = [str(text, "utf-8") for text in run.texts]
    if len(run.capture.text) > MAX_TEXT_BYTES:
        return [None if text is None or len(text) > MAX_TEXT_BYTES else text for text in texts]
    return texts


_CALL_COLUMNS: Final[Mapping[str, _Cells]] = {
    "run": lambda run, _: [run.name] * len(run.began),
    "seq": lambda run, _: [place + 1 for place in run.began],
    "outcome_seq": lambda run, _: [place + 1 or None for place in run.ended],
    "kind": lambda run, _: run.kinds,
    "name": lambda run, _: run.names,
    "tool": lambda run, _: _names_of("tool", run),
    "model": lambda run, _: _names_of("model", run),
    "state": lambda run, _: run.states,
    "started_at": lambda run, _: _times_us([run.times[place] for place in run.began]),
    "at_ms": lambda run, _: [float(run.times[place] - run.start_ms) for place in run.began],
    "latency_ms": _latencies,
    "input_tokens": lambda run, _: run.tokens("inputTokens"),
    "output_tokens": lambda run, _: run.tokens("outputTokens"),
    "cached_tokens": lambda run, _: run.tokens("cachedInputTokens"),
    "utility": _utilities,
    "lane": lambda run, _: [clean_name(run.data[place].lane) for place in run.began],
    "parent_seq": lambda run, _: [run.began[call] + 1 if call >= 0 else None for call in run.within],
    "is_retry": lambda run, _: [False] * len(run.began),
    "arguments": _arguments,
    "result": _results,
    "error": _errors,
}
_EVENT_COLUMNS: Final[Mapping[str, _Cells]] = {
    "run": lambda run, _: [run.name] * len(run.types),
    "seq": lambda run, _: range(1, len(run.types) + 1),
    "at": lambda run, _: _times_us(run.times),
    "type": lambda run, _: run.types,
    "name": _event_names,
    "call_id": lambda run, _: [data.callId and clean_text(data.callId) for data in run.data],
    "lane": lambda run, _: [clean_text(data.lane) for data in run.data],
    "data": _texts,
}


class RunFacts(NamedTuple):
    """What the row of a run says of its events."""

    events: int
    steps: int
    errors: int
    tokens: Tokens | None
    duration_ms: float
    size_bytes: int
    problem: str | None = None


def add_run(name: str, header: Header, facts: RunFacts, into: TableRows) -> None:
    """Add the row of the run called *name*."""
    duration_ms: float | None = facts.duration_ms
    if header.completed_at_ms is not None and header.created_at_ms is not None:
        duration_ms = header.completed_at_ms - header.created_at_ms
    tokens = facts.tokens
    into.add(
        "runs",
        name,
        header.kind,
        header.state,
        text_or_none(header.status),
        text_or_none(header.capture_id),
        text_or_none(header.run_id),
        time_us(header.created_at_ms),
        time_us(header.completed_at_ms),
        duration_ms,
        text_or_none(header.provider),
        text_or_none(header.model),
        text_or_none(header.producer),
        text_or_none(header.redaction),
        into.add_json(header.command),
        int_or_none(header.exit_status),
        text_or_none(header.error),
        into.add_json(header.final_output) if into.needs("runs", "final_output") else None,
        len(header.warnings),
        facts.events,
        facts.steps,
        facts.errors,
        None if tokens is None else tokens.input,
        None if tokens is None else tokens.output,
        None if tokens is None else tokens.cached_input,
        facts.size_bytes,
        facts.problem,
    )
