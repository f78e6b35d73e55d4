"""A step in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from reenact.analysis.events import Event
from reenact.analysis.sources.source import Source
from reenact.analysis.step import Conversation, Detail, Step
from reenact.errors import FormatError, StoreError
from reenact.formats.record import ABSENT
from reenact.providers import read_request
from reenact.trace.model_calls import answer_of
from reenact.trace.plain import plain

_ASKED: Final = {"tool_call": ("args", "argsHash"), "llm_request": ("request",)}
_CAME: Final = {"tool_result": ("result", "resultHash"), "llm_response": ("response", "text")}
_CHANGE: Final = ("type", "path", "source", "group_id", "content", "details")
_CALL: Final = ("callId", "lane", "parent")


def detail_of(source: Source, step: Step) -> Detail:
    """*step* with all that is recorded of it."""
    return _Reading(source).detail(step)


class _Reading:
    """One step being put together; what cannot be resolved stays as it is stored, and is named."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[str] = []

    def detail(self, step: Step) -> Detail:
        began = self._source.event(step.seq)
        ended = self._source.event(step.outcome_seq) if step.outcome_seq else None
        assert began is not None
        request = self._whole(_first(began, _ASKED.get(began.type, ("request",))))
        outcome = ended.data if ended else {}
        response = self._whole(_first(ended, _CAME.get(ended.type, ("value",)))) if ended else None
        pieces = self._whole(outcome.get("pieces"))
        return Detail(
            step=step,
            request=_change(began) if began.type == "state_mutation" else plain(request),
            response=plain(response),
            error=plain(self._whole(outcome.get("error", outcome.get("modelError")))),
            pieces=plain(pieces) if isinstance(pieces, list) else None,
            conversation=_conversation(step, began, request, ended, response, pieces),
            events=[*self._events(step)],
            problems=self._problems,
        )

    def _events(self, step: Step) -> Iterator[Any]:
        for seq in sorted({step.seq, step.outcome_seq or step.seq}):
            raw = self._source.raw(seq)
            yield raw | {"data": self._whole(raw["data"])} if "data" in raw else raw

    def _whole(self, value: Any) -> Any:
        try:
            return self._source.resolved(value)
        except (FormatError, StoreError) as error:
            if str(error) not in self._problems:
                self._problems.append(str(error))
            return value


def _first(event: Event, names: tuple[str, ...]) -> Any:
    return next((event.data[name] for name in names if event.data.get(name) is not None), None)


def _change(event: Event) -> dict[str, Any]:
    return {name: plain(event.data[name]) for name in _CHANGE if name in event.data}


def _conversation(
    step: Step, began: Event, request: Any, ended: Event | None, response: Any, pieces: Any
) -> Conversation | None:
    if began.type != "llm_request":
        return None
    asked = None
    if isinstance(request, dict) and isinstance(request.get("url"), str):
        asked = read_request(urlsplit(request["url"]).path, request.get("body"))
    said = None
    if ended is not None:
        streamed = ABSENT if pieces is None else pieces
        said = answer_of(str(ended.data.get("provider")), response, streamed)
    if asked is None and said is None:
        return None
    sent = asked.to_json() if asked else {}
    got = said.to_json() if said else {}
    return Conversation(
        model=step.name,
        system=sent.get("system"),
        messages=sent.get("messages", []),
        tools=sent.get("tools", []),
        params=sent.get("params", {}),
        answer=got.get("parts", []),
        stop_reason=got.get("stopReason"),
    )
