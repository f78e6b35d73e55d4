"""Two lists of tool calls, matched entry by entry: by id, or by content and then by order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from reenact.formats.dialects.current import ToolError
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import same_f32
from reenact.formats.session import ToolUse, call_key, side_effects_of


class Entry(NamedTuple):
    """A tool call with its outcome, as a log or a receipt lists it; what is not said is ``ABSENT``."""

    tool: str
    params_hash: str
    output_hash: str
    latency_ms: Any = ABSENT
    ok: Any = ABSENT
    error: Any = ABSENT
    step_utility: Any = ABSENT
    side_effects: Any = ABSENT
    id: str | None = None
    line: int = 0
    """Where the result stands; where there is none, the call. 0 in a receipt, which has no lines."""
    call_line: int = 0
    place: int = 0
    """Which of the calls of a receipt it is, from 1."""

    @property
    def name(self) -> str:
        return self.tool if self.id is None else f"{self.tool} ({self.id})"


class Match(NamedTuple):
    """A pair, or one without its counterpart."""

    ours: Entry | None
    theirs: Entry | None
    differing: tuple[str, ...] = ()
    """The fields that both have, with different values."""


NO_RESULT: Final = "none"
"""In the place of an output's hash where there is no output."""
COMPARED: Final = (
    "tool", "params_hash", "output_hash", "ok", "error", "latency_ms", "step_utility", "side_effects",
)  # fmt: skip


_TAG_NAMES: Final = ("type", "kind", "tag", "effect", "name")
"""Under which a side effect that is an object says what it is."""


def entry_of(use: ToolUse) -> Entry:
    """A use as the log has it."""
    result = use.result
    if result is None:
        return Entry(
            use.call.tool,
            use.call.params_hash,
            NO_RESULT,
            id=call_key(use.call),
            line=use.line,
            call_line=use.line,
        )
    return Entry(
        tool=use.call.tool,
        params_hash=use.call.params_hash,
        output_hash=result.output_hash,
        latency_ms=result.latency_ms,
        ok=getattr(result, "ok", ABSENT),
        # The older dialect has no errors, so that it does not say that there was none.
        error=_error(result.error) if hasattr(result, "error") else ABSENT,
        step_utility=result.step_utility,
        side_effects=side_effects_of(result),
        id=call_key(use.call),
        line=use.line,
        call_line=use.call_line,
    )


def match_entries(
    ours: Iterable[Entry], theirs: Sequence[Entry], *, by_id: bool, compared: Sequence[str] = COMPARED
) -> Iterator[Match]:
    """Every entry of both lists in one match; equal pairs are handed out at once, the others at the end.

    Without ids, those that are equal belong together, then those that were called alike, then those of
    one tool. So an entry that is missing does not make all behind it differ.
    """
    left = dict(enumerate(theirs))
    unmatched: Iterable[Entry] = ours
    for key in (_id,) if by_id else (_content, _call, _tool):
        places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for place, entry in left.items():
            places[key(entry)].append(place)
        rest: list[Entry] = []
        for entry in unmatched:
            if places.get(key(entry)):
                yield _match(entry, left.pop(places[key(entry)].popleft()), compared)
            else:
                rest.append(entry)
        unmatched = rest
    yield from (Match(entry, None) for entry in unmatched)
    yield from (Match(None, entry) for entry in left.values())


def _id(entry: Entry) -> Hashable:
    return entry.id


def _content(entry: Entry) -> Hashable:
    return entry.tool, entry.params_hash, entry.output_hash


def _call(entry: Entry) -> Hashable:
    return entry.tool, entry.params_hash


def _tool(entry: Entry) -> Hashable:
    return entry.tool


def _match(ours: Entry, theirs: Entry, compared: Sequence[str]) -> Match:
    differing = tuple(name for name in compared if _differs(name, getattr(ours, name), getattr(theirs, name)))
    return Match(ours, theirs, differing)


def _differs(name: str, ours: Any, theirs: Any) -> bool:
    if ours is ABSENT or theirs is ABSENT or ours == theirs:
        return False
    if name == "error" and isinstance(theirs, str) and isinstance(ours, ToolError):
        return theirs not in (ours.name, ours.message, f"{ours.name}: {ours.message}")
    if name == "side_effects":
        return sorted(map(_effect_tag, ours)) != sorted(map(_effect_tag, theirs))
    # Some emitters write numbers as 32-bit floats in one place and as decimals in the other.
    return not (isinstance(ours, float) and isinstance(theirs, int | float) and same_f32(ours, theirs))


def _effect_tag(effect: Any) -> str:
    """The tag of a side effect; some receipts describe effects by objects."""
    if isinstance(effect, dict):
        effect = next((effect[name] for name in _TAG_NAMES if isinstance(effect.get(name), str)), effect)
    return str(effect)


def _error(error: Any) -> Any:
    """An error as it is compared; a result that has none says ``None``."""
    return None if error is ABSENT else error
