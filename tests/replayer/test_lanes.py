"""Matching: by lane, then by content; whatever the schedule, each call meets its own recording."""

from __future__ import annotations

from collections.abc import Sequence

from reenact.boundary import ROOT, Lane
from reenact.replayer.lanes import Key, Lanes
from reenact.replayer.source import RecordedCall, _Data, _Head


class Nowhere:
    """A context that is never asked."""

    mode = "replay"


def call(seq: int, lane: str, what: str, parent: str | None = None) -> RecordedCall:
    data = _Data(callId=f"c{seq}", lane=lane, parent=parent)
    head = _Head(captureId="", runId="", seq=seq, ts=0, type="tool_call", version=1, data=data)
    return RecordedCall(head, "say", what.encode(), is_instant=False)


def lanes(*calls: tuple[str, str]) -> Lanes:
    recorded = [call(seq, lane, what) for seq, (lane, what) in enumerate(calls, 1)]
    return Lanes(recorded, lambda found, _: Key(found.type, found.name, found.request_digest or b""))


def key(what: str) -> Key:
    return Key("tool_call", "say", what.encode())


def root() -> Lane:
    return Lane(Nowhere(), ROOT)  # type: ignore[arg-type]


def take(found: Lanes, lane: Lane, what: str) -> int | None:
    taken = found.take(lane, key(what))
    return taken.seq if taken is not None else None


def test_one_lane_is_a_strict_cursor() -> None:
    """Calls must come in recorded order; a wrong one moves nothing."""
    found, lane = lanes(("0", "a"), ("0", "b"), ("0", "a")), root()
    assert take(found, lane, "b") is None
    assert [take(found, lane, what) for what in "aba"] == [1, 2, 3]
    assert take(found, lane, "a") is None


def test_lanes_may_interleave_in_any_way() -> None:
    """Another lane's calls are nobody's business."""
    found, parent = lanes(("0.0", "a"), ("0.1", "b"), ("0.0", "c"), ("0.1", "d")), root()
    first, second = parent.child(), parent.child()
    assert [take(found, second, "b"), take(found, second, "d")] == [2, 4]
    assert [take(found, first, "a"), take(found, first, "c")] == [1, 3]


def test_siblings_in_another_order_are_told_by_their_first_call() -> None:
    """A lane is bound by content where its ordinal does not fit, and stays bound."""
    found, parent = lanes(("0.0", "a"), ("0.1", "b"), ("0.0", "x"), ("0.1", "y")), root()
    first, second = parent.child(), parent.child()
    assert take(found, first, "b") == 2
    assert take(found, second, "a") == 1
    assert take(found, first, "x") is None
    assert take(found, first, "y") == 4
    assert take(found, second, "x") == 3


def test_equal_siblings_are_told_by_their_ordinals() -> None:
    """Where content does not tell, place does."""
    found, parent = lanes(("0.0", "a"), ("0.1", "a"), ("0.0", "x"), ("0.1", "y")), root()
    first, second = parent.child(), parent.child()
    assert [take(found, second, "a"), take(found, first, "a")] == [2, 1]
    assert [take(found, second, "y"), take(found, first, "x")] == [4, 3]


def test_children_follow_their_parents_binding() -> None:
    """The children of a lane that plays another are looked for there."""
    found, parent = lanes(("0.0", "a"), ("0.1", "b"), ("0.0.0", "x"), ("0.1.0", "y")), root()
    first = parent.child()
    assert take(found, first, "b") == 2
    assert take(found, first.child(), "y") == 4


def test_a_lane_is_never_bound_twice() -> None:
    """More lanes than recorded find nothing left."""
    found, parent = lanes(("0.0", "a")), root()
    first, second = parent.child(), parent.child()
    assert take(found, first, "a") == 1
    assert take(found, second, "a") is None


def test_in_a_loose_lane_order_means_nothing() -> None:
    """Any recorded call with an equal request will do, the earliest first."""
    found, lane = lanes(("0~", "a"), ("0~", "b"), ("0~", "a")), root().loose()
    assert [take(found, lane, what) for what in "baa"] == [2, 1, 3]
    assert take(found, lane, "a") is None


def test_what_is_inside_a_call_is_found_by_the_call() -> None:
    """Also where the ordinals of calls have shifted, as in a loose lane."""
    recorded = [call(1, "0", "a"), call(2, "0/1", "x", "c1"), call(3, "0", "b"), call(4, "0/2", "y", "c3")]
    found = Lanes(recorded, lambda one, _: Key(one.type, one.name, one.request_digest or b""))
    lane = root()
    assert take(found, lane.inside("c3", 1), "y") == 4
    assert take(found, lane.inside("c1", 2), "x") == 2


def many(count: int, prefix: str) -> Sequence[tuple[str, str]]:
    return [(f"{prefix}{number}", f"call {number}") for number in range(count)]


def test_many_siblings_in_reverse() -> None:
    """Every one is found, at the cost of a lookup each."""
    found, parent = lanes(*many(2000, "0.")), root()
    children = [parent.child() for _ in range(2000)]
    taken = [take(found, child, f"call {1999 - place}") for place, child in enumerate(children)]
    assert taken == list(range(2000, 0, -1))
