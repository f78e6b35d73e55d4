"""The steps of a fork: answered from the recording, changed at the point, or made as new calls."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, Protocol

import msgspec

from reenact.boundary import A, Call, Lane, Step
from reenact.forks.change import ForkPlan
from reenact.forks.recorder import ForkRecorder, Happening
from reenact.recorder.step import describe_leaving
from reenact.replayer.source import RecordedCall
from reenact.replayer.step import EarlyMatch, Replayer, ReplayStep
from reenact.values.codec import from_json, is_plain, rebuild

_OUTCOMES: Final = {
    "tool_call": "tool_result",
    "llm_request": "llm_response",
    "nondeterministic": "nondeterministic",
}
_decode: Final = msgspec.json.Decoder().decode


class CallMissed(Exception):
    """No unused recorded call equals this one; *asked* is one that does, but whose request is changed."""

    def __init__(self, asked: RecordedCall | None = None) -> None:
        super().__init__()
        self.asked = asked


class Forking(Replayer, Protocol):
    """The part of the engine that a step uses."""

    plan: ForkPlan
    recorder: ForkRecorder
    happenings: list[Happening]
    is_gateway: bool
    changes_outcome: bool

    @property
    def has_left_recording(self) -> bool:
        """Whether the run has left the recording."""

    def make(self, call: Call[A], lane: Lane, asked: RecordedCall | None = None) -> Step[A]:
        """Make the step of a new call; *asked* is the call as the agent made it."""

    def mark_happened(self, seq: int, rounds: int | None = None) -> None:
        """Note that a recorded event has happened again."""

    def changed_outcome(self, recorded: RecordedCall) -> tuple[dict[str, object], bytes]:
        """The changed outcome at the point: its data as stored in the fork, and their text."""

    def resolve_new(self, value: object) -> Any:
        """Resolve *value* of a changed event, whose payloads may be in the fork's blobs."""


class ForkStep(ReplayStep[A]):
    """A step of a fork: answered from the recording, changed at the point, or made as a new call."""

    __slots__ = ("_is_awaited", "_is_changed", "_is_given", "_made")
    _engine: Forking

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._made: Step[A] | None = None
        """The step of a new call, if that became clear while this one waited."""
        self._is_given = False
        self._is_changed = False
        self._is_awaited = False
        """Whether a task, not a thread, waits for it."""

    def wait(self) -> None:
        try:
            super().wait()
            if self._made is not None:
                self._made.wait()
                self._take_over()
        except BaseException as error:
            self._leave(error)
            raise

    async def async_wait(self) -> None:
        self._is_awaited = True
        try:
            await super().async_wait()
            if self._made is not None:
                await self._made.async_wait()
                self._take_over()
        except BaseException as error:
            self._leave(error)
            raise

    def _set_recorded(self, early: EarlyMatch[A]) -> None:
        try:
            super()._set_recorded(early)
        except CallMissed as missed:
            assert early.call is not None
            self._made = self._engine.make(early.call, self._lane, missed.asked)
            self._is_unmatched = True
            self.live, self.call_id = self._made.live, self._made.call_id

    def _take_over(self) -> None:
        assert self._made is not None
        self.answer, self.exact, self.facts = self._made.answer, self._made.exact, self._made.facts

    def _set_answer(self) -> None:
        engine, recorded = self._engine, self._recorded
        self._is_given = True
        if recorded.seq == engine.plan.at and engine.changes_outcome:
            self._data, text = engine.changed_outcome(recorded)
            self._is_plain = is_plain(text)
            self._is_changed = True
        if self._is_streamed:
            engine.happenings.append(Happening(time.time_ns(), began=self.call_id))
        else:
            engine.mark_happened(recorded.outcome_seq, self._rounds())
            self._look_after()
        if engine.is_gateway and recorded.type == "llm_request":
            resolve = engine.resolve_new if self._is_changed else engine.source.reader.resolve
            engine.recorder.derive_calls(self.call_id, recorded.lane, from_json(resolve(self._data)))
        if self._is_changed and "error" in self._data:
            raise rebuild(engine.resolve_new(self._data["error"]))
        super()._set_answer()

    def _rounds(self) -> int | None:
        """When the outcome comes, if not at its recorded time."""
        if not self._engine.has_left_recording:
            return None
        comes_in = self._is_awaited and not self._recorded.inline and self._lane.has_order
        rounds = self._engine.recorder.rounds_since_last() if comes_in else None
        return -1 if rounds is None else rounds

    @property
    def _is_streamed(self) -> bool:
        """Whether the outcome ends with its last piece; a changed one may come in one piece."""
        return self._recorded.is_stream and (not self._is_changed or "pieces" in self._data)

    def _payload(self, member: str) -> object:
        if self._is_changed and self._data.get(member) is not None:
            return from_json(self._engine.resolve_new(self._data[member]))
        return super()._payload(member)

    def _leave(self, error: BaseException) -> None:
        """Handle a caller that went away before the outcome."""
        if self._made is not None or self._is_given or self._is_unmatched or not describe_leaving(error):
            return
        recorded = self._recorded
        self._look_after(is_left=True)
        if recorded.never_ends and recorded.outcome_seq:
            self._engine.mark_happened(recorded.outcome_seq)  # as in the recording
        elif recorded.outcome_seq > self._engine.plan.shared or not recorded.outcome_seq:
            data: dict[str, object] = {"callId": self.call_id, "cancelled": True}
            if recorded.type == "tool_call":
                data["ok"] = False
            elif recorded.type == "llm_request":
                asked = self._engine.source.data(recorded.seq)
                known = {name: asked[name] for name in ("provider", "model")}
                data |= known | {"stopReason": None, "usage": None}
            else:
                source, _, key = recorded.name.partition("/")
                data |= {"source": source, "key": key}
            self._engine.recorder.append(_OUTCOMES[recorded.type], data)

    def close(self, error: BaseException | None) -> None:
        if self._made is not None:
            self._made.answer, self._made.exact, self._made.facts = self.answer, self.exact, self.facts
            self._made.close(error)
            return
        super().close(error)
        if not self._is_unmatched and self._is_given and self._is_streamed:
            self._engine.mark_happened(self._recorded.outcome_seq)
            self._look_after()

    def _look_after(self, *, is_left: bool = False) -> None:
        """Record the files after the call, unless it is shared with the parent."""
        engine, recorded = self._engine, self._recorded
        if not recorded.beside and not 0 < recorded.outcome_seq <= engine.plan.shared:
            engine.recorder.note_files_after(self.call_id, may_write=recorded.may_write and not is_left)

    # Delegated to the step of a new call

    def mark_sent(self) -> None:
        if self._made is not None:
            self._made.mark_sent()

    def begin(self, leave: Callable[[], None]) -> None:
        if self._made is not None:
            self._made.begin(leave)

    def piece(self, value: object) -> None:
        if self._made is not None:
            self._made.piece(value)

    def give_up(self, error: Exception) -> None:
        if self._made is not None:
            self._made.give_up(error)

    def pieces(self) -> Iterator[object]:
        return super().pieces() if self._made is None else self._made.pieces()

    def async_pieces(self) -> AsyncIterator[object]:
        return super().async_pieces() if self._made is None else self._made.async_pieces()


class NearestStep(ReplayStep[A]):
    """A new call, answered with the outcome of the nearest recorded one."""

    __slots__ = ("_is_inline", "_recording")
    _engine: Forking

    def __init__(self, engine: Forking, nearest: RecordedCall, lane: Lane, recording: Step[A]) -> None:
        super().__init__(engine, nearest, lane)
        self._recording = recording
        self._is_inline = False
        """Whether a task gets it at once, without yielding to others."""
        self.call_id = recording.call_id

    def wait(self) -> None:
        line = self._engine.source.reader.line(self._recorded.outcome_seq)
        self._data = _decode(line)["data"]
        self._is_plain = is_plain(line)
        if self._engine.files is not None:
            self._engine.change_files(self._recorded)
        self._set_answer()

    async def async_wait(self) -> None:
        self._is_inline = True
        self.wait()

    def _set_answer(self) -> None:
        if self._recorded.is_stream:
            self._engine.happenings.append(Happening(time.time_ns(), began=self.call_id))
        else:
            self._record_outcome()
        super()._set_answer()

    def _record_outcome(self) -> None:
        data = {name: value for name, value in self._data.items() if name not in ("inline", "joined")}
        data |= {"callId": self.call_id, "answeredAs": self._recorded.call_id}
        if self._is_inline:
            data["inline"] = True
        self._engine.recorder.append(_OUTCOMES[self._recorded.type], data)
        if self._recorded.type == "llm_request":
            resolved = from_json(self._engine.source.reader.resolve(self._data))
            self._engine.recorder.derive_calls(self.call_id, self._recorded.lane, resolved)
        self._engine.recorder.note_files_after(self.call_id, may_write=self._recorded.may_write)

    def close(self, error: BaseException | None) -> None:  # noqa: ARG002
        if self._recorded.is_stream:
            self._record_outcome()
