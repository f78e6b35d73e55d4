"""Tracebacks in texts, compared without what lies below a call that a replay answers.

A replay raises the recorded error itself. The frames above the call are the same, those below it are
reenact's, and an error that led to this one has no frames at all.
"""

from __future__ import annotations

import re
from typing import Final

from reenact.lazy_regex import LazyRegex

HEADER: Final = "Traceback (most recent call last):"
_BLOCK: Final = LazyRegex(re.escape(HEADER) + r"\n(?P<frames>(?:  .*\n)+)")
_FRAME: Final = LazyRegex(r'  File "(?P<file>[^"\n]*)", line .*\n(?:(?!  File ")  .*\n)*')
_ROOMS: Final = r"(?:boundary|errors|(?:forks|recorder|replayer|run|seams|values)[/\\][\w/\\]+)"
_OURS: Final = LazyRegex(rf"[/\\]reenact[/\\]{_ROOMS}\.py$")
"""Not every file below a folder of that name: an agent may be in one."""
_CHAINED: Final = LazyRegex(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n$"
)


def without_frames_below(recorded: str, live: str) -> tuple[str, str]:
    """Both texts without the frames below answered calls; unchanged where the frames above them differ."""
    there, here = [*_BLOCK.finditer(recorded)], [*_BLOCK.finditer(live)]
    below_start = -1
    """Where the error begins that the one before may have led to."""
    while there:
        block = there.pop()
        if below_start >= 0 and _CHAINED.search(recorded, block.end(), below_start):
            recorded = recorded[: block.start()] + recorded[block.end() :]
            below_start = block.start()
            continue
        other = here.pop() if here else None
        above = None if other is None else _frames_above(block["frames"], other["frames"])
        below_start = -1
        if other is not None and above is not None:
            recorded = recorded[: block.start("frames")] + above[0] + recorded[block.end() :]
            live = live[: other.start("frames")] + above[1] + live[other.end() :]
            below_start = block.start()
    return recorded, live


def _frames_above(recorded: str, live: str) -> tuple[str, str] | None:
    """The frames above a call that was answered here, at whose place the recording has one, too."""
    there, here = [*_FRAME.finditer(recorded)], [*_FRAME.finditer(live)]
    count = len(here)
    while count and _OURS.search(here[count - 1]["file"]):
        count -= 1
    if count == len(here) or count >= len(there) or not _OURS.search(there[count]["file"]):
        return None
    return recorded[: there[count].start()], live[: here[count].start()]
