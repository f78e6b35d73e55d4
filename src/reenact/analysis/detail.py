"""A step in full: its payloads out of wherever they are stored, its conversation read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from reenact.analysis.events import Event
from reenact.analysis.sources.source import Source
from reenact.analysis.step import Conversation, Detail, Payloads, Step
from reenact.errors import FormatError, StoreError
from reenact.formats.record import ABSENT
from reenact.providers import read_request
from reenact.trace.model_calls import model_response
from reenact.trace.plain import plain

_ASKED: Final = {"tool_call": ("args", "argsHash"), "llm_request": ("request",)}
_CAME: Final = {"tool_result": ("result", "resultHash"), "llm_response": ("response", "text")}
_CHANGE: Final = ("type", "path", "source", "group_id", "content", "details")


def detail_of(source: Source, step: Step) -> Detail:
    """*step* with all that is recorded of it."""
    reading = _Reading(source)
    began, ended = events_of(source, step)
    payloads = reading.payloads(began, ended)
    events = [*reading.events(step)]
    return Detail(step=step, payloads=payloads, events=events, problems=reading.problems)


def payloads_of(source: Source, began: Event, ended: Event | None) -> Payloads:
    """What the two events of a step hold."""
    return _Reading(source).payloads(began, ended)


def events_of(source: Source, step: Step) -> tuple[Event, Event | None]:
    """The events that began and ended *step*."""
    began = source.event(step.seq)
    assert began is not None
    return began, source.event(step.outcome_seq) if step.outcome_seq else None


class _Reading:
    """One step being put together; what cannot be resolved stays as it is stored, and is named."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.problems: list[str] = []

    def payloads(self, began: Event, ended: Event | None) -> Payloads:
        request = self._whole(_first(began, _ASKED.get(began.type, ("request",))))
        outcome = ended.data if ended else {}
        response = self._whole(_first(ended, _CAME.get(ended.type, ("value",)))) if ended else None
        pieces = self._whole(outcome.get("pieces"))
        said = _conversation(began, request, outcome, response, pieces)
        return Payloads(
            request=self._change(began) if began.type == "state_mutation" else plain(request),
            response=plain(response),
            error=plain(self._whole(outcome.get("error", outcome.get("modelError")))),
            pieces=plain(pieces) if isinstance(pieces, list) else None,
            conversation=said,
        )

    def events(self, step: Step) -> Iterator[Any]:
        for seq in sorted({step.seq, step.outcome_seq or step.seq}):
            raw = self._source.raw(seq)
            yield raw | {"data": self._whole(raw["data"])} if "data" in raw else raw

    def _change(self, event: Event) -> dict[str, Any]:
        return {name: plain(self._whole(event.data[name])) for name in _CHANGE if name in event.data}

    def _whole(self, value: Any) -> Any:
        try:
            return self._source.resolved(value)
        except (FormatError, StoreError) as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))
            return value


def _first(event: Event, names: tuple[str, ...]) -> Any:
    return next((event.data[name] for name in names if event.data.get(name) is not None), None)


def _conversation(
    began: Event, request: Any, outcome: dict[str, Any], response: Any, pieces: Any
) -> Conversation | None:
    """A model call as people read it; ``None`` where its wire format is not known."""
    if began.type != "llm_request":
        return None
    asked = None
    if isinstance(request, dict) and isinstance(request.get("url"), str):
        asked = read_request(urlsplit(request["url"]).path, request.get("body"))
    said = model_response(str(outcome.get("provider")), response, ABSENT if pieces is None else pieces)
    if asked is None and said is None:
        return None
    sent = asked.to_json() if asked else {}
    got = said.to_json() if said else {}
    return Conversation(
        model=began.data.get("model"),
        system=sent.get("system"),
        messages=sent.get("messages", []),
        tools=sent.get("tools", []),
        params=sent.get("params", {}),
        answer=got.get("parts", []),
        stop_reason=got.get("stopReason"),
    )
