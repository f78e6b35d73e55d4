"""Tracebacks of errors that a replay raises: frames below the answered call do not count, all others do."""

from __future__ import annotations

import pytest

from reenact.volatile.tracebacks import HEADER, without_frames_below

SEAM = "/env/lib/python3.11/site-packages/reenact/seams/stdlib/process/whole.py"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"


def frame(file: str, line: int = 1, name: str = "run") -> str:
    return f'  File "{file}", line {line}, in {name}\n    call(\n         ^^^\n'


def traceback(*frames: str, error: str = "OSError: gone") -> str:
    return f"{HEADER}\n{''.join(frames)}{error}\n"


AGENT = frame("/work/agent.py", 7, "main")
STARTED = frame("/env/lib/python3.11/threading.py") + frame(SEAM.replace("stdlib/process/whole", "spawn"))
RECORDED = (frame(SEAM, 34), frame("/usr/lib/python3.11/subprocess.py", 550))
LIVE = (frame(SEAM, 31), frame("/src/reenact/boundary.py", 700), frame("/src/reenact/replayer/step.py"))
CAUSE = "Explain: " + traceback(frame("/env/httpcore/pool.py"), error="Timeout: late")

SAME = {
    "below the call": (traceback(AGENT, *RECORDED), traceback(AGENT, *LIVE)),
    "in a thread": (traceback(STARTED, AGENT, *RECORDED), traceback(STARTED, AGENT, *LIVE)),
    "with its cause": (
        CAUSE + DIRECT + traceback(AGENT, *RECORDED) + DIRECT + traceback(AGENT, error="Failed: so"),
        f"Explain: Timeout: late\n{DIRECT}"
        + traceback(AGENT, *LIVE)
        + DIRECT
        + traceback(AGENT, error="Failed: so"),
    ),
    "twice": (
        traceback(AGENT, *RECORDED) + "and\n" + traceback(*RECORDED),
        traceback(AGENT, *LIVE) + "and\n" + traceback(*LIVE),
    ),
}
OTHER = {
    "another place of the agent": (
        traceback(AGENT, *RECORDED),
        traceback(frame("/work/agent.py", 8, "main"), *LIVE),
    ),
    "another place of an agent in a folder of our name": (
        traceback(AGENT, frame("/work/reenact/agent.py", 7)),
        traceback(AGENT, frame("/work/reenact/agent.py", 8)),
    ),
    "one frame of the agent more": (traceback(AGENT, *RECORDED), traceback(AGENT, AGENT, *LIVE)),
    "another error": (traceback(AGENT, *RECORDED), traceback(AGENT, *LIVE, error="OSError: here")),
    "another cause": (
        CAUSE + DIRECT + traceback(AGENT, *RECORDED),
        f"Explain: Timeout: early\n{DIRECT}" + traceback(AGENT, *LIVE),
    ),
    "what the user pasted": (
        traceback(AGENT, frame("/usr/lib/python3.11/subprocess.py", 550)),
        traceback(AGENT, frame("/usr/lib/python3.11/subprocess.py", 551)),
    ),
    "an error of no call": (traceback(AGENT, AGENT), traceback(AGENT, *LIVE)),
    "in a thread, of another agent": (
        traceback(STARTED, AGENT, *RECORDED),
        traceback(STARTED, frame("/work/other.py"), *LIVE),
    ),
    "not its cause": (
        CAUSE + "\nThen:\n\n" + traceback(AGENT, *RECORDED),
        "Explain: Timeout: late\n\nThen:\n\n" + traceback(AGENT, *LIVE),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_frames_below_an_answered_call_do_not_count(name: str) -> None:
    """Nor those of an error that led to it there."""
    recorded, live = without_frames_below(*SAME[name])
    assert recorded == live
    assert HEADER in live


@pytest.mark.parametrize("name", OTHER)
def test_all_others_do(name: str) -> None:
    """Whatever the difference, it stays."""
    recorded, live = without_frames_below(*OTHER[name])
    assert recorded != live
