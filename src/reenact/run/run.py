"""The object that the agent's code gets; the base class is a run that is switched off."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

from reenact.boundary import Instant, RunMode, current_lane
from reenact.errors import UsageError
from reenact.formats.capture import CaptureManifest
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.hashes import plan_hash
from reenact.formats.replay_receipt import ReplayReceipt
from reenact.replayer.guard import BlockedCall
from reenact.seams.chance import Clock, RecordedRandom, instant, uuid4


class Run:
    """One execution of an agent under reenact; a context manager for sync and async code."""

    mode: RunMode = "off"
    is_test = False
    """Whether a test is recorded; all code of the project that runs in it is noted, at any cost."""

    def __init__(self) -> None:
        self.final_output: Any = None
        """The result of the agent; recorded at the end, and compared in a replay if both runs set it."""
        self.confidence: float | None = None
        """The agent's confidence in it, from 0 to 1; recorded at the end."""
        self.clock = Clock()
        self.rng = RecordedRandom()
        self.divergences: list[ReplayDivergence] = []
        self.blocked: list[BlockedCall] = []
        """The live calls that a replay refused."""
        self.warnings: list[str] = []
        self.manifest: CaptureManifest | None = None
        self.receipt: ReplayReceipt | None = None

    def uuid4(self) -> uuid.UUID:
        """A random UUID; in a replay the recorded one."""
        return uuid4(self.rng)

    def memory_read(
        self, path: str, read: Callable[[], object], *, group_id: str | None = None, source: str | None = None
    ) -> object:
        """Read the agent's memory at *path* by *read*; in a replay return the recorded value."""
        request = {"type": "memory_read", "path": path} | _known(group_id=group_id, source=source)
        return instant(Instant("state_mutation", request, is_read=True), read)

    def memory_write(
        self, path: str, value: object, *, group_id: str | None = None, source: str | None = None
    ) -> None:
        """Record that *value* was written to the agent's memory; in replay it must be the same."""
        request = {"type": "memory_write", "path": path, "content": value}
        request |= _known(group_id=group_id, source=source)
        instant(Instant("state_mutation", request), lambda: None)

    def state_mutation(self, kind: str, **details: object) -> None:
        """Record a change of state, such as ``file_write``; in replay it must be the same."""
        instant(Instant("state_mutation", {"type": kind, "details": details}), lambda: None)

    def plan(self, plan: Any, *, step_count: int | None = None) -> None:
        """Record the agent's plan: the hash of *plan* and its number of steps."""
        if step_count is None:
            steps = plan.get("steps", ()) if isinstance(plan, dict) else plan
            step_count = len(steps)
        self.state_mutation("plan_start", plan_hash=plan_hash(plan), step_count=step_count)

    @contextmanager
    def step(self, step_id: str) -> Iterator[PlanStep]:
        """One step of the plan: tool calls in the block belong to it, and an exception fails it."""
        step = PlanStep()
        self.state_mutation("step_start", step_id=step_id)
        try:
            yield step
        except BaseException:
            step.status = "Failed" if step.status == "Success" else step.status
            raise
        finally:
            facts = {"step_id": step_id, "status": step.status, "iterations": step.iterations}
            self.state_mutation("step_complete", **facts)

    def step_utility(self, utility: float) -> None:
        """Rate the latest tool call of this task, from −1 (harmful) to +1 (helpful): the learning signal."""
        if not -1 <= utility <= 1:
            raise UsageError(f"step_utility({utility}): choose a number from -1 to 1")
        lane = current_lane()
        if lane is None:
            return
        if lane.latest_tool is None:
            raise UsageError("step_utility: no tool was called yet in this task")
        self.state_mutation("step_utility", callId=lane.latest_tool, step_utility=float(utility))

    def side_effect(self, tag: str, **details: object) -> None:
        """Record a side effect of the running tool, such as ``deploy``."""
        self.state_mutation("side_effect", tag=tag, **details)

    def verification(
        self,
        command: str,
        exit_code: int,
        *,
        cwd: str | None = None,
        duration_ms: float | None = None,
        verification_delta: int | None = None,
    ) -> None:
        """Record a check of the work: the command, its result, and how many fewer tests fail."""
        facts = _known(command=command, exit_code=exit_code, cwd=cwd, verification_delta=verification_delta)
        request = {"type": "verification", "details": facts}
        # The duration is recorded but not compared in a replay.
        instant(Instant("state_mutation", request), lambda: _known(duration_ms=duration_ms) or None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class PlanStep:
    """The result of a step of the plan; the agent may set it."""

    def __init__(self) -> None:
        self.status: Literal["Success", "Failed", "Skipped", "MaxIterationsReached"] = "Success"
        self.iterations = 1


def _known(**facts: object) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value is not None}
