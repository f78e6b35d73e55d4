"""From REPLAY.jsonl to the receipt of its session: every tool call and verification by its hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from reenact.errors import FormatError
from reenact.formats.dialects import Event, current
from reenact.formats.dialects.common import UnknownEvent
from reenact.formats.dialects.turn import Loss
from reenact.formats.receipt import Receipt, ToolReceipt, VerificationReceipt
from reenact.formats.record import ABSENT

_HELD: Final[Mapping[type, frozenset[str]]] = {
    current.ReplayHeader: frozenset(),
    current.SessionStart: frozenset({"policy_bundle_id", "repo", "session_id"}),
    current.ToolCall: frozenset({"params_hash", "tool"}),
    current.ToolResult: frozenset({"error", "latency_ms", "ok", "output_hash", "side_effects"}),
    current.Verification: frozenset({"command", "cwd", "duration_ms", "exit_code", "verification_delta"}),
    current.SessionEnd: frozenset(),
}
"""The fields that a receipt has a place for."""
_IMPLIED: Final = frozenset({"session_id", "step_id", "ts", "extra", *current.ReplayHeader.__struct_fields__})
"""What is not asked for: one receipt is of one session, its calls stand in order, and it names the log."""


def receipt_of_log(
    events: Iterable[tuple[int, Event]], *, trajectory_hash: str, file: str, on_loss: Callable[[Loss], None]
) -> Receipt:
    """The receipt of a log's *events*, each with its line, in the current dialect.

    *trajectory_hash* is that of the log as it was written. A receipt lists calls in the order of their
    results; a call without one is a loss.
    """
    making = _Making(on_loss)
    for line, event in events:
        making.take(line, event)
    return making.receipt(trajectory_hash, file)


class _Making:
    def __init__(self, on_loss: Callable[[Loss], None]) -> None:
        self._on_loss = on_loss
        self._start: current.SessionStart | None = None
        self._end: current.SessionEnd | None = None
        self._waiting: dict[str, tuple[int, current.ToolCall]] = {}
        self._tool_calls: list[ToolReceipt] = []
        self._verification: list[VerificationReceipt] = []

    def take(self, line: int, event: Event) -> None:
        self._lose_fields(line, event)
        if isinstance(event, current.SessionStart):
            self._start = self._start or event
        elif isinstance(event, current.ToolCall):
            self._waiting[event.step_id] = (line, event)
        elif isinstance(event, current.ToolResult):
            self._returned(line, event)
        elif isinstance(event, current.Verification):
            self._verification.append(
                VerificationReceipt(
                    command=event.command,
                    cwd=event.cwd,
                    duration_ms=event.duration_ms,
                    exit_code=event.exit_code,
                    verification_delta=event.verification_delta,
                )
            )
        elif isinstance(event, current.SessionEnd):
            self._end = event

    def _lose_fields(self, line: int, event: Event) -> None:
        if isinstance(event, UnknownEvent):
            name = str(current.DIALECT.name_in(event.value))
            self._on_loss(Loss(line, name, None, "a receipt has no such event"))
            return
        left = {name for name in event.__struct_fields__ if getattr(event, name) is not ABSENT}
        left -= _HELD[type(event)] | _IMPLIED
        for field in sorted(left | event.extra.keys()):
            self._on_loss(Loss(line, type(event).__name__, field, "a receipt has no such field"))

    def _returned(self, line: int, event: current.ToolResult) -> None:
        _, call = self._waiting.pop(event.step_id, (0, None))
        if call is None:
            self._on_loss(Loss(line, "ToolResult", None, "it has no call, so a receipt has no name for it"))
            return
        self._tool_calls.append(
            ToolReceipt(
                error=event.error,
                latency_ms=event.latency_ms,
                ok=event.ok,
                output_hash=event.output_hash,
                params_hash=call.params_hash,
                side_effects=event.side_effects,
                tool=call.tool,
            )
        )

    def receipt(self, trajectory_hash: str, file: str) -> Receipt:
        if self._start is None:
            raise FormatError("there is no SessionStart, whose session the receipt would name", file=file)
        for line, _ in self._waiting.values():
            self._on_loss(Loss(line, "ToolCall", None, "it has no result, so a receipt has no hash for it"))
        return Receipt(
            created_at=ABSENT if self._end is None else self._end.ts,
            policy_bundle_id=self._start.policy_bundle_id,
            repo=self._start.repo,
            schema="openagents.receipt.v1",
            session_id=self._start.session_id,
            tool_calls=self._tool_calls,
            trajectory_hash=trajectory_hash,
            verification=self._verification,
        )
