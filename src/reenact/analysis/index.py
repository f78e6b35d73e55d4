"""Where the steps of a run are, and what can be told of each without reading it: a row of numbers per step.

A million steps take some 75 MB, whatever their size. Rows are only ever added; the row of a call is completed
when its outcome comes.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.analysis.sources.source import ASKING, OUTSIDE, Head

State: TypeAlias = Literal["ok", "error", "cancelled", "open"]
STATES: Final[tuple[State, ...]] = ("ok", "error", "cancelled", "open")
_OPEN: Final = 3
MAX_COLUMNS: Final = 64
"""Calls beyond so many at once share the last column."""
_MAX_NAME: Final = 200
_TOKENS: Final = ("inputTokens", "outputTokens", "cachedInputTokens")


class Tokens(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one model call, or all of them, used."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    """How many of *input* were read from a cache, where the provider counts them there."""

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input, self.output + other.output, self.cached_input + other.cached_input
        )

    @property
    def total(self) -> int:
        return self.input + self.output


class Names:
    """Texts as numbers; each is kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    def number(self, text: str) -> int:
        text = text[:_MAX_NAME]
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)


class StepIndex:
    """The steps of a run in the order in which they began; ``place`` counts them from 0."""

    def __init__(self) -> None:
        self.kinds, self.names, self.lanes = Names(), Names(), Names()
        self.models: Counter[str] = Counter()
        self.tokens: dict[str, Tokens] = {}
        """By model."""
        self.kind_counts: Counter[str] = Counter()
        self.state_counts: Counter[str] = Counter()
        self.start_ms: float | None = None
        self.end_ms: float = 0.0
        self.seq, self.outcome_seq = array("I"), array("I")
        self.at_ms, self.took_ms = array("d"), array("d")
        """Since the first event; how long, ``nan`` where that is not known."""
        self.kind, self.name, self.lane = array("H"), array("I"), array("I")
        self.parent = array("i")
        """The place of the call inside which it was made, -1 outside of any."""
        self.depth, self.column = array("H"), array("B")
        self.columns = 0
        """How many columns are taken."""
        self.beside = array("Q")
        """One bit for each column in which another call was open when the step began."""
        self.state = array("B")
        self.input_tokens, self.output_tokens, self.cached_tokens = array("I"), array("I"), array("I")
        self.utility = array("f")
        self._open: dict[str, int] = {}
        self._open_columns = 0
        self._users = Counter[int]()

    def __len__(self) -> int:
        return len(self.seq)

    def is_open(self, start: int, stop: int) -> bool:
        """Whether a step from place *start* to *stop* still waits for its outcome."""
        return any(start <= place < stop for place in self._open.values())

    def place_of(self, seq: int) -> int | None:
        """The step that the event *seq* began or ended; ``None`` where it did neither."""
        place = bisect_left(self.seq, seq)
        if place < len(self) and self.seq[place] == seq:
            return place
        # An outcome is behind its call and mostly near it.
        before = range(place - 1, -1, -1)
        return next((each for each in before if self.outcome_seq[each] == seq), None)

    def add(self, head: Head) -> None:
        """Take up the next event."""
        if self.start_ms is None:
            self.start_ms = head.ts
        self.end_ms = max(self.end_ms, head.ts - self.start_ms)
        call_id = head.data.callId
        if call_id is not None and call_id in self._open and head.type not in ASKING:
            self._end(self._open.pop(call_id), head)
        elif head.type not in OUTSIDE:
            self._begin(head)

    def _begin(self, head: Head) -> None:
        assert self.start_ms is not None
        data, place = head.data, len(self)
        parent = self._open.get(data.parent, -1) if data.parent is not None else -1
        column = self._free_column()
        self.seq.append(head.seq)
        self.outcome_seq.append(0)
        self.at_ms.append(head.ts - self.start_ms)
        self.took_ms.append(math.nan)
        self.kind.append(self.kinds.number(head.kind))
        self.name.append(self.names.number(head.name))
        self.lane.append(self.lanes.number(data.lane))
        self.parent.append(parent)
        self.depth.append(0 if parent < 0 else min(self.depth[parent] + 1, 0xFFFF))
        self.column.append(column)
        self.columns = max(self.columns, column + 1)
        self.beside.append(self._open_columns)
        self.state.append(_OPEN)
        for tokens in (self.input_tokens, self.output_tokens, self.cached_tokens):
            tokens.append(0)
        self.utility.append(math.nan)
        self.kind_counts[head.kind] += 1
        self.state_counts["open"] += 1
        # A read of state has an id for what happens inside it, but is written when it is over.
        if data.callId is None or head.type == "state_mutation":
            self._close(place, head)
        else:
            self._open[data.callId] = place
            self._open_columns |= 1 << column
            self._users[column] += 1

    def _free_column(self) -> int:
        free = ~self._open_columns
        return min((free & -free).bit_length() - 1, MAX_COLUMNS - 1)

    def _end(self, place: int, head: Head) -> None:
        assert self.start_ms is not None
        column = self.column[place]
        self._users[column] -= 1
        if not self._users[column]:
            self._open_columns &= ~(1 << column)
        stated = head.data.latencyMs
        self.took_ms[place] = head.ts - self.start_ms - self.at_ms[place] if stated is None else stated
        self._close(place, head)

    def _close(self, place: int, head: Head) -> None:
        data = head.data
        state = STATES.index(_state_of(head))
        self.outcome_seq[place] = head.seq
        self.state[place] = state
        self.state_counts["open"] -= 1
        self.state_counts[STATES[state]] += 1
        if data.latencyMs is not None:
            self.took_ms[place] = data.latencyMs
        if data.utility is not None:
            self.utility[place] = data.utility
        if self.kinds[self.kind[place]] == "model":
            self.models[self.names[self.name[place]]] += 1
        if data.usage:
            self._use(place, data.usage)

    def _use(self, place: int, usage: dict[str, Any]) -> None:
        used = Tokens(*(_count(usage, name) for name in _TOKENS))
        self.input_tokens[place], self.output_tokens[place] = used.input, used.output
        self.cached_tokens[place] = used.cached_input
        model = self.names[self.name[place]]
        self.tokens[model] = self.tokens.get(model, Tokens()) + used


def _state_of(head: Head) -> State:
    data = head.data
    if data.cancelled:
        return "cancelled"
    failed = not data.ok or data.error is not None or data.modelError is not None
    return "error" if failed else "ok"


def _count(usage: dict[str, Any], name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and 0 <= count < 2**32 else 0
