"""Rows of the index made into steps: the numbers that are there, and the texts out of the events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from reenact.analysis.brief import neat
from reenact.analysis.costs import cost_of
from reenact.analysis.events import Event
from reenact.analysis.index import STATES, StepIndex, Tokens
from reenact.analysis.sources.source import Source
from reenact.analysis.step import Step
from reenact.analysis.wording import asked, came
from reenact.errors import ReenactError
from reenact.suite.prices import Price

_MODEL_EVENTS: Final = ("llm_request", "llm_response")
_SAID: Final = ("request", "response", "pieces")


class StepReader:
    """Reads the steps of one artifact, as far as they are in *index*."""

    def __init__(self, source: Source, index: StepIndex, prices: Mapping[str, Price]) -> None:
        self._source = source
        self._index = index
        self._prices = prices

    def at(self, place: int) -> Step:
        """The step at *place*."""
        index = self._index
        seq, outcome_seq = index.seq[place], index.outcome_seq[place]
        parent = index.parent[place]
        name, tokens = index.names[index.name[place]], self._tokens(place)
        began = self._event(seq)
        return Step(
            seq=seq,
            place=place,
            outcome_seq=outcome_seq or None,
            kind=index.kinds[index.kind[place]],
            name=name,
            derived=began.data.get("derived") is True,
            lane=index.lanes[index.lane[place]],
            depth=index.depth[place],
            parent_seq=index.seq[parent] if parent >= 0 else None,
            column=index.column[place],
            beside=_bits(index.beside[place]),
            at_ms=neat(index.at_ms[place]),
            took_ms=_known(index.took_ms[place]),
            state=STATES[index.state[place]],
            tokens=tokens,
            cost=None if tokens is None else cost_of(name, tokens, self._prices),
            utility=_known(index.utility[place]),
            asked=asked(began),
            came=came(self._event(outcome_seq)) if outcome_seq else "",
        )

    def _event(self, seq: int) -> Event:
        """An event; what a model call says is fetched from its blob, because a reference says nothing."""
        event = self._source.event(seq)
        assert event is not None
        for name in _SAID if event.type in _MODEL_EVENTS else ():
            value = event.data.get(name)
            if isinstance(value, dict) and "$blob" in value:
                with suppress(ReenactError, msgspec.DecodeError):
                    event.data[name] = msgspec.json.decode(self._source.blob(value["$blob"]))
        return event

    def _tokens(self, place: int) -> Tokens | None:
        index = self._index
        tokens = Tokens(index.input_tokens[place], index.output_tokens[place], index.cached_tokens[place])
        return tokens if tokens.total else None


def _known(number: float) -> int | float | None:
    return None if math.isnan(number) else neat(number)


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
