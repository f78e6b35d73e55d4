"""The capture directory's manifest and events (``manifest.json``, ``events.jsonl``).

Every event names the run it belongs to, so that events of two runs cannot be mixed unnoticed.
What an event says beyond the fields here is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, BinaryIO, Final, Literal, TypeAlias, TypeVar

import msgspec

from reenact import canonical
from reenact.canonical import JsonField, read_json
from reenact.errors import DigestMismatch, FormatError, UnknownVersion
from reenact.formats.lines import MAX_LINE_BYTES, Line, OnError, raise_error, read_records
from reenact.formats.record import ABSENT, Absent, Codec, Count, Int64, Record, Upgrade, upgrade
from reenact.formats.volatile import VolatileRule

VERSION: Final = 1
EVENT_LOG_NAME: Final = "events.jsonl"
BLOB_THRESHOLD_BYTES: Final = 16 * 1024
MAX_BLOB_THRESHOLD_BYTES: Final = MAX_LINE_BYTES // 4
"""So that the few payloads of one event still fit into a line."""
INTERRUPTED: Final = "interrupted"
RECORDING_FAILED: Final = "recording failed"
"""How a manifest's error, or a warning in it, begins where recording ended before the run did."""
ENDED: Final = "!"
"""Behind a lane's name in an event's ``order``: its task, thread or job was over."""
PUT: Final = ">"
"""Likewise: it put an item into a queue; a number says how often."""
TOOK: Final = "<"
"""Likewise: it took a lock; a number says how often."""
READ: Final = "+"
"""Likewise: it read a piece of a stream; a number says how many."""
PRINTED: Final = "#"
"""Likewise: it printed before another lane did; a number says how many pieces in a row."""
FIRED: Final = "@"
"""Likewise: a timer that it had set went off, or it waited in vain; which one stands behind."""
JOINED: Final = "&"
"""Behind a timer: it came in on an event loop that was not at rest; how many rounds later stands behind."""
CANCELLED: Final = "-"
"""Behind the end of a task, instead of what came of it."""
HIDDEN: Final = "=~"
"""Likewise, in a replay: it returned a value with a placeholder, where the recording had the secret."""
STILL_RUNNING: Final = "?"
"""Behind a lane's name: it was not over when the run ended."""
PLACEHOLDER: Final = re.compile(r"<secret:[a-z0-9-]+:[0-9a-f]{8}>")
"""What stands in the place of a secret: its kind, and a mark that equal secrets of one capture share."""

R = TypeVar("R")


def without_marks(value: object) -> Any:
    """JSON in which placeholders tell the kind of a secret alone: ``<secret:KIND>``.

    Their marks say nothing about those of another capture, which has another salt.
    """
    if isinstance(value, str):
        return PLACEHOLDER.sub(_without_mark, value) if "<secret:" in value else value
    if isinstance(value, list):
        return list(map(without_marks, value))
    if isinstance(value, dict):
        return dict(zip(value, map(without_marks, value.values()), strict=True))
    return value


def _without_mark(found: re.Match[str]) -> str:
    return f"{found[0].rpartition(':')[0]}>"


Mode: TypeAlias = Literal["capture", "replay"]
RedactionProfile: TypeAlias = Literal["none", "default", "strict"]
RunStatus: TypeAlias = Literal["ok", "error"]
Fidelity: TypeAlias = Literal["replayable", "tools", "judgeable", "viewable"]
"""How much of a run an imported capture holds: raw requests and answers; calls and results; what assertions
ask for; what can be looked at. Each holds what the ones behind it hold."""


class Model(Record, frozen=True):
    """The model of the run's first model call; both are ``"none"`` when there was none."""

    provider: str
    model: str


NO_MODEL: Final = Model(provider="none", model="none")


class Redaction(Record, frozen=True):
    """What was hidden before anything was written."""

    enabled: bool
    profile: RedactionProfile
    salt: str | Absent = ABSENT
    """Hex; keys the placeholders, so that a replay computes the same ones."""

    @property
    def salt_bytes(self) -> bytes:
        """Nothing where the capture has none."""
        return bytes.fromhex(self.salt) if self.salt is not ABSENT else b""


class Integrity(Record, frozen=True):
    """Digests over the bytes as written."""

    algorithm: Literal["sha256"]
    eventsHash: str  # noqa: N815 — the wire's own name, as all below
    manifestHash: str | Absent = ABSENT  # noqa: N815
    """Over the manifest's canonical text without this member."""


class StandIns(Record, frozen=True):
    """Which sources of chance were recorded for which modules."""

    sources: list[str]
    modules: list[str]
    """Patterns of module names; none at all means every module that is no library."""
    everywhere: list[str] | Absent = ABSENT
    """Which of the sources were recorded for libraries too."""
    environ: list[str] | Absent = ABSENT
    """Which variables of the environment were recorded; absent for all, where that source was."""
    deadlines: bool | Absent = ABSENT
    """Whether the events' ``order`` tells which deadlines passed, and how tasks ended."""


class PrintedLines(Record, frozen=True):
    """What a recorded command printed on its standard output, as digests salted with the redaction's salt."""

    bytes: Count
    digest: str
    """Over all of it, with line ends as ``\\n``."""
    lines: list[str]
    """The beginning of each line's digest, in hex, for as many lines as are told."""


class ImportedSource(Record, frozen=True):
    """The file, or the folder, that a capture was imported from."""

    name: str
    """As it was given, below the folder that was imported; never an absolute path."""
    bytes: Count
    digest: str
    """Over the file's bytes; of a folder, over the names and digests of its files."""


class ImportLoss(Record, frozen=True):
    """A part of the source that is not in the capture."""

    reason: str
    line: Count | Absent = ABSENT


class Imported(Record, frozen=True):
    """Where an imported capture comes from, and how faithful it is."""

    format: str
    importer: str
    """Name and version of the code that read it, such as ``reenact.vcr 1``."""
    fidelity: Fidelity
    source: ImportedSource
    missing: list[str]
    """What runs have and this source does not hold."""
    unknown: dict[str, Count]
    """Fields of the source that the importer does not know, and how often each occurred."""
    losses: list[ImportLoss]
    """The first of them, in their order."""
    lossCount: Count  # noqa: N815
    """How many there were."""


class ForkParent(Record, frozen=True):
    """The capture that a fork begins like."""

    captureId: str  # noqa: N815
    path: str
    """Where it is, as seen from the fork's own folder."""
    events: Count
    """So many of its events are the first ones of the fork, but for the ids of capture and run."""
    eventHash: str  # noqa: N815
    """Digest of the last of these, as it stands in the parent."""
    eventsHash: str  # noqa: N815
    """Digest over all of them, as they stand in the parent."""
    logHash: str | Absent = ABSENT  # noqa: N815
    """Digest over all events of the parent when it was forked; absent in forks of earlier versions."""


class ForkShares(Record, frozen=True):
    """How the calls of a fork were answered."""

    prefix: Count
    """From the recording, before the change."""
    recording: Count
    """From the recording, after it."""
    nearest: Count
    """With the answer to the nearest recorded call."""
    live: Count


class ForkPause(Record, frozen=True):
    """The time between two runs, which the ``ts`` of events leave out."""

    afterSeq: Count  # noqa: N815
    """Events behind this one were really so much later."""
    ms: Count


class Fork(Record, frozen=True):
    """What a capture says of itself that is the fork of another."""

    parent: ForkParent
    at: Count
    """The number of the call's event in the parent at which it was changed; 0 for a run that may differ
    anywhere."""
    stored: Literal["suffix", "whole"]
    """Whether the event log begins behind what it has in common with the parent, or holds all events."""
    shares: ForkShares
    change: JsonField | Absent = ABSENT
    """What was changed; absent where nothing was."""
    ordered: Count | Absent = ABSENT
    """The last event up to which *order* and deadlines are told; absent where they are to the end."""
    places: dict[str, str] | Absent = ABSENT
    """Folders of this run, and of forks before it, as ``run_start`` tells those of the first run."""
    pauses: list[ForkPause] | Absent = ABSENT
    """Where its own events begin, and those of forks before it."""

    def pause_before_ms(self, seq: int) -> int:
        """How much later than its ``ts`` says the event *seq* really was."""
        pauses = [] if self.pauses is ABSENT else self.pauses
        return sum(int(pause.ms) for pause in pauses if pause.afterSeq < seq)


class CaptureManifest(Record, frozen=True):
    """What a finished capture says of itself."""

    version: Literal[1]
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    createdAt: int | float  # noqa: N815
    """Milliseconds since the epoch, as all times of a capture."""
    mode: Mode
    model: Model
    eventCount: Count  # noqa: N815
    eventLogPath: str  # noqa: N815
    redaction: Redaction
    integrity: Integrity
    status: RunStatus
    completedAt: int | float | Absent = ABSENT  # noqa: N815
    updatedAt: int | float | Absent = ABSENT  # noqa: N815
    """When the latest update ended, which the times of events leave out."""
    error: str | Absent = ABSENT
    producer: str | Absent = ABSENT
    blobThresholdBytes: Count | Absent = ABSENT  # noqa: N815
    standIns: StandIns | Absent = ABSENT  # noqa: N815
    warnings: list[str] | Absent = ABSENT
    volatile: list[VolatileRule] | Absent = ABSENT
    """What may differ in a replay of this capture, beside what always may."""
    exitStatus: Count | Absent = ABSENT  # noqa: N815
    """How the recorded command ended, as shells say it: 128 and the signal's number where one killed it."""
    stdout: PrintedLines | Absent = ABSENT
    """What the recorded command printed."""
    imported: Imported | Absent = ABSENT
    """Present where the run was not recorded by us."""
    workspaceEnd: str | Absent = ABSENT  # noqa: N815
    """The tree of the workspace's files at the end, where these were recorded."""
    fork: Fork | Absent = ABSENT
    """Of which capture this one is a fork."""


class CaptureSeed(Record, frozen=True):
    """The manifest of a run that is still open: what is known before its events are."""

    version: Literal[1]
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    createdAt: int | float  # noqa: N815
    mode: Mode
    model: Model
    eventLogPath: str  # noqa: N815
    redaction: Redaction
    producer: str | Absent = ABSENT
    blobThresholdBytes: Count | Absent = ABSENT  # noqa: N815
    standIns: StandIns | Absent = ABSENT  # noqa: N815
    volatile: list[VolatileRule] | Absent = ABSENT


class ProcessData(Record, frozen=True):
    """One of the processes whose calls are in the capture, beside the one that began it."""

    ended: bool
    """Whether it came to its end; one that was killed did not."""
    argv: list[str] | Absent = ABSENT


class RepoData(Record, frozen=True):
    """The repository in which the run was made, as it was when the run began."""

    remote: str | Absent = ABSENT
    branch: str | Absent = ABSENT
    commit: str | Absent = ABSENT
    dirty: bool | Absent = ABSENT
    """Whether tracked files differed from the commit."""


class WorkspaceData(Record, frozen=True):
    """The files among which the run worked, as it began."""

    tree: str
    """The digest of their tree; see :mod:`reenact.formats.workspace`."""
    cwd: str | Absent = ABSENT
    """Where the run began, from the root of the tree; absent where that was outside."""
    commit: str | Absent = ABSENT
    """The commit of git's that has the files which the capture only names."""
    limitBytes: Count | Absent = ABSENT  # noqa: N815
    """Larger files are left out."""
    above: list[list[str]] | Absent = ABSENT
    """What ignore files above the workspace say: pairs of the path from there to its root, and the text."""
    pathBytes: Count | Absent = ABSENT  # noqa: N815
    """How long the path of its root was."""


class RunStartData(Record, frozen=True):
    """Where and how the run began."""

    argv: list[str] | Absent = ABSENT
    cwd: str | Absent = ABSENT
    python: str | Absent = ABSENT
    utcOffsetS: int | Absent = ABSENT  # noqa: N815
    """How far the local time was ahead of UTC, in seconds."""
    places: dict[str, str] | Absent = ABSENT
    """Salted digests of the run's own folders: ``cwd``, ``home``, ``python``, ``tmp`` and ``workspace``."""
    upstreams: dict[str, str] | Absent = ABSENT
    """Where the gateway led to, by name; absent where it did not begin the run."""
    processes: dict[str, ProcessData] | Absent = ABSENT
    """The other Python processes of the run, by their first lane."""
    policyBundleId: str | Absent = ABSENT  # noqa: N815
    """The policy under which the run was made."""
    issueNumber: Int64 | Absent = ABSENT  # noqa: N815
    """The issue on which it worked."""
    repo: RepoData | Absent = ABSENT
    workspace: WorkspaceData | Absent = ABSENT
    """The files that were recorded with the run."""


class RunEndData(Record, frozen=True):
    """How the run ended."""

    status: RunStatus
    finalOutput: JsonField | Absent = ABSENT  # noqa: N815
    finalOutputHash: str | Absent = ABSENT  # noqa: N815
    error: str | Absent = ABSENT
    confidence: int | float | Absent = ABSENT
    """How sure the agent is of its output, from 0 to 1, where it says so."""
    wrote: list[str] | Absent = ABSENT
    """Files that the run wrote and left behind, below the working folder, ``~/``, or elsewhere."""
    entered: list[str] | Absent = ABSENT
    """Files below the working folder whose functions ran outside of any call, where that could be told."""


class LlmRequestData(Record, frozen=True):
    """A model call as it left the agent."""

    callId: str  # noqa: N815
    provider: str
    model: str
    inputHash: str  # noqa: N815
    toolSchemaHash: str | Absent = ABSENT  # noqa: N815
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    """The id of the call inside which this one was made, as in all data below."""
    request: JsonField | Absent = ABSENT
    requestHash: str | Absent = ABSENT  # noqa: N815
    """Digest of the whole request; written where *request* refers to earlier events."""
    asked: JsonField | Absent = ABSENT
    """In a fork that asks otherwise than the agent did: the way back to the agent's request."""
    askedHash: str | Absent = ABSENT  # noqa: N815
    """Digest of the agent's request, by which replay knows the call."""
    headers: JsonField | Absent = ABSENT
    """Those of the HTTP request that are not compared, by name."""
    stream: JsonField | Absent = ABSENT
    """Whether the answer was asked for piece by piece."""
    derived: bool | Absent = ABSENT
    """True where the agent's own account told of it, as in all data below; nobody saw it happen."""


class _OutcomeData(Record, frozen=True):
    """What all outcomes of calls may say of how they came."""

    opened: Count | Absent = ABSENT
    """Of a stream: the number of the latest event when it began."""
    opening: Count | Absent = ABSENT
    """Of a stream: which of the run's streams it was, in the order in which they began."""
    inline: bool | Absent = ABSENT
    """True where the outcome came before the event loop went on."""
    joined: Count | Absent = ABSENT
    """Where it came in on an event loop that was not at rest: how many rounds later."""
    latencyMs: int | float | Absent = ABSENT  # noqa: N815
    """How long the call took, where the times of its events do not tell."""
    cancelled: bool | Absent = ABSENT
    """True where the caller went away before the end."""
    closed: bool | Absent = ABSENT
    """True where it did so by closing a stream."""
    pieces: JsonField | Absent = ABSENT
    """Of a stream: what it handed out, one by one."""
    exact: JsonField | Absent = ABSENT
    """The same answer or pieces in the form in which they came, where redaction found nothing to hide."""


class LlmResponseData(_OutcomeData, frozen=True, kw_only=True):
    """What came back for a model call; *response* holds the payload or the chunks."""

    callId: str  # noqa: N815
    provider: str
    model: str
    stopReason: str | None  # noqa: N815
    usage: dict[str, Any] | None
    response: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    complete: JsonField | Absent = ABSENT
    """Whether the answer came to its end, and to no error."""
    modelError: JsonField | Absent = ABSENT  # noqa: N815
    """What the provider answered instead of a message."""
    responseId: JsonField | Absent = ABSENT  # noqa: N815
    reasoningIds: JsonField | Absent = ABSENT  # noqa: N815
    """Of the answer's thinking: ids, or digests of the signatures."""
    toolCallIds: JsonField | Absent = ABSENT  # noqa: N815
    derived: bool | Absent = ABSENT


class ToolCallData(Record, frozen=True):
    """A tool called with its arguments."""

    callId: str  # noqa: N815
    tool: str
    args: JsonField
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    derived: bool | Absent = ABSENT
    """True where the call was read from model traffic or from the agent's own account, not seen happening."""
    sideEffects: list[str] | Absent = ABSENT  # noqa: N815
    """What the tool is declared to do to the world: tags such as ``fs_write`` or ``payment``."""


class ToolResultData(_OutcomeData, frozen=True, kw_only=True):
    """A tool's outcome: *result* when ok, *error* when not."""

    callId: str  # noqa: N815
    ok: bool
    result: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    derived: bool | Absent = ABSENT


class NondeterministicData(_OutcomeData, frozen=True, kw_only=True):
    """A value of chance or of the outside world."""

    source: str
    """``clock``, ``rng``, ``network``, ``process`` or a name of the agent's own."""
    key: str
    valueHash: str | Absent = ABSENT  # noqa: N815
    value: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    callId: str | Absent = ABSENT  # noqa: N815
    """Present where the value took time: one event for the call, one for its outcome."""
    request: JsonField | Absent = ABSENT
    """What the call asked; in the first of the two events."""
    headers: JsonField | Absent = ABSENT
    """Of an HTTP request: those that are not compared, by name."""
    beside: str | Absent = ABSENT
    """What the call is, where it is traffic beside the run; in the first of the two events."""
    background: bool | Absent = ABSENT
    """That it is beside the run is known only by how it was made: by a library in a thread of its own."""
    program: str | Absent = ABSENT
    """The id of the call that started the program with which this one does something."""
    talks: bool | Absent = ABSENT
    """By now the run talked with that program over a socket, past what is recorded."""


class StateMutationData(Record, frozen=True):
    """A change, or a read, of the agent's state: files, environment, memory."""

    type: str
    callId: str | Absent = ABSENT  # noqa: N815
    """Of a read, inside which other calls may be made."""
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    group_id: str | Absent = ABSENT
    source: str | Absent = ABSENT
    path: str | Absent = ABSENT
    content: JsonField | Absent = ABSENT
    """What was written to memory."""
    details: JsonField | Absent = ABSENT
    """What a change of any other type says of itself."""
    value: JsonField | Absent = ABSENT
    """What a read found."""
    error: JsonField | Absent = ABSENT
    derived: bool | Absent = ABSENT


class _Event(Record, frozen=True, tag_field="type", kw_only=True):
    version: Literal[1]
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    seq: Count
    ts: int | float
    laterMs: Count | Absent = ABSENT  # noqa: N815
    """Of an event that an update recorded: so much later than *ts* says it really was."""
    order: list[str] | Absent = ABSENT
    """What the run's own tasks came to between the event before and this one, in the order it happened."""


class RunStart(_Event, frozen=True, tag="run_start"):
    """The first event."""

    data: RunStartData


class RunEnd(_Event, frozen=True, tag="run_end"):
    """The last event of a run that was not killed."""

    data: RunEndData


class LlmRequest(_Event, frozen=True, tag="llm_request"):
    """A model was called."""

    data: LlmRequestData


class LlmResponse(_Event, frozen=True, tag="llm_response"):
    """A model answered, or failed."""

    data: LlmResponseData


class ToolCall(_Event, frozen=True, tag="tool_call"):
    """A tool was called."""

    data: ToolCallData


class ToolResult(_Event, frozen=True, tag="tool_result"):
    """A tool answered, or failed."""

    data: ToolResultData


class StateMutation(_Event, frozen=True, tag="state_mutation"):
    """State was read or changed."""

    data: StateMutationData


class Nondeterministic(_Event, frozen=True, tag="nondeterministic"):
    """A value came from chance or from outside."""

    data: NondeterministicData


CaptureEvent: TypeAlias = (
    RunStart | RunEnd | LlmRequest | LlmResponse | ToolCall | ToolResult | StateMutation | Nondeterministic
)
EVENT_TYPES: Final = (
    "run_start",
    "run_end",
    "llm_request",
    "llm_response",
    "tool_call",
    "tool_result",
    "state_mutation",
    "nondeterministic",
)

manifest_codec: Final[Codec[CaptureManifest]] = Codec(CaptureManifest)
seed_codec: Final[Codec[CaptureSeed]] = Codec(CaptureSeed)


class _EventCodec(Codec[CaptureEvent]):
    """Upgrades an event that an older version wrote."""

    def from_bytes(self, text: bytes) -> CaptureEvent:
        try:
            return super().from_bytes(text)
        except FormatError:
            value = read_json(text)
            if not isinstance(value, dict) or value.get("version") == VERSION:
                raise
        return self.from_json(
            upgrade(value, field="version", current=VERSION, steps=_EVENT_UPGRADES, what="capture event")
        )


event_codec: Final = _EventCodec(CaptureEvent)

_MANIFEST_UPGRADES: Final[dict[int, Upgrade]] = {}
_EVENT_UPGRADES: Final[dict[int, Upgrade]] = {}
"""One function per step, from the version that is its key to the next; version 1 is the first."""


def read_manifest(text: bytes, *, file: str) -> CaptureManifest:
    """A finished manifest; its own digest, where it has one, must hold.

    A tenth of the time where the text, without the digest in it, has that digest: then it is the very text
    that was written, and a record that is encoded like it holds all of it.
    """
    line = text.removesuffix(b"\n")
    found = _OWN_DIGEST.search(line)
    if found is not None:
        own = found[1].decode()
        if sha256(line[: found.start()] + line[found.end() :]).hexdigest() == own:
            as_written = manifest_codec.as_written(line)
            if as_written is not None and as_written.integrity.manifestHash == f"sha256:{own}":
                return as_written
    manifest = _read_versioned(text, file, manifest_codec)
    stated = manifest.integrity.manifestHash
    if stated is not ABSENT and stated != _manifest_digest(manifest):
        raise DigestMismatch("the manifest was changed after it was written; copy it again", file=file)
    return manifest


_OWN_DIGEST: Final = re.compile(rb',"manifestHash":"sha256:([0-9a-f]{64})"')


def read_seed(text: bytes, *, file: str) -> CaptureSeed:
    """The manifest of a run that was not finished."""
    return _read_versioned(text, file, seed_codec)


def write_manifest(manifest: CaptureManifest) -> bytes:
    """The manifest's text; its own digest is stated anew."""
    return manifest_codec.to_bytes(with_own_digest(manifest)) + b"\n"


def with_own_digest(manifest: CaptureManifest) -> CaptureManifest:
    """The manifest as it is written."""
    integrity = msgspec.structs.replace(manifest.integrity, manifestHash=_manifest_digest(manifest))
    return msgspec.structs.replace(manifest, integrity=integrity)


def _manifest_digest(manifest: CaptureManifest) -> str:
    integrity = msgspec.structs.replace(manifest.integrity, manifestHash=ABSENT)
    return canonical.digest(manifest_codec.to_json(msgspec.structs.replace(manifest, integrity=integrity)))


def _read_versioned(text: bytes, file: str, codec: Codec[R]) -> R:
    try:
        value = read_json(text)
        if not isinstance(value, dict):
            raise FormatError("expected an object", json_path="$")
        current = upgrade(
            value, field="version", current=VERSION, steps=_MANIFEST_UPGRADES, what="capture manifest"
        )
        return codec.from_json(current)
    except FormatError as error:
        raise error.at(file=file) from None


def read_events(
    stream: BinaryIO,
    *,
    file: str,
    max_line_bytes: int = MAX_LINE_BYTES,
    on_error: OnError | None = None,
) -> Iterator[tuple[Line, CaptureEvent]]:
    """The events of a log in constant memory; ``seq`` must start at 1 and have no gap.

    Without *on_error* the first bad line raises; with it every bad line is reported and passed over,
    but a newer version is refused all the same.
    """

    def report(error: FormatError) -> None:
        (raise_error if on_error is None or isinstance(error, UnknownVersion) else on_error)(error)

    expected = 1
    for line, event in read_records(
        stream, event_codec, file=file, max_line_bytes=max_line_bytes, on_error=report
    ):
        # A line that could not be read has its number all the same.
        expected = event.seq if on_error is not None and expected < event.seq == line.number else expected
        if event.seq == expected:
            yield line, event
        else:
            reason = f"expected {expected}, found {event.seq}"
            report(FormatError(reason, file=file, line=line.number, json_path="$.seq"))
        expected = event.seq + 1
