"""``@reenact.tool``: makes a seam of a plain function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from reenact.boundary import Call, crossing
from reenact.errors import ReenactError, UsageError
from reenact.formats.decision import CallGate, CallRefused, Decision
from reenact.process_state import lane_var, open_runs
from reenact.seams.validation import ToolSchema, with_validation
from reenact.values.codec import to_text
from reenact.values.objects import message_of

Approve: TypeAlias = Callable[[Call, Decision], bool]
"""Decides about calls that need review; only ``True`` allows a call, so that a coroutine object does not."""


def with_policy(
    fn: Callable[..., object], call: Callable[..., Call], policy: CallGate, approve: Approve | None
) -> Callable[..., object]:
    """*fn*, but it runs only if *policy* allows the call, or wants a review and *approve* returns ``True``.

    Works for all kinds of functions: a coroutine or generator is created, not started, after the decision.
    """

    def decided(*args: object, **kwargs: object) -> object:
        made = call(args, kwargs)
        decision = policy.decide_call(made.name, made.request)
        if not decision.is_allowed and not _is_approved(made, decision, approve):
            raise CallRefused(decision)
        return fn(*args, **kwargs)

    return decided


def _is_approved(call: Call, decision: Decision, approve: Approve | None) -> bool:
    return decision.verdict == "review" and approve is not None and approve(call, decision) is True


Effects: TypeAlias = Literal["answer", "run"]
"""Whether a tool in replay is only answered from the recording, or also run."""

F = TypeVar("F", bound=Callable[..., object])
_lane = lane_var.get


@overload
def tool(
    fn: F,
    /,
    *,
    name: str | None = None,
    policy: CallGate | None = None,
    approve: Approve | None = None,
    schema: ToolSchema = None,
    side_effects: Sequence[str] = (),
    effects: Effects = "answer",
) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    policy: CallGate | None = None,
    approve: Approve | None = None,
    schema: ToolSchema = None,
    side_effects: Sequence[str] = (),
    effects: Effects = "answer",
) -> Callable[[F], F]: ...
def tool(
    fn: F | None = None,
    /,
    *,
    name: str | None = None,
    policy: CallGate | None = None,
    approve: Approve | None = None,
    schema: ToolSchema = None,
    side_effects: Sequence[str] = (),
    effects: Effects = "answer",
) -> F | Callable[[F], F]:
    """Record each call of *fn* with its arguments and outcome, and answer it from the recording in replay.

    Takes sync and async functions, methods and generators; a generator's items are recorded one by one.
    Outside a run the function is just called. The tool's name is *name*, or the function's qualified name.

    With a *policy* a call that it denies raises :class:`~reenact.formats.decision.CallRefused` instead of
    running, in a run or outside; so does a call that needs review, unless *approve* returns ``True``. The
    refusal is recorded as the call's outcome: replay raises it again, without asking *approve*.

    With a *schema* the arguments are validated before the tool runs: a JSON Schema, ``"signature"`` for the
    schema that the function's annotations describe, or ``"offered"`` for the one that the model was offered
    under the tool's name. Arguments that do not fit raise
    :class:`~reenact.seams.validation.InvalidArguments` instead of running the tool, and that is recorded as
    the call's outcome. *side_effects* declares what the tool does to the world, as tags such as ``fs_write``,
    ``network`` or ``payment``.

    Mark the functions that reach the outside. Replay does not run them. So if a tool changes your own state
    that the agent reads later, such as a database in the test, replay misses the change: leave that tool
    unmarked, or give it ``effects="run"``. Then replay answers it from the recording and also runs it, with
    its own calls answered. If its result differs from the recorded one, the report notes that, and the agent
    gets the recorded one.
    """
    if effects not in get_args(Effects):
        raise UsageError(f"effects={effects!r} is unknown; choose {' or '.join(get_args(Effects))}")
    wrap = partial(
        _wrap,
        name=name,
        policy=policy,
        approve=approve,
        schema=schema,
        side_effects=tuple(side_effects),
        effects=effects,
    )
    if fn is None:
        return wrap
    wrapped: F = wrap(fn)
    return wrapped


def _wrap(
    fn: Any,
    *,
    name: str | None,
    policy: CallGate | None,
    approve: Approve | None,
    schema: ToolSchema,
    side_effects: tuple[str, ...],
    effects: Effects,
) -> Any:
    if isinstance(fn, classmethod | staticmethod):
        inner = tool(
            fn.__func__,
            name=name,
            policy=policy,
            approve=approve,
            schema=schema,
            side_effects=side_effects,
            effects=effects,
        )
        return type(fn)(inner)
    runs_again = effects == "run"
    if runs_again and (inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn)):
        raise UsageError(f"{_qualified_name(fn)}: effects='run' is for functions; a generator cannot have it")
    call = _Caller(fn, name or _qualified_name(fn), side_effects, runs_again=runs_again)
    live = fn if policy is None else with_policy(fn, call, policy, approve)
    if schema is not None:
        live = with_validation(live, call, schema)
    wrapper: object
    if inspect.isasyncgenfunction(fn):
        wrapper = _async_generator(live, call)
    elif inspect.isgeneratorfunction(fn):
        wrapper = _generator(live, call)
    elif inspect.iscoroutinefunction(fn):
        wrapper = _coroutine_run_again(live, call) if runs_again else _coroutine(live, call)
    else:
        wrapper = _function_run_again(live, call) if runs_again else _function(live, call)
    functools.update_wrapper(wrapper, fn)
    return wrapper


def _qualified_name(fn: object) -> str:
    name: str = getattr(fn, "__qualname__", type(fn).__qualname__)
    return name.rpartition("<locals>.")[2]


class _Caller:
    """Makes the call from the arguments, bound by name, so that positional and keyword calls are equal."""

    def __init__(
        self,
        fn: Callable[..., object],
        name: str,
        side_effects: tuple[str, ...] = (),
        *,
        runs_again: bool = False,
    ) -> None:
        self._name = name
        self._runs_again = runs_again
        self._facts: dict[str, object] = {"sideEffects": list(side_effects)} if side_effects else {}
        self._signature = inspect.signature(fn)
        parameters = list(self._signature.parameters.values())
        self._is_method = bool(parameters) and parameters[0].name in ("self", "cls")
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        named = (*positional, inspect.Parameter.KEYWORD_ONLY)
        self._names = tuple(parameter.name for parameter in parameters if parameter.kind in positional)
        self._is_simple = all(parameter.kind in named for parameter in parameters)
        self._defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not inspect.Parameter.empty
        }

    def __call__(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Call:
        if self._is_simple and len(args) <= len(self._names):
            arguments = self._defaults.copy()
            for name, value in zip(self._names, args):  # noqa: B905 — the others have defaults
                arguments[name] = value
            if kwargs:
                arguments.update(kwargs)
        else:
            arguments = self._bind(args, kwargs)
        if self._is_method:
            arguments.pop(self._names[0], None)
        if self._runs_again:
            return Call("tool", self._name, arguments, self._facts, runs_again=True)
        return Call("tool", self._name, arguments, self._facts)

    def _bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            # The function will raise Python's own error; the call is recorded with the arguments as given.
            return {"*args": list(args), **kwargs}
        bound.apply_defaults()
        return dict(bound.arguments)


def _function(fn: Callable[..., object], call: _Caller) -> Callable[..., object]:
    def wrapper(*args: object, **kwargs: object) -> object:
        if _lane() is None and not open_runs:
            return fn(*args, **kwargs)
        with crossing(call(args, kwargs)) as step:
            if step.live:
                step.answer = fn(*args, **kwargs)
        return step.answer

    return wrapper


def _coroutine(fn: Callable[..., Any], call: _Caller) -> Callable[..., object]:
    async def wrapper(*args: object, **kwargs: object) -> object:
        if _lane() is None and not open_runs:
            return await fn(*args, **kwargs)
        async with crossing(call(args, kwargs)) as step:
            if step.live:
                step.answer = await fn(*args, **kwargs)
        return step.answer

    return wrapper


def _function_run_again(fn: Callable[..., object], call: _Caller) -> Callable[..., object]:
    def wrapper(*args: object, **kwargs: object) -> object:
        rerun = _Rerun()

        def run_again() -> None:
            with rerun:
                rerun.result = fn(*args, **kwargs)

        boundary = crossing(call(args, kwargs), again=run_again)
        with rerun.compare_after(boundary), boundary as step:
            if step.live:
                step.answer = fn(*args, **kwargs)
            rerun.answer = step.answer
        return step.answer

    return wrapper


def _coroutine_run_again(fn: Callable[..., Any], call: _Caller) -> Callable[..., object]:
    async def wrapper(*args: object, **kwargs: object) -> object:
        rerun = _Rerun()

        async def run_again() -> None:
            with rerun:
                rerun.result = await fn(*args, **kwargs)

        boundary = crossing(call(args, kwargs), again=run_again)
        with rerun.compare_after(boundary):
            async with boundary as step:
                if step.live:
                    step.answer = await fn(*args, **kwargs)
                rerun.answer = step.answer
        return step.answer

    return wrapper


class _Rerun:
    """The result of a tool that replay runs in addition to answering it; entered while the tool runs."""

    def __init__(self) -> None:
        self.has_run = False
        self.result: object = None
        self.answer: object = None
        """The recorded answer."""
        self._error: BaseException | None = None

    def __enter__(self) -> None:
        self.has_run = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Keep the tool's error to compare it; a divergence in one of its calls is raised on."""
        self._error = error
        return isinstance(error, Exception) and not isinstance(error, ReenactError)

    @contextmanager
    def compare_after(self, boundary: crossing) -> Iterator[None]:
        """After the block, note if the tool's result differs from the recorded one, which the agent gets."""
        try:
            yield
        except Exception as recorded:
            if self.has_run and not isinstance(recorded, ReenactError):
                self._compare(boundary, recorded)
            raise
        if self.has_run:
            self._compare(boundary, None)

    def _compare(self, boundary: crossing, recorded: Exception | None) -> None:
        if self._error is not None:
            if type(self._error) is not type(recorded):
                boundary.note(f"run again, it raised {type(self._error).__name__}: {message_of(self._error)}")
        elif recorded is not None:
            boundary.note("run again, it did not fail as it did when it was recorded")
        elif to_text(self.result) != to_text(self.answer):
            boundary.note("run again, it returned something else than when it was recorded")


def _generator(fn: Callable[..., Any], call: _Caller) -> Callable[..., object]:
    def wrapper(*args: object, **kwargs: object) -> Generator[object, object, object]:
        if _lane() is None and not open_runs:
            return (yield from fn(*args, **kwargs))
        boundary = crossing(call(args, kwargs), streaming=True)
        with boundary as step:
            if step.live:
                step.answer = yield from _stream_live(fn(*args, **kwargs), boundary, step)
            else:
                for item in step.pieces():
                    with _ignore_thrown():
                        yield item
        return step.answer

    return wrapper


def _stream_live(source: Any, boundary: crossing, step: Any) -> Generator[object, object, object]:
    """Yield and return what *source* does; pass on to it what the agent sends and throws."""
    resume = partial(next, source)
    try:
        while True:
            with boundary.inside():
                try:
                    item = resume()
                except StopIteration as end:
                    return end.value
            step.piece(item)
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                resume = partial(source.throw, error)
            else:
                resume = partial(source.send, sent)
    finally:
        with boundary.inside():
            source.close()


def _async_generator(fn: Callable[..., Any], call: _Caller) -> Callable[..., object]:
    async def wrapper(*args: object, **kwargs: object) -> AsyncGenerator[object, object]:
        boundary = crossing(call(args, kwargs), streaming=True)
        async with boundary as step:
            if not step.live:
                async for item in step.async_pieces():
                    with _ignore_thrown():
                        yield item
                return
            source = fn(*args, **kwargs)
            resume = partial(anext, source)
            try:
                while True:
                    with boundary.inside():
                        try:
                            item = await resume()
                        except StopAsyncIteration:
                            return
                    step.piece(item)
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume = partial(source.athrow, error)
                    else:
                        resume = partial(source.asend, sent)
            finally:
                with boundary.inside():
                    await source.aclose()

    return wrapper


@contextmanager
def _ignore_thrown() -> Iterator[None]:
    """Ignore what the agent throws into a replayed stream: the recording has the outcome."""
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException:
        return
