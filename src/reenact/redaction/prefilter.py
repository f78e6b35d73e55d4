"""Whether a text may hold a secret at all, at the speed of memory.

Nearly every payload is clean, and each is asked. Literal texts without which no rule matches are
looked for first, all at once; only where one stands is its regular expression tried, at that place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

_GROUP_SIZE: Final = 64
"""Up to so many literals are searched for with vector instructions."""

_MAX_TABLE: Final = 1000
"""So many literals are searched for with a table of all states; it would be too large for more."""

_SMALL_BYTES: Final = 400
"""Up to here one search for everything is faster than one for each group."""

Search: TypeAlias = Callable[[bytes], Sequence[tuple[int, int, int]]]
"""Number of the literal, start, end; for every place where one stands."""


@dataclass(frozen=True)
class Trigger:
    """Literal *anchors*, and the pattern that decides at the place of one whether it means anything."""

    anchors: tuple[bytes, ...]
    confirm: re.Pattern[bytes]
    lowered: bool = False
    """Whether anchors and pattern are in lowercase and meant for text in any case."""


@dataclass(frozen=True)
class Check:
    """A question for the whole text, where it holds the character it *needs*, or always without one."""

    may_hold: Callable[[bytes], object]
    needs: str | None = None


class Prefilter:
    """Answers for a list of triggers at once, and for some checks one by one."""

    def __init__(self, triggers: Sequence[Trigger], checks: Sequence[Check] = ()) -> None:
        self._checks = [(ord(check.needs) if check.needs else None, check.may_hold) for check in checks]
        self._exact = _groups([trigger for trigger in triggers if not trigger.lowered])
        self._lowered = _groups([trigger for trigger in triggers if trigger.lowered])
        anchors = (anchor.lower() for trigger in triggers for anchor in trigger.anchors)
        self._find_any = literal_search(_without_longer(anchors))

    def may_hold_secret(self, text: bytes) -> bool:
        """False only if no rule behind a trigger or check can match anywhere in *text*."""
        lowered = text.lower()
        # In a small text all anchors are looked for at once, whatever their case: nearly always in vain.
        if (len(text) > _SMALL_BYTES or self._find_any(lowered)) and (
            _is_confirmed(self._exact, text) or _is_confirmed(self._lowered, lowered)
        ):
            return True
        # No generator: this runs for every recorded event.
        for needed, may_hold in self._checks:  # noqa: SIM110
            if (needed is None or needed in text) and may_hold(text):
                return True
        return False


Confirm: TypeAlias = Callable[[bytes, int], object]
Groups: TypeAlias = list[tuple[Search, list[Confirm]]]


def _groups(triggers: Sequence[Trigger]) -> Groups:
    confirms = _confirms(triggers)
    anchors = list(confirms)
    groups = [anchors[at : at + _GROUP_SIZE] for at in range(0, len(anchors), _GROUP_SIZE)]
    return [(literal_search(group), [confirms[anchor] for anchor in group]) for group in groups]


def _is_confirmed(groups: Groups, text: bytes) -> bool:
    for search, confirms in groups:
        for number, start, _ in search(text):
            if confirms[number](text, start):
                return True
    return False


def _confirms(triggers: Sequence[Trigger]) -> dict[bytes, Confirm]:
    """What to ask at the place of each anchor; longer anchors are found through shorter ones."""
    patterns: dict[bytes, list[re.Pattern[bytes]]] = {}
    pairs = [(anchor, trigger.confirm) for trigger in triggers for anchor in trigger.anchors]
    for anchor, pattern in sorted(pairs, key=lambda pair: len(pair[0])):
        shorter = next((known for known in patterns if anchor.startswith(known)), anchor)
        patterns.setdefault(shorter, []).append(pattern)
    return {anchor: _any_of(known) for anchor, known in patterns.items()}


def _without_longer(literals: Iterable[bytes]) -> list[bytes]:
    """Without those that begin with another one: where they stand, the other stands too."""
    kept: dict[bytes, None] = {}
    for literal in sorted(literals, key=len):
        if not any(literal[:length] in kept for length in range(1, len(literal) + 1)):
            kept[literal] = None
    return list(kept)


def _any_of(patterns: list[re.Pattern[bytes]]) -> Confirm:
    if len(patterns) == 1:
        return patterns[0].match
    return lambda text, start: any(pattern.match(text, start) for pattern in patterns)


def literal_search(literals: Sequence[bytes]) -> Search:
    """A search for all *literals* in one pass; none may be a prefix of another."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind
    except ImportError:
        return literal_search_one_by_one(literals)
    kind = Implementation.DFA if _GROUP_SIZE < len(literals) < _MAX_TABLE else None
    automaton = BytesAhoCorasick(list(literals), matchkind=MatchKind.LeftmostFirst, implementation=kind)
    search: Search = automaton.find_matches_as_indexes
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
