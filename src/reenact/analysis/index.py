"""An index of the steps of a run, with the facts that need no payloads; and filters for steps.

A million steps take about 75 MB, whatever their size. Rows are only added; the row of a call is completed
when its outcome is read.

Steps are filtered by terms. A term is ``KEY:VALUE`` or one word; ``!`` before it negates it:

    kind:tool,model   tool:find_*   name:gpt-*   lane:0.1   state:error   error   text:"not found"   lamp

Values must match completely, ``*`` and ``?`` are wildcards, ``,`` means or; a lane includes the lanes below
it. Any other word is searched in the recorded texts, ignoring case.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.event import ASKING, OUTSIDE, EventHead, event_kind, event_name
from reenact.lane_name import LaneName
from reenact.suite.settings import Price, find_price
from reenact.trace.sources.source import RunSource

State: TypeAlias = Literal["ok", "error", "cancelled", "open"]
STATES: Final[tuple[State, ...]] = ("ok", "error", "cancelled", "open")
KINDS: Final = (
    *("tool", "model", "state", "network", "process", "clock", "rng"),
    *("message", "plan", "verification", "error"),
)
"""The kinds of steps; a capture may have further sources of nondeterminism."""
_OPEN: Final = 3
MAX_COLUMNS: Final = 64
"""If more calls are open at once, they share the last column."""
_MAX_NAME: Final = 200
_TOKENS: Final = ("inputTokens", "outputTokens", "cachedInputTokens")


class Tokens(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tokens of one model call, or of all."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    """The part of *input* that was read from a cache."""

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input, self.output + other.output, self.cached_input + other.cached_input
        )

    @property
    def total(self) -> int:
        return self.input + self.output


def cost_of(model: str, tokens: Tokens, prices: Mapping[str, Price]) -> float | None:
    """The cost of *tokens*; ``None`` for a model without a price."""
    price = find_price(model, prices)
    if price is None:
        return None
    return price.cost(
        input_tokens=tokens.input, output_tokens=tokens.output, cached_tokens=tokens.cached_input
    )


def total_cost(tokens: Mapping[str, Tokens], prices: Mapping[str, Price]) -> float | None:
    """The cost of all models; ``None`` if one of them has no price, because a partial sum would mislead."""
    if not prices:
        return None
    costs = [cost_of(model, used, prices) for model, used in tokens.items() if used.total]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


class NameTable(list[str]):
    """Maps texts to numbers; each text is stored once."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        text = text[:_MAX_NAME]
        number = self._numbers.setdefault(text, len(self))
        if number == len(self):
            self.append(text)
        return number


class StepIndex:
    """The steps of a run in the order in which they began; ``place`` counts them from 0."""

    def __init__(self) -> None:
        self.kinds, self.names, self.lanes = NameTable(), NameTable(), NameTable()
        self.models: Counter[str] = Counter()
        self.tokens: dict[str, Tokens] = {}
        """By model."""
        self.kind_counts: Counter[str] = Counter()
        self.state_counts: Counter[str] = Counter()
        self.start_ms: float | None = None
        self.end_ms: float = 0.0
        self.seq, self.outcome_seq = array("I"), array("I")
        self.at_ms, self.took_ms = array("d"), array("d")
        """Since the first event; the duration, ``nan`` if it is unknown."""
        self.kind, self.name, self.lane = array("H"), array("I"), array("I")
        self.parent = array("i")
        """The place of the call inside which the step was made, -1 if there is none."""
        self.depth, self.column = array("H"), array("B")
        self.columns = 0
        """The number of columns in use."""
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
        """The step that the event *seq* began or ended; ``None`` if it did neither."""
        place = bisect_left(self.seq, seq)
        if place < len(self) and self.seq[place] == seq:
            return place
        # An outcome is after its call and usually near it.
        before = range(place - 1, -1, -1)
        return next((each for each in before if self.outcome_seq[each] == seq), None)

    def add(self, head: EventHead) -> None:
        """Add the next event."""
        if self.start_ms is None:
            self.start_ms = head.ts
        self.end_ms = max(self.end_ms, head.ts - self.start_ms)
        call_id = head.data.callId
        if call_id is not None and call_id in self._open and head.type not in ASKING:
            place = self._open.pop(call_id)
            column = self.column[place]
            self._users[column] -= 1
            if not self._users[column]:
                self._open_columns &= ~(1 << column)
            self.took_ms[place] = head.ts - self.start_ms - self.at_ms[place]
            self._close(place, head)
        elif head.type not in OUTSIDE:
            self._begin(head)

    def _begin(self, head: EventHead) -> None:
        assert self.start_ms is not None
        data, place = head.data, len(self)
        parent = self._open.get(data.parent, -1) if data.parent is not None else -1
        free = ~self._open_columns
        column = min((free & -free).bit_length() - 1, MAX_COLUMNS - 1)
        self.seq.append(head.seq)
        self.outcome_seq.append(0)
        self.at_ms.append(head.ts - self.start_ms)
        self.took_ms.append(math.nan)
        kind = event_kind(head.type, data)
        self.kind.append(self.kinds.number(kind))
        self.name.append(self.names.number(event_name(head.type, data)))
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
        self.kind_counts[kind] += 1
        self.state_counts["open"] += 1
        # A read of state has an id for the calls inside it, but is written when it has ended.
        if data.callId is None or head.type == "state_mutation":
            self._close(place, head)
        else:
            self._open[data.callId] = place
            self._open_columns |= 1 << column
            self._users[column] += 1

    def _close(self, place: int, head: EventHead) -> None:
        data = head.data
        has_failed = not data.ok or (data.error, data.modelError, data.exitCode) != (None, None, None)
        state: State = "cancelled" if data.cancelled else "error" if has_failed else "ok"
        self.outcome_seq[place] = head.seq
        self.state[place] = STATES.index(state)
        self.state_counts["open"] -= 1
        self.state_counts[state] += 1
        if data.latencyMs is not None:
            self.took_ms[place] = data.latencyMs
        if data.utility is not None:
            self.utility[place] = data.utility
        if self.kinds[self.kind[place]] == "model":
            self.models[self.names[self.name[place]]] += 1
        if data.usage:
            counts = [0] * len(_TOKENS)
            for number, name in enumerate(_TOKENS):
                count = data.usage.get(name)
                if isinstance(count, int) and 0 <= count < 2**32:
                    counts[number] = count
            used = Tokens(*counts)
            self.input_tokens[place], self.output_tokens[place] = used.input, used.output
            self.cached_tokens[place] = used.cached_input
            model = self.names[self.name[place]]
            self.tokens[model] = self.tokens.get(model, Tokens()) + used


_Row: TypeAlias = Callable[[StepIndex, int, str], bool]


class Term(NamedTuple):
    """One condition."""

    key: str
    values: tuple[str, ...]
    is_negated: bool = False

    @classmethod
    def parse(cls, text: str) -> Term:
        """The term in *text*; :class:`UsageError` for an unknown key."""
        is_negated, body = text.startswith("!"), text.removeprefix("!")
        key, colon, value = body.partition(":")
        if not colon and body in STATES:
            key, colon, value = "state", ":", body
        if not colon or not re.fullmatch(r"[\w-]+", key) or value.startswith("//"):
            key, value = "text", body  # a sentence with a colon in it, or an address
        if key not in _KEYS:
            raise UsageError(f"--filter {text!r}: unknown key {key!r}; use one of {', '.join(_KEYS)}")
        if not value:
            raise UsageError(f"--filter {text!r}: has nothing to look for; write for example tool:search")
        values = (value,) if key == "text" else tuple(value.split(","))
        unknown = [each for each in values if key == "state" and each not in STATES]
        if unknown:
            raise UsageError(
                f"--filter {text!r}: unknown state {unknown[0]!r}; use one of {', '.join(STATES)}"
            )
        return cls(key, values, is_negated)

    def fits(self, source: RunSource, index: StepIndex, place: int) -> bool:
        if self.key == "text":
            found = self.values[0].lower() in _text_of(source, index, place)
        else:
            found = any(_ROWS[self.key](index, place, value) for value in self.values)
        return found is not self.is_negated


def parse_terms(texts: Iterable[str]) -> tuple[Term, ...]:
    """All terms of a filter; those that need no payloads come first, because they are fast."""
    return tuple(sorted(map(Term.parse, texts), key=lambda term: term.key == "text"))


def refuse_unknown_kinds(terms: Iterable[Term], index: StepIndex) -> None:
    """Raise :class:`UsageError` for a kind that is neither built in nor in the completely read run."""
    there = dict.fromkeys((*KINDS, *index.kinds))
    for term in terms:
        for value in term.values if term.key == "kind" else ():
            if not any(fnmatchcase(kind, value) for kind in there):
                raise UsageError(f"--filter kind: unknown kind {value!r}; use one of {', '.join(there)}")


def _is_kind(index: StepIndex, place: int, value: str) -> bool:
    return fnmatchcase(index.kinds[index.kind[place]], value)


def _is_named(index: StepIndex, place: int, value: str) -> bool:
    return fnmatchcase(index.names[index.name[place]], value)


def _is_tool(index: StepIndex, place: int, value: str) -> bool:
    return _is_kind(index, place, "tool") and _is_named(index, place, value)


def _is_in_lane(index: StepIndex, place: int, value: str) -> bool:
    lane = index.lanes[index.lane[place]]
    return fnmatchcase(lane, value) or LaneName(lane).is_within(value)


def _is_in_state(index: StepIndex, place: int, value: str) -> bool:
    return STATES[index.state[place]] == value


_ROWS: Final[Mapping[str, _Row]] = {
    "kind": _is_kind,
    "tool": _is_tool,
    "name": _is_named,
    "task": _is_in_lane,
    "lane": _is_in_lane,
    "state": _is_in_state,
}
_KEYS: Final = (*_ROWS, "text")


def _text_of(source: RunSource, index: StepIndex, place: int) -> str:
    """The recorded texts of a step, in lower case; texts repeated from earlier calls are left out."""
    seqs = sorted({index.seq[place], index.outcome_seq[place]} - {0})
    events = [event for seq in seqs if (event := source.event(seq)) is not None]
    texts = [text for event in events for text in _texts(source, event.data)]
    return "\n".join([index.names[index.name[place]], *texts]).lower()


def _texts(source: RunSource, value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _texts(source, child)
    elif isinstance(value, dict) and ("$blob" in value or "$json" in value):
        yield from _texts(source, source.resolve(value))
    elif isinstance(value, dict):
        for key, child in value.items():
            if key != "$ref":
                yield key
                yield from _texts(source, child)
    elif value is not None:
        yield str(value)
