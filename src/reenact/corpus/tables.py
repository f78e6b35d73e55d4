"""Runs, replay receipts and test results as rows of tables; the same rows with and without an index."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from reenact.analysis.artifact import Artifact, open_artifact
from reenact.analysis.index import STATES, StepIndex
from reenact.analysis.stats import find_retries
from reenact.corpus.plain import PlainRun, RunFacts, clean_text, read_plain_run, time_us
from reenact.errors import FormatError, ReenactError, StoreError
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import read_replay_receipt
from reenact.formats.result import TestError, read_result
from reenact.formats.rfc3339 import moment
from reenact.providers import ModelRequest, read_conversation
from reenact.providers.meaning import (
    Conversation,
    Media,
    ModelMessage,
    Other,
    Part,
    Text,
    ToolCallPart,
    ToolResultPart,
)
from reenact.store.objects import address_in
from reenact.trace.model_calls import model_request, model_response
from reenact.trace.sources.capture import CaptureSource, FinishedCapture
from reenact.trace.sources.source import Header, RunSource
from reenact.values.tags import plain

if TYPE_CHECKING:
    import pyarrow

ColumnType: TypeAlias = Literal["text", "json", "int", "float", "time", "bool"]
Rows: TypeAlias = dict[str, list[Any]]
"""Values by column, all lists equally long."""


class Column(NamedTuple):
    """One column of a table; ``json`` is text that holds JSON, ``time`` is in UTC."""

    name: str
    type: ColumnType
    about: str


MAX_TEXT_BYTES: Final = 64 * 1024
"""A longer payload is not in the tables; the run itself has it."""

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "runs": (
        Column("run", "text", "where it is"),
        Column("kind", "text", "`capture`, `events`, `replay-log`, `replay-log-legacy`, `bundle` or `trace`"),
        Column("state", "text", "of a capture: `open`, `interrupted`, `complete` or `recovered`"),
        Column(
            "status", "text", "`ok`, `error`, or the format's own word; `unreadable` where it cannot be read"
        ),
        Column("capture_id", "text", ""),
        Column("run_id", "text", ""),
        Column("created_at", "time", ""),
        Column("completed_at", "time", ""),
        Column("duration_ms", "float", "as stated, else from the first event to the last"),
        Column("provider", "text", "as the manifest states it"),
        Column("model", "text", "likewise"),
        Column("producer", "text", ""),
        Column("redaction", "text", "the profile"),
        Column("command", "json", "the words of the recorded command"),
        Column("exit_status", "int", ""),
        Column("error", "text", "what the run ended with"),
        Column("final_output", "json", ""),
        Column("warnings", "int", "how many"),
        Column("events", "int", "how many"),
        Column("calls", "int", "how many rows it has in `calls`"),
        Column("errors", "int", "how many of its calls failed"),
        Column("input_tokens", "int", "of all model calls"),
        Column("output_tokens", "int", ""),
        Column("cached_tokens", "int", "how many of the input tokens came from a cache"),
        Column("size_bytes", "int", "of its events"),
        Column("problem", "text", "why it could not be read, or not to its end"),
    ),
    "calls": (
        Column("run", "text", ""),
        Column("seq", "int", "the event that began it"),
        Column("outcome_seq", "int", "the event that ended it"),
        Column(
            "kind", "text", "`tool`, `model`, `state`, `message`, or the source of a value: `clock`, `rng`, …"
        ),
        Column("name", "text", ""),
        Column("tool", "text", "the name, of tools"),
        Column("model", "text", "the name, of models"),
        Column("state", "text", "`ok`, `error`, `cancelled` or `open`"),
        Column("started_at", "time", ""),
        Column("at_ms", "float", "since the first event of the run"),
        Column("latency_ms", "float", ""),
        Column("input_tokens", "int", ""),
        Column("output_tokens", "int", ""),
        Column("cached_tokens", "int", ""),
        Column("utility", "float", "where it is recorded"),
        Column("lane", "text", "the task that made it: `0.1` is the first that `0` started"),
        Column("parent_seq", "int", "the call inside which it was made"),
        Column("is_retry", "bool", "whether it asks again what the call before it in its lane had failed at"),
        Column("arguments", "json", "of a tool"),
        Column("result", "json", "of a tool"),
        Column("error", "json", "what a failed call raised"),
    ),
    "messages": (
        Column("run", "text", ""),
        Column("seq", "int", "the event of the model call"),
        Column("origin", "text", "`request` or `answer`; a request has only what was not sent before"),
        Column("message", "int", "its number among the new ones of the call, from 0"),
        Column("part", "int", "its number in the message, from 0"),
        Column("role", "text", ""),
        Column(
            "kind", "text", "`text`, `thinking`, `tool_call`, `tool_result`, `media`, `refusal` or `other`"
        ),
        Column(
            "text", "text", "of a tool call its arguments, of a result its content, where no text as JSON"
        ),
        Column("tool", "text", "of a tool call, and of a result that names it"),
        Column("call_id", "text", "the model's own id of the tool call"),
    ),
    "events": (
        Column("run", "text", ""),
        Column("seq", "int", ""),
        Column("at", "time", ""),
        Column("type", "text", "in the words of a capture"),
        Column("name", "text", "the tool, the model, the kind of state, or the key of a value"),
        Column("call_id", "text", "which a call and its outcome share"),
        Column("lane", "text", ""),
        Column("data", "json", "as stored: large payloads and repeated messages are references"),
    ),
    "divergences": (
        Column("receipt", "text", "the file of the replay receipt"),
        Column("capture_id", "text", "of the run that was replayed"),
        Column("replayed_at", "time", ""),
        Column("policy", "text", "`strict` or `lenient`"),
        Column("code", "text", "as in the receipt; `live_call_refused` for a refused call"),
        Column("event_seq", "int", "the recorded event"),
        Column("json_path", "text", "the first place that differs"),
        Column("detail", "text", ""),
        Column("source_line", "text", "where in the agent's code the call was made"),
    ),
    "assertions": (
        Column("result", "text", "the file of the test result"),
        Column("test_case_id", "text", ""),
        Column("test_file", "text", ""),
        Column("test_run_id", "text", ""),
        Column("test_status", "text", "`pass`, `fail` or `error`"),
        Column("started_at", "time", ""),
        Column("duration_ms", "float", "of the whole test"),
        Column("run", "text", "the capture, log or bundle it was about, as the result names it"),
        Column("id", "text", "of the assertion; none where the test could not be run"),
        Column("type", "text", ""),
        Column("severity", "text", ""),
        Column("status", "text", "`pass`, `fail` or `skip`"),
        Column("message", "text", "what was found; of a test that could not be run, why"),
        Column("params", "json", ""),
        Column("observed", "json", ""),
    ),
}
KEYS: Final = {table: columns[0].name for table, columns in TABLES.items()}
"""The column that names where a row comes from."""
PAYLOADS: Final = {"arguments", "result", "error", "data", "final_output"}
"""Columns that take reading whole events."""

SourceKind: TypeAlias = Literal["run", "receipt", "result"]
TABLES_OF: Final[Mapping[SourceKind, tuple[str, ...]]] = {
    "run": ("runs", "calls", "messages", "events"),
    "receipt": ("divergences",),
    "result": ("assertions",),
}


class CorpusSource(msgspec.Struct, frozen=True):
    """Something that rows are made of."""

    name: str
    """As the user named it; what the rows say."""
    path: str
    """Where to read it."""
    kind: SourceKind
    stamp: str = ""
    """Changes when the source does."""
    size_bytes: int = 0


class NeededRows(NamedTuple):
    """What is to be read: the less, the faster."""

    tables: Collection[str] = tuple(TABLES)
    payloads: bool = True
    """Whether the columns are wanted that take reading whole events."""


EVERYTHING: Final = NeededRows()


class SourceReading(NamedTuple):
    """What came of reading a source."""

    problem: str | None
    """Why it could not be read, or not to its end."""
    is_final: bool
    """Whether it can only change by being written again; a run being recorded ends by itself."""


class TableRows:
    """Rows being collected, column by column."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {
            table: {column.name: [] for column in columns} for table, columns in TABLES.items()
        }
        self.text_bytes = 0
        """About how much the rows hold."""

    def add(self, table: str, *values: Any) -> None:
        """One row, its values in the order of the columns."""
        for column, value in zip(self.rows[table].values(), values, strict=True):
            column.append(value)
        self.text_bytes += 200

    def add_text(self, text: str | None) -> str | None:
        """A payload for a row; ``None`` where it is too long for a table."""
        if text is None or len(text) > MAX_TEXT_BYTES:
            return None
        self.text_bytes += len(text)
        return text

    def mark(self) -> dict[str, int]:
        """How many rows there are, to :meth:`cut` back to."""
        return {table: len(rows[KEYS[table]]) for table, rows in self.rows.items()}

    def cut(self, mark: Mapping[str, int]) -> None:
        """Forget the rows that were added since *mark*, whole or not."""
        for table, count in mark.items():
            for column in self.rows[table].values():
                del column[count:]

    def take(self) -> dict[str, pyarrow.Table]:
        """What has been collected since it was last taken, of tables that have any."""
        taken = {table: arrow_table(table, rows) for table, rows in self.rows.items() if rows[KEYS[table]]}
        for rows in self.rows.values():
            for column in rows.values():
                column.clear()
        self.text_bytes = 0
        return taken


def arrow_schema(table: str) -> pyarrow.Schema:
    """The columns of *table* as Parquet files have them."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "time": pa.timestamp("us"),  # which is DuckDB's own unit
        "bool": pa.bool_(),
    }
    return pa.schema([(column.name, types[column.type]) for column in TABLES[table]])


def arrow_table(table: str, rows: Rows) -> pyarrow.Table:
    """*rows* with the types of *table*."""
    import pyarrow as pa

    schema = arrow_schema(table)
    arrays = [pa.array(rows[field.name], type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def read_source(source: CorpusSource, into: TableRows, wanted: NeededRows = EVERYTHING) -> SourceReading:
    """Add the rows of *source*; of a run that cannot be read, one row that says why."""
    mark = into.mark()
    try:
        if source.kind == "run":
            return _read_run(source, into, wanted)
        (_read_receipt if source.kind == "receipt" else _read_test_result)(source, into)
    except (ReenactError, OSError, RecursionError, msgspec.ValidationError) as error:
        into.cut(mark)
        problem = _describe_problem(source, error)
        if source.kind == "run" and "runs" in wanted.tables:
            _add_unreadable(source, problem, into)
        return SourceReading(problem, is_final=False)
    return SourceReading(None, is_final=True)


def _describe_problem(source: CorpusSource, error: Exception) -> str:
    text = f"{source.name}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return clean_text(text.replace(source.path, source.name))


def _text(value: object) -> str | None:
    return clean_text(value) if isinstance(value, str) else None


def _json(value: Any, into: TableRows) -> str | None:
    if value is None:
        return None
    try:
        return into.add_text(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError):
        return None  # a lone surrogate, or deeper than anybody nests


def _int(value: object) -> int | None:
    is_int = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_int else None  # type: ignore[return-value]  # it is one


def _add_unreadable(source: CorpusSource, problem: str, into: TableRows) -> None:
    row = dict.fromkeys(into.rows["runs"])
    row |= {"run": source.name, "status": "unreadable", "size_bytes": source.size_bytes, "problem": problem}
    into.add("runs", *row.values())


def _read_run(source: CorpusSource, into: TableRows, wanted: NeededRows) -> SourceReading:
    capture = FinishedCapture.load(Path(source.path)) if address_in(source.path) is None else None
    if capture is not None:
        with closing(capture):
            plain_run = read_plain_run(capture, source.name)
            if plain_run is not None:
                return _read_plain_run(source, plain_run, into, wanted)
    with _open_run(source.path) as artifact:
        header = artifact.header()
        counts = artifact.counts()
        if "runs" in wanted.tables:
            facts = RunFacts(
                events=counts.events,
                steps=counts.steps,
                errors=counts.states.get("error", 0),
                tokens=counts.tokens,
                duration_ms=counts.duration_ms,
                size_bytes=artifact.size_bytes,
                problem=counts.problem,
            )
            _add_run(source, header, facts, into, with_output=wanted.payloads)
        if "calls" in wanted.tables:
            _add_calls(source, artifact, into, with_payloads=wanted.payloads)
        if "messages" in wanted.tables:
            index = artifact.rows
            asked = [
                (index.seq[place], index.outcome_seq[place] or None, index.lanes[index.lane[place]])
                for place in range(len(index))
                if index.kinds[index.kind[place]] == "model"
            ]
            _add_messages(source, artifact.source, asked, into)
        if "events" in wanted.tables:
            _add_events(source, artifact, into, with_data=wanted.payloads)
        problem = None if artifact.problem is None else _describe_problem(source, artifact.problem)
        is_final = problem is None and header.state in (None, "complete", "recovered")
        return SourceReading(problem, is_final)


def _open_run(path: str) -> Artifact:
    artifact = open_artifact(path)
    artifact.index()
    return artifact


def _read_plain_run(
    source: CorpusSource, run: PlainRun, into: TableRows, wanted: NeededRows
) -> SourceReading:
    """The same rows of a finished capture without a failed call, with as few steps of Python as can be."""
    if "runs" in wanted.tables:
        _add_run(source, run.capture.header(), run.facts(), into, with_output=wanted.payloads)
    if "calls" in wanted.tables:
        if wanted.payloads:
            for call, arguments, result in run.tool_payloads():
                call.arguments = _raw_payload(run.capture, arguments, into)
                call.result = _raw_payload(run.capture, result, into)
        columns = zip(*map(msgspec.structs.astuple, run.calls), strict=True)
        for column, values in zip(into.rows["calls"].values(), columns, strict=False):
            column += values
        into.text_bytes += 150 * len(run.calls)
    if "messages" in wanted.tables:
        asked = [(call.seq, call.outcome_seq, call.lane) for call in run.calls if call.kind == "model"]
        _add_messages(source, run.capture, asked, into)
    if "events" in wanted.tables:
        _add_plain_events(source.name, run, into, with_data=wanted.payloads)
    return SourceReading(None, is_final=True)


def _raw_payload(source: RunSource, text: msgspec.Raw, into: TableRows) -> str | None:
    raw = bytes(text)
    if not raw or raw == b"null":
        return None
    if b'"$' in raw:
        return _payload(source, msgspec.json.decode(raw), into)
    return into.add_text(raw.decode())


def _add_run(
    source: CorpusSource, header: Header, facts: RunFacts, into: TableRows, *, with_output: bool
) -> None:
    duration_ms: float | None = facts.duration_ms
    if header.completed_at_ms is not None and header.created_at_ms is not None:
        duration_ms = header.completed_at_ms - header.created_at_ms
    tokens = facts.tokens
    into.add(
        "runs",
        source.name,
        header.kind,
        header.state,
        _text(header.status),
        _text(header.capture_id),
        _text(header.run_id),
        time_us(header.created_at_ms),
        time_us(header.completed_at_ms),
        duration_ms,
        _text(header.provider),
        _text(header.model),
        _text(header.producer),
        _text(header.redaction),
        _json(header.command, into),
        _int(header.exit_status),
        _text(header.error),
        _json(header.final_output, into) if with_output else None,
        len(header.warnings),
        facts.events,
        facts.steps,
        facts.errors,
        None if tokens is None else tokens.input,
        None if tokens is None else tokens.output,
        None if tokens is None else tokens.cached_input,
        facts.size_bytes,
        None if facts.problem is None else clean_text(facts.problem.replace(source.path, source.name)),
    )


def _add_calls(source: CorpusSource, artifact: Artifact, into: TableRows, *, with_payloads: bool) -> None:
    """The index has them in columns already, so that whole columns are added, not rows."""
    index, rows = artifact.rows, into.rows["calls"]
    count = len(index)
    kinds = [clean_text(index.kinds[number]) for number in range(len(index.kinds))]
    names = [clean_text(index.names[number]) for number in range(len(index.names))]
    lanes = [clean_text(index.lanes[number]) for number in range(len(index.lanes))]
    kind = [kinds[number] for number in index.kind]
    name = [names[number] for number in index.name]
    start_ms = index.start_ms or 0
    rows["run"] += [source.name] * count
    rows["seq"] += index.seq
    rows["outcome_seq"] += [seq or None for seq in index.outcome_seq]
    rows["kind"] += kind
    rows["name"] += name
    rows["tool"] += [each if what == "tool" else None for what, each in zip(kind, name, strict=True)]
    rows["model"] += [each if what == "model" else None for what, each in zip(kind, name, strict=True)]
    rows["state"] += [STATES[number] for number in index.state]
    rows["started_at"] += [time_us(start_ms + at_ms) for at_ms in index.at_ms]
    rows["at_ms"] += index.at_ms
    rows["latency_ms"] += _known(index.took_ms)
    for column, tokens in (
        ("input_tokens", index.input_tokens),
        ("output_tokens", index.output_tokens),
        ("cached_tokens", index.cached_tokens),
    ):
        rows[column] += [n if n or what == "model" else None for what, n in zip(kind, tokens, strict=True)]
    rows["utility"] += _known(index.utility)
    rows["lane"] += [lanes[number] for number in index.lane]
    rows["parent_seq"] += [index.seq[place] if place >= 0 else None for place in index.parent]
    retried = find_retries(artifact) if index.state_counts["error"] else ()
    rows["is_retry"] += [place in retried for place in range(count)]
    payloads = (
        _payloads(artifact.source, index, kind, into) if with_payloads else [(None, None, None)] * count
    )
    for column, values in zip(("arguments", "result", "error"), zip(*payloads, strict=True), strict=False):
        rows[column] += values
    into.text_bytes += 150 * count


def _known(numbers: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(number) else number for number in numbers]


def _payloads(
    source: RunSource, index: StepIndex, kinds: list[str], into: TableRows
) -> list[tuple[str | None, str | None, str | None]]:
    """Arguments, result and error of each call."""
    found: list[tuple[str | None, str | None, str | None]] = []
    for place, kind in enumerate(kinds):
        has_failed = STATES[index.state[place]] == "error"
        if kind != "tool" and not has_failed:
            found.append((None, None, None))
            continue
        began, ended = source.event(index.seq[place]), None
        if index.outcome_seq[place]:
            ended = source.event(index.outcome_seq[place])
        outcome = ended.data if ended else {}
        error = (ended.failure or outcome.get("modelError")) if ended and has_failed else None
        if kind != "tool" or began is None:
            found.append((None, None, _payload(source, error, into)))
            continue
        arguments = _payload(source, began.data.get("args"), into, began.seq)
        result = _payload(source, outcome.get("result"), into, index.outcome_seq[place])
        found.append((arguments, result, _payload(source, error, into)))
    return found


def _payload(source: RunSource, value: Any, into: TableRows, seq: int = 0) -> str | None:
    """A payload as JSON text; ``None`` where there is none, or what it refers to is gone.

    *seq* is the event that it stands in, where that is known.
    """
    if value is None:
        return None
    if seq and _marks(source, seq) == 0:
        return _json(value, into)
    try:
        return _json(plain(source.resolved(value)), into)
    except (FormatError, StoreError):
        return None


def _marks(run: RunSource, seq: int) -> int | None:
    """How many marks of ours stand in an event, where that can be told without looking through it."""
    return run.count_marks(seq) if isinstance(run, FinishedCapture) else None


def _add_events(source: CorpusSource, artifact: Artifact, into: TableRows, *, with_data: bool) -> None:
    run, damage = artifact.source, artifact.problem
    last = run.count if damage is None or damage.line is None else damage.line - 1
    for seq in range(1, last + 1):
        event = run.stored_event(seq) if isinstance(run, CaptureSource) else run.event(seq)
        if event is None:
            continue
        head = event.head()
        data = _json(event.data, into) if with_data else None
        call_id, lane = _text(head.data.callId), _text(head.data.lane)
        into.add(
            "events",
            source.name,
            seq,
            time_us(event.ts),
            event.type,
            _text(head.name) or None,
            call_id,
            lane,
            data,
        )


def _add_plain_events(name: str, run: PlainRun, into: TableRows, *, with_data: bool) -> None:
    """The same, column by column, with the texts as they are written."""
    rows, heads = into.rows["events"], run.events
    rows["run"] += [name] * len(heads)
    rows["seq"] += range(1, len(heads) + 1)
    rows["at"] += [time_us(head.ts) for head in heads]
    rows["type"] += [head.type for head in heads]
    rows["name"] += [clean_text(head.name) or None for head in heads]
    call_ids = [head.data.callId for head in heads]
    rows["call_id"] += [each and clean_text(each) for each in call_ids]
    rows["lane"] += [clean_text(head.data.lane) for head in heads]
    texts = map(into.add_text, run.capture.data_texts(heads)) if with_data else repeat(None, len(heads))
    rows["data"] += texts
    into.text_bytes += 200 * len(heads)


# Messages

_CONVERSATION: Final = ("messages", "input", "contents", "prompt")
"""Where the wire formats keep what is said to the model."""


def _add_messages(
    source: CorpusSource, run: RunSource, asked: Iterable[tuple[int, int | None, str]], into: TableRows
) -> None:
    """What is new in each of the model calls *asked*: events of the call and of its outcome, and the lane."""
    before: dict[str, tuple[ModelMessage, ...]] = {}
    system: dict[str, str | None] = {}
    for seq, outcome_seq, lane in asked:
        began = run.event(seq)
        assert began is not None
        sent, is_shared = _sent(run, began.data, _marks(run, seq))
        new: list[ModelMessage] = []
        if sent is not None:
            if sent.system and sent.system != system.get(lane):
                new.append(ModelMessage(role="system", parts=(Text(text=sent.system),)))
                system[lane] = sent.system
            shared = 0 if is_shared else _common_prefix(before.get(lane, ()), sent.messages)
            new += sent.messages[shared:]
            if not is_shared:
                before[lane] = sent.messages
        _add_parts(source.name, seq, "request", new, into)
        if outcome_seq:
            answer = _answer(run, outcome_seq)
            _add_parts(source.name, seq, "answer", [answer] if answer.parts else [], into)


def _conversation(request: object) -> Conversation | ModelRequest | None:
    """What a resolved request says, without the digests of it, which take longer than reading it."""
    if isinstance(request, dict) and isinstance(request.get("url"), str):
        return read_conversation(urlsplit(request["url"]).path, request.get("body"))
    return model_request(request)


def _sent(
    run: RunSource, data: dict[str, Any], marks: int | None
) -> tuple[Conversation | ModelRequest | None, bool]:
    """What a request with so many *marks* says, and whether only what no earlier one of the run has said."""
    try:
        request = data.get("request")
        if isinstance(request, dict) and "$blob" in request:
            request = msgspec.json.decode(run.blob(request["$blob"]))
        body = request.get("body") if isinstance(request, dict) else None
        if not isinstance(request, dict) or not isinstance(body, dict):
            return _conversation(run.resolved(request)), False
        # A reference says what was sent before: following it would make a chat of N turns cost N * N.
        shared = [key for key in _CONVERSATION if isinstance(body.get(key), dict) and "$ref" in body[key]]
        body = {key: value for key, value in body.items() if key != "tools"}
        body |= {key: body[key].get("then", []) for key in shared}
        request = request | {"body": body}
        has_more = marks != len(shared)
        return _conversation(run.resolved(request) if has_more else request), bool(shared)
    except (FormatError, StoreError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, False  # what it refers to is gone; `events` has the request as it is stored


def _answer(run: RunSource, seq: int) -> ModelMessage:
    event = run.event(seq)
    data = event.data if event is not None else {}
    parts: tuple[Part, ...] = ()
    try:
        response, pieces = data.get("response"), data.get("pieces")
        if _marks(run, seq) != 0:
            response, pieces = run.resolved(response), run.resolved(pieces)
        said = model_response(str(data.get("provider")), response, ABSENT if pieces is None else pieces)
        if said is not None:
            parts = said.parts
        elif isinstance(data.get("text"), str):  # as logs tell it
            parts = (Text(text=data["text"]),)
    except (FormatError, StoreError):
        pass  # likewise
    return ModelMessage(role="assistant", parts=parts)


def _common_prefix(one: tuple[ModelMessage, ...], other: tuple[ModelMessage, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _add_parts(name: str, seq: int, origin: str, said: list[ModelMessage], into: TableRows) -> None:
    for number, message in enumerate(said):
        for place, part in enumerate(message.parts):
            text, tool, call_id = _part_cells(part, into)
            kind = part.__struct_config__.tag
            into.add(
                "messages", name, seq, origin, number, place, _text(message.role), kind, text, tool, call_id
            )


def _part_cells(part: Part, into: TableRows) -> tuple[str | None, str | None, str | None]:
    """Text, tool and the model's id of the call."""
    match part:
        case ToolCallPart():
            text = part.arguments_text
            text = _json(part.arguments, into) if text is None else into.add_text(clean_text(text))
            return text, _text(part.name), _text(part.id)
        case ToolResultPart():
            content = part.content
            text = into.add_text(clean_text(content)) if isinstance(content, str) else _json(content, into)
            return text, _text(part.name), _text(part.call_id)
        case Other():
            return _json(part.value, into), None, None
        case Media():
            return _json(part.to_json(), into), None, None
        case _:
            return into.add_text(clean_text(part.text)), None, None


# Receipts and test results


def _read_receipt(source: CorpusSource, into: TableRows) -> None:
    receipt = read_replay_receipt(Path(source.path).read_bytes(), file=source.name)
    at = receipt.replayedAt
    replayed_at = time_us(at) if isinstance(at, int) else None
    same = (source.name, receipt.capture.captureId, replayed_at, receipt.matching.policy)
    for found in receipt.divergences:
        into.add(
            "divergences",
            *same,
            _text(found.get("code")),
            _int(found.get("eventSeq")),
            _text(found.get("jsonPath")),
            _text(found.get("detail")),
            _text(found.get("sourceLine")),
        )
    for refused in receipt.liveCallsRefused:
        detail = clean_text(f"{refused.kind} {refused.target}")
        into.add("divergences", *same, "live_call_refused", None, None, detail, _text(refused.frame))


_ABOUT: Final = ("capture", "replay_log", "replay_file")
"""Under which names a result's artifacts have what the test is about."""


def _read_test_result(source: CorpusSource, into: TableRows) -> None:
    result = read_result(Path(source.path).read_bytes(), source.name)
    about = next((result.artifacts[name] for name in _ABOUT if name in result.artifacts), None)
    same = (
        source.name,
        _text(result.test_case_id),
        clean_text(result.test_file),
        clean_text(result.test_run_id),
        result.status,
        time_us(moment(result.started_at).timestamp() * 1000),
        result.duration_ms,
        _text(about),
    )
    for found in result.assertions:
        into.add(
            "assertions",
            *same,
            clean_text(found.id),
            clean_text(found.type),
            found.severity,
            found.status,
            clean_text(found.message),
            _json(found.params, into),
            _json(found.observed, into),
        )
    if isinstance(result.error, TestError):
        into.add("assertions", *same, None, None, None, None, clean_text(result.error.message), None, None)
