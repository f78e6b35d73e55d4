"""A divergence as a value: the recorded event, the call in the replay, and their differences.

The command line, tests, the viewer and JSON reports all show this value.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.comparing.differences import Difference
from reenact.formats.volatile import VolatileRule

DivergenceCode: TypeAlias = Literal[
    "event_type_mismatch",
    "event_payload_mismatch",
    "event_missing",
    "event_unexpected",
    "nondeterministic_underflow",
]


_ANSWERED: Final = {"empty": "with an empty answer", "live": "for real"}


class Observed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The call in the replay."""

    type: str
    data: dict[str, Any]


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """A recorded call that is similar to the observed one."""

    event_seq: int
    name: str
    lane: str
    differences: int
    """The number of places where it differs from the observed call."""
    is_taken: bool
    """Whether its outcome has been used for another call already."""

    def describe(self, lane: str | None) -> str:
        """How it differs from the call in *lane*."""
        taken = ", already taken" if self.is_taken else ""
        if self.differences:
            return f"differs at {self.differences} place{'s' if self.differences != 1 else ''}{taken}"
        return f"the same call{', recorded in another task' if self.lane != lane else ''}{taken}"


class ReplayDivergence(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One difference between a replay and its recording."""

    code: DivergenceCode
    detail: str
    expected: dict[str, Any] | None = None
    """The whole recorded event."""
    observed: Observed | None = None
    event_seq: int | None = None
    json_path: str | None = None
    """The first place in the event where *expected* and *observed* differ."""
    differences: tuple[Difference, ...] = ()
    """All differences of the requests."""
    candidates: tuple[Candidate, ...] = ()
    lane: str | None = None
    source_line: str | None = None
    """The line of the agent's own code that made the call."""
    callers: tuple[str, ...] = ()
    """The callers of that line in the agent's own code, the nearest first."""
    answered_with: int | None = None
    """The recorded event whose outcome the call got nevertheless; ``None`` if there was none."""
    answered: Literal["empty", "live"] | None = None
    """How a call without a similar recorded one was answered; ``None`` if it was refused or got a recorded
    outcome."""
    volatile: tuple[VolatileRule, ...] = ()
    """Rules that would make the two equal, if all differences look like values that differ in every run."""
    left_behind: tuple[str, ...] = ()
    """Files that the recorded run wrote and that existed before this one began."""
    files: tuple[str, ...] = ()
    """The differences of the workspace files, as lines of diffs."""
    has_set_order: bool = False
    """Whether the order of a set may be the cause: only the order of words differs, and the hash seed of the
    process is random."""
    has_unused_files: bool = False
    """Whether the files of the workspace were recorded, and this run did not work in them."""

    @property
    def summary(self) -> str:
        """The difference on one line."""
        first = f" at {self.differences[0].describe()}" if self.differences else ""
        return f"{self.detail}{first}{self._left_behind_text()}"

    @property
    def headline(self) -> str:
        """The divergence on one line, with its code and place."""
        place = f"event {self.event_seq}: " if self.event_seq is not None else ""
        return f"{self.code}: {place}{self.summary}"

    def _left_behind_text(self) -> str:
        if self.has_unused_files:
            return "; the recording has the files that it was made among: replay it with --workspace"
        if not self.left_behind:
            return ""
        more = f" and {len(self.left_behind) - 3} more" if len(self.left_behind) > 3 else ""
        names = ", ".join(self.left_behind[:3]) + more
        return (
            f"; before this run there was already what the recorded one wrote: {names}; move it away, or "
            "record the files too, with --workspace"
        )

    def explain(self) -> str:
        """The divergence in full, for a person."""
        return "\n".join([self.headline, *self.details()])

    def details(self) -> list[str]:
        """The lines below the headline."""
        lines: list[str] = []
        if self.source_line:
            lines.append(f"  called from  {self.source_line}")
        lines += [f"               {caller}" for caller in self.callers]
        if self.lane:
            lines.append(f"  task         {self.lane}")
        lines += [f"  differs      {difference.describe()}" for difference in self.differences[:20]]
        if len(self.differences) > 20:
            lines.append(f"               … and {len(self.differences) - 20} more places")
        for candidate in self.candidates:
            lines.append(
                f"  near         event {candidate.event_seq} ({candidate.name}, task {candidate.lane}): "
                f"{candidate.describe(self.lane)}"
            )
        if self.answered_with not in (None, self.event_seq):
            lines.append(f"  answered     with the outcome of event {self.answered_with}")
        if self.answered is not None:
            lines.append(f"  answered     {_ANSWERED[self.answered]}")
        lines += [f"    {line}" for line in self.files]
        if self.has_set_order:
            lines.append("  a set?       Python orders a set of texts differently in each process:")
            lines.append("               sort it, or record and replay with PYTHONHASHSEED=0")
        if self.volatile:
            lines.append("  volatile?    if that differs in every run, add to reenact.toml:")
            lines += [f"    {line}" for rule in self.volatile for line in rule.to_toml().splitlines()]
        return lines

    @classmethod
    def from_json(cls, value: dict[str, JsonValue]) -> ReplayDivergence:
        """The divergence that :meth:`to_json` wrote."""
        return msgspec.convert(value, cls)

    def to_json(self) -> dict[str, JsonValue]:
        """The divergence as plain JSON."""
        value: dict[str, JsonValue] = msgspec.json.decode(msgspec.json.encode(self))
        return value
