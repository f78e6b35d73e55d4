"""A divergence as a value: what the recording has, what happened instead, and where they differ.

CLI, tests, viewer and JSON reports all render this one value.
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
    """The call that was made in replay."""

    type: str
    data: dict[str, Any]


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """A recorded call that the observed one may have been meant to be."""

    event_seq: int
    name: str
    lane: str
    differences: int
    """At how many places it differs from the observed call."""
    is_taken: bool
    """Whether another call has been answered with it already."""

    def describe(self, lane: str | None) -> str:
        """How it relates to the call that was made in *lane*."""
        taken = ", already taken" if self.is_taken else ""
        if self.differences:
            return f"differs at {self.differences} place{'s' if self.differences != 1 else ''}{taken}"
        return f"the same call{', recorded in another task' if self.lane != lane else ''}{taken}"


class ReplayDivergence(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One difference between a replay and its recording."""

    code: DivergenceCode
    detail: str
    expected: dict[str, Any] | None = None
    """The recorded event, whole."""
    observed: Observed | None = None
    event_seq: int | None = None
    json_path: str | None = None
    """The first place at which *expected* and *observed* differ, in the event."""
    differences: tuple[Difference, ...] = ()
    """Every place, in what was asked."""
    candidates: tuple[Candidate, ...] = ()
    lane: str | None = None
    source_line: str | None = None
    """Where in the agent's own code the call was made."""
    callers: tuple[str, ...] = ()
    """The lines of the agent's own code that led there, the nearest first."""
    answered_with: int | None = None
    """The event whose outcome was given all the same; ``None`` where there was none to give."""
    answered: Literal["empty", "live"] | None = None
    """What it got where no recorded call is alike; ``None`` where it was refused, or answered with one."""
    volatile: tuple[VolatileRule, ...] = ()
    """Rules under which the two would be equal, where all that differs looks as if it differed every time."""
    left_behind: tuple[str, ...] = ()
    """Files that the recorded run wrote and that were there before this one began."""
    files: tuple[str, ...] = ()
    """How the files of the workspace differ, as the lines of diffs."""
    has_set_order: bool = False
    """Whether the order of a set may be the cause: only the order of words differs, and the hash seed of the
    process is random."""
    has_unused_files: bool = False
    """Whether the recording has the files among which it was made, and this run did not work among them."""

    @property
    def summary(self) -> str:
        """What differs, on one line."""
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
        """The lines that explain what the headline says."""
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
        """The divergence as plain JSON, with the seed's member names."""
        value: dict[str, JsonValue] = msgspec.json.decode(msgspec.json.encode(self))
        return value
