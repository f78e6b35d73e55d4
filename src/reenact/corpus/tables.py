"""The tables of a corpus: their columns, a collector of rows, and conversions of values to cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    import pyarrow

ColumnType: TypeAlias = Literal["text", "json", "int", "float", "time", "bool"]
Rows: TypeAlias = dict[str, list[Any]]
"""Values by column; all lists have the same length."""


class Column(NamedTuple):
    """One column of a table; ``json`` is a JSON text, ``time`` is in UTC."""

    name: str
    type: ColumnType
    about: str


MAX_TEXT_BYTES: Final = 64 * 1024
"""Longer payloads are not in the tables, only in the run."""

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "runs": (
        Column("run", "text", "its path or address"),
        Column("kind", "text", "`capture`, `events`, `replay-log`, `replay-log-legacy`, `bundle` or `trace`"),
        Column("state", "text", "of a capture: `open`, `interrupted`, `complete` or `recovered`"),
        Column(
            "status", "text", "`ok`, `error`, or the format's own word; `unreadable` if it cannot be read"
        ),
        Column("capture_id", "text", ""),
        Column("run_id", "text", ""),
        Column("created_at", "time", ""),
        Column("completed_at", "time", ""),
        Column("duration_ms", "float", "as stated, otherwise from the first event to the last"),
        Column("provider", "text", "as in the manifest"),
        Column("model", "text", "as in the manifest"),
        Column("producer", "text", ""),
        Column("redaction", "text", "the profile"),
        Column("command", "json", "the arguments of the recorded command"),
        Column("exit_status", "int", ""),
        Column("error", "text", "the error that ended the run"),
        Column("final_output", "json", ""),
        Column("warnings", "int", "how many"),
        Column("events", "int", "how many"),
        Column("calls", "int", "the number of its rows in `calls`"),
        Column("errors", "int", "the number of failed calls"),
        Column("input_tokens", "int", "of all model calls"),
        Column("output_tokens", "int", ""),
        Column("cached_tokens", "int", "input tokens that came from a cache"),
        Column("size_bytes", "int", "of its events"),
        Column("problem", "text", "why it could not be read, or not completely"),
    ),
    "calls": (
        Column("run", "text", ""),
        Column("seq", "int", "the event that began it"),
        Column("outcome_seq", "int", "the event that ended it"),
        Column(
            "kind", "text", "`tool`, `model`, `state`, `message`, or the source of a value: `clock`, `rng`, …"
        ),
        Column("name", "text", ""),
        Column("tool", "text", "the name, if it is a tool"),
        Column("model", "text", "the name, if it is a model"),
        Column("state", "text", "`ok`, `error`, `cancelled` or `open`"),
        Column("started_at", "time", ""),
        Column("at_ms", "float", "since the first event of the run"),
        Column("latency_ms", "float", ""),
        Column("input_tokens", "int", ""),
        Column("output_tokens", "int", ""),
        Column("cached_tokens", "int", ""),
        Column("utility", "float", "if it is recorded"),
        Column("lane", "text", "the task that made it: `0.1` is the first that `0` started"),
        Column("parent_seq", "int", "the enclosing call"),
        Column("is_retry", "bool", "whether it repeats the previous call of its task, which failed"),
        Column("arguments", "json", "of a tool"),
        Column("result", "json", "of a tool"),
        Column("error", "json", "the error of a failed call"),
    ),
    "messages": (
        Column("run", "text", ""),
        Column("seq", "int", "the event of the model call"),
        Column("origin", "text", "`request` or `answer`; a request has only new messages"),
        Column("message", "int", "its number among the new messages of the call, from 0"),
        Column("part", "int", "its number in the message, from 0"),
        Column("role", "text", ""),
        Column(
            "kind", "text", "`text`, `thinking`, `tool_call`, `tool_result`, `media`, `refusal` or `other`"
        ),
        Column(
            "text", "text", "the arguments of a tool call, the content of a result; as JSON if it is not text"
        ),
        Column("tool", "text", "of a tool call, and of a result that names it"),
        Column("call_id", "text", "the model's own id of the tool call"),
    ),
    "events": (
        Column("run", "text", ""),
        Column("seq", "int", ""),
        Column("at", "time", ""),
        Column("type", "text", "as in a capture"),
        Column("name", "text", "the tool, the model, the kind of state, or the key of a value"),
        Column("call_id", "text", "the same for a call and its outcome"),
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
        Column("json_path", "text", "the first path that differs"),
        Column("detail", "text", ""),
        Column("source_line", "text", "the line of the agent's code that made the call"),
    ),
    "assertions": (
        Column("result", "text", "the file of the test result"),
        Column("test_case_id", "text", ""),
        Column("test_file", "text", ""),
        Column("test_run_id", "text", ""),
        Column("test_status", "text", "`pass`, `fail` or `error`"),
        Column("started_at", "time", ""),
        Column("duration_ms", "float", "of the whole test"),
        Column("run", "text", "the capture, log or bundle under test, as named in the result"),
        Column("id", "text", "of the assertion; empty if the test could not be run"),
        Column("type", "text", ""),
        Column("severity", "text", ""),
        Column("status", "text", "`pass`, `fail` or `skip`"),
        Column("message", "text", "the finding, or why the test could not be run"),
        Column("params", "json", ""),
        Column("observed", "json", ""),
    ),
}
KEYS: Final = {table: columns[0].name for table, columns in TABLES.items()}
"""The column that names the source of a row."""
SourceKind: TypeAlias = Literal["run", "receipt", "result"]


class CorpusSource(msgspec.Struct, frozen=True):
    """A run, receipt or test result that rows are made from."""

    name: str
    """The user's name for it, which is in the rows."""
    path: str
    """The path to read."""
    kind: SourceKind
    stamp: str = ""
    """Changes when the source does."""
    size_bytes: int = 0
    is_finished: bool = False
    """Whether its folder was the one of a finished capture when it was listed; ``False`` if unknown."""


class SourceReading(NamedTuple):
    """The result of reading a source."""

    problem: str | None
    """Why it could not be read, or not completely."""
    is_final: bool
    """Whether it changes only if it is written again; a run that is being recorded still changes."""


NeededColumns: TypeAlias = Mapping[str, Collection[str]]
"""By table, the columns to fill: the fewer, the faster. The key column is always included."""
ALL_COLUMNS: Final[NeededColumns] = {
    table: [column.name for column in columns] for table, columns in TABLES.items()
}


class TableRows:
    """A buffer for rows; columns that are not *needed* may be empty.

    Rows are added one by one, or as complete Arrow tables; their order is kept.
    """

    def __init__(self, needed: NeededColumns = ALL_COLUMNS) -> None:
        self.needed = needed
        self.rows: dict[str, Rows] = {
            table: {column.name: [] for column in columns} for table, columns in TABLES.items()
        }
        """The rows that were added one by one since the last Arrow table."""
        self._pieces: dict[str, list[pyarrow.Table]] = {table: [] for table in TABLES}
        self.text_bytes = 0
        """The approximate size of the rows."""

    def needs(self, table: str, *columns: str) -> bool:
        """Whether the table is needed; with *columns*, whether one of them is."""
        needed = self.needed.get(table, ())
        return any(column in needed for column in columns) if columns else bool(needed)

    def add(self, table: str, *values: object) -> None:
        """Add one row, with its values in the order of the columns."""
        self.extend(table, [values])

    def extend(self, table: str, rows: Collection[tuple[object, ...]]) -> None:
        """Add rows, each with its values in the order of the columns."""
        for column, values in zip(self.rows[table].values(), zip(*rows, strict=True), strict=bool(rows)):
            column += values
        self.text_bytes += sum([len(cell) if isinstance(cell, str) else 8 for row in rows for cell in row])

    def add_table(self, table: str, rows: pyarrow.Table) -> None:
        """Add a complete Arrow table."""
        self._finish_piece(table)
        if rows.num_rows:
            self._pieces[table].append(rows)
            self.text_bytes += rows.nbytes

    def mark(self) -> dict[str, int]:
        """The number of rows added one by one, for :meth:`cut`."""
        return {table: len(rows[KEYS[table]]) for table, rows in self.rows.items()}

    def cut(self, mark: Mapping[str, int]) -> None:
        """Drop the rows added since *mark*, even incomplete ones; no Arrow table was added since then."""
        for table, count in mark.items():
            for column in self.rows[table].values():
                del column[count:]

    def take(self) -> dict[str, pyarrow.Table]:
        """Return and clear the collected rows of all tables that have any."""
        import pyarrow as pa

        for table in TABLES:
            self._finish_piece(table)
        taken = {table: pa.concat_tables(pieces) for table, pieces in self._pieces.items() if pieces}
        self._pieces = {table: [] for table in TABLES}
        self.text_bytes = 0
        return taken

    def _finish_piece(self, table: str) -> None:
        rows = self.rows[table]
        if rows[KEYS[table]]:
            self._pieces[table].append(arrow_table(table, rows, self.needed.get(table, ())))
            for column in rows.values():
                column.clear()


def as_columns(table: str, rows: Sequence[tuple[object, ...]]) -> Rows:
    """Convert *rows*, whose values are in the order of the columns, to columns."""
    values = map(list, zip(*rows, strict=True)) if rows else ([] for _ in TABLES[table])
    return {column.name: cells for column, cells in zip(TABLES[table], values, strict=True)}


@lru_cache
def arrow_schema(table: str) -> pyarrow.Schema:
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "time": pa.timestamp("us"),  # DuckDB's unit
        "bool": pa.bool_(),
    }
    return pa.schema([(column.name, types[column.type]) for column in TABLES[table]])


def arrow_table(
    table: str, rows: Mapping[str, Sequence[Any] | pyarrow.Array], needed: Collection[str]
) -> pyarrow.Table:
    """*rows*, by column, with the types of *table*; columns that are not *needed* are null."""
    import pyarrow as pa

    schema = arrow_schema(table)
    count = len(rows[KEYS[table]])
    arrays = []
    for field in schema:
        values = rows[field.name] if field.name in needed else pa.nulls(count, field.type)
        arrays.append(values if isinstance(values, pa.Array) else pa.array(values, type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


# Values of cells

_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_MAX_NAME: Final = 200


def short_text(text: str) -> str | None:
    """A payload for a row; ``None`` if it is too long for a table."""
    return None if len(text) > MAX_TEXT_BYTES else text if text.isascii() else clean_text(text)


def short_json(value: object) -> str | None:
    """A value as JSON for a row; ``None`` if it is too long or cannot be encoded."""
    if value is None:
        return None
    try:
        return short_text(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError):
        return None  # a lone surrogate, or nested too deeply


def clean_text(text: str) -> str:
    """*text* as a table can hold it: a lone surrogate cannot be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def text_or_none(value: object) -> str | None:
    """A text as a table can hold it; ``None`` for other values."""
    return clean_text(value) if isinstance(value, str) else None


@lru_cache(maxsize=4096)
def clean_name(text: str) -> str:
    """A name as a table can hold it; cached, because there are few."""
    return clean_text(text[:_MAX_NAME])


def int_or_none(value: object) -> int | None:
    """An integer of at most 64 bits, else ``None``."""
    is_int = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return value if is_int else None  # type: ignore[return-value]  # mypy does not narrow it


def time_us(at_ms: float | None) -> int | None:
    """A time in microseconds; ``None`` if it is not between 1970 and 9999."""
    # The comparison is false for infinity and NaN.
    return int(at_ms) * 1000 if at_ms is not None and 0 <= at_ms <= _LATEST_MS else None
