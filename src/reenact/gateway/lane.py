"""The lane of all that comes through the gateway.

Which of several clients asks is not known, so that the calls are made in its loose child.
"""

from __future__ import annotations

from typing import Final

LANE: Final = "g"
LANE_BELOW: Final = "g/p"
"""What programs ask that a recorded Python process started. To replay, they are one call of that process and
do not run: the capture shows what they asked, but nobody asks it again."""

BELOW: Final = "~"
"""Where the address of a recorded process's programs differs from that of others."""


def is_below(lane: str) -> bool:
    """Whether the recorded *lane* is that of programs which a recorded process started."""
    return lane.startswith(LANE_BELOW)


def is_of_gateway(lane: str) -> bool:
    """Whether the calls of the recorded *lane* come through the gateway in replay."""
    return lane == f"{LANE}~"
