"""A run as it is compared: what both formats have words for, each step with what makes it itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from reenact.analysis.artifact import Artifact
from reenact.analysis.content import Content
from reenact.formats.align import Item, words_in_common

_HELD: Final[Mapping[str, frozenset[str]]] = {
    "trace": frozenset({"tool", "model", "state", "message", "error", "verification"}),
    "bundle": frozenset({"tool", "state", "message", "error"}),
    "replay-log": frozenset({"tool", "plan", "verification"}),
}
"""The kinds of steps that a format has words for."""
_NOT_IN_CAPTURES: Final = frozenset({"message", "error", "verification", "plan"})
"""Captures have words for all but these; each source of values is a kind of its own there."""

Watch: TypeAlias = Callable[[int], None]
"""Told how many steps have been read."""


class Side:
    """One run as it is aligned and compared: the steps that the other's format could hold as well."""

    def __init__(self, artifact: Artifact, family: str, beside: str, watch: Watch) -> None:
        artifact.index()
        self.artifact = artifact
        self._is_coarse = family != beside
        rows = artifact.rows
        kinds = enumerate(rows.kinds[kind] for kind in rows.kind)
        self.places = [place for place, kind in kinds if not self._is_coarse or _holds(beside, kind)]
        self._numbers = {place: number for number, place in enumerate(self.places)}
        self.items: list[Item] = []
        self.came: list[str] = []
        self.words: list[frozenset[str]] = []
        for place in self.places:
            self._add(place)
            watch(1)

    def _add(self, place: int) -> None:
        rows, content = self.artifact.rows, self.content(place)
        kind, name = rows.kinds[rows.kind[place]], rows.names[rows.name[place]]
        asked = "" if self._is_coarse and kind == "model" else content.asked_digest
        lane = rows.lanes[rows.lane[place]]
        self.items.append(Item((kind, name, asked), (kind, _fixed(name)), lane, self._parent(place)))
        self.came.append("" if content.is_chance or self._is_coarse else content.came_digest)
        self.words.append(frozenset(self.artifact.at(place).asked.split()))

    def content(self, place: int) -> Content:
        """What the step at *place* of the run says; digests of another format know the marks of secrets."""
        content = self.artifact.content(place)
        return content if self._is_coarse else content.without_marks()

    def _parent(self, place: int) -> int:
        """The number of the nearest call around it that is compared."""
        parent = self.artifact.rows.parent[place]
        while parent >= 0 and parent not in self._numbers:
            parent = self.artifact.rows.parent[parent]
        return self._numbers.get(parent, -1)

    @property
    def left_out(self) -> int:
        return len(self.artifact) - len(self.places)


def family(artifact: Artifact) -> str:
    """Artifacts of one family say the same things."""
    kind = artifact.header().kind
    return {"events": "capture", "replay-log-legacy": "replay-log"}.get(kind, kind)


def similarity(ours: Side, theirs: Side, one: int, other: int) -> float:
    """How many words two calls of the same kind and name share in what they ask."""
    return words_in_common(ours.words[one], theirs.words[other])


def _holds(family: str, kind: str) -> bool:
    return kind not in _NOT_IN_CAPTURES if family == "capture" else kind in _HELD[family]


def _fixed(name: str) -> str:
    """What stays of a call's name when its arguments change: of an address the host."""
    method, scheme, address = name.partition("://")
    return f"{method}{scheme}{address.partition('/')[0]}"
