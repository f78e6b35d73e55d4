"""Which run records which source of chance; a stand-in asks this at each call.

A test may have replaced a source by a fake, which may return anything. Its values are recorded unchanged.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import update_wrapper
from inspect import isroutine
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from reenact.boundary import Context, Instant, Lane, current_lane
from reenact.process_state import recorded_sources, this_thread
from reenact.values.codec import from_text, to_ordered_text
from reenact.values.objects import type_name
from reenact.volatile.places import working_folder

Source: TypeAlias = Literal[
    "time", "random", "uuid", "secrets", "subprocess", "files", "cwd", "system", "environ"
]


class RecordedSources(NamedTuple):
    """What an open run records."""

    sources: frozenset[str]
    everywhere: frozenset[str]
    """The sources that it records for libraries, too."""
    variables: frozenset[str] | None
    """The environment variables; ``None`` for all."""
    start: str
    """Its working folder at the start."""
    has_outer_alarm: bool
    """Whether a timer of the process ran at the start, such as a test's time limit."""


def record_sources(
    context: Context,
    sources: frozenset[str],
    everywhere: frozenset[str] = frozenset(),
    variables: frozenset[str] | None = None,
) -> None:
    """Record *sources* for the run of *context* from now on."""
    start = working_folder(gone=os.sep)
    recorded_sources[context] = RecordedSources(sources, everywhere, variables, start, _is_alarm_set())


def forget_sources(context: Context) -> None:
    """The run of *context* is over."""
    del recorded_sources[context]


def lane_for(source: Source) -> Lane | None:
    """The current lane if its run records *source*, else ``None``: then call the real function."""
    lane = current_lane()
    if lane is None:
        return None
    recorded = recorded_sources.get(lane.context)
    return lane if recorded is not None and source in recorded.sources else None


def wants_variable(name: str) -> bool:
    """Whether the current run records the environment variable *name*; ``*`` is the list of all."""
    lane = lane_for("environ")
    if lane is None:
        return False
    variables = recorded_sources[lane.context].variables
    return variables is None or name in variables


def starting_folder(lane: Lane) -> str:
    """The working folder in which the run of *lane* began."""
    return recorded_sources[lane.context].start


def alarm_rings(lane: Lane) -> bool:
    """Whether the run of *lane* has set a timer of the process that will interrupt it (``signal.alarm``)."""
    return _is_alarm_set() and not recorded_sources[lane.context].has_outer_alarm


def _is_alarm_set() -> bool:
    return hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL)[0] > 0


def is_everywhere(source: Source, lane: Lane) -> bool:
    """Whether the run of *lane* records *source* for libraries, too."""
    recorded = recorded_sources.get(lane.context)
    return recorded is not None and source in recorded.everywhere


def value_of(source: Source, instant: Instant, produce: Callable[[], object]) -> Any:
    """What *produce* returns; recorded, or answered from the recording, if the run records *source*."""
    lane = lane_for(source)
    return produce() if lane is None else lane.context.instant(instant, lane, produce)


class Form(NamedTuple):
    """How the values of one source become JSON; a value whose type is not exactly *kind* is not encoded."""

    kind: type | None
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _identity(value: object) -> object:
    return value


AS_IT_IS: Final = Form(None, _identity, _identity)
TEXT: Final = Form(str, _identity, _identity)
Answer: TypeAlias = Callable[..., Any]
_VALUE: Final = "asItIs"
_NOT_STORED: Final = "notStored"
_UNKNOWN: Final = object()


def is_genuine(function: object, original: object) -> bool:
    """Whether *function*, found in the place of *original*, is *original* or a wrapper around it."""
    while function is not original:
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
    return True


def _produce(read: Callable[[], object]) -> object:
    """What *read* returns, which may call a fake that a test put somewhere."""
    was_producing, this_thread.is_producing = this_thread.is_producing, True
    try:
        return read()
    finally:
        this_thread.is_producing = was_producing


def stand_for(owner: object, name: str, stand_in: Answer, within: Answer | None = None) -> Answer:
    """*stand_in* for the *name* of *owner*, but *within* for a fake in its place that calls what it replaced.

    Such a fake knows it by our stand-in, because a test took it from one of the agent's modules. *within* is
    the original unless it is given.
    """
    original = getattr(owner, name)
    within = within or original

    def answer(*args: object, **kwargs: object) -> object:
        if getattr(owner, name) is original:
            return stand_in(*args, **kwargs)
        if this_thread.is_producing or original in this_thread.fakes_running:
            return within(*args, **kwargs)
        this_thread.fakes_running.add(original)
        try:
            return stand_in(*args, **kwargs)
        finally:
            this_thread.fakes_running.discard(original)

    return update_wrapper(answer, original)


def as_it_was(owner: object, name: str) -> Answer:
    """The function *name* of *owner*, to be called also if a fake that calls our stand-in is put there later.

    If one is there already, what is there at each call.
    """
    found: Answer = getattr(owner, name)
    if isroutine(found) and getattr(found, "__name__", None) == name:
        return found
    return lambda *args, **kwargs: getattr(owner, name)(*args, **kwargs)


def formed_value_of(
    source: Source, instant: Instant, produce: Callable[[], object], form: Form, *, is_fake: bool = False
) -> Any:
    """The same as :func:`value_of`, for values that JSON does not have and for the values of fakes.

    A value that is not of the form's kind is recorded as the codec writes it or, if it cannot, as the name of
    its type. While recording, the agent gets the original object. A fake is called in replay, too, because it
    may count its calls.
    """
    lane = lane_for(source)
    if lane is None:
        return produce()
    live = produce() if is_fake else _UNKNOWN
    is_recorded = False

    def write() -> object:
        nonlocal live, is_recorded
        is_recorded = True
        live = _produce(produce) if live is _UNKNOWN else live
        return form.encode(live) if type(live) is form.kind else _encode_fake(live)

    answer = lane.context.instant(instant, lane, write)
    if is_fake and is_recorded:
        return live
    if type(answer) is not dict:
        return form.decode(answer)
    return from_fake(answer, produce if live is _UNKNOWN else lambda: live)


def from_fake(answer: dict[str, object], produce: Callable[[], object]) -> object:
    """The recorded value of a fake; if it could not be stored, what *produce* returns now."""
    return answer[_VALUE] if _VALUE in answer else produce()


def _encode_fake(value: object) -> dict[str, object]:
    try:
        is_stored = type(from_text(to_ordered_text(value))) is type(value)
    except Exception:  # encoding an object may run its own code
        is_stored = False
    return {_VALUE: value} if is_stored else {_NOT_STORED: type_name(type(value))}
