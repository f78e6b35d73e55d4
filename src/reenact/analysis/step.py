"""A step of a run: a call with its outcome, or something that happened in one event."""

from __future__ import annotations

from typing import Any

import msgspec

from reenact.analysis.index import State, Tokens


class Step(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A step on one line; its texts are short, and may hold anything that was recorded."""

    seq: int
    """The number of the event that began it: its name in links and on the command line."""
    place: int
    """Among the steps of the run, from 0."""
    outcome_seq: int | None = None
    """``None`` while there is no outcome, or none has been reached yet; *seq* where both are one event."""
    kind: str
    """``tool``, ``model``, ``state``, ``message``, or the source of a value: ``clock``, ``rng``, …"""
    name: str
    derived: bool = False
    """Read from the model traffic, not seen happening."""
    lane: str
    """The logical task that made the call; ``0.1`` is the first task that ``0`` started."""
    depth: int = 0
    """Inside how many other calls it was made."""
    parent_seq: int | None = None
    """The call directly around it."""
    column: int = 0
    """Calls that overlap have different columns; the lowest free one is taken."""
    beside: tuple[int, ...] = ()
    """The columns in which other calls were open when this step began."""
    at_ms: int | float
    """Since the first event."""
    took_ms: int | float | None = None
    state: State
    tokens: Tokens | None = None
    cost: float | None = None
    """In the currency of the price table; ``None`` without a price for the model."""
    utility: float | None = None
    asked: str = ""
    """What was asked, in short."""
    came: str = ""
    """What came of it, in short."""


class Conversation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A model call as people read it; messages and parts as :mod:`reenact.providers.meaning` writes them."""

    model: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] = []
    """``{"role": …, "parts": [{"kind": "text", "text": …}, {"kind": "tool_call", …}, …]}``."""
    tools: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    answer: list[dict[str, Any]] = []
    """The parts of the answer."""
    stop_reason: str | None = None


class Payloads(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What was recorded of a step: every payload in its place, type tags taken off."""

    request: Any = None
    """What was asked: a tool's arguments, the request of a model call, the change of some state."""
    response: Any = None
    """What came: a tool's result, a response, a value; of a published log their digests."""
    error: Any = None
    pieces: list[Any] | None = None
    """Of a stream: what it handed out, one by one."""
    conversation: Conversation | None = None
    """Of a model call whose wire format is known."""


class Detail(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A step in full."""

    step: Step
    payloads: Payloads
    events: list[Any]
    """The events of the step as they stand in the artifact, payloads in their place."""
    problems: list[str] = []
    """Why a payload is shown as it is stored: what it refers to is not there."""
