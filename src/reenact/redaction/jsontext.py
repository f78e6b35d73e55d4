"""Edits JSON inside text in place; the spacing, order and escapes of other values are kept.

Streams of model output have this form: NDJSON and the ``data:`` lines of server-sent events. A secret may be
split over several events, so the strings of one delta member in all events are joined and read as one text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit, narrow_edit
from reenact.redaction.literals import to_searched

Leaf: TypeAlias = str | int | float

_TOKEN: Final = LazyRegex(
    r'"(?P<body>(?:[^"\\]|\\.)*+)"(?P<colon>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<mark>[\[\]{},])|[a-z]+'
)
_LINE: Final = LazyRegex(r"^(?:data:[ \t]?)?([\[{].*[\]}])[ \t]*\r?$", re.MULTILINE)
_LINE_STARTS: Final = (b"{", b"[", b"data:")

_decode: Final = msgspec.json.Decoder(msgspec.Raw).decode


@dataclass(frozen=True)
class Scalar:
    """A string or number in a JSON text, or the name of a member."""

    start: int
    end: int
    """Start and end are without the quotes."""
    value: str
    path: tuple[str | int, ...]
    is_string: bool
    is_name: bool = False

    @property
    def name(self) -> str | None:
        """The name of the member whose value this is; ``None`` for an item of an array."""
        last = self.path[-1] if self.path and not self.is_name else None
        return last if isinstance(last, str) else None


def json_spans(text: str) -> list[tuple[int, int]]:
    """The spans of JSON in *text*: all of it, or lines (NDJSON, ``data:`` lines of server-sent events)."""
    if is_json(text):
        return [(0, len(text))]
    # A multi-line expression is tried at every character, so search for line starts first.
    searched = to_searched(text)
    if not searched.startswith(_LINE_STARTS) and not any(b"\n" + start in searched for start in _LINE_STARTS):
        return []
    return [match.span(1) for match in _LINE.finditer(text) if is_json(match[1])]


def is_json(text: str) -> bool:
    """Whether *text* is a JSON object or array."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        _decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def scalars(text: str, start: int, end: int) -> Iterator[Scalar]:
    """Yield all names, strings and numbers of the JSON in ``text[start:end]``."""
    path: list[str | int] = []
    for token in _TOKEN.finditer(text, start, end):
        if mark := token["mark"]:
            _step(path, mark)
        elif token["number"]:
            yield Scalar(*token.span(), token[0], tuple(path), is_string=False)
        elif (body := token["body"]) is not None:
            value = _unescape(body)
            is_name = token["colon"] is not None
            if is_name:
                path[-1] = value
            yield Scalar(*token.span("body"), value, tuple(path), is_string=True, is_name=is_name)


def leaves(value: object) -> Iterator[Leaf]:
    """Yield all names, strings and numbers of a decoded JSON value, in the order of :func:`scalars`."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _step(path: list[str | int], mark: str) -> None:
    if mark == "{":
        path.append("")
    elif mark == "[":
        path.append(0)
    elif mark != ",":
        path.pop()
    elif isinstance(last := path[-1], int):
        path[-1] = last + 1


def _unescape(body: str) -> str:
    value: str = json.loads(f'"{body}"', strict=False) if "\\" in body else body
    return value


def escape(value: str) -> str:
    """The text between the quotes of a JSON string."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


def scalar_edit(text: str, scalar: Scalar, new: str) -> Edit:
    """The edit that gives *scalar* another value; a number becomes a string."""
    if not scalar.is_string:
        return Edit(scalar.start, scalar.end, f'"{escape(new)}"')
    return narrow_edit(scalar.start, text[scalar.start : scalar.end], escape(new))


DELTAS: Final = (
    *("answer", "arguments", "chunk", "code", "completion", "content", "data", "delta", "generated_text"),
    *("input", "message", "output", "output_text", "partial_json", "reasoning", "reasoning_content"),
    *("reasoning_text", "refusal", "response", "summary", "text", "thinking", "token", "transcript", "value"),
)
"""Members in which providers and compatible servers stream text, arguments and reasoning."""

_PIECES: Final = [
    (f'"{name}"'.encode(), LazyRegex(f'"{name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*+)"'.encode()))
    for name in DELTAS
]
_NUMBERED: Final = LazyRegex(rb'ndex"\s*:\s*(\d+)')
_INDEX_NAME: Final = LazyRegex(r"(?:\w*[iI]ndex|item_id)\Z")


def is_suspect_stream(stream: bytes, is_suspect: Callable[[bytes], bool]) -> bool:
    """Whether a secret may be split over several events; a fast check that does not unescape strings."""
    found = [(name, piece) for name, piece in _PIECES if name in stream]
    if not found:
        return False
    indexes = list(map(int, _NUMBERED.findall(stream)))
    if any(after < before for before, after in pairwise(indexes)):
        return _is_suspect_in_turns(stream, found, is_suspect)
    return any(is_suspect(b"".join(piece.findall(stream))) for _, piece in found)


def _is_suspect_in_turns(
    stream: bytes, found: Sequence[tuple[bytes, LazyRegex[bytes]]], is_suspect: Callable[[bytes], bool]
) -> bool:
    """The check for a stream with interleaved outputs: the events of each output are joined separately."""
    texts: dict[object, list[bytes]] = {}
    for line in stream.splitlines():
        indexes = tuple(_NUMBERED.findall(line))
        for name, piece in found:
            if name in line and (pieces := piece.findall(line)):
                if len(pieces) > 1:
                    return True  # several outputs in one event: this check cannot tell them apart
                texts.setdefault((name, indexes), []).extend(pieces)
    return any(is_suspect(b"".join(pieces)) for pieces in texts.values())


def delta_edits(text: str, redact: Callable[[Sequence[str]], list[str]]) -> Iterator[Edit]:
    """Edits for secrets that *redact* finds in the text joined from several events.

    Indexes and ids around the pieces say which belong together. Some servers use a new item id for each event
    or give no index, so the pieces are also joined without ids, and by path alone.
    """
    for identify in (_identify_by_indexes_and_ids, _identify_by_indexes, _identify_by_path):
        deltas: dict[object, list[Scalar]] = {}
        for span in json_spans(text):
            event = list(scalars(text, *span))
            indexes = {scalar.path: scalar.value for scalar in event if _INDEX_NAME.match(scalar.name or "")}
            for scalar in event:
                if scalar.is_string and scalar.name in DELTAS:
                    deltas.setdefault(identify(scalar.path, indexes), []).append(scalar)
        edits = [
            scalar_edit(text, piece, new)
            for pieces in deltas.values()
            for piece, new in zip(pieces, redact([piece.value for piece in pieces]), strict=True)
            if new != piece.value
        ]
        if edits:  # the caller repeats this until there are none
            yield from edits
            return


_Path: TypeAlias = tuple[str | int, ...]


def _identify_by_indexes_and_ids(path: _Path, indexes: dict[_Path, str]) -> object:
    """The path, in which an object's own index or id replaces its position in the array."""
    slots: list[object] = []
    for depth in range(len(path)):
        own = {index[-1]: value for index, value in indexes.items() if index[:-1] == path[:depth]}
        if own and slots and isinstance(slots[-1], int):
            slots.pop()
        slots += [*sorted(own.items()), path[depth]]
    return tuple(slots)


def _identify_by_indexes(path: _Path, indexes: dict[_Path, str]) -> object:
    return _identify_by_indexes_and_ids(
        path, {at: value for at, value in indexes.items() if at[-1] != "item_id"}
    )


def _identify_by_path(path: _Path, indexes: dict[_Path, str]) -> object:  # noqa: ARG001 — all three are called alike
    return path
