"""What the agent's code has in hand while it runs; by itself, a run that is switched off."""

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
    """One execution of an agent under reenact; a context manager for sync and async code alike."""

    mode: RunMode = "off"
    is_test = False
    """Whether a test is recorded; no code of the project that runs in it is missed, whatever that costs."""

    def __init__(self) -> None:
        self.final_output: Any = None
        """What the agent came to; recorded at the end, and compared in replay where both runs set it."""
        self.confidence: float | None = None
        """How sure the agent is of it, from 0 to 1; recorded at the end."""
        self.clock = Clock()
        self.rng = RecordedRandom()
        self.divergences: list[ReplayDivergence] = []
        self.blocked: list[BlockedCall] = []
        """What tried to go live during a replay."""
        self.warnings: list[str] = []
        self.manifest: CaptureManifest | None = None
        self.receipt: ReplayReceipt | None = None

    def uuid4(self) -> uuid.UUID:
        """A random UUID; the recorded one in replay."""
        return uuid4(self.rng)

    def memory_read(
        self, path: str, read: Callable[[], object], *, group_id: str | None = None, source: str | None = None
    ) -> object:
        """What *read* finds in the agent's memory at *path*; the recorded value in replay."""
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
        """Record what the agent means to do: the hash of *plan*, and of how many steps it consists."""
        if step_count is None:
            steps = plan.get("steps", ()) if isinstance(plan, dict) else plan
            step_count = len(steps)
        self.state_mutation("plan_start", plan_hash=plan_hash(plan), step_count=step_count)

    @contextmanager
    def step(self, step_id: str) -> Iterator[PlanStep]:
        """One step of the plan: tool calls in the block belong to it, and what the block raises fails it."""
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
        """Record that the tool that is running now did something to the world, such as ``deploy``."""
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
        """Record a check of the work: the command, how it ended, and by how many fewer tests fail since."""
        facts = _known(command=command, exit_code=exit_code, cwd=cwd, verification_delta=verification_delta)
        request = {"type": "verification", "details": facts}
        # How long it took is told, but need not be the same in a replay.
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
    """How a step of the plan went; the agent may say it otherwise."""

    def __init__(self) -> None:
        self.status: Literal["Success", "Failed", "Skipped", "MaxIterationsReached"] = "Success"
        self.iterations = 1


def _known(**facts: object) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value is not None}
