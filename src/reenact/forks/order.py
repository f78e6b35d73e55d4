"""The acts of tasks in a fork (such as ending), and which of them the fork records.

The ``order`` of an event lists the acts of tasks before it. A fork shares the first events of its parent, so
each act is looked up in the events of the parent:

    the parent says it in           while the fork equals its parent   once it goes its own way
    an event that is shared         it is there already                it moves behind the shared events
    a later event                   it is recorded                     it is recorded
    no event                        it is not recorded                 it is recorded

If an act moves, the shared events end before the event that lists it. Only acts with a defined order move:
tasks of a library, for example, may act at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from reenact.canonical import encode_clean
from reenact.forks.recorder import Happening
from reenact.formats.capture import ENDED, FIRED, JOINED, PUT, READ, TOGETHER, TOOK
from reenact.lane_name import is_below_loose
from reenact.recorder.eventlog import count_acts
from reenact.replayer.source import Act

_decode: Final = msgspec.json.Decoder().decode


class ForkOrder:
    """The acts in the events of the parent, of which the fork shares the first *shared*."""

    def __init__(self, acts: Mapping[int, Sequence[Act]], shared: int) -> None:
        self._shared: dict[str, deque[int]] = {}
        """By act: the numbers of the shared events that list it, until it has happened again."""
        self.later_rounds: dict[str, int | None] = {}
        """By act in later events: the recorded time of a timer, else ``None``."""
        for seq, listed in acts.items():
            for act in listed:
                if seq <= shared:
                    self._shared.setdefault(act.what, deque()).extend([seq] * act.left)
                else:
                    self.later_rounds[act.what] = act.joined

    def place(self, what: str, *, has_left_recording: bool) -> int | None:
        """The shared event from which the act moves, 0 for none; ``None`` if it is not recorded."""
        events = self._shared.get(what)
        if events:
            seq = events.popleft()
            return seq if has_left_recording and not is_below_loose(what) else None
        return 0 if has_left_recording or what in self.later_rounds else None


def moved_acts(happenings: Iterable[Happening]) -> dict[int, list[str]]:
    """The acts that moved, by the numbers of the shared events that list them."""
    moved: dict[int, list[str]] = {}
    for happening in happenings:
        if happening.act and happening.seq:
            moved.setdefault(happening.seq, []).append(happening.act)
    return moved


def without_acts(line: bytes, acts: Sequence[str]) -> bytes:
    """The event of *line* without *acts*."""
    if not acts:
        return line
    event = _decode(line)
    order = [act for entry in event.pop("order") for act in _repeat(entry)]
    for name in map(_name_of, acts):
        order.remove(next(act for act in order if _name_of(act) == name))
    return encode_clean(event | {"order": count_acts(order)} if order else event)


def _repeat(entry: str) -> list[str]:
    """Expand an *entry* that stands for several acts."""
    name = _name_of(entry)
    how = next((each for each in (JOINED, TOGETHER) if entry.startswith(each, len(name))), "")
    count = entry.removeprefix(name + how)
    return [name + how] * int(count) if name.endswith((PUT, READ, TOOK)) and count else [entry]


def _name_of(entry: str) -> str:
    """The task and its act, without result, time and count."""
    lane, mark, _ = entry.partition(ENDED)
    if not mark and FIRED in entry:
        return entry.partition(JOINED)[0]
    if not mark:
        lane, mark, _ = entry.partition(next((each for each in (TOOK, READ) if each in entry), PUT))
    return lane + mark
