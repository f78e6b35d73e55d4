"""The index of a recorded run for replay: calls with their outcomes, and a strict cursor over all events.

Indexing reads only the head of each event; a payload is decoded when its call comes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from reenact.boundary import Lane
from reenact.canonical import encode_clean
from reenact.errors import FormatError
from reenact.formats.capture import (
    CANCELLED,
    CLOCK,
    ENDED,
    FIRED,
    JOINED,
    PRINTED,
    PUT,
    READ,
    SHARED,
    STILL_RUNNING,
    TOGETHER,
    TOOK,
    VERSION,
    CaptureEvent,
    CaptureManifest,
)
from reenact.formats.event import EventHead, EventHeadData, read_head
from reenact.formats.record import ABSENT
from reenact.lane_name import ROOT, LaneName
from reenact.providers import Undo, undo_changes
from reenact.replayer.egress import is_loopback
from reenact.store.reader import CaptureReader, blobs_in_line
from reenact.volatile.beside import NAMED, is_of_hosts

_NETWORK: Final = "network/"
_NS_DIGITS: Final = 19
"""Of a time since 1970, until the year 2286."""
_RETRY_PAUSE: Final = "clock/retry pause"
_PROBE: Final = "network/CONNECT tcp://"
_NOT_MATCHED: Final = ("callId", "error", "lane", "parent", "value", "valueHash")
"""The fields of an instant's event that are not part of its request."""


class Act:
    """What a task did between two events: it ended, put items into a queue, took a lock, or a timer fired."""

    __slots__ = ("_count", "_is_busy", "is_cancelled", "is_together", "joined", "left", "seq", "what")

    def __init__(
        self,
        seq: int,
        what: str,
        count: int,
        *,
        joined: int | None = None,
        is_cancelled: bool = False,
        is_busy: bool = False,
        is_together: bool = False,
    ) -> None:
        self.is_cancelled = is_cancelled
        """Whether it is the end of a cancelled task."""
        self.joined = joined
        """How many rounds of its event loop after the previous one it came; ``None`` if all was at rest."""
        self.seq = seq
        """The number of the event before which it happened."""
        self.what = what
        """The lane's name and what it did, as recorded."""
        self._is_busy = is_busy
        """Whether it happened on an event loop that had more to do."""
        self.is_together = is_together
        """Whether its event loop ran nothing else since the same task did the same before."""
        self._count = self.left = count
        """How many times it is still to happen."""

    @property
    def is_end(self) -> bool:
        """Whether its task, thread or job ended."""
        return self.what.endswith(ENDED)

    @property
    def is_read(self) -> bool:
        """Whether a piece of a stream was read."""
        return self.what.endswith(READ)

    @property
    def is_first_read(self) -> bool:
        """Whether a piece of a stream was read when all was at rest."""
        is_first = self.left == self._count and not self.is_together
        return is_first and not self._is_busy and self.is_read

    @property
    def lane(self) -> str:
        return self.what.partition(FIRED)[0] if FIRED in self.what else self.what[:-1]


LaneTest: TypeAlias = Callable[[str], bool]


def every_lane(_name: str) -> bool:
    """For a replay of the whole capture in one process."""
    return True


def lanes_of(root: str) -> LaneTest:
    """The lanes of one process of the run."""
    return lambda lane: LaneName(lane).process == root


_decode: Final = msgspec.json.Decoder().decode


class RecordedCall:
    """One recorded call or instant, and the number of its outcome's event."""

    __slots__ = (
        "behind",
        "beside",
        "call_id",
        "due_after",
        "ended_ms",
        "inline",
        "is_background",
        "is_instant",
        "is_stream",
        "joined",
        "lane",
        "lent",
        "made_ms",
        "may_write",
        "name",
        "never_ends",
        "opening",
        "outcome_seq",
        "parent",
        "request_digest",
        "seq",
        "taken",
        "type",
    )

    def __init__(self, head: EventHead, name: str, request_digest: bytes | None, *, is_instant: bool) -> None:
        self.seq = head.seq
        self.type = head.type
        self.name = name
        """The tool's name, or source and key of a value from outside; empty for a model call."""
        self.lane = head.data.lane
        self.parent = head.data.parent
        self.call_id = head.data.callId
        self.is_instant = is_instant
        """Whether call and outcome are one event."""
        self.request_digest = request_digest
        """Over the whole request; ``None`` for an instant, whose request is the fields of its event."""
        self.made_ms = head.ts
        self.ended_ms = head.ts
        self.outcome_seq = head.seq if is_instant else 0
        """0 until the outcome is found; stays 0 if the recording broke off before it."""
        self.due_after = self.outcome_seq
        """The number of the last event that must happen before the outcome is due."""
        self.is_stream = False
        """Whether its answer begins when due, while its outcome comes only when the agent has read all."""
        self.opening = sys.maxsize
        """The order in which streams began that became due after the same event."""
        self.joined: int | None = None
        """How many rounds of the event loop after the previous one its outcome came; ``None`` if at rest."""
        self.behind = 0
        """How many timers of the loop's last round had woken what went on before its caller."""
        self.inline = False
        """Whether the answer came without the call yielding to the event loop."""
        self.never_ends = not is_instant
        """Whether there was never an answer: the caller was cancelled, or the recording broke off."""
        self.beside = head.data.beside
        """Why it does not belong to the run, so that it need not come; empty if it does."""
        self.is_background = head.data.background
        self.taken = False
        self.may_write = head.type == "tool_call" or name.startswith("process/")
        """Whether it may have changed files."""
        self.lent = False
        """Whether lenient replay has answered an unmatched call with it."""

    def end(self, head: EventHead) -> None:
        """Set the outcome from the head of its event."""
        data = head.data
        self.outcome_seq = head.seq
        self.ended_ms = head.ts
        self.due_after = head.seq - 1
        if data.opened is not None:
            self.is_stream, self.due_after, self.opening = True, data.opened, data.opening
        self.inline = data.inline
        self.joined, self.behind = data.joined, data.behind
        self.never_ends = data.cancelled and data.opened is None


_LOOK: Final = "look at it, test it and compare it"
_INSTEAD: Final = {"tools": f"fork it, {_LOOK}", "viewable": "look at it"}
"""By fidelity: what can be done with an import that cannot be replayed."""


def _refuse_unfaithful(manifest: CaptureManifest, path: str | Path) -> None:
    imported = manifest.imported
    if imported is not ABSENT and imported.fidelity != "replayable":
        reason = (
            f"was imported from {imported.format} and is {imported.fidelity}, not replayable: what was asked "
            f"and answered is not in it as it was sent; {_INSTEAD.get(imported.fidelity, _LOOK)} instead"
        )
        raise FormatError(reason, file=str(path))


class ReplaySource:
    """A capture opened for replay; raises at once if it is missing, damaged or not replayable.

    Only the calls of lanes that are *is_ours* are read. *root* is the first lane of this process. Calls to
    *beside_hosts* do not belong to the run, whatever the capture says. With *runs_programs*, the programs
    with which the recorded run talked are run again, and the other calls on them are not read.
    """

    def __init__(
        self,
        path: str | Path,
        is_ours: LaneTest = every_lane,
        root: str = ROOT,
        beside_hosts: tuple[str, ...] = (),
        runs_programs: bool = False,
    ) -> None:
        self.reader = CaptureReader(path)
        _refuse_unfaithful(self.reader.manifest, path)
        self.is_ours = is_ours
        self.root = root
        self.beside_hosts = beside_hosts
        self.runs_programs = runs_programs
        self.programs = talking_programs(self.reader) if runs_programs else frozenset()
        """The ids of the calls that started programs which are run again."""
        self._skipped_ids: set[str | None] = set()
        self.calls: list[RecordedCall] = []
        """All calls and instants, in recorded order."""
        self.beside: list[RecordedCall] = []
        """Calls beside the run; they are not in :attr:`calls`."""
        self._lanes_beside: set[str] = set()
        """The lanes whose latest call was beside the run."""
        self.by_seq: dict[int, RecordedCall] = {}
        """By the number of an event: the call of which it is the call event or the outcome."""
        self.times_ms: list[int | float] = []
        self._later_ms: dict[int, int] = {}
        """By the number of an event that an update recorded: how much later than its time it was."""
        self.acts: dict[int, list[Act]] = {}
        """By the number of an event: what tasks did between the event before and this one, in order."""
        self.clock_reads: dict[str, deque[int]] = {}
        """By lane and place in a library: the times in ns that it read there."""
        self.prints: list[tuple[str, int]] = []
        """The lanes that took turns in printing, and how many pieces each printed in a row."""
        self.shared: list[tuple[str, str]] = []
        """The lanes of all processes in the order in which they took what they share, and what each found."""
        self.ends: list[tuple[str, str]] = []
        """The lanes of tasks of the agent's own functions that ended, and how."""
        self.functions: dict[str, str] = {}
        """By lane: the function that its task ran, if known."""
        stand_ins = self.reader.manifest.standIns
        self.has_deadlines = stand_ins is not ABSENT and stand_ins.deadlines is True
        """Whether the capture records which deadlines passed."""
        self.fork = self.reader.manifest.fork
        ordered = ABSENT if self.fork is ABSENT else self.fork.ordered
        self.ordered_until = sys.maxsize if ordered is ABSENT else ordered
        """The last event up to which the capture records what the agent's tasks did, and deadlines."""
        self._cursor = 1
        self._has_old_env_reads = stand_ins is not ABSENT and "environ" in stand_ins.sources
        """In old captures reads of the environment are ``nondeterministic`` events; match them as state."""
        self._index()

    # The seed's contract: a strict cursor over the events

    def manifest(self) -> CaptureManifest:
        return self.reader.manifest

    def peek(self) -> CaptureEvent | None:
        """The next event, without advancing the cursor."""
        return self.reader.event(self._cursor) if self.remaining() else None

    def next(self, expected_type: str) -> CaptureEvent | None:
        """Take the next event if it is of *expected_type*; never skips an event to find one."""
        event = self.peek()
        if event is None or type(event).__struct_config__.tag != expected_type:
            return None
        self._cursor += 1
        return event

    def remaining(self) -> int:
        """How many events are left for the cursor."""
        return len(self.reader) + 1 - self._cursor

    # What the engine needs

    def lane_name(self, lane: Lane) -> str:
        """The name of a live *lane* in the capture, by its position."""
        return lane.name_under(self.root)

    def data(self, seq: int) -> dict[str, Any]:
        """The ``data`` of an event, as stored."""
        data: dict[str, Any] = _decode(self.reader.line(seq))["data"]
        return data

    def request(self, call: RecordedCall) -> Any:
        """The whole request of *call*."""
        data = self.data(call.seq)
        if call.is_instant:
            if call.type != "nondeterministic" and "key" in data:
                return _env_read(data["key"])
            asked = {key: value for key, value in data.items() if key not in _NOT_MATCHED}
            return self.reader.resolve(asked)
        request = self.reader.resolve(data["args"] if "args" in data else data.get("request"))
        if "asked" in data:
            request = undo_changes(request, msgspec.convert(self.reader.resolve(data["asked"]), list[Undo]))
        return request

    def calls_named(self, event_type: str, name: str) -> list[RecordedCall]:
        """All calls of that type and name, in recorded order."""
        return self._by_name.get((event_type, name), [])

    def has_asked_here(self, call_name: str) -> bool:
        """Whether the recorded run asked a server of this machine the same as *call_name*, on any port."""
        return _place_asked(call_name) in self._places_asked

    @cached_property
    def probed(self) -> frozenset[str]:
        """The hosts and ports of recorded probes."""
        names = (call.name for call in self.calls if call.name.startswith(_PROBE))
        return frozenset(name.removeprefix(_PROBE) for name in names)

    @cached_property
    def _places_asked(self) -> frozenset[tuple[str, str]]:
        networks = (call.name for call in self.calls if call.name.startswith(_NETWORK))
        names = (name.removeprefix(_NETWORK) for name in networks)
        return frozenset(_place_asked(name) for name in names if _is_asked_here(name))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[RecordedCall]]:
        found: dict[tuple[str, str], list[RecordedCall]] = {}
        for call in self.calls:
            found.setdefault((call.type, call.name), []).append(call)
        return found

    def blob_digests(self) -> Iterator[str]:
        """The digests of all blobs that the events refer to."""
        for line in self.reader.lines():
            yield from blobs_in_line(line)

    def happened_ms(self, seq: int) -> float:
        """When the event *seq* really was, where that is not what its time says."""
        pause_ms = 0 if self.fork is ABSENT else self.fork.pause_before_ms(seq)
        return self.times_ms[seq - 1] + self._later_ms.get(seq, 0) + pause_ms

    def _index(self) -> None:
        open_calls: dict[str, RecordedCall] = {}
        manifest = self.reader.manifest
        for number, line in enumerate(self.reader.lines(), 1):
            head = self._head(number, line)
            if (head.captureId, head.runId) != (manifest.captureId, manifest.runId):
                self.reader.event(number)
                raise self._misplaced_error(number, "$.runId", manifest.runId, head.runId)
            if head.seq != number:
                raise self._misplaced_error(number, "$.seq", number, head.seq)
            self.times_ms.append(head.ts)
            if head.laterMs:
                self._later_ms[number] = head.laterMs
            if head.order and number <= self.ordered_until:
                self._index_order(head)
            if not head.data.derived:
                self._index_event(head, open_calls)
        if self.beside:
            self._move_busy_back()

    def _index_order(self, head: EventHead) -> None:
        for entry in head.order:
            lane, mark, found = entry.partition(SHARED)
            if mark:
                self.shared.append((lane, found))
                continue
            act = None if CLOCK in entry else self._read_act(head.seq, entry)
            if act is not None:
                self.acts.setdefault(head.seq, []).append(act)
            elif CLOCK in entry and self.is_ours(entry.partition(CLOCK)[0]):
                place, _, read_ns = entry.rpartition(" ")
                if read_ns.isdecimal():
                    times = [int(read_ns[:_NS_DIGITS])] * _number(read_ns[_NS_DIGITS:], 1)
                    self.clock_reads.setdefault(place, deque()).extend(times)

    def _read_act(self, seq: int, entry: str) -> Act | None:
        """Parse one entry of a recorded order; ``None`` for other processes' lanes and unknown entries."""
        outcome = ""
        lane, mark, how = entry.partition(ENDED)
        if mark:
            # Older captures have the mark of arrivals here, too.
            outcome = self._read_end(lane, how.removeprefix(JOINED).strip())
        elif PRINTED in entry:
            lane, _, count = entry.partition(PRINTED)
            if self.is_ours(lane):
                self.prints.append((lane, _number(count, 1)))
            return None
        elif STILL_RUNNING in entry:
            lane, _, function = entry.partition(STILL_RUNNING)  # it may end after all else has happened
            if function and self.is_ours(lane):  # captures of earlier versions do not say it
                self.functions[lane] = function.strip()
        elif FIRED in entry:
            lane = entry.partition(FIRED)[0]
            if not self.has_deadlines or not self.is_ours(lane):
                return None
            timer, mark, rounds = entry.partition(JOINED)
            return Act(
                seq,
                timer,
                1,
                joined=int(rounds[:9] or 0) if mark and rounds.isdecimal() else 0 if mark else None,
            )
        else:
            lane, mark, count = entry.partition(next((each for each in (TOOK, READ) if each in entry), PUT))
            if not mark or not self.is_ours(lane):
                return None
            is_busy, is_together = count.startswith(JOINED), count.startswith(TOGETHER)
            times = _number(count.lstrip(JOINED + TOGETHER), 1)
            return Act(seq, lane + mark, times, is_busy=is_busy, is_together=is_together)
        is_cancelled = bool(mark) and outcome == CANCELLED
        if not self.is_ours(lane):
            return None
        return Act(seq, lane + ENDED, 1, is_cancelled=is_cancelled)

    def _read_end(self, lane: str, how: str) -> str:
        """Keep what is recorded of the end of a task; returns its outcome."""
        if how.startswith("("):
            function, bracket, outcome = how.rpartition(")")
            function += bracket
        else:
            function, _, outcome = how.rpartition(" ")
        if function and self.is_ours(lane):
            self.functions[lane] = function
            if not function.startswith("("):
                self.ends.append((lane, how))
        return outcome

    def _head(self, number: int, line: bytes) -> EventHead:
        try:
            head = read_head(line)
        except (msgspec.DecodeError, RecursionError) as error:
            # The full reader raises a precise error; unless it accepts what cannot be replayed.
            self.reader.event(number)
            raise FormatError(str(error), file=self.reader.events_file, line=number) from None
        if head.version != VERSION:
            self.reader.event(number)
            reason = f"expected version {VERSION}, found {head.version}"
            raise FormatError(reason, file=self.reader.events_file, line=number, json_path="$.version")
        return head

    def _misplaced_error(self, number: int, json_path: str, expected: object, found: object) -> FormatError:
        reason = f"the event belongs elsewhere: expected {expected}, found {found}; copy the capture again"
        return FormatError(reason, file=self.reader.events_file, line=number, json_path=json_path)

    def _index_event(self, head: EventHead, open_calls: dict[str, RecordedCall]) -> None:
        call_id = head.data.callId
        is_instant = head.type == "state_mutation" or (head.type == "nondeterministic" and call_id is None)
        if call_id is None and not is_instant:
            return
        if self.programs and (self._is_with_program(head) or call_id in self._skipped_ids):
            self._skipped_ids ^= {call_id}  # the call, then its outcome
            return
        call = open_calls.pop(call_id, None) if call_id is not None and not is_instant else None
        if call is not None:
            call.end(head)
        else:
            digest = None if is_instant else _request_digest(head.data)
            if is_instant and head.data.source == "environ" and self._has_old_env_reads:
                head.type = "state_mutation"
            call = RecordedCall(head, _name(head), digest, is_instant=is_instant)
            if call_id is not None and not is_instant:
                open_calls[call_id] = call
            if self.beside_hosts and is_of_hosts(call.name.rpartition(" ")[2], self.beside_hosts):
                call.beside = NAMED
            if self._is_pause_beside(call):
                return
            if self.is_ours(call.lane):
                (self.beside if call.beside else self.calls).append(call)
        if self.is_ours(call.lane) and not call.beside:
            self.by_seq[head.seq] = call

    def stream_ends(self) -> list[str]:
        """The ids of the calls whose answers came as streams, in the order in which these ended."""
        ended = [call for call in self.calls if call.is_stream and not call.never_ends]
        return [str(call.call_id) for call in sorted(ended, key=lambda call: call.outcome_seq)]

    def _is_pause_beside(self, call: RecordedCall) -> bool:
        """Whether it is a pause between attempts to report, which earlier versions recorded."""
        if call.beside:
            self._lanes_beside.add(call.lane)
        elif call.name == _RETRY_PAUSE and call.lane in self._lanes_beside:
            return True
        else:
            self._lanes_beside.discard(call.lane)
        return False

    def _is_with_program(self, head: EventHead) -> bool:
        """Whether it is a call on a program that is run again, or a probe of this machine."""
        is_probe = _name(head).startswith(_PROBE) and _is_asked_here(str(head.data.key))
        return head.data.program in self.programs or is_probe

    def _move_busy_back(self) -> None:
        """Move calls back into the run if their thread called a model or a tool: no library's thread does."""
        busy = {call.lane for call in self.calls if call.type in ("llm_request", "tool_call")}
        lanes = {call.lane for call in self.beside if call.is_background}
        shared = {lane for lane in lanes if any(LaneName(other).is_within(lane) for other in busy)}
        taken_back = [call for call in self.beside if call.is_background and call.lane in shared]
        for call in taken_back:
            call.beside = ""
            self.by_seq[call.seq] = call
            if call.outcome_seq:
                self.by_seq[call.outcome_seq] = call
        if taken_back:
            self.beside = [call for call in self.beside if call.beside]
            self.calls = sorted([*self.calls, *taken_back], key=lambda call: call.seq)


def talking_programs(reader: CaptureReader) -> frozenset[str]:
    """The ids of the calls that started programs with which the recorded run talked over sockets."""
    marked = (_decode(line)["data"] for line in reader.lines() if b'"talks":true' in line)
    return frozenset(str(data.get("program")) for data in marked if data.get("talks") is True)


def _number(text: str, otherwise: int) -> int:
    return int(text[:9]) if text.isdecimal() else otherwise


def _name(head: EventHead) -> str:
    data = head.data
    if head.type == "nondeterministic":
        return f"{data.source}/{data.key}"
    return data.tool or ""


def _env_read(name: str) -> dict[str, Any]:
    return {"type": "env_read", "details": {"name": name}}


def _request_digest(data: EventHeadData) -> bytes:
    if data.askedHash is not None:
        return bytes.fromhex(data.askedHash.removeprefix("sha256:"))
    if data.requestHash is not None:
        return bytes.fromhex(data.requestHash.removeprefix("sha256:"))
    text = bytes(data.args) or bytes(data.request) or b"null"
    if text.startswith(b'{"$blob":'):
        return bytes.fromhex(_decode(text)["$blob"].removeprefix("sha256:"))
    return sha256(text).digest()


def instant_digest(request: dict[str, object]) -> bytes:
    """The digest of an instant's request, which identifies it."""
    return sha256(encode_clean(request)).digest()


def _place_asked(call_name: str) -> tuple[str, str]:
    """The method and path of an HTTP call."""
    method, _, url = call_name.partition(" ")
    return method, url.partition("://")[2].partition("/")[2].partition("?")[0]


def _is_asked_here(call_name: str) -> bool:
    try:
        return is_loopback(urlsplit(call_name.partition(" ")[2]).hostname or "")
    except ValueError:
        return False
