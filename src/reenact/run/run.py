"""What the agent's code has in hand while it runs; by itself, a run that is switched off."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from reenact.boundary import Instant, RunMode
from reenact.formats.capture import CaptureManifest
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.replay_receipt import ReplayReceipt
from reenact.replayer.blocked import BlockedCall
from reenact.seams.chance import Clock, RecordedRandom, instant, uuid4


class Run:
    """One execution of an agent under reenact; a context manager for sync and async code alike."""

    mode: RunMode = "off"

    def __init__(self) -> None:
        self.final_output: Any = None
        """What the agent came to; recorded at the end, and compared in replay where both runs set it."""
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
        self, path: str, read: Callable[[], Any], *, group_id: str | None = None, source: str | None = None
    ) -> Any:
        """What *read* finds in the agent's memory at *path*; the recorded value in replay."""
        request = {"type": "memory_read", "path": path} | _known(group_id=group_id, source=source)
        return instant(Instant("state_mutation", request, is_read=True), read)

    def memory_write(
        self, path: str, value: Any, *, group_id: str | None = None, source: str | None = None
    ) -> None:
        """Record that *value* was written to the agent's memory; in replay it must be the same."""
        request = {"type": "memory_write", "path": path, "content": value}
        request |= _known(group_id=group_id, source=source)
        instant(Instant("state_mutation", request), lambda: None)

    def state_mutation(self, kind: str, **details: Any) -> None:
        """Record a change of state, such as ``file_write``; in replay it must be the same."""
        instant(Instant("state_mutation", {"type": kind, "details": details}), lambda: None)

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


def _known(**facts: str | None) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
