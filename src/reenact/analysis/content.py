"""What a step says, apart from where and when it was said: the form in which two runs are compared.

A model call is compared by its meaning: the conversation and the answer in the words that no provider owns,
with ids that are made anew in every run replaced by the order of their appearance. Headers, times and sizes
are left out. What a published log holds only the digest of is compared by its digest.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from reenact.analysis.detail import events_of, payloads_of
from reenact.analysis.events import Event
from reenact.analysis.sources.source import Source
from reenact.analysis.step import Conversation, Payloads, Step
from reenact.canonical import digest
from reenact.errors import FormatError
from reenact.redaction import without_marks

_IDS: Final = frozenset({"id", "callId", "signature", "sealed"})
_TRANSPORT: Final = frozenset({"headers", "bytes", "elapsed"})


class Content(NamedTuple):
    """One step: what was asked, and what came of it."""

    asked: dict[str, Any]
    came: dict[str, Any]
    is_chance: bool
    """Whether what came was drawn from a clock or from chance, and is expected to differ."""

    @property
    def asked_digest(self) -> str:
        """Of a tool call that of its arguments, because published logs hold no more."""
        if "argumentsHash" in self.asked:
            return str(self.asked["argumentsHash"])
        return _digest(self.asked.get("arguments", self.asked))

    @property
    def came_digest(self) -> str:
        return _digest(self.came)

    def without_marks(self) -> Content:
        """As it can be compared with a run whose secrets have other placeholders."""
        return self._replace(asked=without_marks(self.asked), came=without_marks(self.came))


def told_by_both(one: Content, other: Content) -> Content:
    """*one* without what *other* withholds: arguments are their digest then, and a failure has no reason."""
    asked, came = one.asked, one.came
    if "argumentsHash" in other.asked and "arguments" in asked:
        asked = {"argumentsHash": one.asked_digest}
    if came["state"] == other.came["state"] == "error" and "error" not in other.came:
        came = {name: value for name, value in came.items() if name != "error"}
    return one._replace(asked=asked, came=came)


def content_of(source: Source, step: Step) -> Content:
    """The content of *step*."""
    began, ended = events_of(source, step)
    payloads = payloads_of(source, began, ended)
    return Content(_asked(payloads, began), _came(payloads, step, ended), _is_chance(began))


def _is_chance(began: Event) -> bool:
    return began.type == "nondeterministic" and "callId" not in began.data


def _asked(payloads: Payloads, began: Event) -> dict[str, Any]:
    said, request = payloads.conversation, payloads.request
    if said is not None:
        return _conversation(said)
    if began.type == "state_mutation":
        return {name: request[name] for name in ("type", "path", "source") if name in request}
    if began.type == "tool_call":
        return {"arguments" if "args" in began.data else "argumentsHash": request}
    if request is not None:
        return {"request": _without_transport(request)}
    return {"value": payloads.response} if began.type not in _VALUED else {}


_VALUED: Final = ("nondeterministic", "llm_request")
"""Events whose value is what came; that of all others is what they are."""


def _conversation(said: Conversation) -> dict[str, Any]:
    members = {
        "model": said.model,
        "system": said.system,
        "messages": _Renumbering().plain(said.messages),
        "tools": said.tools,
        "params": said.params,
    }
    return {name: value for name, value in members.items() if value}


def _came(payloads: Payloads, step: Step, ended: Event | None) -> dict[str, Any]:
    came: dict[str, Any] = {"state": step.state}
    if step.state == "error":
        return came if payloads.error is None else came | {"error": _failure(payloads.error)}
    said = payloads.conversation
    if said is not None and said.answer:
        return came | {"answer": _Renumbering().plain(said.answer), "stopReason": said.stop_reason}
    if payloads.pieces is not None:
        came["pieces"] = payloads.pieces
    if step.kind == "state":
        change = payloads.request
        came |= {name: change[name] for name in ("content", "details") if name in change}
    if payloads.response is None:
        return came
    name = "resultHash" if ended is not None and "resultHash" in ended.data else "result"
    return came | {name: _without_transport(payloads.response)}


def _failure(error: Any) -> Any:
    """Class and message; what else an exception carries differs from run to run."""
    if not isinstance(error, dict):
        return error
    return {name: error[name] for name in ("type", "message", "status") if name in error}


def _without_transport(value: Any) -> Any:
    if isinstance(value, dict) and ("status" in value or "url" in value):
        return {name: child for name, child in value.items() if name not in _TRANSPORT}
    return value


class _Renumbering:
    """Ids by the order of their first appearance: ``#1``, ``#2``."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.plain(child) for child in value]
        if isinstance(value, dict):
            return {name: self._member(name, child) for name, child in value.items()}
        return value

    def _member(self, name: str, child: Any) -> Any:
        if name in _IDS and isinstance(child, str):
            return self._numbers.setdefault(child, f"#{len(self._numbers) + 1}")
        return child if name in ("arguments", "content", "schema") else self.plain(child)


def _digest(value: Any) -> str:
    try:
        return digest(value)
    except FormatError:  # what canonical JSON cannot hold is compared as Python would print it
        return repr(value)
