"""Many literal texts looked for in one pass, at the speed of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

GROUP_SIZE: Final = 64
"""Up to so many literals are searched for with vector instructions."""

_MAX_TABLE: Final = 1000
"""So many literals are searched for with a table of all states; it would be too large for more."""

_TWINS: Final = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}
"""Beyond ASCII, what a pattern for any case takes for one of its letters."""

Search: TypeAlias = Callable[[bytes], Sequence[tuple[int, int, int]]]
"""Number of the literal, start, end; for every place where one stands."""


def literal_search(literals: Sequence[bytes], *, overlapping: bool = False) -> Search:
    """A search for all *literals* in one pass.

    Only one that is *overlapping* finds a literal that begins inside another, or as another does.
    """
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind
    except ImportError:
        return literal_search_one_by_one(literals)
    kind = Implementation.DFA if GROUP_SIZE < len(literals) < _MAX_TABLE else None
    if overlapping:
        every = BytesAhoCorasick(list(literals), implementation=kind).find_matches_as_indexes
        return lambda text: every(text, overlapping=True)
    first = BytesAhoCorasick(list(literals), matchkind=MatchKind.LeftmostFirst, implementation=kind)
    search: Search = first.find_matches_as_indexes
    return search


def literal_search_one_by_one(literals: Sequence[bytes]) -> Search:
    """The same without the library, which has no wheels for every platform; a pass per literal."""

    def places(text: bytes) -> Iterator[tuple[int, int, int]]:
        for number, literal in enumerate(literals):
            start = text.find(literal)
            while start >= 0:
                yield number, start, start + len(literal)
                start = text.find(literal, start + 1)

    return lambda text: list(places(text))


def to_searched(text: str) -> bytes:
    """A byte for each character, to look for literals of ASCII at the same places as in *text*."""
    if text.isascii():
        return text.encode()
    for twin, letter in _TWINS.items():
        text = text.replace(twin, letter)
    return text.encode("ascii", "replace")
