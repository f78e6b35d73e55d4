"""Replaces generated names in recorded answers by those of this run, in whole answers and in streams.

In a stream of server-sent events a name may be split over several events, each a separate JSON text. The
strings at the same path of these texts form one text, and the name is searched there. A stream keeps the
boundaries of its pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.volatile.places import bounded_pattern

_EVENT: Final = re.compile(r"^(?:data: ?)?(?P<json>\{.*\}) *\r?$", re.MULTILINE)
_TOKEN: Final = re.compile(r'"(?P<string>(?:[^"\\]|\\.)*)"|(?P<mark>[{}\[\],:])')
_WHICH: Final = re.compile(r'"(?:\w*index|item_id)": ?("[^"]*"|\d+)')
"""Members that say which of several texts an event continues."""
_LONG: Final = 12
"""A name of this length is replaced inside longer words, too; it cannot be there by accident."""


class AnswerEdit(NamedTuple):
    """Replace the characters from *start* to *end* by *text*."""

    start: int
    end: int
    text: str


_Fragment: TypeAlias = tuple[int, str]
"""The position and content of a part of a text."""


class Substitution:
    """Replaces names of the recording by those of this run."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._names = dict(names)
        forms = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_name_pattern, forms))) if forms else None

    def rename_in_value(self, value: object) -> Any:
        """A payload with every name replaced; unchanged if there are no names."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._pattern.sub(self._replace, value)
        if isinstance(value, bytes):
            return self._pattern.sub(self._replace, value.decode("latin-1")).encode("latin-1")
        if isinstance(value, dict):
            return {self.rename_in_value(key): self.rename_in_value(child) for key, child in value.items()}
        if isinstance(value, list):
            return [self.rename_in_value(child) for child in value]
        return value

    def rename_in_pieces(self, pieces: list[Any]) -> list[Any]:
        """The same for the pieces of a stream if all are text, or all bytes; others stay unchanged."""
        if self._pattern is None or not pieces:
            return pieces
        if all(isinstance(piece, str) for piece in pieces):
            return self._cut_again(pieces)
        if all(isinstance(piece, bytes) for piece in pieces):
            plain = self._cut_again([piece.decode("latin-1") for piece in pieces])
            return [piece.encode("latin-1") for piece in plain]
        return pieces

    def _cut_again(self, pieces: list[str]) -> list[str]:
        text = "".join(pieces)
        whole = list(self._edits([(0, text)]))
        apart = [
            edit
            for fragments in fragments_by_place(text)
            for edit in self._edits(fragments)
            if not any(other.start < edit.end and edit.start < other.end for other in whole)
        ]
        edits = sorted({*whole, *apart})
        return _apply(pieces, text, edits) if edits else pieces

    def _edits(self, fragments: list[_Fragment]) -> Iterator[AnswerEdit]:
        """The edits that replace all names in the text that *fragments* form."""
        assert self._pattern is not None
        for found in self._pattern.finditer("".join(part for _, part in fragments)):
            yield from _spread_edit(fragments, found.span(), self._names[found[0]])

    def _replace(self, found: re.Match[str]) -> str:
        return self._names[found[0]]


def fragments_by_place(text: str) -> list[list[_Fragment]]:
    """The strings in a stream's events, grouped by their path: each group is one text in parts."""
    places: dict[tuple[object, ...], list[_Fragment]] = {}
    for event in _EVENT.finditer(text):
        which = tuple(_WHICH.findall(event["json"]))
        for path, start, content in _strings(event["json"]):
            places.setdefault((which, path), []).append((event.start("json") + start, content))
    return [fragments for fragments in places.values() if len(fragments) > 1]


def _strings(text: str) -> Iterator[tuple[tuple[object, ...], int, str]]:
    """Every string of a JSON text that is no key: its path, its position, and its escaped content."""
    path: list[Any] = []
    key: str | None = None
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark is None:
            is_key = text[token.end() :].lstrip()[:1] == ":" if path and isinstance(path[-1], str) else False
            if is_key:
                key = token["string"]
                path[-1] = key
            else:
                yield tuple(path), token.start("string"), token["string"]
        elif mark in "{[":
            path.append("" if mark == "{" else 0)
        elif mark in "}]":
            del path[-1:]
        elif mark == "," and path and isinstance(path[-1], int):
            path[-1] += 1


def _spread_edit(fragments: list[_Fragment], span: tuple[int, int], text: str) -> Iterator[AnswerEdit]:
    """Replace a name that spans *fragments* by *text*; each fragment but the last keeps its length."""
    ends = list(accumulate(len(part) for _, part in fragments))
    touched = [
        (start, part, end - len(part))
        for (start, part), end in zip(fragments, ends, strict=True)
        if end > span[0] and end - len(part) < span[1] and part
    ]
    for number, (start, part, before) in enumerate(touched):
        begin, end = max(span[0], before), min(span[1], before + len(part))
        is_last = number == len(touched) - 1
        new = text[begin - span[0] :] if is_last else text[begin - span[0] : end - span[0]]
        yield AnswerEdit(start + begin - before, start + end - before, new)


def _apply(pieces: list[str], text: str, edits: list[AnswerEdit]) -> list[str]:
    """*text* with *edits*, cut into pieces at the same positions."""
    whole: list[str] = []
    position = 0
    for edit in edits:
        whole += [text[position : edit.start], edit.text]
        position = edit.end
    whole.append(text[position:])
    moved = _position_map(edits)
    cuts = [0, *map(moved, accumulate(map(len, pieces)))]
    result = "".join(whole)
    return [result[cuts[number] : cuts[number + 1]] for number in range(len(pieces))]


def _position_map(edits: list[AnswerEdit]) -> Callable[[int], int]:
    def moved(position: int) -> int:
        shift = 0
        for edit in edits:
            if edit.end <= position:
                shift += len(edit.text) - (edit.end - edit.start)
            elif edit.start < position:
                return edit.start + shift + min(position - edit.start, len(edit.text))
        return position + shift

    return moved


def _name_pattern(name: str) -> str:
    """A pattern for *name*; a short name matches only as a whole word."""
    if name.startswith(("/", "\\/", "%2F", "~", "file://")):
        return bounded_pattern(name)
    plain = re.escape(name)
    return plain if len(name) >= _LONG else rf"(?<![0-9A-Za-z]){plain}(?![0-9A-Za-z])"
