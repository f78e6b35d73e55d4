"""What differs from run to run, and whether a replay minds.

Two runs differ wherever chance or the outside comes in. A replay has most of that from the recording; what
it minds shows when the recording is replayed leniently, and only that needs rules. What a program has from a
clock of its own needs one all the same: that replay may have come too soon after the recording to show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.comparing.differences import Difference, differences
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import VolatileRule, describe_call
from reenact.volatile.alignment import AlignedCall, Alignment
from reenact.volatile.masking import Masking
from reenact.volatile.shapes import about, any_item, covering, differ_in_time

Cover: TypeAlias = Literal["recording", "rule", "nothing"]
_NAMES: Final = ("$.data.tool", "$.data.source", "$.data.key")


class Source(msgspec.Struct, rename="camel"):
    """One place in calls of one kind at which runs differ."""

    call: str
    path: str
    examples: tuple[Any, Any]
    """What stood there in two runs; ``None`` where nothing did."""
    seqs: list[int] = []
    """The calls it was seen in: their events in the run that was replayed, or in a run before that."""
    of: int = 0
    """How many calls of that kind there were."""
    covered_by: Cover = "recording"
    rules: tuple[VolatileRule, ...] = ()


class Diagnosis:
    """What two or more runs and a replay of the last have shown."""

    def __init__(self, masking: Masking) -> None:
        """*masking* holds the rules that are in force already."""
        self._masking = masking
        self._sources: dict[tuple[str, str], Source] = {}
        self._compared: Counter[str] = Counter()
        self.reasons: list[str] = []
        """What a replay minds and no rule can cover."""
        self.strays: list[str] = []
        """Calls that not every run made."""

    def add_runs(self, alignment: Alignment) -> None:
        """Two runs, the later one second."""
        compared: Counter[str] = Counter()
        for one, other in alignment.pairs:
            call = about(describe_call(one.type, one.name))
            compared[call] += 1
            minded = self._masking.differences(one.type, one.name, one.request, other.request)
            for place in differences(one.request, other.request):
                source = self._note(call, place, other.seq)
                if place not in minded:
                    source.covered_by = "rule"
                elif other.has_own_clock and _is_of_clock(place):
                    self._mind(source, place)
        self._compared = compared
        self.strays += [_stray(call, "only the earlier run") for call in alignment.only_in_one]
        self.strays += [_stray(call, "only the later run") for call in alignment.only_in_other]

    def add_replay(self, divergences: Iterable[ReplayDivergence]) -> None:
        """What a lenient replay of the last run came to, under the rules made so far."""
        self.reasons = []
        for divergence in divergences:
            if divergence.expected is None or not _is_same_call(divergence):
                self.reasons.append(divergence.headline)
                continue
            call = about(_call_of(divergence.expected))
            for place in divergence.differences:
                self._mind(self._note(call, place, divergence.event_seq or 0), place)

    def sources(self) -> list[Source]:
        """All places, what a replay minds first."""
        for source in self._sources.values():
            source.of = max(self._compared[source.call], len(source.seqs))
        return sorted(self._sources.values(), key=lambda source: source.covered_by == "recording")

    def rules(self) -> list[VolatileRule]:
        """The rules that cover what can be covered, each once."""
        return list({str(rule): rule for source in self.sources() for rule in source.rules}.values())

    def _note(self, call: str, place: Difference, seq: int) -> Source:
        path = any_item(place.path)
        source = self._sources.get((call, path))
        if source is None:
            examples = tuple(
                None if value is msgspec.UNSET else value for value in (place.expected, place.observed)
            )
            source = self._sources[call, path] = Source(call, path, examples)  # type: ignore[arg-type]  # two
        if seq not in source.seqs:
            source.seqs.append(seq)
        return source

    def _mind(self, source: Source, place: Difference) -> None:
        rules = covering(source.call, place)
        if not rules:
            source.covered_by = "nothing"
            self.reasons.append(f"{source.call}: {place.describe()}; no rule can cover an item more or less")
        elif source.covered_by != "nothing":
            source.covered_by = "rule"
            source.rules = tuple({str(rule): rule for rule in (*source.rules, *rules)}.values())


def _is_same_call(divergence: ReplayDivergence) -> bool:
    """Whether the same thing was asked otherwise, and not another thing, or none."""
    is_request = divergence.code == "event_payload_mismatch" and bool(divergence.differences)
    expected = divergence.expected or {}
    if expected.get("type") == "run_end" or "type" not in expected:
        return False
    is_in_place = divergence.answered_with in (None, divergence.event_seq)
    is_named = expected["type"] == "state_mutation" or divergence.json_path not in _NAMES
    return is_request and is_in_place and is_named


def _is_of_clock(place: Difference) -> bool:
    one, other = place.expected, place.observed
    return isinstance(one, str) and isinstance(other, str) and differ_in_time(one, other)


def _call_of(event: dict[str, Any]) -> str:
    data = event["data"]
    if event["type"] == "nondeterministic":
        return describe_call(event["type"], f"{data.get('source')}/{data.get('key')}")
    return describe_call(event["type"], data.get("tool", "") if event["type"] == "tool_call" else "")


def _stray(call: AlignedCall, who: str) -> str:
    return f"event {call.seq}: {describe_call(call.type, call.name)} was called by {who}"
