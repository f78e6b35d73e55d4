"""Replacements in a text, and the new positions after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """``text[start:end]`` becomes *new*."""

    start: int
    end: int
    new: str


def sort_edits(edits: Iterable[Edit], kept: Sequence[tuple[int, int]] = ()) -> list[Edit]:
    """Sort the edits, the longest first, and drop those that overlap one before or a span to be *kept*."""
    chosen: list[Edit] = []
    spans = iter(sorted(kept))
    span = next(spans, None)
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        while span is not None and span[1] <= edit.start:
            span = next(spans, None)
        if edit.start >= done and (span is None or edit.end <= span[0]):
            chosen.append(edit)
            done = edit.end
    return chosen


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Apply *edits*, which are sorted and do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, new in edits:
        pieces += (text[done:start], new)
        done = end
    return "".join((*pieces, text[done:]))


def move_cuts(cuts: Sequence[int], edits: Sequence[Edit]) -> list[int]:
    """The new positions of ascending *cuts*; one inside an edit moves to the end of the replacement."""
    after: list[int] = []
    shift = upcoming = 0
    for cut in cuts:
        while upcoming < len(edits) and edits[upcoming].end <= cut:
            shift += _growth(edits[upcoming])
            upcoming += 1
        inside = upcoming < len(edits) and edits[upcoming].start < cut
        after.append(edits[upcoming].end + shift + _growth(edits[upcoming]) if inside else cut + shift)
    return after


def move_spans(spans: Sequence[tuple[int, int]], edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """The new positions of ascending spans after *edits* outside of them."""
    places = move_cuts([place for span in spans for place in span], edits)
    return list(zip(places[::2], places[1::2], strict=True))


def _growth(edit: Edit) -> int:
    return len(edit.new) - (edit.end - edit.start)


def narrow_edit(start: int, old: str, new: str) -> Edit:
    """The edit that turns *old* at *start* into *new*, without their common prefix and suffix."""
    head = _common_length(old, new)
    tail = _common_length(old[:head:-1], new[:head:-1])
    return Edit(start + head, start + len(old) - tail, new[head : len(new) - tail])


def _common_length(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
