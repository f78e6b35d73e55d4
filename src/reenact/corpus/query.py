"""SQL over runs with DuckDB: over an index if one is given, else over the runs themselves."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reenact.corpus.parts import (
    check_files,
    is_corpus,
    keeping_files,
    local_corpus,
    read_corpus,
    require_arrow,
    without_garbage_collection,
)
from reenact.corpus.rows import read_sources
from reenact.corpus.sources import find_sources, root_of
from reenact.corpus.stored import corpus_address
from reenact.corpus.tables import ALL_COLUMNS, KEYS, TABLES, NeededColumns, TableRows, arrow_schema
from reenact.errors import StoreError, UsageError
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.outfile import open_output

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_CHUNK_BYTES: Final = 64 * 1024 * 1024
_READING: Final = ("SELECT", "EXPLAIN", "MULTI")
"""Read-only statements; DuckDB calls ``PIVOT`` ``MULTI``."""
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""DuckDB must not download extensions."""


class QueryColumn(msgspec.Struct, frozen=True):
    """A column of a result, with the type that DuckDB gives it."""

    name: str
    type: str


class QueryReport(msgspec.Struct, frozen=True):
    """The result of :func:`query`."""

    columns: list[QueryColumn]
    rows: list[tuple[Any, ...]]
    problems: list[str]
    """Runs that could not be read, or not completely."""


class QueryResult(AbstractContextManager["QueryResult"]):
    """The result of :func:`open_query`, which is read in batches, once."""

    def __init__(
        self,
        reader: pyarrow.RecordBatchReader,
        columns: list[QueryColumn],
        problems: list[str],
        stack: ExitStack,
    ) -> None:
        self._reader = reader
        self.columns = columns
        self.problems = problems
        """Runs that could not be read, or not completely."""
        self._stack = stack

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """All rows, as Python values."""
        with _in_one_line():
            for batch in self._reader:
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def write_parquet(self, file: str | Path, *, replace: bool = False) -> None:
        """Write all rows to *file*."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with (
                _in_one_line(),
                open_output(Path(file), replace=replace) as stream,
                pq.ParquetWriter(stream, self._reader.schema, compression="zstd") as writer,
            ):
                for batch in self._reader:
                    writer.write_batch(batch)
        except pa.ArrowNotImplementedError as error:
            reason = f"Parquet has no such type: {error}; cast that column to varchar"
            raise UsageError(f"{file}: {reason}") from None

    def close(self) -> None:
        """Remove what the query needed."""
        self._stack.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def query(sql: str, *paths: str | Path, progress_bar: ProgressBar = no_progress_bar) -> QueryReport:
    """Run *sql* over the tables of *paths*: one corpus, or runs and folders of runs.

    The tables are ``runs``, ``calls``, ``messages``, ``events``, ``divergences`` and ``assertions``. Raises
    :class:`UsageError` if DuckDB rejects *sql*.
    """
    with open_query(sql, paths, progress_bar=progress_bar) as result:
        return QueryReport(result.columns, list(result.rows()), result.problems)


def open_query(
    sql: str, paths: Sequence[str | Path], *, progress_bar: ProgressBar = no_progress_bar
) -> QueryResult:
    """Like :func:`query`, but without holding the whole result in memory."""
    require_arrow()
    import duckdb

    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(keeping_files(Path(path)))
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="reenact-query-"))
        connection = duckdb.connect(":memory:", config={**_CONFIG, "temp_directory": scratch})
        stack.callback(connection.close)
        with _in_one_line():
            _refuse_changes(connection, sql)
            problems = _make_tables(connection, sql, paths, progress_bar, stack)
            relation = connection.sql(sql)
            types = zip(relation.columns, relation.types, strict=True)
            columns = [QueryColumn(name, str(kind)) for name, kind in types]
            reader = relation.to_arrow_reader(10_000)
        return QueryResult(reader, columns, problems, stack.pop_all())


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Turn DuckDB's errors into one-line errors of ours."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        raise StoreError(_first_line(error)) from None
    except duckdb.Error as error:
        damaged = _PART.search(str(error))
        if damaged is not None:
            raise StoreError(
                f"{damaged[1]}: is damaged; build the index again with: reenact index --full"
            ) from None
        missing = _EXTENSION.search(str(error))
        if missing is not None:
            reason = f"{missing[1]} takes DuckDB's extension {missing[2]}, and reenact downloads nothing"
            raise UsageError(f"SQL: {reason}; name a file on this machine") from None
        raise UsageError(f"SQL: {_first_line(error)}") from None


_PART: Final = re.compile(r"['\"]([^'\"]*/\d{8}\.parquet)['\"]")
"""A corpus file in an error message of DuckDB."""
_EXTENSION: Final = re.compile(r"File (\S+) requires the extension (\w+) to be loaded")
_POSITION: Final = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^")


def _first_line(error: Exception) -> str:
    text = str(error)
    place = _POSITION.search(text)
    said = " ".join(text[: place.start() if place else None].split())
    if place is None:
        return said
    column = len(place[3]) - len(f"LINE {place[1]}: ") + 1
    return f"{said} (line {place[1]}, column {max(column, 1)})"


def _refuse_changes(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    if not sql.isascii() and sql != sql.encode("utf-8", "replace").decode():
        raise UsageError("SQL: is not UTF-8; write it in UTF-8")
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(f"SQL: there are {len(statements)} statements; write one")
    kind = statements[0].type.name
    if kind not in _READING:
        raise UsageError(
            f"SQL: {kind} changes something; write one SELECT, --csv and --parquet write its rows"
        )


def _make_tables(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    paths: Sequence[str | Path],
    progress_bar: ProgressBar,
    stack: ExitStack,
) -> list[str]:
    """Create the tables that *sql* needs; returns the problems of runs that could not be read."""
    if not paths:
        raise UsageError("name a corpus, or runs to query")
    corpora = [path for path in paths if is_corpus(path)]
    if corpora and len(paths) > 1:
        raise UsageError(f"{corpora[0]}: is a corpus; it is asked alone, index all runs into one")
    needed = needed_by(connection, sql)
    if corpora:
        folder = stack.enter_context(local_corpus(corpora[0], needed))
        is_local = corpus_address(corpora[0]) is None
        files = check_files(folder, read_corpus(folder), TABLES if is_local else needed)
        # A view takes 1 ms. With all of them, DuckDB suggests a name in place of an unknown one.
        _view_corpus(connection, {table: files[table] for table in needed or files})
        return []
    return _read_runs(connection, needed, [Path(path) for path in paths], progress_bar)


def _view_corpus(connection: duckdb.DuckDBPyConnection, found: Mapping[str, Sequence[str]]) -> None:
    for table, files in found.items():
        if files:
            names = ", ".join(f"'{name}'" for name in (file.replace("'", "''") for file in files))
            connection.execute(f"create view {table} as select * from read_parquet([{names}])")
        else:
            connection.register(table, arrow_schema(table).empty_table())


def _read_runs(
    connection: duckdb.DuckDBPyConnection,
    needed: NeededColumns,
    paths: Iterable[Path],
    progress_bar: ProgressBar,
) -> list[str]:
    import pyarrow as pa

    roots = [root_of(path) for path in paths]
    sources = list(find_sources(roots))
    found: dict[str, list[pa.Table]] = {table: [arrow_schema(table).empty_table()] for table in TABLES}
    rows, problems = TableRows(needed), []
    with progress_bar(len(sources), "reading") as progress, without_garbage_collection():
        for reading in read_sources(sources, rows):
            if reading.problem is not None:
                problems.append(reading.problem)
            if rows.text_bytes > _CHUNK_BYTES:
                _keep(rows, found)
            progress(1)
    _keep(rows, found)
    for table, pieces in found.items():
        connection.register(table, pa.concat_tables(pieces))
    return problems


def _keep(rows: TableRows, found: dict[str, list[pyarrow.Table]]) -> None:
    for table, piece in rows.take().items():
        found[table].append(piece)


def needed_by(connection: duckdb.DuckDBPyConnection, sql: str) -> NeededColumns:
    """The columns that *sql* needs; all of them if that cannot be determined."""
    [(serialized,)] = connection.execute("select json_serialize_sql(?)", [sql]).fetchall()
    tree: Any = msgspec.json.decode(serialized)
    if tree.get("error") or "statements" not in tree:
        return ALL_COLUMNS
    named = _Named()
    named.walk(tree["statements"])
    if named.has_function:
        return ALL_COLUMNS
    tables = [table for table in TABLES if table in named.texts]
    if named.means_all or named.aliases & named.alone:
        return {table: ALL_COLUMNS[table] for table in tables}
    return {
        table: [name for name in ALL_COLUMNS[table] if name in named.texts or name == KEYS[table]]
        for table in tables
    }


class _Named:
    """Collects all names in a query: one too many costs time, a missing one would give a wrong result."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.aliases: set[str] = set(TABLES)
        self.alone: set[str] = set()
        """Column names without a table; if one is also the name of a table, it means its whole row."""
        self.means_all = False
        """Whether the query may use columns that it does not name."""
        self.has_function = False
        """Whether it has a table function, which may get a query as text."""

    def walk(self, value: object) -> None:
        if isinstance(value, dict):
            self._look_at(value)
            for child in value.values():
                self.walk(child)
        elif isinstance(value, list):
            for child in value:
                self.walk(child)
        elif isinstance(value, str):
            self.texts.add(value.lower())

    def _look_at(self, node: dict[str, Any]) -> None:
        # A natural join compares all columns that two tables share; the others name columns by position.
        self.means_all |= node.get("class") in ("STAR", "POSITIONAL_REFERENCE")
        self.means_all |= node.get("ref_type") == "NATURAL" or bool(node.get("column_name_alias"))
        self.means_all |= node.get("type") in ("SHOW_REF", "PIVOT")
        self.has_function |= node.get("type") == "TABLE_FUNCTION"
        if node.get("type") == "BASE_TABLE":
            self.aliases.add(str(node.get("alias") or node.get("table_name")).lower())
        if node.get("class") == "COLUMN_REF" and len(node.get("column_names", ())) == 1:
            self.alone.add(str(node["column_names"][0]).lower())
