"""Which run wants which source of chance: the decision a stand-in makes at each call.

A test may have put a fake in a source's place, which yields anything. Its values are recorded as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from reenact.boundary import Context, Instant, Lane, current_lane
from reenact.values.codec import from_text, to_ordered_text
from reenact.values.objects import type_name
from reenact.volatile.places import working_folder

Source: TypeAlias = Literal["time", "random", "uuid", "secrets", "subprocess", "files", "cwd", "environ"]

_sources: Final[dict[Context, frozenset[str]]] = {}
"""By the identity of an open run's context."""


_everywhere: Final[dict[Context, frozenset[str]]] = {}
"""The same for what is recorded whoever asks, not for the agent's modules alone."""


_variables: Final[dict[Context, frozenset[str]]] = {}
"""The variables of the environment that a run wants; not there for all of them."""


_starts: Final[dict[Context, str]] = {}
"""The working folder in which a run began."""


def choose(
    context: Context,
    sources: frozenset[str],
    everywhere: frozenset[str] = frozenset(),
    variables: frozenset[str] | None = None,
) -> None:
    """From now on *context* gets what *sources* yield."""
    _sources[context] = sources
    _everywhere[context] = everywhere
    _starts[context] = working_folder(gone=os.sep)
    if variables is not None:
        _variables[context] = variables


def forget(context: Context) -> None:
    """The run of *context* is over."""
    del _sources[context], _everywhere[context], _starts[context]
    _variables.pop(context, None)


def lane_for(source: Source) -> Lane | None:
    """The current lane if its run wants *source*, else ``None``: then the real thing happens unseen."""
    lane = current_lane()
    return lane if lane is not None and source in _sources.get(lane.context, ()) else None


def wants_variable(name: str) -> bool:
    """Whether the current run wants the environment's variable *name*; ``*`` for the list of all."""
    lane = lane_for("environ")
    return lane is not None and name in _variables.get(lane.context, (name,))


def start_of(lane: Lane) -> str:
    """The working folder in which the run of *lane* began."""
    return _starts[lane.context]


def is_everywhere(source: Source, lane: Lane) -> bool:
    """Whether the run of *lane* wants *source* from libraries too."""
    return source in _everywhere.get(lane.context, ())


def value_of(source: Source, instant: Instant, produce: Callable[[], object]) -> Any:
    """What *produce* yields; recorded, or answered from the recording, where the run wants *source*."""
    lane = lane_for(source)
    return produce() if lane is None else lane.context.instant(instant, lane, produce)


class Form(NamedTuple):
    """How values of one source are recorded: exactly of *kind*, and as what JSON has."""

    kind: type | None
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _itself(value: object) -> object:
    return value


AS_IT_IS: Final = Form(None, _itself, _itself)
TEXT: Final = Form(str, _itself, _itself)
_VALUE: Final = "asItIs"
_NOT_STORED: Final = "notStored"
_UNKNOWN: Final = object()


def is_genuine(function: object, original: object) -> bool:
    """Whether *function*, found in the place of *original*, is that one, or a wrapper around it."""
    while function is not original:
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
    return True


def formed_value_of(
    source: Source, instant: Instant, produce: Callable[[], object], form: Form, *, is_fake: bool = False
) -> Any:
    """The same as :func:`value_of` for values that JSON does not have, and for those of fakes.

    One that is not of the form's kind is recorded as it is, or, where it cannot be, by the name of its type.
    The agent gets the very object. A fake is asked in replay too: it may count how often it was.
    """
    lane = lane_for(source)
    if lane is None:
        return produce()
    live = produce() if is_fake else _UNKNOWN
    is_recorded = False

    def write() -> object:
        nonlocal live, is_recorded
        is_recorded = True
        live = produce() if live is _UNKNOWN else live
        return form.encode(live) if type(live) is form.kind else _as_it_is(live)

    answer = lane.context.instant(instant, lane, write)
    if is_fake and is_recorded:
        return live
    if type(answer) is not dict:
        return form.decode(answer)
    return from_fake(answer, produce if live is _UNKNOWN else lambda: live)


def from_fake(answer: dict[str, object], produce: Callable[[], object]) -> object:
    """What a fake yielded when it was recorded; where that could not be stored, what *produce* yields now."""
    return answer[_VALUE] if _VALUE in answer else produce()


def _as_it_is(value: object) -> dict[str, object]:
    try:
        is_stored = type(from_text(to_ordered_text(value))) is type(value)
    except Exception:  # looking at an object may run its own code
        is_stored = False
    return {_VALUE: value} if is_stored else {_NOT_STORED: type_name(type(value))}
