"""Matches live calls with recorded ones: by lane first, then by content.

A live lane is *bound* to a recorded one at its first call: to the one of the same place under its parent's if
its first request is equal, else to an unbound sibling whose first request is equal. A bound lane makes its
calls in recorded order.

Lanes order equal calls; they do not forbid others. A call that does not equal the next one of its lane may
match any recorded call with an equal request that may come now, which means that all earlier calls of the
recorded lane were made. The nearest in the tree of lanes is tried first: if a library starts one task more or
less above the agent's code, whole branches shift, and each lane must still find its own. In a loose lane
calls may come in any order.

The time of a lookup does not depend on how many calls there are, nor on how many of them are equal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from reenact.boundary import Lane
from reenact.formats.record import ABSENT, Absent
from reenact.formats.replay_receipt import AcrossTasks, TaskMatch
from reenact.lane_name import ROOT, LaneName, is_loose
from reenact.replayer.source import RecordedCall

_LOOKED_AT: Final = 64
"""How many earlier siblings to search for the one that started the wanted task."""
_BEYOND: Final = "000000"
"""Behind the name of a task that the recorded run did not start: no recorded task has such an ordinal."""
_LISTED: Final = 100
"""How many matches across lanes to list one by one."""


class Key(msgspec.Struct, frozen=True):
    """What makes two calls equal; each call makes two keys."""

    type: str
    name: str
    request_digest: bytes
    is_masked: bool = False
    """Whether it leaves out the request's volatile parts; never equal to a key that has them."""

    @property
    def is_chance(self) -> bool:
        """Whether it is a clock or a random number, whose request does not identify the caller."""
        return self.type == "nondeterministic" and not self.name.startswith(("network/", "process/"))


KeyOf: TypeAlias = Callable[[RecordedCall, bool], Key]
"""The key of a recorded call, masked or not."""


class RecordedLane:
    """The calls that one logical task made, in order."""

    def __init__(self, name: str, parent: RecordedLane | None) -> None:
        self.name = name
        self.parent = parent
        self.is_loose = is_loose(name)
        self.calls: list[RecordedCall] = []
        self.position = 0
        self.is_bound = False
        self.is_shared = False
        """Whether several live lanes were bound to it, so that any of them may make the next call."""
        self.children: dict[str, RecordedLane] = {}
        self.unbound: dict[bool, dict[Key, deque[RecordedLane]]] = {}
        """Children by the key of their first call, masked or not; built at the first lookup by content."""
        self.by_key: dict[bool, dict[Key, deque[RecordedCall]]] = {}
        """The calls by key, masked or not; built at the first lookup by content, as in a loose lane."""
        self.has_lent = False
        """Whether lenient replay has answered another call with one of these, which may still come."""
        self.place = self.last_place = 0
        """Its position in the tree of lanes, parents before children, and that of its last descendant."""

    @property
    def is_untouched(self) -> bool:
        """Whether no live lane is bound to it, and none of its calls has been answered."""
        return not self.is_bound and not self.position and bool(self.calls) and not self.calls[0].taken

    def find_next(self) -> RecordedCall | None:
        """The next call that must come in this lane."""
        while self.position < len(self.calls) and self.calls[self.position].taken:
            self.position += 1
        return self.calls[self.position] if self.position < len(self.calls) else None

    def pass_by(self, call: RecordedCall) -> None:
        """Continue after *call*, which was answered, or lent, before earlier calls of this lane."""
        self.has_lent = self.has_lent or call.lent
        self.position = max(self.position, bisect_right(self.calls, call.seq, key=lambda one: one.seq))


class Lanes:
    """All recorded lanes, and the live lanes that are bound to them."""

    def __init__(
        self,
        calls: Iterable[RecordedCall],
        key_of: KeyOf,
        root: str = ROOT,
        functions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """*root* is the recorded name of this process's first lane; *functions* says what lanes ran."""
        self._functions = functions
        self._key_of = key_of
        self._root = root
        self._lanes: dict[str, RecordedLane] = {}
        self._inside: dict[str, str] = {}
        """By the id of a call: the lane of its nested calls."""
        self._index: dict[bool, _Index] = {}
        """By masked keys or not; built at the first lookup outside a call's own lane."""
        self._displaced: dict[str, str] = {}
        """By the name of a recorded lane that another live lane took: that lane's own name, now free."""
        self._strangers: set[Lane] = set()
        """Live lanes that are not bound and have made a call that matches no recorded one."""
        self._across: dict[tuple[str, str], TaskMatch] = {}
        self._across_calls = 0
        for call in calls:
            self._lane(call.lane).calls.append(call)
            if call.parent is not None and call.parent not in self._inside:
                self._inside[call.parent] = LaneName(call.lane).around

    def _lane(self, name: str) -> RecordedLane:
        lane = self._lanes.get(name)
        if lane is None:
            parent_name = LaneName(name).parent
            parent = self._lane(str(parent_name)) if parent_name is not None else None
            lane = self._lanes[name] = RecordedLane(name, parent)
            if parent is not None:
                parent.children[name] = lane
        return lane

    def __iter__(self) -> Iterator[RecordedLane]:
        return iter(self._lanes.values())

    def across_tasks(self) -> AcrossTasks | Absent:
        """The calls that were matched with calls of another lane."""
        if not self._across_calls:
            return ABSENT
        return AcrossTasks(calls=self._across_calls, matches=list(self._across.values()))

    # In its own place

    def take(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The recorded call that *lane* makes next, if it equals *key*; else ``None``."""
        recorded: RecordedLane | None = lane.recorded
        if recorded is None:
            recorded = self._bind(lane, key)
            if recorded is None:
                return None
            self._take_place(lane, recorded)
        call = self._take_next(recorded, key)
        if call is None and lane.home is not None and lane.home is not recorded:
            call = self._take_next(lane.home, key)
            if call is not None:
                lane.recorded = lane.home
        return call

    def _take_place(self, lane: Lane, recorded: RecordedLane) -> None:
        own_name = self._own_name(lane)
        if own_name != recorded.name and not recorded.is_bound:
            self._displaced[recorded.name] = own_name
        lane.recorded, recorded.is_bound = recorded, True

    def equals(self, call: RecordedCall, key: Key) -> bool:
        """Whether the recorded *call* has that *key*."""
        if key.is_masked or call.request_digest is None:
            return self._key_of(call, key.is_masked) == key
        is_same = call.request_digest == key.request_digest
        return is_same and call.type == key.type and call.name == key.name

    def _take_next(self, lane: RecordedLane, key: Key) -> RecordedCall | None:
        if lane.is_loose:
            return self.take_equal(lane, key)
        call = lane.find_next()
        if call is None or not self.equals(call, key):
            return self.take_equal(lane, key, only_lent=True) if lane.has_lent else None
        call.taken = True
        if self._index:
            self._take(call, lane)
        return call

    def _take(self, call: RecordedCall, lane: RecordedLane) -> None:
        call.taken = True
        if self._index:
            for index in self._index.values():
                index.add_next_of(lane)

    def expected(self, lane: Lane) -> RecordedLane | None:
        """The recorded lane to which *lane* is bound, or would be by its name alone."""
        recorded: RecordedLane | None = lane.recorded
        return recorded if recorded is not None else self._find_by_place(lane)

    def name_of(self, lane: Lane) -> str:
        """The recorded name of *lane*, also if it made no call in the recording."""
        place: RecordedLane | None = lane.recorded or lane.home
        if place is not None:
            return place.name
        name = self._own_name(lane)
        seen = {name}
        while (other := self._displaced.get(name, name)) not in seen:
            seen.add(other)
            name = other
        return name

    def names_of(self, lane: Lane) -> tuple[str, str]:
        """The name of the recorded lane that *lane* was first bound to, and its name by its position now."""
        home: RecordedLane | None = lane.home
        return (home.name if home is not None else self.name_of(lane)), self._own_name(lane)

    def _own_name(self, lane: Lane) -> str:
        if lane.parent is None:
            return lane.name_under(self._root)
        return self._name_below(self.name_of(lane.parent), lane)

    def _name_below(self, parent: str, lane: Lane) -> str:
        """The name of *lane* by its position among the tasks of the recorded lane *parent*.

        Tasks of the same function are counted: a library may start one more of its own, or one less.
        """
        assert lane.parent is not None
        if lane.function and self._functions:
            same = self._ordinals.get((parent, lane.function), [])
            if lane.nth < len(same):
                return LaneName(parent).started_task(same[lane.nth])
        name = LaneName(lane.name).move(lane.parent.name, parent)
        is_taken = self._functions.get(name, lane.function) != lane.function and bool(lane.function)
        return f"{name}{_BEYOND}" if is_taken else name

    @cached_property
    def _ordinals(self) -> dict[tuple[str, str], list[int]]:
        """By parent and function: the ordinals of the recorded tasks."""
        found: dict[tuple[str, str], list[int]] = {}
        for name, function in self._functions.items():
            parent, ordinal = LaneName(name).parent, LaneName(name).ordinal
            if parent is not None and ordinal is not None:
                insort(found.setdefault((str(parent), function), []), ordinal)
        return found

    def _bind(self, lane: Lane, key: Key) -> RecordedLane | None:
        by_place = self._find_by_place(lane)
        if not is_task(lane):
            return by_place
        if by_place is not None and not by_place.is_bound and self._begins_with(by_place, key):
            return by_place
        parent = self._parent_of(lane)
        if parent is None or (key.is_chance and self._is_uninformative(lane, key)):
            return None
        return self._find_sibling(parent, key)

    def _is_uninformative(self, lane: Lane, key: Key) -> bool:
        """Whether a read of a clock or of chance cannot say which of the siblings *lane* is."""
        return lane in self._strangers or self._find_shifted(lane, key) is not None

    def _parent_of(self, lane: Lane) -> RecordedLane | None:
        assert lane.parent is not None
        return lane.parent.recorded or self._find_by_place(lane.parent)

    def _find_by_place(self, lane: Lane) -> RecordedLane | None:
        if lane.home is not None:
            home: RecordedLane = lane.home
            return home
        if lane.parent is None:
            return self._lane(self._root if lane.name == ROOT else lane.name)
        parent = self._parent_of(lane)
        if parent is None:
            return None
        if LaneName(lane.name).kind == "inside":
            # Ordinals of calls shift if calls differ or have no known order; the id of the call does not.
            name = self._inside.get(lane.within or "", "")
        else:
            name = self._name_below(parent.name, lane)
        found = self._lanes.get(name)
        return None if found is not None and found.is_bound and not found.is_loose else found

    def _find_sibling(self, parent: RecordedLane, key: Key) -> RecordedLane | None:
        """An unbound child of *parent* whose first call has *key*."""
        unbound = parent.unbound.get(key.is_masked)
        if unbound is None:
            unbound = parent.unbound[key.is_masked] = {}
            for child in parent.children.values():
                if child.calls and not child.is_loose:
                    first = self._key_of(child.calls[0], key.is_masked)
                    unbound.setdefault(first, deque()).append(child)
        candidates = unbound.get(key, deque())
        while candidates:
            child = candidates.popleft()
            if child.is_untouched:
                return child
        return None

    def _begins_with(self, lane: RecordedLane, key: Key) -> bool:
        first = lane.find_next()
        return first is not None and self.equals(first, key)

    def take_equal(self, lane: RecordedLane, key: Key, *, only_lent: bool = False) -> RecordedCall | None:
        """The earliest call of *lane* with that *key*, whatever comes before it."""
        by_key = lane.by_key.get(key.is_masked)
        if by_key is None:
            by_key = lane.by_key[key.is_masked] = {}
            for call in lane.calls:
                by_key.setdefault(self._key_of(call, key.is_masked), deque()).append(call)
        candidates = by_key.get(key, deque())
        while candidates and candidates[0].taken:
            candidates.popleft()
        if not candidates or (only_lent and not candidates[0].lent):
            return None
        call = candidates.popleft()
        self._take(call, lane)
        return call

    def take_ahead(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The earliest equal call of the recorded lane that *lane* is bound to, whatever comes before it.

        If *lane* is not bound because its first call was new, the recorded lane of the same position is used.
        """
        recorded: RecordedLane | None = lane.recorded
        if recorded is None and lane in self._strangers:
            recorded = self._find_by_place(lane)
        return self.take_equal(recorded, key) if recorded is not None else None

    def note_miss(self, lane: Lane) -> None:
        """Note that *lane* has made a call that matches no recorded one."""
        if lane.recorded is None:
            self._strangers.add(lane)

    def is_placed(self, lane: Lane) -> bool:
        """Whether *lane* has made a call, so that it is known whether it matches a recorded lane."""
        return lane.recorded is not None or lane in self._strangers

    # Elsewhere

    def take_elsewhere(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The nearest equal call of another lane that may come now."""
        index = self._index_for(key.is_masked)
        if (lane.within, key) not in index.unmade:
            return None
        near = self._find_nearest(lane, key, index)
        call = near.find_next() if near is not None else index.find_earliest(lane.within, key)
        if call is None:
            return None
        recorded = near or self._lanes[call.lane]
        self._take(call, recorded)
        self._note_across(lane, call)
        # A clock that was read in a distant lane does not identify this lane.
        if not lane.is_loose and not recorded.is_loose and (near is not None or not key.is_chance):
            self._rebind(lane, recorded)
        return call

    def may_come_now(self, lane: Lane) -> Iterator[RecordedCall]:
        """Every recorded call that *lane* may make next, the most likely first; :meth:`claim` takes one."""
        seen: set[str] = set()
        above = list(self._places_above(lane))
        places = [*above[:1], *(child for place in above for child in place.children.values()), *above, *self]
        for place in places:
            if place.name not in seen:
                seen.add(place.name)
                calls = place.calls if place.is_loose else filter(None, [place.find_next()])
                yield from (call for call in calls if not call.taken and call.parent == lane.within)

    def claim(self, lane: Lane, call: RecordedCall) -> None:
        """Take *call* for *lane*; it must be one of those that may come now."""
        recorded = self._lanes[call.lane]
        is_its_own = recorded is self.expected(lane)
        self._take(call, recorded)
        if not is_its_own:
            self._note_across(lane, call)
        if not lane.is_loose and not recorded.is_loose:
            self._rebind(lane, recorded)

    def plays_alone(self, lane: Lane, call: RecordedCall) -> bool:
        """Whether *call* belongs to the recorded lane that *lane*, and no other lane, is bound to."""
        recorded: RecordedLane | None = lane.recorded
        return recorded is not None and call.lane == recorded.name and not recorded.is_shared

    def find_unmade(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The earliest recorded call with *key* that was not made yet, even if it may not come now."""
        return self._index_for(key.is_masked).find_unmade(lane.within, key)

    def take_unmade(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The same, taken, regardless of the calls before it and of the call in which it is nested.

        A read of a clock or of chance must still be nested in the same call.
        """
        call = self.find_unmade(lane, key)
        if call is None and not key.is_chance:
            call = self._index_for(key.is_masked).find_anywhere(key)
        if call is not None:
            self._take(call, self._lanes[call.lane])
            self._note_across(lane, call)
        return call

    def _rebind(self, lane: Lane, recorded: RecordedLane) -> None:
        """Bind *lane* to *recorded*; it returns to its first one (``home``) if a call does not fit."""
        recorded.is_shared |= recorded.is_bound and lane.recorded is not recorded
        if lane.recorded is None:
            lane.home = recorded
            self._take_place(lane, recorded)
        elif lane.home is None:
            lane.home = lane.recorded
        lane.recorded, recorded.is_bound = recorded, True

    def _find_nearest(self, lane: Lane, key: Key, index: _Index) -> RecordedLane | None:
        """The recorded lane nearest to *lane* whose next call has *key* and may be the first of *lane*."""
        above = list(self._places_above(lane))
        if not above:
            return None
        ordinal = LaneName(lane.name).ordinal or 0
        if lane.recorded is None:
            shifted = self._find_shifted(lane, key)
            if shifted is not None:
                return shifted
            parent = (self._parent_of(lane) if is_task(lane) else None) or above[0]
            if parent.position and not parent.is_loose:
                # The call was moved from the parent into a new task.
                first = parent.find_next()
                if first is not None and first.parent == lane.within and self.equals(first, key):
                    return parent
        for beginning_alike in (
            index.beginnings.get((lane.within, key, ordinal)),
            index.beginnings.get((lane.within, key, None)),
        ):
            if beginning_alike is None:
                continue
            for place in above:
                found = beginning_alike.find(place.place, place.last_place)
                if found is not None:
                    return found
        return None

    def _find_shifted(self, lane: Lane, key: Key) -> RecordedLane | None:
        """The recorded lane of *lane* if a task was added around its siblings, or removed."""
        for place in self._shifted_places(lane) if is_task(lane) else ():
            if place.is_untouched and place.calls[0].parent == lane.within and self._begins_with(place, key):
                return place
        return None

    def _shifted_places(self, lane: Lane) -> Iterator[RecordedLane]:
        ordinal = LaneName(lane.name).ordinal or 0
        parent = self._parent_of(lane)
        if parent is not None:
            yield from self._places_below(parent, ordinal)
        around = lane.parent
        last = around.spawned - 1 if around is not None else 0
        while around is not None and around.recorded is None and is_task(around):
            # The children of *around* were children of its parent, counted from the ordinal of *around*.
            ordinal += LaneName(around.name).ordinal or 0
            last += LaneName(around.name).ordinal or 0
            above = self._parent_of(around)
            place = self._lanes.get(LaneName(above.name).started_task(ordinal)) if above is not None else None
            if above is not None and place is not None and f"{above.name}.{last}" in self._lanes:
                yield place
            around = around.parent

    def _places_below(self, parent: RecordedLane, ordinal: int) -> Iterator[RecordedLane]:
        """The recorded lanes of tasks that *parent* starts now, if a task without calls started them then."""
        for before in range(min(ordinal, _LOOKED_AT) + 1):
            around = self._lanes.get(f"{parent.name}.{ordinal - before}")
            if around is not None and not around.calls:
                place = self._lanes.get(f"{around.name}.{before}")
                while place is not None:
                    yield place
                    place = self._lanes.get(f"{place.name}.0") if not place.calls else None
                return

    def _places_above(self, lane: Lane) -> Iterator[RecordedLane]:
        """The recorded lane of *lane*, or of its nearest known ancestor, and all above it."""
        live: Lane | None = lane
        place: RecordedLane | None = None
        while live is not None and place is None:
            place = live.recorded or self._find_by_place(live)
            live = live.parent
        while place is not None:
            yield place
            place = place.parent

    def _index_for(self, is_masked: bool) -> _Index:
        index = self._index.get(is_masked)
        if index is None:
            if not self._index:
                self._number_places()
            index = self._index[is_masked] = _Index(
                self._lanes.values(), lambda call: self._key_of(call, is_masked)
            )
        return index

    def _number_places(self) -> None:
        """Number lanes depth first, so that a lane and all its descendants form one range."""
        place = 0
        stack = [(lane, False) for lane in self._lanes.values() if lane.parent is None]
        while stack:
            lane, is_done = stack.pop()
            if is_done:
                lane.last_place = place
                continue
            place += 1
            lane.place = place
            stack.append((lane, True))
            children = sorted(lane.children.values(), key=lambda child: LaneName(child.name).ordinal or 0)
            stack.extend((child, False) for child in reversed(children))

    def _note_across(self, lane: Lane, call: RecordedCall) -> None:
        self._across_calls += 1
        places = lane.name_under(self._root), call.lane
        noted = self._across.get(places)
        if noted is not None:
            self._across[places] = msgspec.structs.replace(noted, calls=noted.calls + 1)
        elif len(self._across) < _LISTED:
            self._across[places] = TaskMatch(live=places[0], recorded=places[1], eventSeq=call.seq, calls=1)


class _Index:
    """Recorded calls that were not made yet, by key and by the call in which they are nested."""

    def __init__(self, lanes: Iterable[RecordedLane], key_of: Callable[[RecordedCall], Key]) -> None:
        self._key_of = key_of
        self.unmade: dict[tuple[str | None, Key], deque[RecordedCall]] = {}
        self.beginnings: dict[tuple[str | None, Key, int | None], _Beginnings] = {}
        """Lanes by their first call and their ordinal; under ``None``, those of any ordinal."""
        self._next: dict[tuple[str | None, Key], list[int]] = {}
        """Calls that may come now in lanes that have begun and in loose ones; some may be taken already."""
        self._by_seq: dict[int, tuple[RecordedCall, RecordedLane]] = {}
        lanes = sorted(lanes, key=lambda lane: lane.place)
        for call in sorted((call for lane in lanes for call in lane.calls), key=lambda call: call.seq):
            if not call.taken:
                self.unmade.setdefault((call.parent, key_of(call)), deque()).append(call)
        for lane in lanes:
            if lane.is_loose:
                for call in lane.calls:
                    self._add(call, lane)
            elif lane.is_untouched:
                first = lane.calls[0]
                for ordinal in {None, LaneName(lane.name).ordinal}:
                    where = first.parent, key_of(first), ordinal
                    self.beginnings.setdefault(where, _Beginnings()).append(lane)
            else:
                self.add_next_of(lane)

    def add_next_of(self, lane: RecordedLane) -> None:
        """Add the next call of *lane*, which may come now because one before it was answered."""
        if not lane.is_loose:
            call = lane.find_next()
            if call is not None:
                self._add(call, lane)

    def _add(self, call: RecordedCall, lane: RecordedLane) -> None:
        if not call.taken:
            self._by_seq[call.seq] = call, lane
            heappush(self._next.setdefault((call.parent, self._key_of(call)), []), call.seq)

    def find_earliest(self, within: str | None, key: Key) -> RecordedCall | None:
        """The earliest of the calls that may come now."""
        calls = self._next.get((within, key), [])
        while calls:
            call, lane = self._by_seq[calls[0]]
            if not call.taken and (lane.is_loose or lane.find_next() is call):
                return call
            heappop(calls)
        return None

    def find_unmade(self, within: str | None, key: Key) -> RecordedCall | None:
        calls = self.unmade.get((within, key), deque())
        while calls and calls[0].taken:
            calls.popleft()
        return calls[0] if calls else None

    def find_anywhere(self, key: Key) -> RecordedCall | None:
        """The earliest call that was not made yet, whatever call it is nested in."""
        found = (self.find_unmade(within, key) for within in self._withins.get(key, ()))
        return min(filter(None, found), key=lambda call: call.seq, default=None)

    @cached_property
    def _withins(self) -> dict[Key, list[str | None]]:
        withins: dict[Key, list[str | None]] = {}
        for within, key in self.unmade:
            withins.setdefault(key, []).append(within)
        return withins


class _Beginnings:
    """Recorded lanes with the same first call, by their position in the tree."""

    def __init__(self) -> None:
        self._lanes: list[RecordedLane] = []
        self._places: list[int] = []
        self._next_index: list[int] = []
        """By index: where to continue if that lane is no longer untouched."""

    def append(self, lane: RecordedLane) -> None:
        self._lanes.append(lane)
        self._places.append(lane.place)
        self._next_index.append(len(self._lanes))

    def find(self, first_place: int, last_place: int) -> RecordedLane | None:
        """The first untouched lane in that range of the tree."""
        start = index = bisect_left(self._places, first_place)
        while index < len(self._lanes) and not self._lanes[index].is_untouched:
            index = self._next_index[index]
        while start < index:
            self._next_index[start], start = index, self._next_index[start]
        return self._lanes[index] if index < len(self._lanes) and self._places[index] <= last_place else None


def is_task(lane: Lane) -> bool:
    """Whether it is a task of another lane; a root lane, a loose lane and one inside a call are not."""
    return lane.parent is not None and LaneName(lane.name).kind == "task"
