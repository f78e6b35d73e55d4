"""Reads finished captures, which nearly all runs of a corpus are, in batches and by column.

The rows are the same as those of :mod:`reenact.corpus.rows`, in a fifth of the time, because all events are
decoded at once. Captures that are unusual in any way are left to that module.
"""

from __future__ import annotations

import os
import stat
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

import msgspec

from reenact.analysis.index import Tokens
from reenact.canonical import is_digest
from reenact.corpus.messages import (
    AnswerAsStored,
    ExchangeAsStored,
    MessageRow,
    message_rows,
    read_answer_texts,
    read_request_texts,
)
from reenact.corpus.tables import (
    MAX_TEXT_BYTES,
    NeededColumns,
    TableRows,
    arrow_table,
    as_columns,
    clean_name,
    int_or_none,
    short_json,
    text_or_none,
    time_us,
)
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import CaptureManifest, read_manifest
from reenact.formats.event import (
    ASKING,
    NO_PAYLOAD,
    OUTSIDE,
    EventHeadData,
    event_kind,
    event_name,
    read_head,
)
from reenact.formats.record import ABSENT
from reenact.store.claims import OPEN_MANIFEST, RECORDING_LOCK
from reenact.store.paths import OPEN_FILE
from reenact.store.reader import References
from reenact.store.rundir import EVENTS, MANIFEST, RECOVERED, RunDir, RunState
from reenact.trace.sources.capture import capture_header
from reenact.trace.sources.source import Header
from reenact.values.tags import strip_tags

if TYPE_CHECKING:
    import pyarrow

_BATCH_RUNS: Final = 128
_BATCH_BYTES: Final = 4 << 20
"""The size of a batch of events that is decoded before columns are built: it fits into processor caches."""
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_CHUNK_BYTES: Final = 1 << 16
"""A file that is shorter takes one read."""
_KINDS: Final = {
    what: event_kind(what, EventHeadData()) for what in ("tool_call", "llm_request", "state_mutation")
}
_TOKENS: Final = ("inputTokens", "outputTokens", "cachedInputTokens")


# The members stand in the order of canonical JSON: each is then found at once.
class _EventData(msgspec.Struct, gc=False):
    """The members of an event's data that rows need; payloads stay encoded."""

    args: msgspec.Raw = NO_PAYLOAD
    argv: msgspec.Raw = NO_PAYLOAD
    callId: str | None = None  # noqa: N815 — the wire's own name, as all below
    cancelled: bool = False
    error: Any = None
    exitCode: int | str | None = None  # noqa: N815
    finalOutput: msgspec.Raw = NO_PAYLOAD  # noqa: N815
    key: str | None = None
    lane: str = "0"
    latencyMs: int | float | None = None  # noqa: N815
    model: str | None = None
    modelError: Any = None  # noqa: N815
    name: str | None = None
    ok: bool = True
    parent: str | None = None
    pieces: msgspec.Raw = NO_PAYLOAD
    provider: str | None = None
    request: msgspec.Raw = NO_PAYLOAD
    response: msgspec.Raw = NO_PAYLOAD
    result: msgspec.Raw = NO_PAYLOAD
    source: str | None = None
    text: msgspec.Raw = NO_PAYLOAD
    tool: str | None = None
    type: str | None = None
    usage: dict[str, Any] | None = None
    utility: int | float | None = None


_PAYLOADS: Final[Mapping[str, tuple[str, str | None]]] = {
    "args": ("calls", "arguments"),
    "argv": ("runs", "command"),
    "finalOutput": ("runs", "final_output"),
    "pieces": ("messages", None),
    "request": ("messages", None),
    "response": ("messages", None),
    "result": ("calls", "result"),
    "text": ("messages", None),
}
"""The table and the column that a payload is for; ``None`` stands for any column."""

_Type: TypeAlias = Literal[
    "run_start",
    "run_end",
    "tool_call",
    "tool_result",
    "llm_request",
    "llm_response",
    "state_mutation",
    "nondeterministic",
]
"""Each decodes to one object, not to a new one for every event: comparing and hashing it is faster then."""
_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]


_Data = TypeVar("_Data")


class _Event(msgspec.Struct, Generic[_Data], gc=False, kw_only=True):
    captureId: str = ""  # noqa: N815
    data: _Data
    order: tuple[str, ...] = ()
    runId: str = ""  # noqa: N815
    seq: int
    time: str = ""
    ts: _Time
    type: _Type
    version: int = 0


class _Readers(NamedTuple):
    """Decode all events of a run at once, which takes half of the time of one by one."""

    events: Callable[[bytes], list[_Event[_EventData]]]
    data: Callable[[bytes], list[_EventData]]


_read_texts: Final = msgspec.json.Decoder(_Event[msgspec.Raw]).decode_lines
_decode: Final = msgspec.json.Decoder().decode


def _readers_for(needed: NeededColumns) -> _Readers:
    """Decoders that skip the payloads that are not needed: without any they take half of the time."""
    unneeded = [
        member
        for member, (table, column) in _PAYLOADS.items()
        if not (column in needed.get(table, ()) if column else needed.get(table))
    ]
    return _make_readers(frozenset(unneeded))


@lru_cache
def _make_readers(skipped: frozenset[str]) -> _Readers:
    types = get_type_hints(_EventData)
    fields = [field for field in msgspec.structs.fields(_EventData) if field.name not in skipped]
    data: Any = msgspec.defstruct(
        "_EventData",
        [(field.name, types[field.name], field.default) for field in fields],
        namespace=dict.fromkeys(skipped, NO_PAYLOAD),
        gc=False,
    )
    return _Readers(msgspec.json.Decoder(_Event[data]).decode_lines, msgspec.json.Decoder(data).decode_lines)


class FinishedCapture:
    """A finished capture in the usual form, with manifest and events in memory."""

    def __init__(self, folder: str, manifest: CaptureManifest, state: RunState, text: bytes) -> None:
        self.folder = folder
        self.manifest = manifest
        self.state = state
        self.text = text
        self._references: References | None = None

    @classmethod
    def load(cls, folder: str, *, is_finished: bool = False) -> FinishedCapture | None:
        """The capture in *folder*; ``None`` if it does not have the usual form, even if it is complete.

        *is_finished* says that the folder has only the files of a finished capture. A finished capture is not
        opened again, so that three checks can be skipped.
        """
        if not is_finished and any(_exists(f"{folder}/{name}") for name in (OPEN_MANIFEST, RECORDING_LOCK)):
            return None
        try:
            manifest = read_manifest(_read_file(f"{folder}/{MANIFEST}"), file=MANIFEST)
            text = _read_file(f"{folder}/{EVENTS}")
            if not text.isascii():
                text.decode()  # the decoders do not check the members that they skip
        except (FormatError, OSError, UnicodeDecodeError):
            return None
        is_plain = manifest.fork is ABSENT and manifest.eventLogPath == EVENTS
        if not is_plain or b"\r" in text or not text.startswith(b"{") or not text.endswith(b"\n"):
            return None
        is_recovered = not is_finished and _exists(f"{folder}/{RECOVERED}")
        return cls(folder, manifest, RunState.RECOVERED if is_recovered else RunState.COMPLETE, text)

    def resolve(self, value: object) -> object:
        """Replace the references in a payload by their targets."""
        if not isinstance(value, dict | list):
            return value
        if self._references is None:
            self._references = References(self._find_call, self.blob, file=f"{self.folder}/{EVENTS}")
        return self._references.resolve(value)

    def close(self) -> None:
        """Break the reference cycle: the garbage collector is disabled while captures are read."""
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
        """The number and the line of each request event, by call id."""
        found: dict[str, tuple[int, bytes]] = {}
        for number, line in enumerate(self.text.split(b"\n")[:-1], 1):
            if (call_id := read_head(line).request_call_id) is not None:
                found.setdefault(call_id, (number, line))
        return found


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK, follow_symlinks=False)


def _read_file(path: str) -> bytes:
    fd = os.open(path, OPEN_FILE)
    try:
        start = os.read(fd, _CHUNK_BYTES)
        if len(start) < _CHUNK_BYTES:
            return start
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):  # a device may have no end
            raise OSError("not a regular file")
        pieces = [start, os.read(fd, status.st_size)]
        while pieces[-1]:
            pieces.append(os.read(fd, _CHUNK_BYTES))
        return b"".join(pieces)
    finally:
        os.close(fd)


class CaptureBatch:
    """A batch of finished captures that are decoded and will be converted to columns together.

    The events of all captures are in one sequence, and so are the calls. The lists about events or calls have
    one item for each, and they refer to others by their position.
    """

    def __init__(self, needed: NeededColumns) -> None:
        self._needed = needed
        self._readers = _readers_for(needed)
        self._has_texts = "data" in needed.get("events", ())
        self._captures: list[FinishedCapture] = []
        self.names: list[str] = []
        """The names of the runs."""
        self.event_ends: list[int] = []
        """The end position of the events of each run."""
        self.call_ends: list[int] = []
        """The end position of the calls of each run."""
        self.types: list[str] = []
        self.times: list[int] = []
        self.seqs: list[int] = []
        self.data: list[_EventData] = []
        self.texts: list[bytes] = []
        """The encoded data of all events of each run, without separators; empty unless a column needs it."""
        self.text_lengths: list[int] = []
        """The length of the encoded data of each event."""
        self.began: list[int] = []
        """The position of the event that began each call."""
        self.ended: list[int] = []
        """The position of the outcome's event; -1 without an outcome, the call's own if it is the outcome."""
        self.outcomes: list[_EventData] = []
        self.states: list[str] = []
        self.within: list[int] = []
        """The position of the enclosing call; -1 if there is none."""
        self.text_bytes = 0

    def __len__(self) -> int:
        return len(self._captures)

    @property
    def is_full(self) -> bool:
        return len(self._captures) >= _BATCH_RUNS or self.text_bytes >= _BATCH_BYTES

    def add(self, folder: str, name: str, *, is_finished: bool = False) -> bool:
        """Add the capture in *folder*; false if it does not have the usual form."""
        capture = FinishedCapture.load(folder, is_finished=is_finished)
        if capture is None:
            return False
        text = capture.text
        events: list[_Event[msgspec.Raw]] | list[_Event[_EventData]]
        content, lengths = b"", []
        try:
            if self._has_texts:
                texts = _read_texts(text)
                encoded = [event.data for event in texts]
                content, lengths = b"".join(encoded), list(map(len, encoded))
                events, data = texts, self._readers.data(content)
            else:
                events = self._readers.events(text)
                data = [event.data for event in events]
        except _UNREADABLE:
            return False
        count = len(events)
        seqs = [event.seq for event in events]
        if seqs != [*range(1, count + 1)] or len(data) != count or not _has_lines(text, count):
            return False
        types = [event.type for event in events]
        calls = _find_calls(types, data, len(self.data), len(self.began))
        if calls.may_have_retries(types, data, len(self.data)):
            return False
        self._captures.append(capture)
        self.names.append(name)
        self.types += types
        self.times += [event.ts for event in events]
        self.seqs += seqs
        self.data += data
        self.texts.append(content)
        self.text_lengths += lengths
        self.began += calls.began
        self.ended += calls.ended
        self.outcomes += calls.outcomes
        self.states += calls.states
        self.within += calls.within
        self.event_ends.append(len(self.data))
        self.call_ends.append(len(self.began))
        self.text_bytes += len(text)
        return True

    def add_rows(self, into: TableRows) -> None:
        """Add the rows of all captures; if this raises, none were added."""
        made: dict[str, Mapping[str, Sequence[Any] | pyarrow.Array]] = {}
        if "calls" in self._needed:
            made["calls"] = {name: _CALL_COLUMNS[name](self) for name in self._needed["calls"]}
        if "events" in self._needed:
            made["events"] = {name: _EVENT_COLUMNS[name](self) for name in self._needed["events"]}
        if "runs" in self._needed:
            made["runs"] = as_columns("runs", [*self._run_rows(into.needs("runs", "final_output"))])
        if "messages" in self._needed:
            made["messages"] = as_columns("messages", self._message_rows())
        tables = {table: arrow_table(table, rows, self._needed[table]) for table, rows in made.items()}
        for table, rows in tables.items():
            into.add_table(table, rows)

    def close(self) -> None:
        """Break reference cycles, because the garbage collector is disabled."""
        self.__dict__.pop("columns", None)
        for capture in self._captures:
            capture.close()

    def _slices(self) -> Iterator[tuple[FinishedCapture, str, slice, slice]]:
        """Each run with the positions of its events and of its calls."""
        first_event = first_call = 0
        for capture, name, last_event, last_call in zip(
            self._captures, self.names, self.event_ends, self.call_ends, strict=True
        ):
            yield capture, name, slice(first_event, last_event), slice(first_call, last_call)
            first_event, first_call = last_event, last_call

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of the calls."""
        types, data = self.types, self.data
        return [
            _KINDS.get(types[place]) or clean_name(event_kind(types[place], data[place]))
            for place in self.began
        ]

    @cached_property
    def event_names(self) -> list[str]:
        return _find_names(self.types, self.data)

    @cached_property
    def call_names(self) -> list[str]:
        if "name" in self._needed.get("events", ()):
            names = [self.event_names[place] for place in self.began]
        else:
            names = _find_names(
                [self.types[place] for place in self.began], [self.data[place] for place in self.began]
            )
        return _clean_names(names)

    @cached_property
    def tokens(self) -> dict[str, list[int | None]]:
        """The tokens of each call, by their name; ``None`` without a count, unless it is a model call."""
        none: list[int | None] = [0 if kind == "model" else None for kind in self.kinds]
        found = {name: [*none] for name in _TOKENS}
        for call, outcome in enumerate(self.outcomes):
            if outcome.usage:
                for name in _TOKENS:
                    count = outcome.usage.get(name)
                    if count and isinstance(count, int) and 0 <= count < 2**32:
                        found[name][call] = count
        return found

    @cached_property
    def columns(self) -> _Columns:
        """What several columns are made from, as arrays."""
        return _Columns(self)

    def resolve(self, call: int, value: object) -> object:
        """Resolve the references in a payload of a call."""
        return self._captures[bisect_right(self.call_ends, call)].resolve(value)

    def _run_rows(self, has_output: bool) -> Iterator[tuple[object, ...]]:
        for capture, name, events, calls in self._slices():
            data, times = self.data[events], self.times[events]
            argv = _decode_payload(data[0].argv) if data else None
            command = tuple(map(str, argv)) if isinstance(argv, list) and argv else None
            output = None
            if has_output and data and self.types[events.stop - 1] == "run_end":
                with suppress(FormatError, StoreError):
                    output = strip_tags(capture.resolve(_decode_payload(data[-1].finalOutput)))
            tokens = None
            if any([each.usage for each in data]):  # noqa: C419 — a list is faster
                tokens = Tokens(*(sum(filter(None, self.tokens[count][calls])) for count in _TOKENS))
            facts = RunFacts(
                events=len(data),
                steps=calls.stop - calls.start,
                errors=self.states[calls].count("error"),
                tokens=tokens,
                duration_ms=max(times) - times[0] if times else 0,
                size_bytes=len(capture.text),
            )
            header = capture_header(capture.folder, capture.manifest, capture.state, command, output)
            yield run_row(name, header, facts)

    def _message_rows(self) -> list[MessageRow]:
        rows: list[MessageRow] = []
        models = [call for call, kind in enumerate(self.kinds) if kind == "model"]
        exchanges = self._exchanges(models)
        first = 0
        for capture, name, last_call in zip(self._captures, self.names, self.call_ends, strict=True):
            last = bisect_left(models, last_call, first)
            if last > first:
                rows += message_rows(name, exchanges[first:last], capture)
            first = last
        return rows

    def _exchanges(self, models: Sequence[int]) -> list[ExchangeAsStored]:
        """These calls of models."""
        began = [self.began[call] for call in models]
        asked = [self.data[place] for place in began]
        requests = read_request_texts([each.request for each in asked])
        outcomes = [self.outcomes[call] for call in models]
        responses = [
            each.response if each.provider == "openai_chat" and each.pieces is NO_PAYLOAD else NO_PAYLOAD
            for each in outcomes
        ]
        answers = read_answer_texts(responses)
        return [
            ExchangeAsStored(
                self.seqs[place],
                data.lane,
                _decode_payload(data.request) if request is None else request,
                bytes(data.request).count(b'"$') if request is None else None,
                _answer(outcome) if answer is None else answer,
            )
            for place, data, request, outcome, answer in zip(
                began, asked, requests, outcomes, answers, strict=True
            )
        ]


def _answer(ended: _EventData) -> AnswerAsStored | None:
    if ended is _OPEN:
        return None
    response, pieces = ended.response, ended.pieces
    is_whole = not _may_refer(bytes(response)) and not _may_refer(bytes(pieces))
    said = _decode_payload(response), _decode_payload(pieces), _decode_payload(ended.text)
    return AnswerAsStored(str(ended.provider), said[0], said[1], said[2], is_whole)


_OPEN: Final = _EventData(ok=False)
"""Stands for the outcome of a call that has none."""


class _Calls(NamedTuple):
    """The calls of one run, as positions of their events."""

    began: list[int]
    ended: list[int]
    within: list[int]
    outcomes: list[_EventData]
    states: list[str]

    def may_have_retries(self, types: Sequence[str], data: Sequence[_EventData], first_event: int) -> bool:
        """Whether a failed call is followed by one of the same name, in the same lane and enclosing call."""
        if "error" not in self.states:
            return False
        failed: dict[tuple[str, int], tuple[str, str]] = {}
        for state, place, within in zip(self.states, self.began, self.within, strict=True):
            what, asked = types[place - first_event], data[place - first_event]
            lane = clean_name(asked.lane), within
            named = clean_name(event_kind(what, asked)), clean_name(event_name(what, asked))
            if failed.pop(lane, None) == named:
                return True
            if state == "error":
                failed[lane] = named
        return False


def _find_calls(
    types: Sequence[str], data: Sequence[_EventData], first_event: int, first_call: int
) -> _Calls:
    """The calls of a run whose events and calls begin at these positions."""
    began: list[int] = []
    ended: list[int] = []
    within: list[int] = []
    waiting: dict[str, int] = {}
    for place, (what, each) in enumerate(zip(types, data, strict=True), first_event):
        call_id = each.callId
        if call_id in waiting and what not in ASKING:
            ended[waiting.pop(call_id)] = place
        elif what not in OUTSIDE:
            parent = each.parent
            within.append(-1 if parent is None or parent not in waiting else first_call + waiting[parent])
            began.append(place)
            # A read of state has an id for the calls inside it, but its event is written at the end.
            if call_id is None or what == "state_mutation":
                ended.append(place)
            else:
                waiting[call_id] = len(ended)
                ended.append(-1)
    outcomes = [data[place - first_event] if place >= 0 else _OPEN for place in ended]
    states = [
        "ok"
        if each.ok
        and each.error is None
        and each.exitCode is None
        and each.modelError is None
        and not each.cancelled
        else _other_state(each)
        for each in outcomes
    ]
    return _Calls(began, ended, within, outcomes, states)


def _other_state(outcome: _EventData) -> str:
    return "open" if outcome is _OPEN else "cancelled" if outcome.cancelled else "error"


def _has_lines(text: bytes, count: int) -> bool:
    """Whether *text*, which ends with a line, has *count* lines; this is the fastest way to count them."""
    return len(BytesIO(text).readlines()) == count


def _may_refer(text: bytes) -> bool:
    """Whether payloads in *text* may be references; a single byte is found ten times as fast as two."""
    return b"$" in text and b'"$' in text


def _decode_payload(raw: msgspec.Raw) -> object:
    return None if raw is NO_PAYLOAD else _decode(raw)


_TOOLS: Final = frozenset({"tool_call", "tool_result"})


def _find_names(types: Sequence[str], data: Sequence[_EventData]) -> list[str]:
    # Most events are of tools: not calling a function for them halves the time.
    return [
        each.tool or "" if what in _TOOLS else event_name(what, each)
        for what, each in zip(types, data, strict=True)
    ]


def _clean_names(names: Sequence[str]) -> list[str]:
    """*names* as a table can hold them; there are few different ones."""
    cleaned = {name: clean_name(name) for name in set(names)}
    return [cleaned[name] for name in names]


# Columns

_Cells: TypeAlias = "Callable[[CaptureBatch], Sequence[Any] | pyarrow.Array]"
"""Makes all cells of one column."""


class _Columns:
    """Arrays of a batch from which several columns are made, each made when it is first needed."""

    def __init__(self, batch: CaptureBatch) -> None:
        self._batch = batch

    @cached_property
    def began(self) -> pyarrow.Array:
        return _places(self._batch.began)

    @cached_property
    def ended(self) -> pyarrow.Array:
        """Null for a call without an outcome."""
        return _places(self._batch.ended)

    @cached_property
    def seqs(self) -> pyarrow.Array:
        import pyarrow as pa

        return pa.array(self._batch.seqs, pa.int64())

    @cached_property
    def times_ms(self) -> pyarrow.Array:
        import pyarrow as pa

        return pa.array(self._batch.times, pa.int64())

    @cached_property
    def at_ms(self) -> pyarrow.Array:
        """Milliseconds since the first event of the run."""
        import pyarrow.compute as pc

        batch = self._batch
        starts = [batch.times[end] for end in (0, *batch.event_ends[:-1])] if batch.times else []
        start = pc.subtract(self.times_ms, _spread(starts, "int64", batch.event_ends))
        return start.cast("float64")

    @cached_property
    def times(self) -> pyarrow.Array:
        """The times of the events, in microseconds."""
        import pyarrow as pa

        times = self._batch.times
        if times and time_us(min(times)) is not None and time_us(max(times)) is not None:
            import pyarrow.compute as pc

            return pc.multiply(self.times_ms, 1000).cast(pa.timestamp("us"))
        return pa.array(map(time_us, times), pa.timestamp("us"))

    @cached_property
    def call_kinds(self) -> pyarrow.Array:
        import pyarrow as pa

        return pa.array(self._batch.kinds, pa.string())

    @cached_property
    def call_names(self) -> pyarrow.Array:
        import pyarrow as pa

        return pa.array(self._batch.call_names, pa.string())


def _places(places: Sequence[int]) -> pyarrow.Array:
    """An array of positions; null for -1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.array(places, pa.int64())
    return pc.if_else(pc.less(found, 0), None, found) if -1 in places else found


def _spread(values: Sequence[Any], kind: str, ends: Sequence[int]) -> pyarrow.Array:
    """An array with the value of the run for each event or call; *ends* are the end positions by run."""
    import pyarrow as pa
    import pyarrow.compute as pc

    groups = pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), pa.nulls(ends[-1] if ends else 0))
    return pa.array(values, kind).take(pc.list_parent_indices(groups))


def _latencies(batch: CaptureBatch) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = batch.columns
    began, ended = columns.began, columns.ended
    taken = pc.subtract(columns.at_ms.take(ended), columns.at_ms.take(began))
    taken = pc.if_else(pc.equal(began, ended), None, taken)
    stated = [data.latencyMs for data in batch.outcomes]
    if any([latency is not None for latency in stated]):  # noqa: C419 — a list is faster
        taken = pc.coalesce(pa.array([_as_float(each) for each in stated], pa.float64()), taken)
    return taken


def _as_float(number: float | None) -> float | None:
    return None if number is None else float(number)


def _utilities(batch: CaptureBatch) -> list[float | None]:
    stated = [data.utility for data in batch.outcomes]
    # With the precision of a step index, which has 32-bit floats.
    return [None if utility is None else array("f", [utility])[0] for utility in stated]


def _tool_payloads(batch: CaptureBatch, raws: Sequence[msgspec.Raw]) -> list[str | None] | pyarrow.Array:
    """A payload of each call as JSON text; ``None`` if there is none, or if it refers to a missing one."""
    raws = [raw if kind == "tool" else NO_PAYLOAD for raw, kind in zip(raws, batch.kinds, strict=True)]
    lengths, content = list(map(len, raws)), b"".join(raws)
    if max(lengths, default=0) <= MAX_TEXT_BYTES and 4 not in lengths and not _may_refer(content):
        return _cut(content, lengths, has_nulls=True)
    found: list[str | None] = []
    for call, raw in enumerate(raws):
        text = None
        if raw is not NO_PAYLOAD:
            text = str(raw, "utf-8")
            if '"$' in text:
                text = _resolved_payload(batch, call, _decode(raw))
            elif text == "null" or len(text) > MAX_TEXT_BYTES:
                text = None
        found.append(text)
    return found


def _arguments(batch: CaptureBatch) -> list[str | None] | pyarrow.Array:
    return _tool_payloads(batch, [batch.data[place].args for place in batch.began])


def _results(batch: CaptureBatch) -> list[str | None] | pyarrow.Array:
    return _tool_payloads(batch, [data.result for data in batch.outcomes])


def _errors(batch: CaptureBatch) -> list[str | None]:
    found: list[str | None] = [None] * len(batch.states)
    for call, state in enumerate(batch.states):
        if state == "error":
            outcome = batch.outcomes[call]
            error = outcome.error
            if outcome.exitCode:
                error = {"type": "exit_code", "message": str(outcome.exitCode)}
            found[call] = _resolved_payload(batch, call, error or outcome.modelError)
    return found


def _resolved_payload(batch: CaptureBatch, call: int, value: object) -> str | None:
    try:
        return short_json(strip_tags(batch.resolve(call, value)))
    except (FormatError, StoreError):
        return None


def _names_of(kind: str, columns: _Columns) -> pyarrow.Array:
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(columns.call_kinds, kind), columns.call_names, None)


def _texts(batch: CaptureBatch) -> list[str | None] | pyarrow.Array:
    content, lengths = b"".join(batch.texts), batch.text_lengths
    if max(lengths, default=0) > MAX_TEXT_BYTES:
        ends = [*accumulate(lengths, initial=0)]
        texts = [content[start:end].decode() for start, end in pairwise(ends)]
        return [None if len(text) > MAX_TEXT_BYTES else text for text in texts]
    return _cut(content, lengths)


def _cut(content: bytes, lengths: Sequence[int], *, has_nulls: bool = False) -> pyarrow.Array:
    """An array of the texts with these *lengths* in *content*, made without a Python string for each.

    With *has_nulls*, those of length 0 are null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum_checked(pa.array([0, *lengths], pa.int32())).buffers()[1]
    # The values of an array of booleans are the bits that say which texts are there.
    is_there = pc.greater(pa.array(lengths, pa.int32()), 0).buffers()[1] if has_nulls else None
    return pa.Array.from_buffers(pa.string(), len(lengths), [is_there, ends, pa.py_buffer(content)])


_CALL_COLUMNS: Final[Mapping[str, _Cells]] = {
    "run": lambda batch: _spread(batch.names, "string", batch.call_ends),
    "seq": lambda batch: batch.columns.seqs.take(batch.columns.began),
    "outcome_seq": lambda batch: batch.columns.seqs.take(batch.columns.ended),
    "kind": lambda batch: batch.columns.call_kinds,
    "name": lambda batch: batch.columns.call_names,
    "tool": lambda batch: _names_of("tool", batch.columns),
    "model": lambda batch: _names_of("model", batch.columns),
    "state": lambda batch: batch.states,
    "started_at": lambda batch: batch.columns.times.take(batch.columns.began),
    "at_ms": lambda batch: batch.columns.at_ms.take(batch.columns.began),
    "latency_ms": _latencies,
    "input_tokens": lambda batch: batch.tokens["inputTokens"],
    "output_tokens": lambda batch: batch.tokens["outputTokens"],
    "cached_tokens": lambda batch: batch.tokens["cachedInputTokens"],
    "utility": _utilities,
    "lane": lambda batch: _clean_names([batch.data[place].lane for place in batch.began]),
    "parent_seq": lambda batch: batch.columns.seqs.take(batch.columns.began.take(_places(batch.within))),
    "is_retry": lambda batch: [False] * len(batch.began),
    "arguments": _arguments,
    "result": _results,
    "error": _errors,
}
_EVENT_COLUMNS: Final[Mapping[str, _Cells]] = {
    "run": lambda batch: _spread(batch.names, "string", batch.event_ends),
    "seq": lambda batch: batch.columns.seqs,
    "at": lambda batch: batch.columns.times,
    "type": lambda batch: batch.types,
    "name": lambda batch: [name or None for name in batch.event_names],
    "call_id": lambda batch: [data.callId for data in batch.data],
    "lane": lambda batch: [data.lane for data in batch.data],
    "data": _texts,
}


class RunFacts(NamedTuple):
    """Facts about the events of a run, for its row."""

    events: int
    steps: int
    errors: int
    tokens: Tokens | None
    duration_ms: float
    size_bytes: int
    problem: str | None = None


def run_row(name: str, header: Header, facts: RunFacts) -> tuple[object, ...]:
    """The row of the run called *name*."""
    duration_ms: float | None = facts.duration_ms
    if header.completed_at_ms is not None and header.created_at_ms is not None:
        duration_ms = header.completed_at_ms - header.created_at_ms
    tokens = facts.tokens
    return (
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
        short_json(header.command),
        int_or_none(header.exit_status),
        text_or_none(header.error),
        short_json(header.final_output),
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
