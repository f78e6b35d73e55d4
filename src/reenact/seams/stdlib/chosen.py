"""Which run wants which source of chance: the decision a stand-in makes at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from reenact.boundary import Context, Instant, Lane, current_lane

Source: TypeAlias = Literal["time", "random", "uuid", "secrets", "subprocess", "files", "environ"]

_sources: Final[dict[int, frozenset[str]]] = {}
"""By the identity of an open run's context."""


def choose(context: Context, sources: frozenset[str]) -> None:
    """From now on *context* gets what *sources* yield."""
    _sources[id(context)] = sources


def forget(context: Context) -> None:
    """The run of *context* is over."""
    del _sources[id(context)]


def lane_for(source: Source) -> Lane | None:
    """The current lane if its run wants *source*, else ``None``: then the real thing happens unseen."""
    lane = current_lane()
    return lane if lane is not None and source in _sources.get(id(lane.context), ()) else None


def value_of(source: Source, instant: Instant, produce: Callable[[], Any]) -> Any:
    """What *produce* yields; recorded, or answered from the recording, where the run wants *source*."""
    lane = lane_for(source)
    return produce() if lane is None else lane.context.instant(instant, lane, produce)
