"""The replay receipt: the verdict of a replay, with the capture, the code and the rules it ran under."""

from __future__ import annotations

from typing import Any, Final, Literal

from reenact.canonical import read_json
from reenact.errors import FormatError
from reenact.formats.record import ABSENT, Absent, Codec, Count, Record
from reenact.formats.volatile import VolatileRule

SCHEMA: Final = "reenact.replay-receipt.v1"


class ReplayedCapture(Record, frozen=True):
    """The recording that was replayed."""

    captureId: str  # noqa: N815 — the wire's own names, as all below
    eventsHash: str  # noqa: N815
    eventCount: Count  # noqa: N815


class Fingerprint(Record, frozen=True):
    """The code that ran: digests over the agent's loaded source files and the installed packages."""

    code: str
    packages: str
    python: str
    platform: str
    reenact: str


class Matching(Record, frozen=True):
    """The rules by which calls were matched with recorded ones."""

    policy: Literal["strict", "lenient"]
    redaction: str
    passthroughTools: list[str]  # noqa: N815
    volatile: list[VolatileRule]
    """The built-in rules, those of the capture, of the project, and those given for this replay."""
    onUnmatched: Literal["error", "empty", "live"] | Absent = ABSENT  # noqa: N815
    """How a lenient replay answered a call without a similar recorded one; absent for an error."""


class RenamedValue(Record, frozen=True):
    """A generated name in the recorded run, and in the replay."""

    recorded: str
    live: str
    eventSeq: Count  # noqa: N815
    jsonPath: str  # noqa: N815
    """The first place of the name, in the request of that event."""


class AcceptedTime(Record, frozen=True):
    """A current time in the recorded run, and the one in the replay."""

    recorded: Any
    live: Any
    eventSeq: Count  # noqa: N815
    jsonPath: str  # noqa: N815


class RefusedCall(Record, frozen=True):
    """A live call that was refused."""

    kind: str
    target: str
    frame: str | None


class LiveCall(Record, frozen=True):
    """A call that was made live, because no recorded one is similar and the replay allows that."""

    kind: str
    target: str


class TaskMatch(Record, frozen=True):
    """Calls of one task that were recorded in another task."""

    live: str
    """The lane in which they were made."""
    recorded: str
    """The lane in which they were recorded."""
    eventSeq: Count  # noqa: N815
    """The first of them."""
    calls: Count


class AcrossTasks(Record, frozen=True):
    """Calls that were matched with calls of another task."""

    calls: Count
    matches: list[TaskMatch]
    """The first hundred pairs of tasks."""


class BesideTraffic(Record, frozen=True):
    """Requests that a library made on its own; they are answered from the recording or not at all."""

    request: str
    """Method and address."""
    what: str
    recorded: Count
    made: Count
    """The number of requests in this run; *recorded* is the one in the recorded run."""


class ReplayReceipt(Record, frozen=True):
    """Written at the end of every replay."""

    schema: Literal["reenact.replay-receipt.v1"]
    capture: ReplayedCapture
    fingerprint: Fingerprint
    matching: Matching
    divergences: list[dict[str, Any]]
    liveCallsRefused: list[RefusedCall]  # noqa: N815
    notes: list[str]
    finalOutputHash: str | None  # noqa: N815
    verdict: Literal["reproduced", "diverged"]
    liveCalls: list[LiveCall] | Absent = ABSENT  # noqa: N815
    """All live calls; absent without any, which is so unless the replay allows them."""
    beside: list[BesideTraffic] | Absent = ABSENT
    """The traffic beside the run, in either run."""
    replayedAt: int | Absent = ABSENT  # noqa: N815
    """Milliseconds since the epoch."""
    acrossTasks: AcrossTasks | Absent = ABSENT  # noqa: N815
    """Absent if every task made the calls that were recorded for it."""
    renamed: list[RenamedValue] | Absent = ABSENT
    times: list[AcceptedTime] | Absent = ABSENT
    """Accepted differences, like *renamed*: generated names and times; absent without any."""


def merge_across_tasks(one: AcrossTasks | Absent, other: AcrossTasks | Absent) -> AcrossTasks | Absent:
    """The matches of two processes of a run."""
    if one is ABSENT or other is ABSENT:
        return other if one is ABSENT else one
    return AcrossTasks(calls=one.calls + other.calls, matches=[*one.matches, *other.matches])


receipt_codec: Final[Codec[ReplayReceipt]] = Codec(ReplayReceipt)


def read_replay_receipt(text: bytes, *, file: str) -> ReplayReceipt:
    """A receipt from its text."""
    try:
        return receipt_codec.from_json(read_json(text))
    except FormatError as error:
        raise error.at(file=file) from None
