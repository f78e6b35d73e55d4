"""What tasks do among themselves in a fork, and which of it the fork records by itself.

An event says in ``order`` what tasks did before it. A fork shares the first events of its parent, so each act
is looked up in what the parent's events say:

    the parent says it in           while the fork equals its parent   once it goes its own way
    an event that is shared         it is there already                it moves behind the shared events
    a later event                   it is recorded                     it is recorded
    no event                        it is not recorded                 it is recorded

An act that moves ends what is shared before the event that said it. Only an act whose place counts
moves: a task below code that runs in no known order, as a library's, acts when chance has it so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from reenact.canonical import encode_clean
from reenact.forks.recorder import Happening
from reenact.formats.capture import ENDED, FIRED, JOINED, PUT, TOOK
from reenact.lane_name import LaneName
from reenact.recorder.eventlog import count_acts
from reenact.replayer.source import Act

_decode: Final = msgspec.json.Decoder().decode


class ForkOrder:
    """The acts that the events of the parent say, of which the first *shared* are the fork's, too."""

    def __init__(self, acts: Mapping[int, Sequence[Act]], shared: int) -> None:
        self._shared: dict[str, deque[int]] = {}
        """By act: the numbers of the shared events that say it, as far as it has not come yet."""
        self.later_rounds: dict[str, int | None] = {}
        """By act that a later event says: of a timer, when it went off there."""
        for seq, listed in acts.items():
            for act in listed:
                if seq <= shared:
                    self._shared.setdefault(act.what, deque()).extend([seq] * act.left)
                else:
                    self.later_rounds[act.what] = act.joined

    def place(self, what: str, *, is_own_way: bool) -> int | None:
        """The shared event from which the act moves, 0 for none; ``None`` where it is not to be recorded."""
        events = self._shared.get(what)
        if events:
            seq = events.popleft()
            return seq if is_own_way and not LaneName(what).is_below_loose else None
        return 0 if is_own_way or what in self.later_rounds else None


def moved_acts(happenings: Iterable[Happening]) -> dict[int, list[str]]:
    """The acts that moved, by the numbers of the shared events that say them."""
    moved: dict[int, list[str]] = {}
    for happening in happenings:
        if happening.act and happening.seq:
            moved.setdefault(happening.seq, []).append(happening.act)
    return moved


def without_acts(line: bytes, acts: Sequence[str]) -> bytes:
    """The event of *line*, which does not say *acts*."""
    if not acts:
        return line
    event = _decode(line)
    order = [act for entry in event.pop("order") for act in _repeat(entry)]
    for name in map(_name_of, acts):
        order.remove(next(act for act in order if _name_of(act) == name))
    return encode_clean(event | {"order": count_acts(order)} if order else event)


def _repeat(entry: str) -> list[str]:
    """The acts of an *entry* that counts several."""
    name = _name_of(entry)
    count = entry.removeprefix(name)
    return [name] * int(count) if name.endswith((PUT, TOOK)) and count else [entry]


def _name_of(entry: str) -> str:
    """Who did what, without what came of it, when, and how often."""
    lane, mark, _ = entry.partition(ENDED)
    if not mark and FIRED in entry:
        return entry.partition(JOINED)[0]
    if not mark:
        lane, mark, _ = entry.partition(TOOK if TOOK in entry else PUT)
    return lane + mark
