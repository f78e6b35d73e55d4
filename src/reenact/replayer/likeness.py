"""Finds the recorded call whose request equals a live one up to generated names and times.

Only calls without an equal recorded one come here. Accepted differences are kept for the receipt, and the
names stay paired for the rest of the run, in requests and in the answers that repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

import msgspec

from reenact.canonical import encode_clean
from reenact.comparing.differences import Difference
from reenact.formats.record import ABSENT
from reenact.replayer.answers import Substitution, fragments_by_place
from reenact.replayer.renaming import (
    DrawnNames,
    Facts,
    Likeness,
    Renamed,
    RenamedNames,
    TimeRead,
    Unlike,
    compare,
    forms_of,
    spellings,
)
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.volatile.places import Places
from reenact.volatile.places import spellings as spelled
from reenact.volatile.times import Window

_decode: Final = msgspec.json.Decoder().decode
_SLACK_S: Final = 0.1
"""How much later than a call a time in it may be, because clocks are rounded."""
_NEVER: Final = 2**63
_OUTCOMES: Final = frozenset({"llm_response", "tool_result"})


class RunLikeness:
    """The names and times that differ in one replay."""

    def __init__(
        self,
        source: ReplaySource,
        request_of: Callable[[RecordedCall], object],
        evidence: DrawnNames,
    ) -> None:
        """*request_of* returns the request of a recorded call without its volatile parts."""
        self._source = source
        self._request_of = request_of
        self._evidence = evidence
        self._names = RenamedNames()
        self._first_known: dict[str, int] = {}
        self._blob = lru_cache(maxsize=128)(source.reader.blob)
        self._there_zones, self._here_zones = _zones(source)
        self.places = Places(_place_marks(source), evidence.places(), source.manifest().redaction.salt_bytes)
        self._moved: dict[str, Renamed] = {}
        self.answers = Substitution(())
        self._requests = Substitution(())
        self.renamed: list[Renamed] = []
        self.may_differ = self.places.are_moved
        """Whether an answer may have names or folders that differ in this run."""
        self.times: list[TimeRead] = []

    def take_first(self, calls: Iterable[RecordedCall], request: object) -> RecordedCall | None:
        """The first of *calls* that *request* equals; its renamed names hold from now on."""
        for call in calls:
            try:
                self._accept(self._compare(call, self._request_of(call), request))
            except Unlike:
                continue
            return call
        return None

    def is_same(self, seq: int, recorded: object, live: object) -> bool:
        """Whether two values of the event *seq* are the same; if so, their renamed names hold from now on."""
        try:
            self._accept(self._facts_compare(seq, recorded, live))
        except Unlike:
            return False
        return True

    def with_recorded_names(self, text: str) -> str | None:
        """A live request with the names of the recording; ``None`` if that changes nothing.

        ``None``, too, if it has a recorded name that this run has renamed.
        """
        if not (self._names or self.places.recorded) or any(
            name.recorded in text for name in self._names if name.recorded != name.live
        ):
            return None
        renamed: str = self._requests.rename_in_value(text)
        return renamed if renamed != text else None

    def explain(self, call: RecordedCall, request: object, places: tuple[Difference, ...]) -> str:
        """The words in which *request* differs from that of *call*, if *places* do not show them."""
        try:
            self._compare(call, self._request_of(call), request)
        except Unlike as unlike:
            is_plain = any(
                (place.expected, place.observed) == (unlike.recorded, unlike.live) for place in places
            )
            return "" if is_plain and unlike.earlier is None else unlike.describe()
        return ""

    def remaining(self, call: RecordedCall, places: tuple[Difference, ...]) -> tuple[Difference, ...]:
        """Those of *places* that no renaming explains; all of them if a renaming explains each one alone."""
        kept = []
        for place in places:
            if msgspec.UNSET in (place.expected, place.observed):
                kept.append(place)
                continue
            try:
                self._compare(call, place.expected, place.observed)
            except Unlike:
                kept.append(place)
        return tuple(kept) or places

    def _compare(self, call: RecordedCall, recorded: object, live: object) -> Likeness:
        return self._facts_compare(call.seq, recorded, live)

    def _facts_compare(self, seq: int, recorded: object, live: object) -> Likeness:
        made_s = self._source.happened_ms(seq) / 1000
        facts = Facts(
            seq=seq,
            there=Window(self._source.times_ms[0] / 1000, made_s + _SLACK_S, self._there_zones),
            here=Window(
                self._evidence.began_s,
                self._evidence.now_s() + _SLACK_S,
                self._here_zones,
                self._evidence.clock_shift_s,
            ),
            evidence=self._evidence,
            is_known_there=lambda name: self._known_since(name) < seq,
            is_known_here=lambda name: self._known_since(name) < _NEVER,
            places=self.places,
        )
        return compare(recorded, live, self._names, facts)

    def _accept(self, likeness: Likeness) -> None:
        self.times += likeness.times
        moved = {each.recorded: each for each in reversed(likeness.moved) if each.recorded not in self._moved}
        if not likeness.renamed and not moved:
            return
        self._moved |= moved
        self.renamed += [*likeness.renamed, *moved.values()]
        self.may_differ = True
        for renamed in likeness.renamed:
            self._names.add(renamed)
        self._learn()

    def _learn(self) -> None:
        """Rebuild the substitutions for answers and requests from the known names and folders."""
        names = [pair for renamed in self._names for pair in forms_of(renamed)]
        folders = [
            pair
            for recorded in self.places.recorded
            for pair in zip(spelled(recorded), spelled(self.places.find_folder(recorded)), strict=True)
        ]
        self.answers = Substitution([*names, *folders])
        self._requests = Substitution((live, recorded) for recorded, live in [*names, *folders])

    def renamed_now(self, answer: object) -> object:
        """*answer* with the names that are known now."""
        self.look_through(answer)
        return self.answers.rename_in_value(answer)

    def look_through(self, answer: object) -> None:
        """Learn the folders of the recorded run from an *answer*, to replace them by those of this run."""
        if self.places.are_moved and self.places.look_through("\n".join(_texts_of(answer))):
            self._learn()

    # What the recorded run got from outside

    def _known_since(self, name: str) -> int:
        """The first event in which the recorded run got *name* from outside."""
        found = self._first_known.get(name)
        if found is None:
            found = self._first_known[name] = self._find(name)
        return found

    def _find(self, name: str) -> int:
        reader = self._source.reader
        wanted = [spelling.encode() for spelling in spellings(name)]
        for seq in range(1, len(reader) + 1):
            line = reader.line(seq)
            may_be_elsewhere = b'"$blob"' in line or b'"pieces"' in line
            if may_be_elsewhere or any(text in line for text in wanted):
                answer = self._answer_text(line)
                if any(text in answer for text in wanted) or name in _streamed_text(answer):
                    return seq
        return _NEVER

    def _answer_text(self, line: bytes) -> bytes:
        """What an event brought into the run, as text; empty for a request of the run."""
        event = _decode(line)
        data = event["data"]
        if event["type"] == "run_start":
            return encode_clean(data)
        if data.get("derived") or event["type"] in ("run_end", "tool_call", "llm_request"):
            return b""
        if event["type"] not in _OUTCOMES:
            if "request" in data:
                return b""
            data = {name: data[name] for name in ("value", "pieces", "error") if name in data}
        return self._whole_text(data)

    def _whole_text(self, data: dict[str, object]) -> bytes:
        blobs = (value["$blob"] for value in data.values() if isinstance(value, dict) and "$blob" in value)
        return b"\n".join([encode_clean(data), *map(self._blob, blobs)])


def _streamed_text(answer: bytes) -> str:
    """The texts that the pieces of a streamed answer form."""
    pieces = _pieces_in(answer) if b"pieces" in answer else []
    return "\n".join(
        "".join(part for _, part in fragments) for fragments in fragments_by_place("".join(pieces))
    )


def _pieces_in(answer: bytes) -> list[str]:
    for text in answer.split(b"\n"):
        try:
            value = _decode(text)
        except msgspec.DecodeError:
            continue
        pieces = value.get("pieces") if isinstance(value, dict) else value
        if isinstance(pieces, list):
            return [piece for piece in pieces if isinstance(piece, str)]
    return []


def _texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        for child in value.values():
            yield from _texts_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from _texts_of(child)


def _place_marks(source: ReplaySource) -> dict[str, str]:
    data = source.data(1) if len(source.reader) else {}
    marks = data.get("places")
    fork = source.fork
    own = fork.places or {} if fork is not ABSENT else {}
    return (marks if isinstance(marks, dict) else {}) | own


def _zones(source: ReplaySource) -> tuple[tuple[tzinfo, ...], tuple[tzinfo, ...]]:
    """The time zones of times without a zone, in the recorded run and in this one."""
    local = datetime.now(UTC).astimezone().tzinfo or UTC
    data = source.data(1) if len(source.reader) else {}
    offset_s = data.get("utcOffsetS")
    recorded = timezone(timedelta(seconds=offset_s)) if isinstance(offset_s, int) else local
    return (UTC, recorded), (UTC, local)
