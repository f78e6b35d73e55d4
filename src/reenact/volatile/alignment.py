"""Aligns the calls of two runs for ``reenact doctor``, which compares all that a replay compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from reenact import canonical
from reenact.canonical import JsonField
from reenact.comparing.alignment import Item, align, words_in_common

_WORD: Final = re.compile(rb"\w+")


def family(name: str) -> str:
    """The fixed part of a call's name: that of an HTTP call also has the URL, which may differ."""
    return name.partition(" ")[0] if name.startswith("network/") and "://" in name else name


class AlignedCall(NamedTuple):
    """The parts of a call that a replay compares."""

    seq: int
    lane: str
    type: str
    name: str
    request: JsonField
    parent_seq: int | None = None
    """The call inside which it was made."""
    has_own_clock: bool = False
    """Whether a program made the call whose clock is not recorded."""

    @property
    def kind(self) -> tuple[str, str]:
        return self.type, family(self.name)


class Alignment(NamedTuple):
    """The calls of two runs, side by side."""

    pairs: list[tuple[AlignedCall, AlignedCall]]
    only_in_one: list[AlignedCall]
    only_in_other: list[AlignedCall]


def align_calls(one: Sequence[AlignedCall], other: Sequence[AlignedCall]) -> Alignment:
    """Pair each call of *one* with its counterpart in *other*; every call is in the result once."""
    words, others_words = _words(one), _words(other)
    found = Alignment([], [], [])
    for left, right in align(
        _items(one), _items(other), lambda x, y: words_in_common(words[x], others_words[y])
    ):
        if left is not None and right is not None:
            found.pairs.append((one[left], other[right]))
        elif left is not None:
            found.only_in_one.append(one[left])
        elif right is not None:
            found.only_in_other.append(other[right])
    return found


def _items(calls: Sequence[AlignedCall]) -> list[Item]:
    places = {call.seq: place for place, call in enumerate(calls)}
    return [
        Item(
            key=(call.kind, canonical.digest(call.request)),
            like=call.kind,
            lane=call.lane,
            parent=-1 if call.parent_seq is None else places.get(call.parent_seq, -1),
        )
        for call in calls
    ]


def _words(calls: Sequence[AlignedCall]) -> list[frozenset[bytes]]:
    return [frozenset(_WORD.findall(canonical.encode(call.request))) for call in calls]
