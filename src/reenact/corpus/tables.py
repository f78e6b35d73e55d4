"""The tables of a corpus: their columns, rows being collected, and what the cells of any of them hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

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
        Column("is_retry", "bool", "whether it asks again what the call before it in its task had failed at"),
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
SourceKind: TypeAlias = Literal["run", "receipt", "result"]


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
    folder: str = ""
    """The mark of a capture's folder: while that is the same, so is the list of its files."""


class SourceReading(NamedTuple):
    """What came of reading a source."""

    problem: str | None
    """Why it could not be read, or not to its end."""
    is_final: bool
    """Whether it can only change by being written again; a run being recorded ends by itself."""


NeededColumns: TypeAlias = Mapping[str, Collection[str]]
"""By table, the columns that are to be made: the fewer, the faster. The key is one of them."""
ALL_COLUMNS: Final[NeededColumns] = {
    table: [column.name for column in columns] for table, columns in TABLES.items()
}


class TableRows:
    """Rows being collected, column by column; those of no *needed* column may be missing."""

    def __init__(self, needed: NeededColumns = ALL_COLUMNS) -> None:
        self.needed = needed
        self.rows: dict[str, Rows] = {
            table: {column.name: [] for column in columns} for table, columns in TABLES.items()
        }
        self.text_bytes = 0
        """About how much the rows hold."""

    def needs(self, table: str, *columns: str) -> bool:
        """Whether the table is asked for; with *columns*, whether one of them is."""
        needed = self.needed.get(table, ())
        return any(column in needed for column in columns) if columns else bool(needed)

    def add(self, table: str, *values: object) -> None:
        """One row, its values in the order of the columns."""
        self.extend(table, [values])

    def extend(self, table: str, rows: Collection[tuple[object, ...]]) -> None:
        """Rows, the values of each in the order of the columns."""
        for column, values in zip(self.rows[table].values(), zip(*rows, strict=True), strict=bool(rows)):
            column += values
        self.text_bytes += 200 * len(rows)

    def add_text(self, text: str | None) -> str | None:
        """A payload for a row; ``None`` where it is too long for a table."""
        if text is None or len(text) > MAX_TEXT_BYTES:
            return None
        self.text_bytes += len(text)
        return text

    def add_json(self, value: object) -> str | None:
        """A payload for a row, as JSON."""
        if value is None:
            return None
        try:
            return self.add_text(msgspec.json.encode(value).decode())
        except (TypeError, ValueError, RecursionError):
            return None  # a lone surrogate, or deeper than anybody nests

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
        taken = {
            table: arrow_table(table, rows, self.needed.get(table, ()))
            for table, rows in self.rows.items()
            if rows[KEYS[table]]
        }
        for rows in self.rows.values():
            for column in rows.values():
                column.clear()
        self.text_bytes = 0
        return taken


@lru_cache
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


def arrow_table(table: str, rows: Rows, needed: Collection[str]) -> pyarrow.Table:
    """*rows* with the types of *table*; nothing in columns that are not *needed*."""
    import pyarrow as pa

    schema = arrow_schema(table)
    count = len(rows[KEYS[table]])
    arrays = [
        pa.array(rows[field.name], type=field.type) if field.name in needed else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


# What cells hold

_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_MAX_NAME: Final = 200


def clean_text(text: str) -> str:
    """*text* as a table can hold it: half of a surrogate pair has no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def text_or_none(value: object) -> str | None:
    """A text as a table can hold it; ``None`` for what is no text."""
    return clean_text(value) if isinstance(value, str) else None


@lru_cache(maxsize=4096)
def clean_name(text: str) -> str:
    """A name as a table can hold it; there are few, so they are remembered."""
    return clean_text(text[:_MAX_NAME])


def int_or_none(value: object) -> int | None:
    """An integer as a table can hold it."""
    is_int = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_int else None  # type: ignore[return-value]  # it is one


def time_us(at_ms: float | None) -> int | None:
    """A time in microseconds; ``None`` where a clock was so far off that it is none."""
    # No infinity is between the two, nor what is no number.
    return int(at_ms) * 1000 if at_ms is not None and 0 <= at_ms <= _LATEST_MS else None
