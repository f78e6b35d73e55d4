"""Choosing steps: by what the index knows of them at once, by their text only where that is asked for.

A term is ``KEY:VALUE`` or one word, ``!`` before it turns it round:

    kind:tool,model   tool:find_*   name:gpt-*   lane:0.1   state:error   error   text:"not found"   lamp

Values are compared whole, ``*`` and ``?`` stand for anything, ``,`` means or; a lane includes the lanes below
it. Any other word is looked for in what was recorded, in upper and lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.analysis.index import STATES, StepIndex
from reenact.analysis.sources.source import Source
from reenact.errors import UsageError

_Row: TypeAlias = Callable[[StepIndex, int, str], bool]


class Term(NamedTuple):
    """One condition."""

    key: str
    values: tuple[str, ...]
    is_negated: bool = False

    @classmethod
    def parse(cls, text: str) -> Term:
        """The term in *text*; :class:`UsageError` where it has none of the keys."""
        is_negated, body = text.startswith("!"), text.removeprefix("!")
        key, colon, value = body.partition(":")
        if not colon and body in STATES:
            key, colon, value = "state", ":", body
        if not colon or not re.fullmatch(r"[\w-]+", key) or value.startswith("//"):
            key, value = "text", body  # a sentence with a colon in it, or an address
        if key not in _KEYS:
            raise UsageError(f"--filter {text!r}: unknown key {key!r}; use one of {', '.join(_KEYS)}")
        if not value:
            raise UsageError(f"--filter {text!r}: says nothing to look for; write such as tool:search")
        values = (value,) if key == "text" else tuple(value.split(","))
        unknown = [each for each in values if key == "state" and each not in STATES]
        if unknown:
            raise UsageError(
                f"--filter {text!r}: unknown state {unknown[0]!r}; use one of {', '.join(STATES)}"
            )
        return cls(key, values, is_negated)

    def fits(self, source: Source, index: StepIndex, place: int) -> bool:
        if self.key == "text":
            found = self.values[0].lower() in _text_of(source, index, place)
        else:
            found = any(_ROWS[self.key](index, place, value) for value in self.values)
        return found is not self.is_negated


def parse_terms(texts: Iterable[str]) -> tuple[Term, ...]:
    """All terms of a filter; those that need no text come first, because they are judged at once."""
    terms = [Term.parse(text) for text in texts]
    return tuple(sorted(terms, key=lambda term: term.key == "text"))


def _is_kind(index: StepIndex, place: int, value: str) -> bool:
    return fnmatchcase(index.kinds[index.kind[place]], value)


def _is_named(index: StepIndex, place: int, value: str) -> bool:
    return fnmatchcase(index.names[index.name[place]], value)


def _is_tool(index: StepIndex, place: int, value: str) -> bool:
    return _is_kind(index, place, "tool") and _is_named(index, place, value)


def _is_in_lane(index: StepIndex, place: int, value: str) -> bool:
    lane = index.lanes[index.lane[place]]
    return fnmatchcase(lane, value) or lane.startswith(tuple(f"{value}{mark}" for mark in "./:"))


def _is_in_state(index: StepIndex, place: int, value: str) -> bool:
    return STATES[index.state[place]] == value


_ROWS: Final[Mapping[str, _Row]] = {
    "kind": _is_kind,
    "tool": _is_tool,
    "name": _is_named,
    "lane": _is_in_lane,
    "state": _is_in_state,
}
_KEYS: Final = (*_ROWS, "text")


def _text_of(source: Source, index: StepIndex, place: int) -> str:
    """All that was recorded of a step, in lower case; what is repeated from earlier calls is found there."""
    seqs = sorted({index.seq[place], index.outcome_seq[place]} - {0})
    events = [event for seq in seqs if (event := source.event(seq)) is not None]
    texts = [text for event in events for text in _texts(source, event.data)]
    return "\n".join([index.names[index.name[place]], *texts]).lower()


def _texts(source: Source, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _texts(source, child)
    elif isinstance(value, dict) and ("$blob" in value or "$json" in value):
        yield from _texts(source, source.resolved(value))
    elif isinstance(value, dict):
        for key, child in value.items():
            if key != "$ref":
                yield key
                yield from _texts(source, child)
    elif value is not None:
        yield str(value)
