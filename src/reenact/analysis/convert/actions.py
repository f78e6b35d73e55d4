"""The exchanges of a capture with its models, each as one action."""

from __future__ import annotations

from collections.abc import Iterator

from reenact import canonical
from reenact.analysis.convert.source import Source
from reenact.check.actions.action import action_from_exchange
from reenact.formats.dialects.turn import Loss
from reenact.trace.exchanges import exchanges


def to_actions(source: Source) -> Iterator[bytes]:
    """One line per exchange; its context names the capture and the event that asked."""
    reader = source.capture()
    manifest = reader.manifest
    for exchange in exchanges(reader, source.on_loss):
        action = action_from_exchange(
            exchange.request,
            exchange.response,
            agent_id=manifest.runId,
            action_id=f"{manifest.captureId}.{exchange.call_id}",
            occurred_at_unix_ms=round(exchange.asked_at_ms),
            context={"captureId": manifest.captureId, "seq": exchange.seq},
        )
        if action is None:
            reason = "an action needs a question and an answer of text or tool calls"
            source.on_loss(Loss(exchange.seq, "llm_request", None, reason))
        else:
            yield canonical.encode(action) + b"\n"
