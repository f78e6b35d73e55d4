"""Finds values that differ from run to run, and decides which of them make a replay diverge.

Two runs differ wherever random or outside values enter. A replay gets most of these from the recording, so
only what diverges in a lenient replay needs rules. Times that a program reads from an unrecorded clock need
rules in any case: the replay may follow the recording so soon that they do not differ yet.
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
from reenact.volatile.shapes import any_item, call_of_rule, is_time_difference, list_covering_rules

Cover: TypeAlias = Literal["recording", "rule", "nothing"]
_NAMES: Final = ("$.data.tool", "$.data.source", "$.data.key")


class Source(msgspec.Struct, rename="camel"):
    """One path in calls of one kind where runs differ."""

    call: str
    path: str
    examples: tuple[Any, Any]
    """The values in two runs; ``None`` for a missing one."""
    seqs: list[int] = []
    """The events of the calls that differ, in the replayed run or in one before it."""
    of: int = 0
    """The number of calls of that kind."""
    covered_by: Cover = "recording"
    rules: tuple[VolatileRule, ...] = ()


class Diagnosis:
    """The differences between two or more runs, and in a replay of the last one."""

    def __init__(self, masking: Masking) -> None:
        """*masking* holds the existing rules."""
        self._masking = masking
        self._sources: dict[tuple[str, str], Source] = {}
        self._compared: Counter[str] = Counter()
        self.reasons: list[str] = []
        """Divergences that no rule can cover."""
        self.strays: list[str] = []
        """Calls that only one of the runs made."""

    def add_runs(self, alignment: Alignment) -> None:
        """Compare two runs, of which the second is the later one."""
        compared: Counter[str] = Counter()
        for one, other in alignment.pairs:
            call = call_of_rule(describe_call(one.type, one.name))
            compared[call] += 1
            unmasked = self._masking.differences(one.type, one.name, one.request, other.request)
            for place in differences(one.request, other.request):
                source = self._note(call, place, other.seq)
                if place not in unmasked:
                    source.covered_by = "rule"
                elif other.has_own_clock and _is_of_clock(place):
                    self._add_rules(source, place)
        self._compared = compared
        self.strays += [_describe_stray(call, "only the earlier run") for call in alignment.only_in_one]
        self.strays += [_describe_stray(call, "only the later run") for call in alignment.only_in_other]

    def add_replay(self, divergences: Iterable[ReplayDivergence]) -> None:
        """Add the *divergences* of a lenient replay of the last run under the rules made so far."""
        self.reasons = []
        for divergence in divergences:
            if divergence.expected is None or not _is_same_call(divergence):
                self.reasons.append(divergence.headline)
                continue
            call = call_of_rule(_call_of(divergence.expected))
            for place in divergence.differences:
                self._add_rules(self._note(call, place, divergence.event_seq or 0), place)

    def sources(self) -> list[Source]:
        """All sources; those that make a replay diverge come first."""
        for source in self._sources.values():
            source.of = max(self._compared[source.call], len(source.seqs))
        return sorted(self._sources.values(), key=lambda source: source.covered_by == "recording")

    def rules(self) -> list[VolatileRule]:
        """The distinct rules of all sources."""
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

    def _add_rules(self, source: Source, place: Difference) -> None:
        rules = list_covering_rules(source.call, place)
        if not rules:
            source.covered_by = "nothing"
            self.reasons.append(f"{source.call}: {place.describe()}; no rule can cover an item more or less")
        elif source.covered_by != "nothing":
            source.covered_by = "rule"
            source.rules = tuple({str(rule): rule for rule in (*source.rules, *rules)}.values())


def _is_same_call(divergence: ReplayDivergence) -> bool:
    """Whether the divergence is a changed request of the expected call, not another or a missing call."""
    is_request = divergence.code == "event_payload_mismatch" and bool(divergence.differences)
    expected = divergence.expected or {}
    if expected.get("type") == "run_end" or "type" not in expected:
        return False
    is_in_place = divergence.answered_with in (None, divergence.event_seq)
    is_named = expected["type"] == "state_mutation" or divergence.json_path not in _NAMES
    return is_request and is_in_place and is_named


def _is_of_clock(place: Difference) -> bool:
    one, other = place.expected, place.observed
    return isinstance(one, str) and isinstance(other, str) and is_time_difference(one, other)


def _call_of(event: dict[str, Any]) -> str:
    data = event["data"]
    if event["type"] == "nondeterministic":
        return describe_call(event["type"], f"{data.get('source')}/{data.get('key')}")
    return describe_call(event["type"], data.get("tool", "") if event["type"] == "tool_call" else "")


def _describe_stray(call: AlignedCall, who: str) -> str:
    return f"event {call.seq}: {describe_call(call.type, call.name)} was called by {who}"
