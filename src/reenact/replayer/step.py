"""The steps of a replayed run: each waits for its outcome's turn and returns the recorded answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, cast

import msgspec

from reenact.boundary import A, Call, Lane, UnrecordedStep
from reenact.errors import Diverged
from reenact.formats.capture import READ
from reenact.formats.divergence import ReplayDivergence
from reenact.replayer import report
from reenact.replayer.lanes import Key
from reenact.replayer.likeness import RunLikeness
from reenact.replayer.loops import give_way
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.replayer.turns import Turns
from reenact.values.codec import from_json, is_plain, rebuild
from reenact.workspace.replaying import WorkspaceReplay

OnUnmatched: TypeAlias = Literal["error", "empty", "live"]
_decode: Final = msgspec.json.Decoder().decode
_ANSWERS: Final = {"tool_call": "result", "llm_request": "response", "nondeterministic": "value"}
"""By the type of a call: the member of its outcome that holds the answer."""


class Replayer(Protocol):
    """The part of the engine that a step needs."""

    source: ReplaySource
    turns: Turns
    likeness: RunLikeness
    files: WorkspaceReplay | None
    on_unmatched: OnUnmatched

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """Block until it is the turn of *lane* to do *act*."""

    async def async_wait_to_act(self, lane: Lane, act: str) -> None:
        """The same on an event loop."""

    async def async_wait_to_read(self, lane: Lane) -> None:
        """Wait until it is the turn of *lane* to read the next piece of a stream."""

    def has_acted(self, lane: Lane, act: str) -> None:
        """Note that *lane* did *act*."""

    def keys(self, key: Key, request_text: bytes) -> list[Key]:
        """*key* and, if a rule applies to such calls, the key without volatile parts."""

    def find_equal(self, lane: Lane, keys: Sequence[Key]) -> RecordedCall | None:
        """The nearest recorded call that has one of *keys* and may come now; it is taken."""

    def stand_in(
        self, lane: Lane, key: Key, request_text: bytes, call: Call | None = None
    ) -> RecordedCall | ReplayDivergence:
        """Report a call that matches no recorded one; in lenient replay another may answer it."""

    def set_aside(self, call: RecordedCall, lane: Lane) -> list[int]:
        """Mark the calls nested in an answered call as taken; returns the numbers of their events."""

    def go_live(self, call: Call) -> str:
        """Let *call* be made for real; returns an id for the calls nested in it."""

    def diverge(self, divergence: ReplayDivergence) -> None:
        """Keep *divergence*; strict replay raises it."""

    def refuse_when_over(self, event_type: str, name: str) -> None:
        """Raise if the run is over: code that it started is still running."""

    def compare_files(self, recorded: RecordedCall, lane: Lane) -> None:
        """Report if the files are not as they were before the recorded call."""

    def change_files(self, recorded: RecordedCall) -> None:
        """Repeat the changes of an answered call in the files."""


def diverged(divergence: ReplayDivergence) -> Diverged:
    """The exception that carries *divergence*."""
    return Diverged(divergence.headline, divergence)


class EarlyMatch(Generic[A]):
    """A call that equals a recorded one of another lane, which must make other calls first."""

    def __init__(
        self, engine: Replayer, lane: Lane, key: Key, request_text: bytes, call: Call[A] | None
    ) -> None:
        self.call = call
        self._engine = engine
        self._lane = lane
        self._key = key
        self._text = request_text
        self._keys = engine.keys(key, request_text)
        self.recorded: RecordedCall | None = None

    def try_again(self) -> bool:
        """Take the recorded call if it may come now; returns whether it may."""
        self.recorded = self._engine.find_equal(self._lane, self._keys)
        return self.recorded is not None

    def find_answer(self) -> RecordedCall | None:
        """The recorded call that answers this one; if there is none, raises or returns ``None``."""
        found = self.recorded or self._engine.stand_in(self._lane, self._key, self._text, self.call)
        if isinstance(found, ReplayDivergence):
            if found.answered is None:
                raise diverged(found)
            return None
        self._engine.turns.note_happened([found.seq, *self._engine.set_aside(found, self._lane)])
        return found


class ReplayStep(UnrecordedStep[A]):
    """A step that is answered from the recording; live only if a tool is passed through."""

    __slots__ = (
        "_data",
        "_early",
        "_engine",
        "_is_plain",
        "_is_unmatched",
        "_lane",
        "_pieces",
        "_recorded",
        "answer",
        "call_id",
        "exact",
        "facts",
        "leaves_first",
        "live",
    )

    def __init__(
        self,
        engine: Replayer,
        recorded: RecordedCall | None,
        lane: Lane,
        *,
        is_live: bool = False,
        early: EarlyMatch[A] | None = None,
    ) -> None:
        """*early* finds the recorded call later, if it is not known yet."""
        self._engine = engine
        self._early = early
        self._lane = lane
        self.live = is_live
        self.leaves_first = False
        self.call_id = ""
        self._is_unmatched = False
        if recorded is not None:
            self._recorded = recorded
            self.call_id = recorded.call_id or ""
            if engine.files is not None:
                engine.compare_files(recorded, lane)
        self.answer: A = None  # type: ignore[assignment]  # until it is answered; a cast would take time
        self.exact: object = None
        self.facts: dict[str, object] = {}
        self._data: Any = {}
        """The data of the outcome's event."""
        self._pieces: list[object] | None = None
        """The pieces with the names of this run; ``None`` if the recorded ones are used."""

    def answer_unmatched(self, call: Call[A]) -> None:
        """Become the step of a call that matches no recorded one."""
        self._is_unmatched, self._is_plain = True, True
        if self._engine.on_unmatched == "live":
            self.live, self.call_id = True, self._engine.go_live(call)
        else:
            self.answer = cast("A", call.empty() if call.empty is not None else None)

    def _set_recorded(self, early: EarlyMatch[A]) -> None:
        found = early.find_answer()
        if found is not None:
            self._recorded = found
            self.call_id = found.call_id or ""
            if self._engine.files is not None:
                self._engine.compare_files(found, self._lane)
            if found.type == "tool_call":
                self._lane.latest_tool = self.call_id
        elif early.call is not None:
            self.answer_unmatched(early.call)

    def wait(self) -> None:
        if self._early is not None:
            self._engine.turns.wait_to_match(self._lane, self._early.try_again)
            self._set_recorded(self._early)
        if not self.live and not self._is_unmatched:
            self._take(self._engine.turns.wait(self._recorded, self._lane))

    async def async_wait(self) -> None:
        if self._early is not None:
            await self._engine.turns.async_wait_to_match(self._lane, self._early.try_again)
            self._set_recorded(self._early)
        if not self.live and not self._is_unmatched:
            self._take(await self._engine.turns.async_wait(self._recorded, self._lane))

    def pieces(self) -> Iterator[object]:
        for piece in self._recorded_pieces():
            if self._has_turns:
                self._engine.wait_to_act(self._lane, READ)
                self._engine.has_acted(self._lane, READ)
            yield self._rename_piece(piece)
        self._end_of_pieces()

    @property
    def _has_turns(self) -> bool:
        """Whether the order in which its pieces were read, among those of other streams, was recorded."""
        return self._recorded.type in ("llm_request", "tool_call") and not self._recorded.inline

    async def async_pieces(self) -> AsyncIterator[object]:
        for piece in self._recorded_pieces():
            if self._has_turns:
                await self._engine.async_wait_to_read(self._lane)
                self._engine.has_acted(self._lane, READ)
            elif not self._recorded.inline:
                await give_way()
            yield self._rename_piece(piece)
        if self._data.get("cancelled") and not self._data.get("closed"):
            await self._engine.turns.wait_for_cancellation(self._recorded, self._lane)
        self._end_of_pieces()

    def _rename_piece(self, piece: object) -> object:
        """Rename a piece that is not text now: it may answer later input, as the output of a process does."""
        return piece if isinstance(piece, str | bytes) else self._engine.likeness.renamed_now(piece)

    def _recorded_pieces(self) -> list[object]:
        return self._payload("pieces") or [] if self._pieces is None else self._pieces

    def _end_of_pieces(self) -> None:
        self._raise_recorded_error()
        if self._data.get("cancelled"):
            self._engine.diverge(report.read_on(self._engine.source, self._recorded, self._lane))

    def close(self, error: BaseException | None) -> None:  # noqa: ARG002
        if self._is_unmatched:
            return
        if self._recorded.is_stream:
            self._engine.turns.note_stream_end(self._recorded, is_read=not self._data.get("cancelled"))
        elif self.live:
            self._engine.turns.note_happened([self._recorded.outcome_seq])

    def _take(self, came: bool) -> None:
        recorded = self._recorded
        if not came or not recorded.outcome_seq or recorded.never_ends:
            self._engine.refuse_when_over(recorded.type, recorded.name)
            divergence = report.describe_unanswered(self._engine.source, recorded, self._lane)
            self._engine.diverge(divergence)
            raise diverged(divergence)
        earlier_seq = self._engine.turns.patience.came_early.get(recorded.seq)
        if earlier_seq is not None:
            self._engine.diverge(
                report.describe_early_call(self._engine.source, recorded, earlier_seq, self._lane)
            )
        line = self._engine.source.reader.line(recorded.outcome_seq)
        self._data = _decode(line)["data"]
        self._is_plain = is_plain(line)
        if self._engine.files is not None:
            self._engine.change_files(recorded)
        self._set_answer()

    def _set_answer(self) -> None:
        """Set the answer from the outcome's data, or raise the recorded error."""
        recorded, data = self._recorded, self._data
        if "error" in data and not recorded.is_stream:
            self._raise_recorded_error()
        member = _ANSWERS[recorded.type]
        if self._is_plain:
            self.answer, self.exact = data.get(member), data.get("exact")
        else:
            self.answer, self.exact = self._payload(member), self._payload("exact")
        if self._engine.likeness.may_differ:
            self._rename()

    def _payload(self, member: str) -> Any:
        stored = self._data.get(member)
        if self._is_plain:
            return stored
        return from_json(self._engine.source.reader.resolve(stored)) if stored is not None else None

    def _rename(self) -> None:
        """Put the names of this run into the answer; then its encoded form (``exact``) cannot be used."""
        likeness = self._engine.likeness
        answer, pieces = self.answer, self._payload("pieces")
        likeness.look_through([answer, pieces])
        answers = likeness.answers
        self.answer = answers.rename_in_value(answer)
        if pieces is not None:
            self._pieces = answers.rename_in_pieces(pieces)
        if self.answer != answer or self._pieces != pieces:
            self.exact = None
            if isinstance(self.answer, dict) and _size(self._pieces) != _size(pieces):
                self.answer["isResized"] = True

    def _raise_recorded_error(self) -> None:
        if "error" in self._data:
            stored = self._engine.source.reader.resolve(self._data["error"])
            raise rebuild(self._engine.likeness.answers.rename_in_value(stored))


class BesideStep(ReplayStep[A]):
    """A step of a call beside the run: it has no turn, and no other call waits for it."""

    __slots__ = ()

    def wait(self) -> None:
        self._take(True)

    async def async_wait(self) -> None:
        self._take(True)

    def _end_of_pieces(self) -> None:
        self._raise_recorded_error()

    async def async_pieces(self) -> AsyncIterator[Any]:
        for piece in self.pieces():
            yield piece

    def close(self, error: BaseException | None) -> None:
        """Nothing to do: it is no event of the run."""


def _size(pieces: list[object] | None) -> int:
    return sum(len(piece) for piece in pieces or () if isinstance(piece, str | bytes))
