"""The folder between a command and its processes."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

from reenact.injected.handover import Handover
from reenact.injected.launch import run


def test_no_first_lane_is_taken_twice(tmp_path):
    """Each chooses knowing what was taken before, and the next waits until it is settled."""
    settled = []

    def take(_):
        return Handover(tmp_path).take(lambda taken: str(len(taken)), settled.append)

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(40)))
    assert sorted(map(int, taken)) == list(range(40))
    assert settled == [str(number) for number in range(40)]


def test_a_command_goes_on_diverged_when_others_outlast_the_one_that_did(tmp_path):
    """Not while it may still end by itself, and not because of processes that reported nothing wrong."""
    handover = Handover(tmp_path)
    report = tmp_path / f"replayed-{os.getpid()}"
    report.write_text("{}")
    long_ago_s = time.time() - 60
    os.utime(report, (long_ago_s, long_ago_s))
    assert not handover.goes_on_diverged(10)
    handover.note("diverged", "a difference")
    assert handover.goes_on_diverged(10)
    assert not handover.goes_on_diverged(600)


def test_a_command_that_is_of_no_use_any_more_is_ended():
    """As by anybody who asks it to end."""
    assert run(["sleep", "60"], os.environ, is_of_no_use=lambda: True) == 128 + 15
