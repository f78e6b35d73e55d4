"""What the name of a lane tells: its parent, its process, its kind."""

import pytest

from reenact import lane_name
from reenact.boundary import Lane
from reenact.formats import capture
from reenact.lane_name import LaneName

NAMES = {
    "the first lane": ("0", None, "0", "process", 0),
    "a task": ("0.1", "0", "0", "task", 1),
    "inside a call": ("0.1/3", "0.1", "0", "inside", 3),
    "loose": ("0.1/3~", "0.1/3", "0", "loose", None),
    "below a loose one": ("0~.2", "0~", "0", "task", 2),
    "a process": ("0.1:2", None, "0.1:2", "process", None),
    "a task of a process": ("0.1:2.3", "0.1:2", "0.1:2", "task", 3),
    "deep": ("0.1:2.3/4~", "0.1:2.3/4", "0.1:2", "loose", None),
    "the gateway": ("g~", "g", "g", "loose", None),
}


@pytest.mark.parametrize(("name", "parent", "process", "kind", "ordinal"), NAMES.values(), ids=NAMES)
def test_a_name_tells_where_its_lane_belongs(name, parent, process, kind, ordinal):
    """Nobody else has to take it apart."""
    lane = LaneName(name)
    assert (lane.parent, lane.process, lane.kind, lane.ordinal) == (parent, process, kind, ordinal)


def test_the_lanes_of_a_run_are_named_so():
    """A live lane and the type agree on what a task, a call and loose code are called."""
    root = Lane(None, "0")
    task = root.child().child()
    inside = task.inside("c1", 4)
    for lane in (task, inside, inside.loose_child(), root.loose_child().child()):
        assert LaneName(lane.name).parent == lane.parent.name
        assert (LaneName(lane.name).kind == "loose") is lane.is_loose
    assert LaneName(task.name).in_call(4) == inside.name


@pytest.mark.parametrize("below", ["0.1", "0.1.2", "0.1/3", "0.1~", "0.1:0"])
def test_what_descends_from_a_lane_is_within_it(below):
    """By tasks, calls, loose code and processes; 0.10 is another task."""
    assert LaneName(below).is_within("0.1")
    assert not LaneName("0.10").is_within("0.1")


def test_a_lane_that_moves_to_another_parent_keeps_its_own_part():
    """Below the recorded parent it has the name it was recorded under."""
    assert LaneName("0.1.2").move("0.1", "0.4") == "0.4.2"
    assert LaneName("0.1~").move("0.1", "0:2.3") == "0:2.3~"


def test_code_that_the_run_did_not_start():
    """It runs in a loose lane of the process, or below that."""
    assert LaneName("0.1:2~.3").is_of_stray
    assert not LaneName("0.1~").is_of_stray


def test_inside_which_call():
    """The number of a call may be another in the next run, so it can be exchanged."""
    assert LaneName("0.1/12.0~").inside_of("0.1") == (12, ".0~")
    assert LaneName("0.1/12.0~").inside_of("0") is None
    assert LaneName("0.1").in_call(7, ".0~") == "0.1/7.0~"
    assert LaneName("0/3.1/2.0~").around == "0/3.1/2"
    assert LaneName("0.1").started_process(2) == "0.1:2"
    assert LaneName("0.1").started_task(2) == "0.1.2"


@pytest.mark.parametrize(("name", "depth"), [("0", 0), ("0.1", 1), ("0.1/3", 1), ("0.1:2.3/4~", 2)])
def test_how_many_tasks_it_is_below(name, depth):
    """Calls, processes and loose code are no tasks."""
    assert LaneName(name).depth == depth


def test_no_act_has_the_mark_of_a_lane() -> None:
    """``order`` has a lane's name and a mark in one text; the name must end at the mark."""
    acts = {capture.ENDED, capture.PUT, capture.TOOK, capture.READ, capture.PRINTED, capture.FIRED}
    acts |= {capture.CLOCK, capture.STILL_RUNNING}
    assert not acts & {lane_name.TASK, lane_name.INSIDE, lane_name.LOOSE, lane_name.PROCESS}
