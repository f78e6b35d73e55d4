"""The lanes of calls that come through the gateway.

The gateway does not know which of several clients makes a call, so calls go to the loose lane ``g~``, which
has no fixed order.
"""

from __future__ import annotations

from typing import Final

from reenact.lane_name import LOOSE

LANE: Final = "g"
LANE_BELOW: Final = "g/p"
"""The lane of programs that a recorded Python process started. Replay answers the call that started such a
program and does not run it: its own calls are shown, but not replayed."""

BELOW: Final = "~"
"""The first path segment in the gateway's address for programs below a recorded process."""


def is_below(lane: str) -> bool:
    """Whether *lane* belongs to programs that a recorded process started."""
    return lane.startswith(LANE_BELOW)


def is_of_gateway(lane: str) -> bool:
    """Whether the calls of *lane* come through the gateway in replay."""
    return lane == LANE + LOOSE
