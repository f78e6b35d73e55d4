"""The recorded run as replay sees it: calls with their outcomes, by lane, and a strict cursor over all.

Indexing reads the head of each event only; payloads are decoded when their call comes.
"""

from __future__ import annotations

import sys
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
    ENDED,
    FIRED,
    JOINED,
    PUT,
    STILL_RUNNING,
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
from reenact.store.reader import CaptureReader, blobs_in
from reenact.volatile.beside import NAMED, is_of_hosts

_NETWORK: Final = "network/"
_PROBE: Final = "network/CONNECT tcp://"
_NOT_MATCHED: Final = ("callId", "error", "lane", "parent", "value", "valueHash")
"""What the event of an instant says beside its request."""


class Act:
    """What a task did between two events: ended, put items into queues, took locks, or its timer went off."""

    __slots__ = ("is_cancelled", "joined", "left", "seq", "what")

    def __init__(
        self, seq: int, what: str, count: int, *, joined: int | None = None, is_cancelled: bool = False
    ) -> None:
        self.is_cancelled = is_cancelled
        """The end of a task that was cancelled."""
        self.joined = joined
        """So many rounds of its event loop before it something else came in; ``None`` if all was at rest."""
        self.seq = seq
        """The event before which it came."""
        self.what = what
        """The lane's name and what it did, as recorded."""
        self.left = count
        """How often it is still to come."""

    @property
    def lane(self) -> str:
        return self.what.partition(FIRED)[0] if FIRED in self.what else self.what[:-1]


LaneTest: TypeAlias = Callable[[str], bool]


def every_lane(_name: str) -> bool:
    """All of a capture is replayed in one place."""
    return True


def lanes_of(root: str) -> LaneTest:
    """The lanes of one process of the run."""
    return lambda lane: LaneName(lane).process == root


_decode: Final = msgspec.json.Decoder().decode


class RecordedCall:
    """One recorded call, or instant, and where its outcome is."""

    __slots__ = (
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
        """The tool's name; source and key of a value from outside; empty for a model call."""
        self.lane = head.data.lane
        self.parent = head.data.parent
        self.call_id = head.data.callId
        self.is_instant = is_instant
        """Call and outcome are one event."""
        self.request_digest = request_digest
        """Over the whole request; ``None`` for an instant, whose request is its event's own fields."""
        self.made_ms = head.ts
        self.ended_ms = head.ts
        self.outcome_seq = head.seq if is_instant else 0
        """0 until the outcome is found, and for ever where the recording broke off before it."""
        self.due_after = self.outcome_seq
        """The outcome is due when every event up to this one has happened."""
        self.is_stream = False
        """Its answer begins when it is due; its outcome comes when the agent has read it."""
        self.opening = sys.maxsize
        """Streams that became due after the same event began in this order, before the event after it."""
        self.joined: int | None = None
        """So many rounds of the event loop before its outcome something else came in; ``None`` if at rest."""
        self.inline = False
        """The answer came without the call giving way to the event loop."""
        self.never_ends = not is_instant
        """The caller went away before there was an answer: cancelled, or the recording broke off."""
        self.beside = head.data.beside
        """What it is, where it is traffic beside the run, which need not come."""
        self.is_background = head.data.background
        self.taken = False
        self.may_write = head.type == "tool_call" or name.startswith("process/")
        """Whether it may have changed files."""
        self.lent = False
        """Lenient replay has answered a call with it that was not recorded."""

    def end(self, head: EventHead) -> None:
        """*head* is this call's outcome."""
        data = head.data
        self.outcome_seq = head.seq
        self.ended_ms = head.ts
        self.due_after = head.seq - 1
        if data.opened is not None:
            self.is_stream, self.due_after, self.opening = True, data.opened, data.opening
        self.inline = data.inline
        self.joined = data.joined
        self.never_ends = data.cancelled and data.opened is None


def _refuse_unfaithful(manifest: CaptureManifest, path: str | Path) -> None:
    imported = manifest.imported
    if imported is not ABSENT and imported.fidelity != "replayable":
        reason = (
            f"was imported from {imported.format} and is {imported.fidelity}, not replayable: what was asked "
            "and answered is not in it as it was sent; look at it, test it and compare it instead"
        )
        raise FormatError(reason, file=str(path))


class ReplaySource:
    """A capture opened for replay; raises at once where it is missing, damaged or not replayable.

    Calls of lanes that are not *is_ours* are as if they were not there. *root* is the lane from which those
    of this process descend. What was asked of *beside_hosts* is beside the run, whatever the capture says.
    With *runs_programs* those with which the recorded run talked are run again: what else was done with them
    is as if it was not there.
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
        """Programs that are run again, by the id of the call that started them."""
        self._passed_over: set[str | None] = set()
        self.calls: list[RecordedCall] = []
        """All calls and instants, in recorded order."""
        self.beside: list[RecordedCall] = []
        """Calls beside the run; they are not among the others."""
        self.by_seq: dict[int, RecordedCall] = {}
        """The call to which the event of that number belongs, be it the call or its outcome."""
        self.times_ms: list[int | float] = []
        self.acts: dict[int, list[Act]] = {}
        """By the number of an event: what came between the one before and this one, in its order."""
        self.ends: list[tuple[str, str]] = []
        """The lanes of tasks that were over, and what came of them."""
        stand_ins = self.reader.manifest.standIns
        self.has_deadlines = stand_ins is not ABSENT and stand_ins.deadlines is True
        """Whether it is known which deadlines passed."""
        self.fork = self.reader.manifest.fork
        ordered = ABSENT if self.fork is ABSENT else self.fork.ordered
        self.ordered_until = sys.maxsize if ordered is ABSENT else ordered
        """The last event up to which it is known what the agent's own tasks did, and deadlines."""
        self._cursor = 1
        self._has_old_env_reads = stand_ins is not ABSENT and "environ" in stand_ins.sources
        """Reads of the environment were ``nondeterministic`` events once; they are matched as state."""
        self._index()

    # The seed's contract: a strict cursor over the events

    def manifest(self) -> CaptureManifest:
        return self.reader.manifest

    def peek(self) -> CaptureEvent | None:
        """The next event, left where it is."""
        return self.reader.event(self._cursor) if self.remaining() else None

    def next(self, expected_type: str) -> CaptureEvent | None:
        """The next event if it is of *expected_type*; nothing is ever skipped to find one."""
        event = self.peek()
        if event is None or type(event).__struct_config__.tag != expected_type:
            return None
        self._cursor += 1
        return event

    def remaining(self) -> int:
        """How many events the cursor has not passed."""
        return len(self.reader) + 1 - self._cursor

    # What the engine needs

    def lane_name(self, lane: Lane) -> str:
        """What a live *lane* is called in the capture, by its place."""
        return lane.name_under(self.root)

    def data(self, seq: int) -> dict[str, Any]:
        """The ``data`` of an event, as stored."""
        data: dict[str, Any] = _decode(self.reader.line(seq))["data"]
        return data

    def request(self, call: RecordedCall) -> Any:
        """What the call asked, whole."""
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

    def named(self, event_type: str, name: str) -> list[RecordedCall]:
        """All calls of that type and name, in recorded order."""
        return self._by_name.get((event_type, name), [])

    def has_asked_here(self, call_name: str) -> bool:
        """Whether a server of this machine was asked so, at whichever port, as *call_name* asks one."""
        return _place_asked(call_name) in self._places_asked

    @cached_property
    def probed(self) -> frozenset[str]:
        """To where connections were recorded that carried nothing: hosts and ports."""
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
        """Every blob that the events refer to."""
        for line in self.reader.lines():
            if b'"$blob"' in line:
                yield from blobs_in(_decode(line)["data"])

    def _index(self) -> None:
        open_calls: dict[str, RecordedCall] = {}
        manifest = self.reader.manifest
        for number, line in enumerate(self.reader.lines(), 1):
            head = self._head(number, line)
            if (head.captureId, head.runId) != (manifest.captureId, manifest.runId):
                self.reader.event(number)
                raise self._misplaced(number, "$.runId", manifest.runId, head.runId)
            if head.seq != number:
                raise self._misplaced(number, "$.seq", number, head.seq)
            self.times_ms.append(head.ts)
            if head.order and number <= self.ordered_until:
                self._index_order(head)
            if not head.data.derived:
                self._index_event(head, open_calls)
        if self.beside:
            self._take_back_busy()

    def _index_order(self, head: EventHead) -> None:
        for told in head.order:
            act = self._read_act(head.seq, told)
            if act is not None:
                self.acts.setdefault(head.seq, []).append(act)

    def _read_act(self, seq: int, told: str) -> Act | None:
        """``None`` for what is told of others' lanes, or in words of a later version."""
        outcome = ""
        lane, mark, how = told.partition(ENDED)
        if mark:
            how = how.removeprefix(JOINED).strip()  # older captures have the mark here too
            function, _, outcome = how.rpartition(" ")
            if function and self.is_ours(lane):
                self.ends.append((lane, how))
        elif told.endswith(STILL_RUNNING):
            lane = told.removesuffix(STILL_RUNNING)  # it may end when all else has happened
        elif FIRED in told:
            lane = told.partition(FIRED)[0]
            if not self.has_deadlines or not self.is_ours(lane):
                return None
            timer, mark, rounds = told.partition(JOINED)
            return Act(
                seq,
                timer,
                1,
                joined=int(rounds[:9] or 0) if mark and rounds.isdecimal() else 0 if mark else None,
            )
        else:
            lane, mark, count = told.partition(TOOK if TOOK in told else PUT)
            if not mark or not self.is_ours(lane):
                return None
            return Act(seq, lane + mark, _number(count, 1))
        is_cancelled = bool(mark) and outcome == CANCELLED
        if not self.is_ours(lane):
            return None
        return Act(seq, lane + ENDED, 1, is_cancelled=is_cancelled)

    def _head(self, number: int, line: bytes) -> EventHead:
        try:
            head = read_head(line)
        except (msgspec.DecodeError, RecursionError) as error:
            # The exact reading says what is wrong, unless it takes what cannot be replayed.
            self.reader.event(number)
            raise FormatError(str(error), file=self.reader.events_file, line=number) from None
        if head.version != VERSION:
            self.reader.event(number)
            reason = f"expected version {VERSION}, found {head.version}"
            raise FormatError(reason, file=self.reader.events_file, line=number, json_path="$.version")
        return head

    def _misplaced(self, number: int, json_path: str, expected: object, found: object) -> FormatError:
        reason = f"the event belongs elsewhere: expected {expected}, found {found}; copy the capture again"
        return FormatError(reason, file=self.reader.events_file, line=number, json_path=json_path)

    def _index_event(self, head: EventHead, open_calls: dict[str, RecordedCall]) -> None:
        call_id = head.data.callId
        is_instant = head.type == "state_mutation" or (head.type == "nondeterministic" and call_id is None)
        if call_id is None and not is_instant:
            return
        if self.programs and (self._is_with_program(head) or call_id in self._passed_over):
            self._passed_over ^= {call_id}  # the call, then its outcome
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
            if self.is_ours(call.lane):
                (self.beside if call.beside else self.calls).append(call)
        if self.is_ours(call.lane) and not call.beside:
            self.by_seq[head.seq] = call

    def _is_with_program(self, head: EventHead) -> bool:
        """Whether something is done with a program that is run again, or it is looked whether it listens."""
        is_probe = _name(head).startswith(_PROBE) and _is_asked_here(str(head.data.key))
        return head.data.program in self.programs or is_probe

    def _take_back_busy(self) -> None:
        """A thread that asked a model or a tool was not a library's own: all it did belongs to the run."""
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
    """The programs with which the recorded run talked over sockets, by the id of the call that began each."""
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
    """What identifies an instant."""
    return sha256(encode_clean(request)).digest()


def _place_asked(call_name: str) -> tuple[str, str]:
    """Method and path of an HTTP call."""
    method, _, url = call_name.partition(" ")
    return method, url.partition("://")[2].partition("/")[2].partition("?")[0]


def _is_asked_here(call_name: str) -> bool:
    try:
        return is_loopback(urlsplit(call_name.partition(" ")[2]).hostname or "")
    except ValueError:
        return False
