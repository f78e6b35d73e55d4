"""The model calls of a capture, each with its answer, as their bytes mean them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from reenact.formats.capture import LlmRequest, LlmResponse
from reenact.formats.dialects.turn import Loss
from reenact.formats.record import ABSENT
from reenact.providers import ModelRequest, ModelResponse
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import model_request, model_response


class Exchange(NamedTuple):
    """One question to a model and its answer."""

    call_id: str
    seq: int
    """The event that asked."""
    asked_at_ms: int | float
    request: ModelRequest
    response: ModelResponse


def exchanges(reader: CaptureReader, on_loss: Callable[[Loss], None]) -> Iterator[Exchange]:
    """The exchanges in the order of their answers; a call that gives none goes to *on_loss*."""
    waiting: dict[str, LlmRequest] = {}
    for event in reader.events():
        if isinstance(event, LlmRequest):
            waiting[event.data.callId] = event
        elif isinstance(event, LlmResponse) and event.data.callId in waiting:
            exchange = _exchange(reader, waiting.pop(event.data.callId), event)
            if isinstance(exchange, Loss):
                on_loss(exchange)
            else:
                yield exchange
    for asked in waiting.values():
        on_loss(Loss(asked.seq, "llm_request", None, "it was never answered"))


def request_of(reader: CaptureReader, asked: LlmRequest) -> ModelRequest | None:
    """What a model was asked; ``None`` where the request is of no known wire format."""
    stored = asked.data.request
    return None if stored is ABSENT else model_request(reader.resolved(stored))


def response_of(reader: CaptureReader, answered: LlmResponse) -> ModelResponse | None:
    """What a model answered; ``None`` where there was no answer, or of no known wire format."""
    data = answered.data
    body = None if data.response is ABSENT else reader.resolved(data.response)
    pieces = data.pieces if data.pieces is ABSENT else reader.resolved(data.pieces)
    return model_response(data.provider, body, pieces)


def _exchange(reader: CaptureReader, asked: LlmRequest, answered: LlmResponse) -> Exchange | Loss:
    request = request_of(reader, asked)
    if request is None:
        return Loss(asked.seq, "llm_request", None, "its body is of no known wire format")
    response = response_of(reader, answered)
    if response is None:
        return Loss(answered.seq, "llm_response", None, "it failed before there was an answer")
    return Exchange(asked.data.callId, asked.seq, asked.ts, request, response)
