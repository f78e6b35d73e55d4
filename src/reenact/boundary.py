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

import sys
from asyncio import CancelledError, _get_running_loop, current_task
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from sys import modules
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from reenact.lane_name import INSIDE, LOOSE, ROOT, TASK
from reenact.process_state import audit_listeners, lane_var, locks, open_runs, owned_lanes
from reenact.providers.asking import RequestChange, Undo

CallKind: TypeAlias = Literal["tool", "llm", "network", "process"]
RunMode: TypeAlias = Literal["off", "capture", "replay"]
NATIVE_CALL: Final = "reenact.native_call"
"""Our own audit event for a call of a client in C: its name, and the server's address as it has it."""
NATIVE_CONNECT: Final = "reenact.native_connect"
"""The same for a client in C that is about to connect, which a replay refuses."""
SPAWNED_CHILD: Final = "reenact.spawned_child"
"""Our own audit event for a child of ``multiprocessing`` that starts as a new Python: its function's name."""
T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from reenact.replayer.lanes import RecordedLane

    A = TypeVarWithDefault("A", default=object)
    A_co = TypeVarWithDefault("A_co", default=object, covariant=True)
else:
    A = TypeVar("A")
    A_co = TypeVar("A_co", covariant=True)


class Call(msgspec.Struct, Generic[A_co], frozen=True):
    """One outside call: *request* must be equal in a replay, *facts* are only recorded.

    The seam that makes it states the type of the answer, as in ``Call[int]``.
    """

    kind: CallKind
    name: str
    request: object
    facts: Mapping[str, object] | Callable[[], Mapping[str, object]] = {}
    """A function if they are slow to compute: only a recording needs them."""
    headers: Mapping[str, str] = {}
    """The HTTP headers of the request; only recorded, too."""
    is_json: bool = False
    """Request and answer were read from JSON or text: all their values are JSON values or bytes."""
    runs_again: bool = False
    """In a replay it really runs as well as being answered, with the calls inside it."""
    beside: str = ""
    """Not empty for traffic of a library that is no part of the run: what it is."""
    is_background: bool = False
    """It counts as beside the run only because a library makes it in its own thread."""
    empty: Callable[[], A_co | None] | None = None
    """Makes the empty answer for a lenient replay, if it has one; without it only tools do, ``None``."""
    ask_otherwise: Callable[[RequestChange], OtherCall[A_co] | None] | None = None
    """Returns the model call with a changed request; ``None`` if nothing changes. Only for model calls."""
    may_leave_first: Callable[[], bool] | None = None
    """Whether it may be sent before it is recorded; the seam then calls :meth:`Step.mark_sent`.

    A function, because only a recording needs it."""


def no_answer() -> dict[str, object]:
    """The empty answer of a call whose answer nobody reads."""
    return {}


class OtherCall(msgspec.Struct, Generic[A_co], frozen=True):
    """A call that is made instead of another one."""

    call: Call[A_co]
    undo: list[Undo]
    """The edits that turn its request back into the one of the agent."""


class Instant(msgspec.Struct, frozen=True):
    """A call with an immediate outcome: a clock read, a random number, a change of state."""

    type: Literal["nondeterministic", "state_mutation"]
    request: dict[str, Any]
    """The fields of the event; all must be equal in a replay."""
    is_plain: bool = False
    """Neither the fields nor the value can contain a secret."""
    is_read: bool = False
    """The value is read from outside the run, possibly by further calls; a replay uses only the recording."""


class Step(Protocol[A]):
    """One call in progress; its *answer* has the type that the call states."""

    call_id: str
    live: bool
    """Whether the seam must make the call and put its outcome into *answer*."""
    answer: A
    """Set when the call was made; in a replay, when the step is entered."""
    facts: dict[str, object]
    """Further facts about the outcome; recorded with it."""
    exact: object
    """The outcome in a form that redaction cannot read, such as compressed bytes; recorded, and returned in a
    replay, only if redaction found nothing in the plain outcome."""

    leaves_first: bool
    """Whether the seam must call :meth:`mark_sent`."""

    def mark_sent(self) -> None:
        """The live call was sent before it was recorded; recording goes on while it is in progress."""

    def begin(self, leave: Callable[[], None]) -> None:
        """A live stream has begun; *answer* has its beginning, and the pieces follow.

        *leave* is called if the run ends before the stream; it must lead to :meth:`close`.
        """

    def piece(self, value: object) -> None:
        """A live stream has yielded *value*."""

    def pieces(self) -> Iterator[Any]:
        """The recorded pieces of a stream; at their end raises what the recorded stream raised."""

    def async_pieces(self) -> AsyncIterator[Any]:
        """The same, yielding to the event loop between two pieces."""

    def give_up(self, error: Exception) -> None:
        """The outcome cannot be recorded because of *error*; the call goes on."""

    def wait(self) -> None:
        """In a replay, block until it is the turn of the outcome; raises what the recorded call raised."""

    async def async_wait(self) -> None:
        """The same without blocking the event loop."""

    def close(self, error: BaseException | None) -> None:
        """End the call with *answer* or *error*."""


class Context(Protocol):
    """How a run handles the calls that reach the boundary: recorder, replay engine, or fork."""

    mode: RunMode
    sends_in_pieces: bool
    """Whether a request may be sent on while it still comes in: all calls are live."""
    latest_model_request: object
    """The request of the latest recorded model call; ``None`` in a replay, where no tool runs."""

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        """Begin a call; raises :class:`~reenact.errors.Diverged` if a replay refuses it."""

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], T]) -> T:
        """Produce and record the value of *instant*, or answer it from the recording."""

    def time_passes(self, lane: Lane) -> bool:
        """Whether *lane* really sleeps when the agent sleeps."""

    def leaves_to_server(self, call_name: str) -> bool:
        """Whether a call to a server of this run really goes there, because the recording has no answer."""

    def note(self, text: str) -> None:
        """Note a fact about the run that is no divergence."""

    def hide(self, secret: str) -> None:
        """From now on, hide *secret* wherever it would be written."""

    def refuse_unplaced(self, call: Call) -> Exception | None:
        """Return the error for a call that may belong to this run or another one, if it is refused."""

    def notice_loop(self, loop: object) -> None:
        """A task of this run was started on *loop*; called in the thread of the loop."""

    def lane_starting(self, lane: Lane) -> None:
        """A thread is being started in *lane*, or a job was handed to an executor for it."""

    def lane_began(self, lane: Lane) -> None:
        """A thread or job has started in *lane*."""

    def lane_ending(self, lane: Lane, how: str) -> None:
        """The thread or job of *lane* is about to end; *how* describes its result, if known.

        A replay lets it end in its turn.
        """

    def lane_end_seen(self, lane: Lane) -> None:
        """The end of the thread or job of *lane* is visible to those who wait for it."""

    def lane_ended(self, lane: Lane) -> None:
        """The thread or job of *lane* has ended, and those who waited for it are notified."""

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        """Wrap *coro*, the body of a new task in *lane*; in a replay it ends in its turn."""

    def task_ended(self, lane: Lane, how: str) -> None:
        """The asyncio or trio task of *lane* has ended."""

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """*lane* is about to put an item into a queue, or to take a lock.

        *act* is its mark in the recorded order. A replay lets it act in its turn.
        """

    async def async_wait_to_act(self, lane: Lane, act: str) -> None:
        """The same without blocking the event loop."""

    def has_acted(self, lane: Lane, act: str) -> None:
        """*lane* has done it."""

    def await_shared(self, lane: Lane) -> str | None:
        """*lane* is about to take or look for what it shares with other processes.

        A replay lets it do so in its turn, and returns what it found then, if that is known.
        """

    def note_shared(self, lane: Lane, found: str) -> None:
        """*lane* has done it; *found* is empty if it got what it wanted."""

    def print_piece(self, lane: Lane, write: Callable[[], object]) -> None:
        """*lane* prints a piece of text, which *write* does; replay lets it be written in its turn."""

    def read_wall_clock(self, lane: Lane, place: str, now_ns: int) -> int:
        """The time that a library reads at *place*, its module and line; now, or as it was recorded there."""

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:
        """Whether the replay decides when the timer *name* of *lane* fires."""

    def drop_timer(self, lane: Lane, name: str) -> None:
        """A held timer was cancelled."""

    def timer_fired(self, lane: Lane, name: str) -> None:
        """A timer that is not held has fired."""

    def timer_ran(self, lane: Lane) -> None:
        """The callback of a timer that is not held has run, on its event loop."""

    def deadline(self, lane: Lane, name: str) -> WaitFor:
        """How a thread waits that has set a deadline."""

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        """Call *passed* when it is the turn of the deadline, at the latest at the end of the run."""

    def may_give_up(self, lane: Lane) -> bool:
        """Whether a wait may time out although the recorded one did not."""


DescribeEnd: TypeAlias = Callable[[object, BaseException | None], str]
"""Describes the end of a task by its result or exception; empty if its owner is unknown."""

WaitFor: TypeAlias = Literal["its time", "nothing", "what comes"]
"""Wait normally; not at all, because the deadline passed; or until done, because it did not."""


HANDED: Final = "h"
"""The kind for a callback that a thread hands to an event loop."""
SLEEPS: Final = ("s", "z")
"""Timers of these kinds are sleeps, on an event loop or in a thread."""
SLEPT_AFTER: Final = "-"
"""Separates the number of calls and tasks of the lane from the ordinal of a sleep."""


class HeldTimer(Protocol):
    """A timer of an event loop that the replay fires in its turn."""

    loop: object
    when_s: float
    """When it would fire by itself, on the clock of the process."""

    def fire(self) -> None:
        """Fire it; called in the thread of the loop."""

    def let_go(self) -> None:
        """Let it fire by itself, because the run has ended; from any thread."""


class Lane(msgspec.Struct, eq=False):
    """One logical task of a run; a struct for speed, because every call makes one."""

    context: Context
    name: str
    parent: Lane | None = None
    owner: int = 0
    """The id of the thread or task that runs in this lane; 0 until it is known."""
    within: str | None = None
    """The id of the call that contains this lane."""
    spawned: int = 0
    calls: int = 0
    timers: dict[str, int] | None = None
    """The number of timers and of waits with a deadline, by kind."""
    slept_after: int = 0
    """Its progress at its last sleep; sleeps are counted from there."""
    function: str = ""
    """The function that its task, thread or job runs, if known; a library's in parentheses."""
    nth: int = 0
    """How many tasks that run the same function its parent had started before."""
    started: dict[str, int] | None = None
    """The number of tasks it has started, by function."""
    started_from: str | None = None
    """The line of the agent's code that started its task, thread or job, in a replay."""
    is_beside: bool = False
    """Whether its latest call was beside the run."""
    latest_tool: str | None = None
    """The id of the latest tool call in this lane."""
    recorded: RecordedLane | None = None
    """The recorded lane that this one replays; owned by the replay engine."""
    home: RecordedLane | None = None
    """The recorded lane to try first, if not the one of the same name; owned by the replay engine."""
    _loose: Lane | None = None

    def child(self, function: str = "") -> Lane:
        """The lane of the next task that this one starts, which runs *function*."""
        ordinal, self.spawned = self.spawned, self.spawned + 1
        child = Lane(self.context, f"{self.name}{TASK}{ordinal}", parent=self, within=self.within)
        if function:
            if self.started is None:
                self.started = {}
            child.function, child.nth = function, self.started.get(function, 0)
            self.started[function] = child.nth + 1
        return child

    def next_call(self) -> int:
        """Count a call of this lane and return its ordinal."""
        self.calls += 1
        return self.calls

    @property
    def progress(self) -> int:
        """The number of calls made and tasks started."""
        return self.calls + self.spawned

    def next_timer(self, kind: str) -> str:
        """The unique mark of the next timer of this *kind*.

        The number of sleeps in a polling loop varies, and must not change the marks of later sleeps.
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
        """The lane inside the call with this *ordinal*."""
        return Lane(self.context, f"{self.name}{INSIDE}{ordinal}", self, self.owner, call_id)

    def loose_child(self) -> Lane:
        """The lane of code that runs in the context of this one, in no defined order."""
        if self._loose is None:
            self._loose = Lane(self.context, self.name + LOOSE, parent=self, within=self.within)
        return self._loose

    def name_under(self, root: str) -> str:
        """Its name in a capture in which the first lane of this process is *root*."""
        return self.name if root == ROOT else self.name.replace(ROOT, root, 1)

    @property
    def is_loose(self) -> bool:
        return self.name.endswith(LOOSE)

    @property
    def has_order(self) -> bool:
        """Whether its calls have a defined order in a replay: not inside a call, and not if loose."""
        return INSIDE not in self.name and not self.name.endswith(LOOSE)

    @property
    def is_below_loose(self) -> bool:
        """Whether it or one of its parents is loose."""
        return LOOSE in self.name


UNCLAIMED: Final = -1
"""The owner of a lane whose task is being created."""

OUTSIDE: Final = Lane(None, "")  # type: ignore[arg-type]  # it has no run, hence no context
"""The lane of code that was started in a run but is no part of it, such as a library's transport."""


def set_lane(lane: Lane | None) -> None:
    """Make *lane* the current one in this context."""
    # Before Python 3.12 the collector may run in the middle of setting a variable and end a forgotten stream,
    # which sets it too. CPython would then use the replaced mapping: this reference keeps it alive.
    _kept = copy_context()
    lane_var.set(lane)


def identity() -> int:
    """The id of the current task, 0 in a callback of a running loop, else the id of the thread."""
    if _get_running_loop() is not None:
        task = current_task()
        return id(task) if task is not None else 0
    if "trio" in modules and is_on_trio():
        lowlevel = modules["trio"].lowlevel
        return id(lowlevel.current_task()) if lowlevel.in_trio_task() else 0
    return get_ident()


def is_on_trio() -> bool:
    """Whether the calling code runs in trio, in a task or in a callback of its loop."""
    # Reads trio's thread-local state: asking trio takes three times as long, in every call.
    running = getattr(modules.get("sniffio"), "thread_local", None)
    return running is not None and running.name == "trio"


def watch_rounds(loop: Any, before_round: Callable[[], None]) -> Callable[[], None] | None:
    """Call *before_round* before each iteration of an asyncio loop, until the returned function is called.

    ``None`` if the loop is not asyncio's own. A callback cannot take its place: it runs before some callbacks
    of an iteration and after others.
    """
    if not hasattr(loop, "_run_once"):
        return None
    before = vars(loop).get("_run_once")
    is_over = False

    def run_watched() -> None:
        if not is_over:
            before_round()
        # Not the method as it was: nest_asyncio puts another one into the class.
        (before or type(loop)._run_once.__get__(loop))()  # noqa: SLF001

    def stop() -> None:
        nonlocal is_over
        is_over = True
        if vars(loop).get("_run_once") is not run_watched:
            return  # somebody else watches, too
        if before is None:
            del loop._run_once  # noqa: SLF001 — asyncio offers no other way
        else:
            loop._run_once = before  # noqa: SLF001

    loop._run_once = run_watched  # noqa: SLF001
    return stop


def is_on_loop() -> bool:
    """Whether the calling code runs on an event loop and must not block."""
    return _get_running_loop() is not None or is_on_trio()


def is_cancellation(error: BaseException | None) -> bool:
    """Whether *error* is the cancellation of asyncio or trio."""
    if isinstance(error, CancelledError):
        return True
    trio = modules.get("trio")
    return trio is not None and isinstance(error, getattr(trio, "Cancelled", ()))


def current_lane() -> Lane | None:
    """The lane of the calling code; ``None`` outside any run, or if the run is unknown."""
    lane = lane_var.get()
    if lane is None:
        return _stray_lane() if open_runs else None
    if lane is OUTSIDE:
        return None
    # identity() inlined: every call gets here, mostly from a plain thread.
    is_thread = _get_running_loop() is None and ("trio" not in modules or not is_on_trio())
    me = get_ident() if is_thread else identity()
    if lane.owner != me:
        owned = owned_lanes.get(me)
        if owned is None:
            lane = _claim(lane, me)
        elif owned.owner != lane.owner:  # otherwise it runs for the owner, maybe inside a call
            lane = owned
    return lane if lane.context in open_runs else _lane_after_run(lane)


def certain_lane() -> Lane | None:
    """The lane of the calling code if that is certain; unlike :func:`current_lane` it claims none."""
    lane = lane_var.get()
    if lane is None or lane.owner != (me := identity()):
        lane = owned_lanes.get(me) if lane is not None else None
    return lane if lane is not None and lane.context in open_runs else None


def _claim(lane: Lane, me: int) -> Lane:
    """*lane* for a task that starts before it is registered (an eager task), else its loose child."""
    if lane.owner != UNCLAIMED:
        return lane.loose_child()
    lane.owner = me
    return lane


def _stray_lane() -> Lane | None:
    """The lane of code without a context: it belongs to the open run, if there is only one."""
    owned = owned_lanes.get(identity())
    if owned is not None and owned.context in open_runs:
        return owned
    with locks.runs:
        roots = list(open_runs.values())
    return roots[0].loose_child() if len(roots) == 1 else None


def _lane_after_run(lane: Lane) -> Lane | None:
    """The lane of code whose run has ended: it joins the open run.

    Without one it is not recorded, but code that a replay started must not go live.
    """
    return _stray_lane() or (lane if lane.context.mode == "replay" else None)


def register_lane(owner: int, lane: Lane) -> None:
    """Make *lane* the lane of *owner*, in whatever context its code runs."""
    lane.owner = owner
    lend_lane(owner, lane)


def lend_lane(owner: int, lane: Lane) -> None:
    """Let *owner* run in *lane* while the owner of the lane waits."""
    owned_lanes[owner] = lane


def forget_lane(owner: int) -> None:
    """Forget *owner*, which has ended."""
    owned_lanes.pop(owner, None)


AuditListener: TypeAlias = Callable[[str, tuple[object, ...]], None]


def hear_audit_events(events: Iterable[str], listener: AuditListener) -> None:
    """Call *listener* for these audit events until the end of the process.

    There is one hook for all listeners: every ``id()`` raises an event, and each hook costs 0.25 µs.
    """
    with locks.runs:
        if not audit_listeners:
            sys.addaudithook(_tell_listeners)
        for event in events:
            if listener not in (known := audit_listeners.get(event, ())):
                audit_listeners[event] = (*known, listener)


def _tell_listeners(event: str, arguments: tuple[object, ...]) -> None:
    for listener in audit_listeners.get(event, ()):
        listener(event, arguments)


def open_contexts() -> list[Context]:
    """The contexts of all open runs of this process."""
    with locks.runs:
        return [root.context for root in open_runs.values()]


def forget_runs() -> None:
    """Forget the runs of the parent, in a forked child that gets its own run."""
    open_runs.clear()
    owned_lanes.clear()
    set_lane(None)


@contextmanager
def enter_context(context: Context, within: str | None = None) -> Iterator[Lane]:
    """Make *context* the current one, with a fresh root lane, for the block.

    *within* is the id of the call, of another process of the run, that contains this block.
    """
    root = Lane(context, ROOT, owner=identity(), within=within)
    with locks.runs:
        open_runs[context] = root
    before = lane_var.get()
    set_lane(root)
    try:
        yield root
    finally:
        with locks.runs:
            del open_runs[context]
        # Not reset by token: an async context manager may be closed in another context.
        set_lane(before)


class running_in:  # noqa: N801 — used like a function, and every call goes through several
    """Make *lane* the current one for the block; *on_error* gets what the block raises."""

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
    """Exclude the block, and contexts copied from it, from any run."""
    return running_in(OUTSIDE)


class UnrecordedStep(Generic[A]):
    """The methods of a step of which nothing is recorded, that waits for nothing and has no pieces."""

    __slots__ = ()

    def mark_sent(self) -> None:
        """Nothing is recorded."""

    def begin(self, leave: Callable[[], None]) -> None:
        """Nothing is recorded."""

    def piece(self, value: object) -> None:
        """Nothing is recorded."""

    def pieces(self) -> Iterator[object]:
        return iter(())

    async def async_pieces(self) -> AsyncIterator[object]:
        for piece in self.pieces():
            yield piece

    def give_up(self, error: Exception) -> None:
        """Nothing is recorded."""

    def wait(self) -> None:
        """Nothing to wait for."""

    async def async_wait(self) -> None:
        """Nothing to wait for."""

    def close(self, error: BaseException | None) -> None:
        """Nothing is recorded."""


class _Off(UnrecordedStep[A]):
    """The step outside any run: the seam makes its call."""

    __slots__ = ("answer", "call_id", "exact", "facts", "leaves_first", "live")

    def __init__(self) -> None:
        self.call_id = ""
        self.live = True
        self.leaves_first = False
        self.answer: A
        self.facts: dict[str, object] = {}
        self.exact: object = None


def _refuse_unplaced(call: Call) -> None:
    """Report a call whose run is unknown to every open run; a replay refuses it."""
    errors = [context.refuse_unplaced(call) for context in open_contexts()]
    for error in filter(None, errors):
        raise error


class crossing(Generic[A]):  # noqa: N801 — used like a function, as `contextlib.suppress` is
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
    """The lane of the call; ``None`` outside any run. Set on entering."""
    inside_lane: Lane | None
    """The lane inside the call; set if it is live."""
    step: Step[A]
    """Set on entering."""

    def __init__(
        self, call: Call[A], *, streaming: bool = False, again: Callable[[], Any] | None = None
    ) -> None:
        self._call = call
        self._streaming = streaming
        self._again = again

    def __enter__(self) -> Step[A]:
        step = self._begin()
        was_live = step.live
        if not was_live:
            if self._again is not None:
                with self._inside_again():
                    self._again()
            step.wait()
        if step.live and not was_live:  # no recorded call matches, and it may be made
            self._enter_call()
        return step

    async def __aenter__(self) -> Step[A]:
        step = self._begin()
        was_live = step.live
        if self._again is not None and not was_live:
            with self._inside_again():
                await self._again()
        await step.async_wait()
        if step.live and not was_live:
            self._enter_call()
        return step

    def _begin(self) -> Step[A]:
        lane = self.lane = current_lane()
        if lane is None:
            self.inside_lane = lane_var.get()
            if open_runs and self.inside_lane is not OUTSIDE:
                _refuse_unplaced(self._call)
            self.step = _Off()
            return self.step
        call = self._call
        # Calls beside the run vary from run to run, so they are not counted.
        lane.is_beside = call.beside != ""
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
        """Enter the lane inside the call; for a stream only :meth:`inside` does so."""
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
        """Note a fact about this call in the run."""
        if self.lane is not None:
            self.lane.context.note(f"{self._call.name}: {text}")

    def inside(self) -> AbstractContextManager[None]:
        """Run the block inside the call, not in the code of the agent between two pieces."""
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
