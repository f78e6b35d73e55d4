"""Matching live calls with recorded ones: by lane first, then by content.

A live lane is bound to a recorded one at its first call: the one of the same name under the bound
parent if its first request is equal, else an unbound sibling whose first request is equal. It stays
bound, and its calls must come in recorded order. In a loose lane any recorded call with an equal
request will do, the earliest first. Every lookup is O(1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from reenact.boundary import ROOT, Lane
from reenact.replayer.source import RecordedCall


class Key(msgspec.Struct, frozen=True):
    """What makes two calls the same call; two are made for every call."""

    type: str
    name: str
    request_digest: bytes
    is_masked: bool = False
    """Made without the request's volatile parts; never equal to a key that was made with them."""


KeyOf: TypeAlias = Callable[[RecordedCall, bool], Key]
"""The key of a recorded call, masked or not."""


class RecordedLane:
    """The calls one logical task made, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[RecordedCall] = []
        self.position = 0
        self.is_bound = False
        self.children: dict[str, RecordedLane] = {}
        self.unbound: dict[bool, dict[Key, deque[RecordedLane]]] = {}
        """Children by their first call, by masked keys or not; built when first looked for by content."""
        self.by_key: dict[bool, dict[Key, deque[RecordedCall]]] = {}
        """The calls by content, likewise; built when one is first looked for that way, as in a loose lane."""
        self.has_lent = False
        """Lenient replay has answered another call with one of these, which may still come itself."""

    @property
    def is_loose(self) -> bool:
        return self.name.endswith("~")

    def upcoming(self) -> RecordedCall | None:
        """The next call that must come in this lane."""
        while self.position < len(self.calls) and self.calls[self.position].taken:
            self.position += 1
        return self.calls[self.position] if self.position < len(self.calls) else None

    def pass_by(self, call: RecordedCall) -> None:
        """*call* was answered, or lent, before what stands in front of it; go on behind it."""
        self.has_lent = self.has_lent or call.lent
        self.position = max(self.position, bisect_right(self.calls, call.seq, key=lambda one: one.seq))


class Lanes:
    """All recorded lanes and which live lane plays which."""

    def __init__(self, calls: Iterable[RecordedCall], key_of: KeyOf, root: str = ROOT) -> None:
        """*root* is what the process's first lane is called in the recording."""
        self._key_of = key_of
        self._root = root
        self._lanes: dict[str, RecordedLane] = {}
        self._inside: dict[str, str] = {}
        """By the id of a call: the lane of what happened inside it."""
        for call in calls:
            self._lane(call.lane).calls.append(call)
            if call.parent is not None and call.parent not in self._inside:
                self._inside[call.parent] = _inside_name(call.lane)

    def _lane(self, name: str) -> RecordedLane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = RecordedLane(name)
            parent = _parent_name(name)
            if parent is not None:
                self._lane(parent).children[name] = lane
        return lane

    def __iter__(self) -> Iterator[RecordedLane]:
        return iter(self._lanes.values())

    def take(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The recorded call that *lane*'s call *key* is; ``None`` where there is none."""
        recorded = self.bound(lane, key)
        if recorded is None:
            return None
        if recorded.is_loose:
            return self.take_equal(recorded, key)
        call = recorded.upcoming()
        if call is None or self._key_of(call, key.is_masked) != key:
            return self.take_equal(recorded, key, only_lent=True) if recorded.has_lent else None
        call.taken = True
        return call

    def bound(self, lane: Lane, key: Key | None) -> RecordedLane | None:
        """The recorded lane that *lane* plays; bound now if it was not, by *key* where it is known."""
        if lane.recorded is None:
            lane.recorded = self._bind(lane, key)
            if lane.recorded is not None:
                lane.recorded.is_bound = True
        recorded: RecordedLane | None = lane.recorded
        return recorded

    def expected(self, lane: Lane) -> RecordedLane | None:
        """The recorded lane that *lane* would play by its place alone."""
        if lane.recorded is not None:
            recorded: RecordedLane = lane.recorded
            return recorded
        return self._by_place(lane)

    def _bind(self, lane: Lane, key: Key | None) -> RecordedLane | None:
        by_place = self._by_place(lane)
        if key is None or lane.parent is None or not lane.name[len(lane.parent.name) :].startswith("."):
            return by_place
        if by_place is not None and not by_place.is_bound and self._begins_with(by_place, key):
            return by_place
        return self._by_content(lane.parent, key)

    def _by_place(self, lane: Lane) -> RecordedLane | None:
        if lane.parent is None:
            return self._lane(self._root if lane.name == ROOT else lane.name)
        parent = self.bound(lane.parent, None)
        if parent is None:
            return None
        suffix = lane.name.removeprefix(lane.parent.name)
        # Ordinals of calls shift where calls differ or come in no known order; the call itself is known.
        name = self._inside.get(lane.within or "", "") if suffix.startswith("/") else parent.name + suffix
        found = self._lanes.get(name)
        return None if found is not None and found.is_bound and not found.is_loose else found

    def _by_content(self, live_parent: Lane, key: Key) -> RecordedLane | None:
        parent = self.bound(live_parent, None)
        if parent is None:
            return None
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
            if not child.is_bound:
                return child
        return None

    def _begins_with(self, lane: RecordedLane, key: Key) -> bool:
        first = lane.upcoming()
        return first is not None and self._key_of(first, key.is_masked) == key

    def take_equal(self, lane: RecordedLane, key: Key, *, only_lent: bool = False) -> RecordedCall | None:
        """The earliest call of *lane* with an equal request, wherever it stands."""
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
        call.taken = True
        return call


def _parent_name(name: str) -> str | None:
    """``0.1/3~`` → ``0.1/3`` → ``0.1`` → ``0``; what begins a process, as ``0.1:2`` does, has none here."""
    if name.endswith("~"):
        return name[:-1]
    cut = max(name.rfind("."), name.rfind("/"))
    return name[:cut] if cut > max(0, name.rfind(":")) else None


def _inside_name(name: str) -> str:
    """``0/3.1/2.0~`` → ``0/3.1/2``: the lane inside a call from which the others there descend."""
    before, _, behind = name.rpartition("/")
    return f"{before}/{behind[: len(behind) - len(behind.lstrip('0123456789'))]}"
