"""Matching: by lane, then by content; whatever the schedule, each call meets its own recording."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from reenact.boundary import Lane
from reenact.formats.event import EventHead, EventHeadData
from reenact.formats.record import ABSENT
from reenact.lane_name import ROOT
from reenact.replayer.lanes import Key, Lanes
from reenact.replayer.source import RecordedCall


class Nowhere:
    """A context that is never asked."""

    mode = "replay"


def call(seq: int, lane: str, what: str, parent: str | None = None) -> RecordedCall:
    data = EventHeadData(callId=f"c{seq}", lane=lane, parent=parent)
    head = EventHead(seq, 0, "tool_call", data)
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
    found, lane = lanes(("0~", "a"), ("0~", "b"), ("0~", "a")), root().loose_child()
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


def match(found: Lanes, lane: Lane, what: str) -> int | None:
    taken = found.take(lane, key(what)) or found.take_elsewhere(lane, key(what))
    return taken.seq if taken is not None else None


def test_one_lane_stays_a_strict_cursor() -> None:
    """What its own lane has later may not come now."""
    found, lane = lanes(("0", "a"), ("0", "b"), ("0", "a")), root()
    assert match(found, lane, "b") is None
    assert [match(found, lane, what) for what in "aba"] == [1, 2, 3]
    assert match(found, lane, "a") is None


def test_a_task_around_each_task_loses_nothing() -> None:
    """Lanes that begin alike are found by where they stand, also where the recording has a task less."""
    found, top = (
        lanes(("0.0", "a"), ("0.1", "a"), ("0.2", "a"), ("0.0", "x"), ("0.1", "y"), ("0.2", "z")),
        root(),
    )
    inner = [top.child().child() for _ in range(3)]
    assert [match(found, inner[place], "a") for place in (2, 0, 1)] == [3, 1, 2]
    assert [match(found, inner[place], "xyz"[place]) for place in (1, 2, 0)] == [5, 6, 4]
    across = found.across_tasks()
    assert across is not ABSENT
    assert [(one.live, one.recorded, one.eventSeq) for one in across.matches] == [
        ("0.2.0", "0.2", 3),
        ("0.0.0", "0.0", 1),
        ("0.1.0", "0.1", 2),
    ]


def test_a_task_around_all_tasks_loses_nothing() -> None:
    """The children of the new task are found by their ordinals."""
    found, top = (
        lanes(("0.0", "a"), ("0.1", "a"), ("0.2", "a"), ("0.0", "x"), ("0.1", "y"), ("0.2", "z")),
        root(),
    )
    around = top.child()
    inner = [around.child() for _ in range(3)]
    assert [match(found, inner[place], "a") for place in (2, 0, 1)] == [3, 1, 2]
    assert [match(found, inner[place], "xyz"[place]) for place in (1, 2, 0)] == [5, 6, 4]


def test_a_task_less_around_each_loses_nothing() -> None:
    """What was done by the only child of a task is done by the task itself."""
    found, top = lanes(("0.0.0", "a"), ("0.1.0", "a"), ("0.0.0", "x"), ("0.1.0", "y")), root()
    first, second = top.child(), top.child()
    assert [match(found, second, "a"), match(found, first, "a")] == [2, 1]
    assert [match(found, second, "y"), match(found, first, "x")] == [4, 3]


def test_a_task_less_around_all_loses_nothing() -> None:
    """The children are found by their ordinals."""
    found, top = lanes(("0.0.0", "a"), ("0.0.1", "a"), ("0.0.0", "x"), ("0.0.1", "y")), root()
    first, second = top.child(), top.child()
    assert [match(found, second, "a"), match(found, first, "a")] == [2, 1]
    assert [match(found, second, "y"), match(found, first, "x")] == [4, 3]


def test_a_call_moved_into_a_task_of_its_own() -> None:
    """The task plays its parent's lane for that call; the parent goes on behind it."""
    found, top = lanes(("0", "a"), ("0", "x"), ("0", "b")), root()
    assert match(found, top, "a") == 1
    assert match(found, top.child(), "x") == 2
    assert match(found, top, "b") == 3


def test_a_task_dissolved_into_its_parent() -> None:
    """The parent makes its calls in between, and comes back to its own."""
    found, top = lanes(("0", "a"), ("0.0", "x"), ("0.0", "y"), ("0", "b")), root()
    assert [match(found, top, what) for what in "axyb"] == [1, 2, 3, 4]


def test_workers_that_take_each_others_jobs() -> None:
    """A job that another worker did is answered where it was recorded; who made it keeps its own place."""
    found, top = lanes(("0.0", "j1"), ("0.1", "j2"), ("0.0", "j3"), ("0.1", "j4")), root()
    one, two = top.child(), top.child()
    assert [match(found, one, "j1"), match(found, one, "j2")] == [1, 2]
    assert match(found, two, "j4") == 4
    assert match(found, two, "j3") == 3


def test_what_its_own_lane_has_calls_before_may_not_come_yet() -> None:
    """It is named all the same, for the message and for who can wait."""
    found, top = lanes(("0.0", "a"), ("0.0", "b")), root()
    other = top.child().child()
    assert match(found, other, "b") is None
    unmade = found.find_unmade(other, key("b"))
    assert unmade is not None
    assert unmade.seq == 2


def test_what_is_inside_a_call_is_never_mixed_with_what_is_not() -> None:
    """A call that a tool made is not one that the agent makes."""
    recorded = [call(1, "0", "a"), call(2, "0/1", "x", "c1")]
    found = Lanes(recorded, lambda one, _: Key(one.type, one.name, one.request_digest or b""))
    assert match(found, root(), "x") is None


def test_a_clock_read_far_away_binds_nobody() -> None:
    """It says nothing about who reads it: the next call does."""
    calls = [call(1, "0.0", "s"), call(2, "0.0", "t"), call(3, "0.0", "u"), call(4, "0.7.7", "m")]
    calls[1].type = "nondeterministic"
    found = Lanes(calls, lambda one, _: Key(one.type, one.name, one.request_digest or b""))
    top = root()
    assert match(found, top.child(), "s") == 1
    stranger = top.child().child()
    chance = Key("nondeterministic", "say", b"t")
    taken = found.take(stranger, chance) or found.take_elsewhere(stranger, chance)
    assert taken is not None
    assert taken.seq == 2
    assert stranger.recorded is None


@pytest.mark.slow
@pytest.mark.usefixtures("collector_off")
def test_thousands_of_equal_calls_cost_a_lookup_each() -> None:
    """Each of the lanes that begin alike is found, wherever the live one stands, in linear time."""
    count = 20_000
    found = lanes(*((f"0.{number}", "same") for number in range(count)))
    around = root().child()
    inner = [around.child() for _ in range(count)]
    began = time.process_time()
    taken = [match(found, lane, "same") for lane in reversed(inner)]
    assert sorted(filter(None, taken)) == list(range(1, count + 1))
    assert (time.process_time() - began) / count < 200e-6
