"""Columns of tables with a secret name in the header and values in the rows below.

The tables may be text (CSV, tabs, Markdown), HTML, an ``INSERT`` of SQL, or lists of rows in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit
from reenact.redaction.literals import matches_from, to_lowered
from reenact.redaction.names import HARMLESS, core_spans, is_secret_name
from reenact.redaction.placeholder import Placeholders

_MAX_HEAD: Final = 2000
_COLUMN: Final = LazyRegex(r"[\"'`]?[A-Za-z_][\w.\-]{0,60}[\"'`]?\Z")
_SEPARATORS: Final = ("\t", "|", ";", ",")
_CELLS: Final = {sign: LazyRegex(rf'"(?:[^"\n]|"")*+"|[^{re.escape(sign)}\n]++') for sign in _SEPARATORS}
_RULER: Final = LazyRegex(r"[\s|:+\-=]*\Z")
_HTML_ROW: Final = LazyRegex(r"<tr\b[^<>]{0,300}>(?:(?!</?tr\b).){0,10000}?</tr>", re.DOTALL | re.IGNORECASE)
_HTML_CELL: Final = LazyRegex(
    r"<t[hd]\b[^<>]{0,300}>(?P<cell>(?:(?!</?t[hd]\b).){0,2000}?)</t[hd]>", re.DOTALL | re.IGNORECASE
)
_INSERT: Final = LazyRegex(
    r"(?i:\binto)\s+[\w.\"`\[\]]{1,200}\s*\((?P<columns>[^()\n]{1,2000}+)\)\s*(?i:values)\s*"
    r"(?=(?P<rows>\([^()]{1,4000}+\)(?:\s*,\s*\([^()]{1,4000}+\))*+))"
)
_SQL_CELL: Final = LazyRegex(r"'(?P<quoted>(?:[^'\n]|'')*+)'|[^,'()\s]++")
_SQL_ROW: Final = LazyRegex(r"\((?P<cells>[^()]++)\)")

_CELL_BEFORE: Final = rb"(?:\\*[\"'`]?[a-z_][\w.\-]{0,60}\\*[\"'`]?(?:\\+t|[,;\t]) ?)"
_CELL_AFTER: Final = rb"(?:(?:\\+t|[,;\t]) ?\\*[\"'`]?[a-z_][\w.\-]{0,60}\\*[\"'`]?)"
HEAD_BEFORE: Final = re.compile(rb"(?:\A|\n|\\+n|\")" + _CELL_BEFORE + rb"{0,30}\\*[\"'`]?[\w.\-]{0,60}\Z")
HEAD_AFTER: Final = (
    rb"[\w.\-]{0,200}+\\*[\"'`]?" + _CELL_AFTER + rb"{0,30}(?:\r|\\+r)?(?:\n|\\+n)(?=[^\s\\]|\\+\")"
)
"""For the prefilter: the lowercase text around a name in the header of a table in text."""
AMONG_COLUMNS: Final = (
    rb"[\w.\-]{0,200}+\\*[\"'`]?(?:\s*,\s*\\*[\"'`]?[\w.\-]{1,60}\\*[\"'`]?){0,30}\s*"
    rb"(?:\]\s*,\s*(?:\\*\"\w{1,30}\\*\"\s*:\s*\[\s*)?\[|\)(?:\s|\\+[nrt])*values)"
)
"""For the prefilter: the text after a name in a list of columns in JSON or SQL."""

Span = tuple[int, int]


def table_edits(
    text: str, placeholders: Placeholders, is_lone_value: Callable[[str], bool]
) -> Iterator[Edit]:
    """Edits for the cells below secret names.

    A cell of Markdown or HTML must look like a value, since such tables may also compare things.
    """
    for head, cell, is_compared in (*_text_cells(text), *_html_cells(text), *_sql_cells(text)):
        start, end = cell
        value = text[start:end].strip(" \t\r\"'`")
        if is_cell_value(text[slice(*head)], value, is_lone_value, is_compared=is_compared):
            start = text.index(value, start)
            yield Edit(start, start + len(value), placeholders.of(value))


def is_cell_value(
    head: str, value: str, is_lone_value: Callable[[str], bool], *, is_compared: bool = False
) -> bool:
    """Whether *value* in a column with a secret name is a secret; a ``token`` column may hold plain words."""
    if len(value) < 4 or HARMLESS.match(value) or is_secret_name(value):
        return False
    is_doubtful = is_compared or head.strip(" \t\"'`*").lower() in ("token", "bearer")
    return not is_doubtful or is_lone_value(value)


def secret_columns(names: Sequence[object]) -> list[int]:
    """The positions of secret names, if *names* are two or more names of columns."""
    if len(names) < 2 or not all(isinstance(name, str) and _COLUMN.match(name) for name in names):
        return []
    return [at for at, name in enumerate(names) if is_secret_name(str(name).strip("\"'`"))]


def _text_cells(text: str) -> Iterator[tuple[Span, Span, bool]]:
    """Yield header, cell and whether it must look like a value, for each row below a line of column names."""
    done = 0
    for core_start, _ in core_spans(text) if "\n" in text else ():
        start, end = _line_span(text, core_start)
        if start < done or end == len(text) or end - start > _MAX_HEAD:
            continue
        done = end
        heads, columns, sign = _columns(text, start, end)
        while columns and end < len(text):
            start, end = _line_span(text, end + 1)
            cells = _cells(text, start, end, sign)
            if len(cells) == len(heads):
                yield from ((heads[at], cells[at], sign == "|") for at in columns)
            elif not _RULER.match(text, start, end) or start == end:
                break
            done = end


def _line_span(text: str, at: int) -> Span:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _columns(text: str, start: int, end: int) -> tuple[list[Span], list[int], str]:
    """The column names in a line, the positions of the secret ones, and the separator."""
    for sign in _SEPARATORS:
        heads = _cells(text, start, end, sign) if text.find(sign, start, end) >= 0 else []
        columns = secret_columns([text[slice(*head)].strip() for head in heads])
        if columns:
            return heads, columns, sign
    return [], [], ""


def _cells(text: str, start: int, end: int, sign: str) -> list[Span]:
    found = [cell.span() for cell in _CELLS[sign].finditer(text, start, end)]
    return [span for span in found if text[slice(*span)].strip()] if sign == "|" else found


def _html_cells(text: str) -> Iterator[tuple[Span, Span, bool]]:
    columns: list[int] = []
    heads: list[Span] = []
    for row in matches_from(_HTML_ROW, text, b"<tr"):
        cells = [cell.span("cell") for cell in _HTML_CELL.finditer(text, *row.span())]
        if columns and len(cells) == len(heads):
            yield from ((heads[at], cells[at], True) for at in columns)
        else:
            heads, columns = cells, secret_columns([text[slice(*cell)].strip() for cell in cells])


def _sql_cells(text: str) -> Iterator[tuple[Span, Span, bool]]:
    for insert in matches_from(_INSERT, text, b"into") if b"values" in to_lowered(text) else ():
        at = insert.start("columns")
        heads = _cells(text, at, insert.end("columns"), ",")
        columns = secret_columns([text[slice(*head)].strip() for head in heads])
        for row in _SQL_ROW.finditer(text, *insert.span("rows")) if columns else ():
            cells = [cell.span() for cell in _SQL_CELL.finditer(text, *row.span("cells"))]
            if len(cells) == len(heads):
                yield from ((heads[at], cells[at], False) for at in columns)
