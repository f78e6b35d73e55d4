"""Jobs for a pool of processes: the outcome of each is recorded, and in replay no process is started.

Which worker does a job depends on which is idle, so the job has a lane, not the worker. What a job does in
the worker process is not recorded, as with any other program that the agent starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Final

from reenact.boundary import Call, Lane, Step, current_lane, outside
from reenact.seams.imports import Libraries
from reenact.seams.numbered import number_job
from reenact.seams.patches import Patch
from reenact.seams.spawn import run_in_lane, run_in_thread
from reenact.seams.stdlib.stand_ins import REAL, StandInMeta


def _patches(process: ModuleType) -> list[Patch]:
    return [Patch(process.ProcessPoolExecutor, "submit", _submit)]


def _joblib_patches(backends: ModuleType) -> list[Patch]:
    return [Patch(backends.AutoBatchingMixin, "compute_batch_size", _compute_batch_size)]


def _cloudpickle_patches(cloudpickle: ModuleType) -> list[Patch]:
    return [Patch(cloudpickle, "_should_pickle_by_reference", _pickle_by_name, may_lack=True)]


def _pickle_by_name(original: Callable[..., bool]) -> Callable[..., bool]:
    """For our stand-ins, too: cloudpickle pickles the code of a class that is not found under its name."""
    return lambda obj, *args, **options: (
        (isinstance(obj, StandInMeta) and REAL in vars(obj)) or original(obj, *args, **options)
    )


def _compute_batch_size(original: Callable[[object], int]) -> Callable[[object], int]:
    def compute_batch_size(self: object) -> int:
        """Put one call into each job: joblib batches calls by how long they take, which differs in replay."""
        return original(self) if current_lane() is None else 1

    return compute_batch_size


def _submit(original: Callable[..., Future[object]]) -> Callable[..., Future[object]]:
    def submit(self: object, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:
        lane = current_lane()
        if lane is None:
            return original(self, fn, *args, **kwargs)
        job = Job(lane.child(), job_call(fn, args=list(args), kwargs=kwargs))
        if job.step.live:
            job.follow(original(self, fn, *args, **kwargs))
        else:
            job.deliver_recorded()
        return job.promised

    return submit


class Job:
    """One job and its lane, from its submission to its outcome."""

    def __init__(self, lane: Lane, call: Call) -> None:
        self._lane = lane
        self._name = call.name
        lane.next_call()
        self.step: Step = lane.context.step(call, lane)
        self.promised: Future[object] = Future()
        """Done only after the outcome is recorded: the run may end as soon as the agent has it."""
        number_job(self.promised, lane)

    def follow(self, future: Future[object]) -> None:
        """Record the outcome of *future*; the agent's done callbacks then run in the job's lane."""
        future.add_done_callback(lambda done: run_in_lane(self._lane, lambda: self._record(done)))
        self.promised.add_done_callback(lambda promised: promised.cancelled() and future.cancel())

    def _record(self, future: Future[object]) -> None:
        try:
            answer = future.result()
        except BaseException as error:
            self.note_error(error)
            self._keep(None, error)
        else:
            self.note_answer(answer)
            self._keep(answer, None)

    def note_answer(self, answer: object) -> None:
        """Record that the job returned *answer*."""
        self.step.answer = answer
        self.step.close(None)

    def note_error(self, error: BaseException) -> None:
        """Record that the job raised *error*."""
        self.step.close(error)

    def deliver_recorded(self) -> None:
        """In replay: deliver the recorded outcome when its turn in the recorded order has come."""
        self._lane.context.note(
            f"{self._name} was answered, not run: what it does in a worker process was not recorded and is "
            "not compared"
        )
        with outside():  # the job has its lane already
            threading.Thread(target=run_in_thread, args=(self._lane, self._deliver), daemon=True).start()

    def _deliver(self) -> None:
        try:
            self.step.wait()
        except BaseException as error:
            self._keep(None, error)
        else:
            self.step.close(None)
            self._keep(self.step.answer, None)

    def _keep(self, answer: object, error: BaseException | None) -> None:
        """Set the outcome of the promised future, unless the agent has cancelled it."""
        if not self.promised.set_running_or_notify_cancel():
            return
        if error is not None:
            self.promised.set_exception(error)
        else:
            self.promised.set_result(answer)


def job_call(fn: object, **given: object) -> Call:
    """The call for a job that runs *fn* with the arguments *given* and those bound in it."""
    bound = _bound_arguments(fn)
    return Call("process", job_name(fn), given | {"bound": bound} if bound else given)


def job_name(fn: object) -> str:
    """The name of the function that a job runs; ``map`` wraps it in one that handles a chunk of arguments."""
    while isinstance(fn, partial):
        fn = next(filter(callable, fn.args), fn.func)
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"


def _bound_arguments(fn: object, depth: int = 4) -> object:
    """The arguments bound in *fn*: those of a partial, or the public attributes of a callable object."""
    if isinstance(fn, partial):
        given = [each for each in (fn.func, *fn.args) if not isinstance(each, _PLAIN_CALLABLES)]
        kept = [_outline(each, depth) for each in given]
        return [*kept, fn.keywords] if fn.keywords else kept
    if isinstance(fn, _PLAIN_CALLABLES) or depth == 0:
        return None
    if isinstance(fn, MethodType):
        return _bound_arguments(fn.__self__, depth - 1)
    shown = {name: value for name, value in getattr(fn, "__dict__", {}).items() if not name.startswith("_")}
    return {name: _outline(value, depth) for name, value in shown.items()}


def _outline(value: object, depth: int) -> object:
    """*value*, but each callable as its name and the arguments bound in it."""
    if isinstance(value, list | tuple):
        return [_outline(each, depth) for each in value]
    if not callable(value):
        return value
    bound = _bound_arguments(value, depth - 1)
    return {"call": job_name(value), "bound": bound} if bound else job_name(value)


_PLAIN_CALLABLES: Final = (FunctionType, BuiltinFunctionType, type)
_LOKY: Final = "loky.process_executor"

LIBRARIES: Final[Libraries] = {
    "concurrent.futures.process": _patches,
    _LOKY: _patches,
    f"joblib.externals.{_LOKY}": _patches,
    "joblib._parallel_backends": _joblib_patches,
    **{
        f"{package}.cloudpickle": _cloudpickle_patches
        for package in (
            "cloudpickle",
            "joblib.externals.cloudpickle",
            "pyspark.cloudpickle",
            "ray.cloudpickle",
        )
    },
}
