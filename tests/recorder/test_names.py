"""What lanes and calls of one process among several are called."""

import pytest

from reenact.boundary import Lane
from reenact.lane_name import LaneName
from reenact.recorder.eventlog import ProcessNames

NAMES = {
    "the first process": ("0", "0.1/2~", "0.1/2~", "c"),
    "a sibling": ("1", "0.1/2~", "1.1/2~", "1c"),
    "a child": ("0.3:0", "0.10", "0.3:0.10", "0.3:0c"),
    "a child of a child in a call": ("0/2:1:10", "0", "0/2:1:10", "0/2:1:10c"),
}


@pytest.mark.parametrize(("root", "live", "name", "prefix"), NAMES.values(), ids=NAMES)
def test_a_lane_is_named_after_its_process(root, live, name, prefix):
    """And from its name the process is known again."""
    names = ProcessNames.of_process(root)
    assert (names.lane(Lane(None, live)), names.call_prefix) == (name, prefix)
    assert LaneName(name).process == root
