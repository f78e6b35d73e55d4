"""Where a call leaves the agent: the call, the step it becomes, and the lane it is made in.

A seam turns one outside call into a :class:`Call` and crosses the boundary with it. The context of
the current run, never the seam, knows whether the call is recorded or answered from a recording.

A *lane* is the logical task that makes calls: a thread, a task of asyncio's or trio's, a job for an executor.
Its name is its parent's name and the ordinal at which the parent started it, so the same program gets
the same lanes however its tasks interleave. It travels by context variable and belongs to one owner;
code that inherited the variable without being tracked as a task of its own (a callback, a foreign thread
pool) falls into the lane's *loose* child, where order means nothing.
"""

from __future__ import annotations

import os
import sys
from asyncio import CancelledError, _get_running_loop, current_task
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from sys import modules
from threading import RLock, get_ident
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from reenact.lane_name import ROOT
from reenact.providers.asking import RequestChange, Undo

CallKind: TypeAlias = Literal["tool", "llm", "network", "process"]
RunMode: TypeAlias = Literal["off", "capture", "replay"]
T = TypeVar("T")


class Call(msgspec.Struct, frozen=True):
    """One outside call: *request* is what must be equal in replay, *facts* are recorded beside it."""

    kind: CallKind
    name: str
    request: Any
    facts: dict[str, Any] | Callable[[], dict[str, Any]] = {}
    """A function where they take time to find out: only a recording asks for them."""
    is_json: bool = False
    """Request and answer were read from JSON, or from text: all their values are JSON's own, or bytes."""
    runs_again: bool = False
    """In replay it is made once more beside being answered, and with it what was made inside."""
    beside: str = ""
    """What it is, where it is traffic beside the run: of a library's own, and no part of what the run did."""
    is_background: bool = False
    """It is taken to be beside the run for how it is made alone: by a library, in a thread of its own."""
    empty: Callable[[], object] | None = None
    """Makes the answer that says nothing, for lenient replay; without it only a tool has one, ``None``."""
    ask_otherwise: Callable[[RequestChange], OtherCall | None] | None = None
    """Has a model asked otherwise from now on; ``None`` where that says the same. Only a model call can."""
    may_leave_first: Callable[[], bool] | None = None
    """Whether it may be recorded while it is on its way; the seam says it by :meth:`Step.mark_sent`.

    A function because only a recording asks."""


class OtherCall(msgspec.Struct, frozen=True):
    """A call that is made in the place of another one."""

    call: Call
    undo: list[Undo]
    """The way from its request back to the one that the agent made."""


class Instant(msgspec.Struct, frozen=True):
    """A call whose outcome is there at once: a clock read, a random number, a change of state."""

    type: Literal["nondeterministic", "state_mutation"]
    request: dict[str, Any]
    """The event's own fields; all must be equal in replay."""
    is_plain: bool = False
    """Neither the fields nor the value can hold a secret: a clock read, a random number."""
    is_read: bool = False
    """The value is read from outside the run, which may take calls; replay has it from the recording only."""


class Step(Protocol):
    """One crossing of the boundary under way."""

    call_id: str
    live: bool
    """Whether the seam must make the call itself and leave its outcome in *answer*."""
    answer: Any
    facts: dict[str, Any]
    """What the seam knows of the outcome beside the answer; recorded with it."""
    exact: Any
    """The same outcome in a form redaction cannot look into, such as compressed bytes; recorded, and given
    back in replay, only where redaction found nothing in the outcome itself."""

    leaves_first: bool
    """Whether the seam is to say when the live call is on its way."""

    def mark_sent(self) -> None:
        """A live call that may leave first is on its way: nobody waits for what is done now."""

    def begin(self, leave: Callable[[], None]) -> None:
        """A live stream has begun: *answer* holds what is known of it, its pieces follow.

        *leave* is called when the run ends before the stream does; it must lead to :meth:`close`.
        """

    def piece(self, value: object) -> None:
        """A live stream has handed out *value*."""

    def pieces(self) -> Iterator[Any]:
        """The recorded pieces of a stream; raises at their end what the recorded stream raised."""

    def async_pieces(self) -> AsyncIterator[Any]:
        """The same, letting the event loop go on between two pieces."""

    def give_up(self, error: Exception) -> None:
        """What came cannot be recorded, because of *error*; the call goes on."""

    def wait(self) -> None:
        """In replay: block until the outcome's turn has come; raises what the recorded call raised."""

    async def turn(self) -> None:
        """The same without blocking the event loop."""

    def close(self, error: BaseException | None) -> None:
        """The call is over, with *answer* or with *error*."""


class Context(Protocol):
    """What a run does with the calls that reach the boundary."""

    mode: RunMode
    latest_model_request: object
    """What the run's latest recorded model call asked; ``None`` in replay, where no tool runs."""

    def step(self, call: Call, lane: Lane) -> Step:
        """Begin one crossing; raises :class:`~reenact.errors.Diverged` where replay refuses it."""

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], T]) -> T:
        """The value of *instant*: produced and recorded, or answered from the recording."""

    def time_passes(self, lane: Lane) -> bool:
        """Whether *lane* really waits where the agent's own code pauses."""

    def leaves_to_server(self, call_name: str) -> bool:
        """Whether a call to a server of the run's own is left to it: not where a recording has the answer."""

    def note(self, text: str) -> None:
        """Something about the run that is worth knowing, and no divergence."""

    def refuse_unplaced(self, call: Call) -> Exception | None:
        """A call was made that may belong to this run or to another; the error to refuse it with, if any."""

    def loop_seen(self, loop: object) -> None:
        """A task of this run was started on *loop*, in the loop's own thread."""

    def lane_starting(self, lane: Lane) -> None:
        """A thread is being started in *lane*, or a job was handed to an executor for it."""

    def lane_began(self, lane: Lane) -> None:
        """A thread or job has started in *lane*."""

    def lane_ending(self, lane: Lane, how: str) -> None:
        """The thread or job of *lane* is about to be over, *how* says what came of it, where that is known.

        Replay lets it end when its turn has come.
        """

    def lane_end_seen(self, lane: Lane) -> None:
        """Who waits for the thread or job of *lane* can see that it is over."""

    def lane_ended(self, lane: Lane) -> None:
        """The thread or job of *lane* is over, and who waited for it has been told."""

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        """What a new task in *lane* is to run: *coro*, which in replay ends when its turn has come."""

    def task_ended(self, lane: Lane, how: str) -> None:
        """The task of an event loop in *lane* is over."""

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """*lane* is about to put an item into a queue, or to take a lock.

        *act* is the mark that this has in a recorded order. Replay lets it when its turn has come.
        """

    async def turn_to_act(self, lane: Lane, act: str) -> None:
        """The same without blocking the event loop."""

    def has_acted(self, lane: Lane, act: str) -> None:
        """*lane* has done it."""

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:
        """Whether replay decides when the timer *name*, set by *lane* on an event loop, goes off."""

    def drop_timer(self, lane: Lane, name: str) -> None:
        """A timer that is held was cancelled."""

    def timer_fired(self, lane: Lane, name: str) -> None:
        """A timer that is not held went off."""

    def deadline(self, lane: Lane, name: str) -> WaitFor:
        """How a thread is to wait that gives itself a deadline."""

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        """Call *passed* when it is the turn of a deadline to pass; at the latest when the run is over."""

    def may_give_up(self, lane: Lane) -> bool:
        """Whether a wait may end without what it is for, although it did not when it was recorded."""


DescribeEnd: TypeAlias = Callable[[object, BaseException | None], str]
"""Says how a task ended that returned this or raised that; nothing where it is not known whose it is."""

WaitFor: TypeAlias = Literal["its time", "nothing", "what comes"]
"""In its own time; not at all, since its deadline passed; until it is there, since its deadline did not."""


HANDED: Final = "h"
"""The kind of a timer that is none: something that a thread hands to an event loop goes off there."""
SLEEPS: Final = ("s", "z")
"""Timers of these kinds are sleeps, on an event loop or in a thread."""
SLEPT_AFTER: Final = "-"
"""Before the ordinal of a sleep, behind how many calls and tasks its lane had begun."""


class HeldTimer(Protocol):
    """A timer of an event loop that goes off when its turn has come."""

    loop: object
    when_s: float
    """On the clock of the process, when it would go off by itself."""

    def fire(self) -> None:
        """Go off; on the loop's own thread."""

    def let_go(self) -> None:
        """The run is over: go off by yourself, when it is time; from any thread."""


class Lane(msgspec.Struct, eq=False):
    """One logical task of a run, see the module's docstring; a struct because every call makes one."""

    context: Context
    name: str
    parent: Lane | None = None
    owner: int = 0
    """The identity of the thread or task whose code runs in this lane; 0 until it is known."""
    within: str | None = None
    """The id of the call inside which this lane lives."""
    spawned: int = 0
    calls: int = 0
    timers: dict[str, int] | None = None
    """By kind: how many timers it has set, and how often it has waited with a deadline."""
    slept_after: int = 0
    """Its progress when it slept last, from where sleeps are counted."""
    latest_tool: str | None = None
    """The id of the latest tool call that was made in this lane."""
    recorded: Any = None
    """The lane of the recording this one is bound to; owned by the replay engine."""
    home: Any = None
    """The lane of the recording to look for it first, where that is not the one of its name; likewise."""
    _loose: Lane | None = None

    def child(self) -> Lane:
        """The lane of the next task this one starts."""
        ordinal, self.spawned = self.spawned, self.spawned + 1
        return Lane(self.context, f"{self.name}.{ordinal}", parent=self, within=self.within)

    def next_call(self) -> int:
        """The ordinal of the call that this lane makes now."""
        self.calls += 1
        return self.calls

    @property
    def progress(self) -> int:
        """How many calls it has made and tasks it has started."""
        return self.calls + self.spawned

    def next_timer(self, kind: str) -> str:
        """What tells the next timer of its *kind* from the others of this lane.

        How often it sleeps while it looks whether something is there is chance, and must not change what the
        sleeps after that are called.
        """
        if self.timers is None:
            self.timers = {}
        if kind in SLEEPS and self.slept_after != self.progress:
            self.slept_after = self.progress
            self.timers |= dict.fromkeys(SLEEPS, 0)
        ordinal = self.timers.get(kind, 0)
        self.timers[kind] = ordinal + 1
        return f"{kind}{self.slept_after}{SLEPT_AFTER}{ordinal}" if kind in SLEEPS else f"{kind}{ordinal}"

    def inside(self, call_id: str, ordinal: int) -> Lane:
        """The lane of what happens inside this lane's call of that *ordinal*."""
        return Lane(self.context, f"{self.name}/{ordinal}", self, self.owner, call_id)

    def loose(self) -> Lane:
        """The lane of code that runs in this lane's name but in no known order."""
        if self._loose is None:
            self._loose = Lane(self.context, f"{self.name}~", parent=self, within=self.within)
        return self._loose

    def name_under(self, root: str) -> str:
        """Its name in a capture in which this process's first lane is called *root*."""
        return self.name if root == ROOT else self.name.replace(ROOT, root, 1)

    @property
    def is_loose(self) -> bool:
        return self.name.endswith("~")

    @property
    def has_order(self) -> bool:
        """Whether what it does comes again in replay, in its order: not inside a call, and not if loose."""
        return "/" not in self.name and not self.name.endswith("~")


UNCLAIMED: Final = -1
"""The owner of a lane whose task is being made."""

OUTSIDE: Final = Lane(None, "")  # type: ignore[arg-type]  # it has no run, hence no context
"""The lane of code that belongs to no run although it was started in one, such as a library's transport."""

lane_var: Final[ContextVar[Lane | None]] = ContextVar("reenact_lane", default=None)
_owned: dict[int, Lane] = {}
"""Lanes of threads and tasks whose context variable may say otherwise (foreign contexts)."""
# By the context itself: id() is an audit event, and our hooks hear of every one.
open_runs: dict[Context, Lane] = {}
"""Root lanes of the open runs."""
_lock = RLock()  # what is collected while it is held may run code of the agent, which asks for its lane


def set_lane(lane: Lane | None) -> None:
    """Let *lane* be the current one in this context from now on."""
    # Before Python 3.12 the collector may run in the middle of setting a variable and end a forgotten stream,
    # which sets it too. CPython would go on with the mapping that was replaced: a reference keeps it alive.
    _kept = copy_context()
    lane_var.set(lane)


def identity() -> int:
    """Who is running: the current task, 0 in a callback of a running loop, else the thread."""
    if _get_running_loop() is not None:
        task = current_task()
        return id(task) if task is not None else 0
    if "trio" in modules and is_on_trio():
        lowlevel = modules["trio"].lowlevel
        return id(lowlevel.current_task()) if lowlevel.in_trio_task() else 0
    return get_ident()


def is_on_trio() -> bool:
    """Whether the calling code runs in trio, in a task or in a callback of its loop."""
    # Where trio says that it runs; to ask trio itself takes three times as long, in every call.
    running = getattr(modules.get("sniffio"), "thread_local", None)
    return running is not None and running.name == "trio"


def is_on_loop() -> bool:
    """Whether the calling code runs on an event loop, so that others would stand still if it blocked."""
    return _get_running_loop() is not None or is_on_trio()


def is_cancellation(error: BaseException | None) -> bool:
    """Whether a task ends so that was cancelled, on an event loop of asyncio's kind or trio's."""
    if isinstance(error, CancelledError):
        return True
    trio = modules.get("trio")
    return trio is not None and isinstance(error, getattr(trio, "Cancelled", ()))


def current_lane() -> Lane | None:
    """The lane the calling code runs in; ``None`` outside any run, and where nobody can say in which."""
    lane = lane_var.get()
    if lane is None:
        return _stray_lane() if open_runs else None
    if lane is OUTSIDE:
        return None
    # As identity() says it; most code runs in a thread of its own, and every call asks.
    is_thread = _get_running_loop() is None and ("trio" not in modules or not is_on_trio())
    me = get_ident() if is_thread else identity()
    if lane.owner != me:
        owned = _owned.get(me)
        if owned is None:
            lane = _claim(lane, me)
        elif owned.owner != lane.owner:  # else it runs in the owner's name, maybe inside a call
            lane = owned
    return lane if lane.context in open_runs else _lane_after_run(lane)


def _claim(lane: Lane, me: int) -> Lane:
    """*lane*, if its task runs before its creator could say so, as eager tasks do; else its loose child."""
    if lane.owner != UNCLAIMED:
        return lane.loose()
    lane.owner = me
    return lane


def _stray_lane() -> Lane | None:
    """The lane of code that inherited none: it can only belong to the one open run."""
    owned = _owned.get(identity())
    if owned is not None and owned.context in open_runs:
        return owned
    with _lock:
        roots = list(open_runs.values())
    return roots[0].loose() if len(roots) == 1 else None


def _lane_after_run(lane: Lane) -> Lane | None:
    """The lane of code whose run is over: it joins the one that is open now.

    Where there is none it is as without us, but what a replay left behind must not go live.
    """
    return _stray_lane() or (lane if lane.context.mode == "replay" else None)


def own(owner: int, lane: Lane) -> None:
    """Let *lane* be the lane of *owner* whatever context its code runs in."""
    lane.owner = owner
    share(owner, lane)


def share(owner: int, lane: Lane) -> None:
    """Let *owner* run in *lane* while its own owner waits."""
    _owned[owner] = lane


def disown(owner: int) -> None:
    """*owner* is over."""
    _owned.pop(owner, None)


AuditListener: TypeAlias = Callable[[str, tuple[object, ...]], None]
_audit_listeners: dict[str, tuple[AuditListener, ...]] = {}


def hear_audit_events(events: Iterable[str], listener: AuditListener) -> None:
    """Tell *listener* of these audit events from now on, to the end of the process.

    There is one hook for all: libraries raise an event with every ``id()``, and each hook costs 0.25 µs then.
    """
    with _lock:
        if not _audit_listeners:
            sys.addaudithook(_tell_listeners)
        for event in events:
            if listener not in (known := _audit_listeners.get(event, ())):
                _audit_listeners[event] = (*known, listener)


def _tell_listeners(event: str, arguments: tuple[object, ...]) -> None:
    for listener in _audit_listeners.get(event, ()):
        listener(event, arguments)


def open_contexts() -> list[Context]:
    """The contexts of all open runs of this process."""
    with _lock:
        return [root.context for root in open_runs.values()]


def forget_runs() -> None:
    """In a forked child that is to have a run of its own: the parent's are not open here."""
    open_runs.clear()
    _owned.clear()
    set_lane(None)


def _renew_lock() -> None:
    """In a forked child: another thread of the parent's may have held it, and is not there to let go."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def entered(context: Context, within: str | None = None) -> Iterator[Lane]:
    """Make *context* the current one, with a fresh root lane, for the block.

    *within* is the id of a call, of another process of the run, inside which all of this happens.
    """
    root = Lane(context, ROOT, owner=identity(), within=within)
    with _lock:
        open_runs[context] = root
    before = lane_var.get()
    set_lane(root)
    try:
        yield root
    finally:
        with _lock:
            del open_runs[context]
        # Not reset by token: an async context manager may close in another context than it opened in.
        set_lane(before)


class running_in:  # noqa: N801 — used like a function, and every call goes through several
    """Let *lane* be the current one for the block; *on_error* hears what the block raises."""

    __slots__ = ("_before", "_lane", "_on_error")

    def __init__(self, lane: Lane | None, on_error: Callable[[BaseException], None] | None = None) -> None:
        self._lane = lane
        self._on_error = on_error

    def __enter__(self) -> None:
        self._before = lane_var.get()
        set_lane(self._lane)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_lane(self._before)
        if error is not None and self._on_error is not None:
            self._on_error(error)


def outside() -> AbstractContextManager[None]:
    """What the block does and starts, and what is done in contexts copied from it, belongs to no run."""
    return running_in(OUTSIDE)


class _Off:
    """The step outside any run: the seam makes its call and nobody looks."""

    __slots__ = ("answer", "call_id", "exact", "facts", "leaves_first", "live")

    def __init__(self) -> None:
        self.call_id = ""
        self.live = True
        self.leaves_first = False
        self.answer: Any = None
        self.facts: dict[str, object] = {}
        self.exact: Any = None

    def mark_sent(self) -> None:
        """Nobody looks."""

    def begin(self, leave: Callable[[], None]) -> None:
        """Nobody looks."""

    def piece(self, value: object) -> None:
        """Nobody looks."""

    def pieces(self) -> Iterator[Any]:
        """None is recorded."""
        return iter(())

    async def async_pieces(self) -> AsyncIterator[Any]:
        """None is recorded."""
        for piece in self.pieces():
            yield piece

    def give_up(self, error: Exception) -> None:
        """Nobody looks."""

    def wait(self) -> None:
        """Nothing to wait for."""

    async def turn(self) -> None:
        """Nothing to wait for."""

    def close(self, error: BaseException | None) -> None:
        """Nobody looks."""


def _refuse_unplaced(call: Call) -> None:
    """Tell every open run of a call that nobody can place; a replay refuses it."""
    errors = [context.refuse_unplaced(call) for context in open_contexts()]
    for error in filter(None, errors):
        raise error


class crossing:  # noqa: N801 — used like a function, as `contextlib.suppress` is
    """Cross the boundary with *call*: ``with`` in sync code, ``async with`` in async code.

    The block runs with a step; when ``step.live`` it makes the call and sets ``step.answer``. What the
    block raises is recorded as the call's outcome. In replay the answer is there when the block begins,
    and a recorded error is raised before it does.

    With *streaming* the block hands out pieces while it runs. It pulls them from the live source under
    :meth:`inside`, because what runs between two pieces is the agent's code, not the call's.

    *again* makes a call once more that runs again in replay, before its recorded outcome is there; in async
    code it is awaited.
    """

    __slots__ = ("_again", "_before", "_call", "_ordinal", "_streaming", "inside_lane", "lane", "step")

    lane: Lane | None
    """In which the call is made; ``None`` outside any run. Known when it is entered."""
    inside_lane: Lane | None
    """In which the call does what it does; known when it is live."""
    step: Step
    """Known when it is entered."""

    def __init__(
        self, call: Call, *, streaming: bool = False, again: Callable[[], Any] | None = None
    ) -> None:
        self._call = call
        self._streaming = streaming
        self._again = again

    def __enter__(self) -> Step:
        step = self._begin()
        was_live = step.live
        if not was_live:
            if self._again is not None:
                with self._inside_again():
                    self._again()
            step.wait()
        if step.live and not was_live:  # no recorded call is like it, and it may be made
            self._enter_call()
        return step

    async def __aenter__(self) -> Step:
        step = self._begin()
        was_live = step.live
        if self._again is not None and not was_live:
            with self._inside_again():
                await self._again()
        await step.turn()
        if step.live and not was_live:
            self._enter_call()
        return step

    def _begin(self) -> Step:
        lane = self.lane = current_lane()
        if lane is None:
            self.inside_lane = lane_var.get()
            if open_runs and self.inside_lane is not OUTSIDE:
                _refuse_unplaced(self._call)
            self.step = _Off()
            return self.step
        call = self._call
        # Not every run makes calls beside it, so they do not count.
        if call.beside:
            self._ordinal = 0
        else:
            self._ordinal = lane.calls = lane.calls + 1
        step = self.step = lane.context.step(call, lane)
        if call.kind == "tool":
            lane.latest_tool = step.call_id
        if step.live:
            self._enter_call()
        return step

    def _enter_call(self) -> None:
        """What is done from now on is done inside the call; of a stream only what pulls from its source."""
        lane = self.lane
        assert lane is not None
        self.inside_lane = Lane(
            lane.context, f"{lane.name}/{self._ordinal}", lane, lane.owner, self.step.call_id
        )
        if not self._streaming:
            self._before = lane_var.get()
            set_lane(self.inside_lane)

    def _inside_again(self) -> AbstractContextManager[None]:
        lane = self.lane
        if lane is None:
            return nullcontext()
        return running_in(lane.inside(self.step.call_id, self._ordinal))

    def note(self, text: str) -> None:
        """Tell the run something about this call."""
        if self.lane is not None:
            self.lane.context.note(f"{self._call.name}: {text}")

    def inside(self) -> AbstractContextManager[None]:
        """What the block does now belongs to the call, not to the agent between two pieces."""
        return running_in(self.inside_lane)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.lane is None:
            return
        if self.step.live and not self._streaming:
            set_lane(self._before)
        self.step.close(error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
