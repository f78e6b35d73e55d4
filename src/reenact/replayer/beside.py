"""Requests *beside* the run, such as a library's telemetry: replay answers them if the recording can.

They are never sent, and never a divergence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import cast

from reenact.boundary import A, Call, UnrecordedStep
from reenact.formats.replay_receipt import BesideTraffic
from reenact.replayer.source import RecordedCall
from reenact.volatile.beside import empty_answer


class BesideCalls:
    """The recorded calls beside the run, and how often each was made in this replay."""

    def __init__(self, recorded: Iterable[RecordedCall]) -> None:
        self._what: dict[str, str] = {}
        self._recorded: Counter[str] = Counter()
        self._made: Counter[str] = Counter()
        self._answers: dict[str, list[RecordedCall]] = {}
        for call in recorded:
            self._what[call.name] = call.beside
            self._recorded[call.name] += 1
            answers = self._answers.setdefault(call.name, [])
            if call.outcome_seq and not call.never_ends:
                answers.append(call)

    def knows(self, name: str) -> bool:
        """Whether calls of that name were recorded beside the run."""
        return name in self._recorded

    def take(self, call: Call, name: str, digest: bytes) -> RecordedCall | None:
        """The recorded call to answer with: an equal one, else the next of that name; the last is reused."""
        self._what.setdefault(name, call.beside)
        self._made[name] += 1
        left = self._answers.get(name, [])
        if not left:
            return None
        found = next((one for one in left if one.request_digest == digest), left[0])
        if len(left) > 1:
            left.remove(found)
        return found

    def list_traffic(self) -> list[BesideTraffic]:
        """The counts of these calls, for the receipt."""
        return [
            BesideTraffic(
                request=name.partition("/")[2],
                what=what,
                recorded=self._recorded[name],
                made=self._made[name],
            )
            for name, what in sorted(self._what.items())
        ]


class EmptyStep(UnrecordedStep[A]):
    """A call beside the run that the recording cannot answer: it gets an empty answer."""

    __slots__ = ("answer", "call_id", "exact", "facts", "leaves_first", "live")

    def __init__(self, call: Call[A]) -> None:
        self.live = self.leaves_first = False
        self.call_id = ""
        self.answer = cast("A", empty_answer(call.name.partition(" ")[0]))
        self.exact: object = None
        self.facts: dict[str, object] = {}
