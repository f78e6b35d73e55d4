"""A finished capture without a failed call, read in one pass: what nearly all runs of a corpus are.

It gives the calls that :class:`reenact.analysis.index.StepIndex` gives, in a fourth of the time. What is odd
in any way is left to that one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from reenact.analysis.brief import tidy_number
from reenact.analysis.index import Tokens
from reenact.formats.event import ASKING, OUTSIDE, EventRow
from reenact.trace.sources.capture import FinishedCapture

_MAX_NAME: Final = 200
_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_NOTHING: Final = msgspec.Raw()
_TOKENS: Final = ("inputTokens", "outputTokens", "cachedInputTokens")


class RunFacts(NamedTuple):
    """What the row of a run says of its events."""

    events: int
    steps: int
    errors: int
    tokens: Tokens | None
    duration_ms: float
    size_bytes: int
    problem: str | None = None


class PlainCall(msgspec.Struct, gc=False):
    """A row of ``calls``, its fields in the order of the columns."""

    run: str
    seq: int
    outcome_seq: int | None
    kind: str
    name: str
    tool: str | None
    model: str | None
    state: str
    started_at: int | None
    at_ms: float
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    utility: float | None
    lane: str
    parent_seq: int | None
    is_retry: bool = False
    arguments: str | None = None
    result: str | None = None
    error: str | None = None


class PlainRun(NamedTuple):
    """The events of a capture, and its calls."""

    capture: FinishedCapture
    events: list[EventRow]
    calls: list[PlainCall]

    def facts(self) -> RunFacts:
        has_used = any(event.data.usage for event in self.events)
        first = self.events[0].ts if self.events else 0
        return RunFacts(
            events=len(self.events),
            steps=len(self.calls),
            errors=0,
            tokens=self._tokens() if has_used else None,
            duration_ms=tidy_number(float(max((event.ts - first for event in self.events), default=0))),
            size_bytes=self.capture.size_bytes,
        )

    def _tokens(self) -> Tokens:
        return Tokens(
            sum(call.input_tokens or 0 for call in self.calls),
            sum(call.output_tokens or 0 for call in self.calls),
            sum(call.cached_tokens or 0 for call in self.calls),
        )

    def tool_payloads(self) -> Iterator[tuple[PlainCall, msgspec.Raw, msgspec.Raw]]:
        """Each call of a tool with its arguments and its result."""
        for call in self.calls:
            if call.kind == "tool":
                ended = self.events[call.outcome_seq - 1].data.result if call.outcome_seq else _NOTHING
                yield call, self.events[call.seq - 1].data.args, ended


def read_plain_run(capture: FinishedCapture, name: str) -> PlainRun | None:
    """The run called *name*; ``None`` where it is not plain."""
    events = capture.read_rows()
    calls = None if events is None else _find_calls(events, name)
    return None if events is None or calls is None else PlainRun(capture, events, calls)


def _find_calls(events: list[EventRow], run: str) -> list[PlainCall] | None:
    """The calls of *events*; ``None`` where one has failed."""
    calls: list[PlainCall] = []
    waiting: dict[str, PlainCall] = {}
    start_ms = events[0].ts if events else 0
    for event in events:
        data, what, call_id = event.data, event.type, event.data.callId
        if call_id is not None and call_id in waiting and what not in ASKING:
            call = waiting.pop(call_id)
            call.latency_ms = event.ts - start_ms - call.at_ms
        elif what in OUTSIDE:
            continue
        else:
            within = waiting.get(data.parent) if data.parent is not None else None
            call = _begin_call(event, run, start_ms, within)
            calls.append(call)
            # A read of state has an id for what happens inside it, but is written when it is over.
            if call_id is not None and what != "state_mutation":
                waiting[call_id] = call
                continue
        if not _end_call(call, event):
            return None
    return calls


def _begin_call(event: EventRow, run: str, start_ms: float, within: PlainCall | None) -> PlainCall:
    kind, name = clean_name(event.kind), clean_name(event.name)
    tool, model = name if kind == "tool" else None, name if kind == "model" else None
    tokens = None if model is None else 0
    parent_seq = None if within is None else within.seq
    return PlainCall(
        run, event.seq, None, kind, name, tool, model, "open", time_us(event.ts), float(event.ts - start_ms),
        None, tokens, tokens, tokens, None, clean_name(event.data.lane), parent_seq,
    )  # fmt: skip


def _end_call(call: PlainCall, event: EventRow) -> bool:
    """Complete *call*; whether it did not fail."""
    data = event.data
    call.outcome_seq = event.seq
    call.state = "cancelled" if data.cancelled else "ok"
    if data.latencyMs is not None:
        call.latency_ms = float(data.latencyMs)
    if data.utility is not None:
        call.utility = array("f", [data.utility])[0]  # as exact as an index of steps has it
    if data.usage:
        counts = [data.usage.get(name) for name in _TOKENS]
        used = [n if isinstance(n, int) and 0 <= n < 2**32 else 0 for n in counts]
        is_model = call.kind == "model"
        call.input_tokens, call.output_tokens, call.cached_tokens = (
            n if n or is_model else None for n in used
        )
    has_failed = not data.ok or (data.error, data.modelError, data.exitCode) != (None, None, None)
    return data.cancelled or not has_failed


@lru_cache(maxsize=4096)
def clean_name(text: str) -> str:
    """A name as a table can hold it; there are few, so they are remembered."""
    return clean_text(text[:_MAX_NAME])


def clean_text(text: str) -> str:
    """*text* as a table can hold it: half of a surrogate pair has no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def time_us(at_ms: float | None) -> int | None:
    """A time in microseconds; ``None`` where a clock was so far off that it is none."""
    is_time = (
        at_ms is not None and 0 <= at_ms <= _LATEST_MS
    )  # which no infinity is, and not what is no number
    return int(at_ms) * 1000 if is_time and at_ms is not None else None
