"""JSON inside text, edited in place: spacing, order and escapes of what is not secret stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from reenact.redaction.edits import Edit, narrowed

_TOKEN: Final = re.compile(
    r'"(?P<body>(?:[^"\\]|\\.)*+)"(?P<colon>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<mark>[\[\]{},])|[a-z]+'
)
_LINE: Final = re.compile(r"^(?:data:[ \t]?)?([\[{].*[\]}])[ \t]*\r?$", re.MULTILINE)

_decode: Final = msgspec.json.Decoder(msgspec.Raw).decode


@dataclass(frozen=True)
class Scalar:
    """A string or number in a JSON text, or the name of a member."""

    start: int
    end: int
    """Quotes excluded."""
    value: str
    path: tuple[str | int, ...]
    is_string: bool
    is_name: bool = False

    @property
    def name(self) -> str | None:
        """The name of the member whose value this is; None for an item of an array."""
        last = self.path[-1] if self.path and not self.is_name else None
        return last if isinstance(last, str) else None


def json_spans(text: str) -> list[tuple[int, int]]:
    """Where *text* is JSON: all of it, or its lines (NDJSON, the ``data:`` lines of server-sent events)."""
    if is_json(text):
        return [(0, len(text))]
    return [match.span(1) for match in _LINE.finditer(text) if is_json(match[1])]


def is_json(text: str) -> bool:
    """Whether *text* is an object or array."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        _decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def scalars(text: str, start: int, end: int) -> Iterator[Scalar]:
    """All names, strings and numbers of the JSON in ``text[start:end]``, with the path of each."""
    path: list[str | int] = []
    for token in _TOKEN.finditer(text, start, end):
        if mark := token["mark"]:
            _step(path, mark)
        elif token["number"]:
            yield Scalar(*token.span(), token[0], tuple(path), is_string=False)
        elif (body := token["body"]) is not None:
            value = _unescaped(body)
            is_name = token["colon"] is not None
            if is_name:
                path[-1] = value
            yield Scalar(*token.span("body"), value, tuple(path), is_string=True, is_name=is_name)


def _step(path: list[str | int], mark: str) -> None:
    if mark == "{":
        path.append("")
    elif mark == "[":
        path.append(0)
    elif mark != ",":
        path.pop()
    elif isinstance(last := path[-1], int):
        path[-1] = last + 1


def _unescaped(body: str) -> str:
    value: str = json.loads(f'"{body}"', strict=False) if "\\" in body else body
    return value


def escaped(value: str) -> str:
    """The text between the quotes of a JSON string."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


def scalar_edit(text: str, scalar: Scalar, new: str) -> Edit:
    """The edit that gives *scalar* another value; a number becomes a string."""
    if not scalar.is_string:
        return Edit(scalar.start, scalar.end, f'"{escaped(new)}"')
    return narrowed(scalar.start, text[scalar.start : scalar.end], escaped(new))
