"""The capture directory's manifest and events (``manifest.json``, ``events.jsonl``).

Every event has the ids of its run, so that mixed events of two runs are detected. Unknown fields are kept.
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
"""The few payloads of one event must fit into a line."""
INTERRUPTED: Final = "interrupted"
RECORDING_FAILED: Final = "recording failed"
"""The beginning of the manifest's error, or of a warning in it, if recording ended before the run."""
ENDED: Final = "!"
"""After the name of a lane in ``order``: its task, thread or job ended."""
PUT: Final = ">"
"""After the name of a lane: it put an item into a queue; a number is the count."""
TOOK: Final = "<"
"""After the name of a lane: it took a lock; a number is the count."""
READ: Final = "+"
"""After the name of a lane: it read a piece of a stream; a number is the count."""
TOGETHER: Final = "="
"""After a read: the event loop ran nothing else since the piece before it; a number is the count."""
PRINTED: Final = "#"
"""After the name of a lane: it printed before another lane did; a number counts the pieces in a row."""
FIRED: Final = "@"
"""After the name of a lane: a timer that it had set fired, or its wait timed out; the timer follows."""
JOINED: Final = "&"
"""After a timer: it fired while the event loop was busy; the number of loop rounds follows."""
CANCELLED: Final = "-"
"""After the end of a task, in place of its result."""
HIDDEN: Final = "=~"
"""After the end of a task, in a replay: it returned a placeholder in place of the recorded secret."""
CLOCK: Final = "$"
"""After the name of a lane: a library read the wall clock; its module and line, and the time in ns follow."""
SHARED: Final = "*"
"""After the name of a lane, in the last event: it took what processes share; a number is the count."""
STILL_RUNNING: Final = "?"
"""After the name of a lane: it had not ended when the run ended; the function that it runs follows."""
PLACEHOLDER: Final = re.compile(r"<secret:[a-z0-9-]+:[0-9a-f]{8}>")
"""Replaces a secret: its kind, and a mark that is the same for equal secrets of one capture."""

R = TypeVar("R")


def without_marks(value: object) -> Any:
    """JSON with placeholders that have only the kind of a secret: ``<secret:KIND>``.

    The marks of two captures cannot be compared, because the salts differ.
    """
    if isinstance(value, str):
        return PLACEHOLDER.sub(_without_mark, value) if "<secret:" in value else value
    if isinstance(value, list):
        return list(map(without_marks, value))
    if isinstance(value, dict):
        return dict(zip(value, map(without_marks, value.values()), strict=True))
    return value


def number_marks(text: str, numbers: dict[str, int]) -> str:
    """*text* with the marks of its placeholders numbered in their order; *numbers* has those before it.

    So texts of two captures can be compared, and different secrets of one text stay different.
    """
    if "<secret:" not in text:
        return text
    return PLACEHOLDER.sub(
        lambda found: f"{_without_mark(found)[:-1]}:{numbers.setdefault(found[0], len(numbers))}>", text
    )


def _without_mark(found: re.Match[str]) -> str:
    return f"{found[0].rpartition(':')[0]}>"


Mode: TypeAlias = Literal["capture", "replay"]
RedactionProfile: TypeAlias = Literal["none", "default", "strict"]
RunStatus: TypeAlias = Literal["ok", "error"]
Fidelity: TypeAlias = Literal["replayable", "tools", "judgeable", "viewable"]
"""How much of a run an imported capture has: raw requests and answers; calls and results; enough for
assertions; enough to view it. Each includes the following ones."""


class Model(Record, frozen=True):
    """The model of the run's first model call; both are ``"none"`` without a model call."""

    provider: str
    model: str


NO_MODEL: Final = Model(provider="none", model="none")


class Redaction(Record, frozen=True):
    """The redaction of secrets before anything was written."""

    enabled: bool
    profile: RedactionProfile
    salt: str | Absent = ABSENT
    """Hex; keys the placeholders, so that a replay computes the same ones."""

    @property
    def salt_bytes(self) -> bytes:
        """Empty if the capture has no salt."""
        return bytes.fromhex(self.salt) if self.salt is not ABSENT else b""


class Integrity(Record, frozen=True):
    """Digests over the bytes as written."""

    algorithm: Literal["sha256"]
    eventsHash: str  # noqa: N815 — the wire's own name, as all below
    manifestHash: str | Absent = ABSENT  # noqa: N815
    """Over the canonical text of the manifest without this member."""


class StandIns(Record, frozen=True):
    """Which sources of nondeterminism were recorded for which modules."""

    sources: list[str]
    modules: list[str]
    """Patterns of module names; an empty list means every module that is not a library."""
    everywhere: list[str] | Absent = ABSENT
    """The sources that were recorded for libraries too."""
    environ: list[str] | Absent = ABSENT
    """The recorded environment variables; absent for all, if that source was recorded."""
    deadlines: bool | Absent = ABSENT
    """Whether the ``order`` of events has the deadlines that passed, and the ends of tasks."""


class PrintedLines(Record, frozen=True):
    """The standard output of a recorded command, as digests with the salt of the redaction."""

    bytes: Count
    digest: str
    """Over the whole output, with line ends as ``\\n``."""
    lines: list[str]
    """The first hex digits of each line's digest, for the first lines."""


class ImportedSource(Record, frozen=True):
    """The file or folder that a capture was imported from."""

    name: str
    """As given, or relative to the imported folder; never an absolute path."""
    bytes: Count
    digest: str
    """Over the bytes of the file; for a folder, over the names and digests of its files."""


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
    """The parts of a run that this source does not have."""
    unknown: dict[str, Count]
    """The number of occurrences of each source field that the importer does not know."""
    losses: list[ImportLoss]
    """The first ones, in order."""
    lossCount: Count  # noqa: N815
    """The number of all losses."""


class ForkParent(Record, frozen=True):
    """The capture that a fork was made from."""

    captureId: str  # noqa: N815
    path: str
    """Its path relative to the folder of the fork."""
    events: Count
    """The number of its first events that the fork shares, apart from the ids of capture and run."""
    eventHash: str  # noqa: N815
    """Digest of the last of these, as in the parent."""
    eventsHash: str  # noqa: N815
    """Digest over all of them, as in the parent."""
    logHash: str | Absent = ABSENT  # noqa: N815
    """Digest over all events of the parent when it was forked; absent in forks of earlier versions."""


class ForkShares(Record, frozen=True):
    """The number of calls of a fork by how they were answered."""

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
    """Events after this one were really later by this much."""
    ms: Count


class Approximation(Record, frozen=True):
    """How the calls of a fork of an imported transcript were matched with it: by what it tells."""

    notCompared: dict[str, Count]  # noqa: N815
    """What requests had beside what the transcript tells, and in how many calls."""


class Fork(Record, frozen=True):
    """The facts about a fork in its manifest."""

    parent: ForkParent
    at: Count
    """The fork point: the number of the changed call's event in the parent; 0 for a run that may differ
    anywhere."""
    stored: Literal["suffix", "whole"]
    """Whether the event log has only the events after the shared ones, or all events."""
    shares: ForkShares
    change: JsonField | Absent = ABSENT
    """The change; absent without one."""
    ordered: Count | Absent = ABSENT
    """The last event with known *order* and deadlines; absent if they are known to the end."""
    places: dict[str, str] | Absent = ABSENT
    """The folders of this run and of forks before it, in the form of ``run_start``."""
    pauses: list[ForkPause] | Absent = ABSENT
    """Where its own events begin, and those of forks before it."""
    approximate: Approximation | Absent = ABSENT
    """Present if the parent is an imported transcript."""

    def pause_before_ms(self, seq: int) -> int:
        """The difference between the real time of the event *seq* and its ``ts``."""
        pauses = [] if self.pauses is ABSENT else self.pauses
        return sum(int(pause.ms) for pause in pauses if pause.afterSeq < seq)


class CaptureManifest(Record, frozen=True):
    """The manifest of a finished capture."""

    version: Literal[1]
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    createdAt: int | float  # noqa: N815
    """Milliseconds since the epoch, like all times of a capture."""
    mode: Mode
    model: Model
    eventCount: Count  # noqa: N815
    eventLogPath: str  # noqa: N815
    redaction: Redaction
    integrity: Integrity
    status: RunStatus
    completedAt: int | float | Absent = ABSENT  # noqa: N815
    updatedAt: int | float | Absent = ABSENT  # noqa: N815
    """When the latest update ended; the times of events do not show it."""
    error: str | Absent = ABSENT
    producer: str | Absent = ABSENT
    blobThresholdBytes: Count | Absent = ABSENT  # noqa: N815
    standIns: StandIns | Absent = ABSENT  # noqa: N815
    warnings: list[str] | Absent = ABSENT
    volatile: list[VolatileRule] | Absent = ABSENT
    """Additional rules for values that may differ in a replay of this capture."""
    exitStatus: Count | Absent = ABSENT  # noqa: N815
    """The exit status of the recorded command; if a signal killed it, 128 plus the number of the signal."""
    stdout: PrintedLines | Absent = ABSENT
    """The standard output of the recorded command."""
    imported: Imported | Absent = ABSENT
    """Present if the run was imported from another tool."""
    workspaceEnd: str | Absent = ABSENT  # noqa: N815
    """The tree of the workspace at the end, if its files were recorded."""
    fork: Fork | Absent = ABSENT
    """Present if this capture is a fork of another one."""


class CaptureSeed(Record, frozen=True):
    """The manifest of a run that is still open: the facts known at its start."""

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
    """A recorded process other than the first one."""

    ended: bool
    """Whether it ended normally, without being killed."""
    argv: list[str] | Absent = ABSENT
    pids: list[int] | Absent = ABSENT
    """Its id and that of its parent."""


class RepoData(Record, frozen=True):
    """The state of the git repository of the run at its start."""

    remote: str | Absent = ABSENT
    branch: str | Absent = ABSENT
    commit: str | Absent = ABSENT
    dirty: bool | Absent = ABSENT
    """Whether tracked files differed from the commit."""


class WorkspaceData(Record, frozen=True):
    """The files of the workspace at the start of the run."""

    tree: str
    """The digest of their tree; see :mod:`reenact.formats.workspace`."""
    cwd: str | Absent = ABSENT
    """The working directory relative to the root of the tree; absent if it was outside."""
    commit: str | Absent = ABSENT
    """The git commit with the files that the capture does not store."""
    limitBytes: Count | Absent = ABSENT  # noqa: N815
    """Larger files are left out."""
    above: list[list[str]] | Absent = ABSENT
    """The ignore files above the workspace: pairs of the path from there to its root, and the text."""
    pathBytes: Count | Absent = ABSENT  # noqa: N815
    """The length of the path of its root."""


class RunStartData(Record, frozen=True):
    """The environment of the run at its start."""

    argv: list[str] | Absent = ABSENT
    cwd: str | Absent = ABSENT
    python: str | Absent = ABSENT
    pids: list[int] | Absent = ABSENT
    """The ids of the process and of its parent, which differ in a replay where the agent tells them."""
    utcOffsetS: int | Absent = ABSENT  # noqa: N815
    """The offset of the local time from UTC, in seconds."""
    timeZone: str | Absent = ABSENT  # noqa: N815
    """The name or rule of the time zone, such as ``Europe/Berlin``, if the machine says it."""
    terminal: list[str] | Absent = ABSENT
    """``stdin`` if the run read from a terminal, so that what was typed is recorded; ``stdout`` likewise."""
    places: dict[str, str] | Absent = ABSENT
    """Salted digests of the run's folders: ``cwd``, ``home``, ``python``, ``tmp`` and ``workspace``."""
    upstreams: dict[str, str] | Absent = ABSENT
    """The upstreams of the gateway, by name; absent if the gateway did not start the run."""
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
    """The agent's confidence in its output, from 0 to 1, if it reports one."""
    wrote: list[str] | Absent = ABSENT
    """Files that the run wrote and did not delete, below the working folder, ``~/``, or elsewhere."""
    entered: list[str] | Absent = ABSENT
    """Files below the working folder whose functions ran outside of any call, if that is known."""


class LlmRequestData(Record, frozen=True):
    """A model request as the agent sent it."""

    callId: str  # noqa: N815
    provider: str
    model: str
    inputHash: str  # noqa: N815
    toolSchemaHash: str | Absent = ABSENT  # noqa: N815
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    """The id of the call inside which this one was made; the same in all data below."""
    request: JsonField | Absent = ABSENT
    requestHash: str | Absent = ABSENT  # noqa: N815
    """Digest of the whole request; present if *request* refers to earlier events."""
    asked: JsonField | Absent = ABSENT
    """In a fork that changed the request: how to restore the request of the agent."""
    askedHash: str | Absent = ABSENT  # noqa: N815
    """Digest of the agent's request, by which a replay finds the call."""
    headers: JsonField | Absent = ABSENT
    """The headers of the HTTP request that are not compared, by name."""
    stream: JsonField | Absent = ABSENT
    """Whether a streamed answer was requested."""
    derived: bool | Absent = ABSENT
    """True if it was not observed but reported by the agent's framework; the same in all data below."""


class _OutcomeData(Record, frozen=True):
    """The fields that all outcomes have."""

    opened: Count | Absent = ABSENT
    """For a stream: the number of the latest event when it began."""
    opening: Count | Absent = ABSENT
    """For a stream: its number among the streams of the run, in the order of their beginnings."""
    inline: bool | Absent = ABSENT
    """True if the outcome came before the event loop went on."""
    joined: Count | Absent = ABSENT
    """If the outcome came while the event loop was busy: the number of loop rounds."""
    behind: Count | Absent = ABSENT
    """After what so many timers of the loop's last round had woken."""
    latencyMs: int | float | Absent = ABSENT  # noqa: N815
    """The duration of the call, if the times of its events do not show it."""
    cancelled: bool | Absent = ABSENT
    """True if the caller did not wait for the end."""
    closed: bool | Absent = ABSENT
    """True if the caller cancelled by closing a stream."""
    pieces: JsonField | Absent = ABSENT
    """The chunks of a stream."""
    exact: JsonField | Absent = ABSENT
    """The same answer or chunks in their original form, if redaction found nothing in them."""


class LlmResponseData(_OutcomeData, frozen=True, kw_only=True):
    """The answer to a model call; *response* has the payload or the chunks."""

    callId: str  # noqa: N815
    provider: str
    model: str
    stopReason: str | None  # noqa: N815
    usage: dict[str, JsonField] | None
    response: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    complete: JsonField | Absent = ABSENT
    """Whether the answer is complete and not an error."""
    modelError: JsonField | Absent = ABSENT  # noqa: N815
    """The error that the provider returned instead of a message."""
    responseId: JsonField | Absent = ABSENT  # noqa: N815
    reasoningIds: JsonField | Absent = ABSENT  # noqa: N815
    """The ids of the reasoning parts, or digests of their signatures."""
    toolCallIds: JsonField | Absent = ABSENT  # noqa: N815
    derived: bool | Absent = ABSENT


class ToolCallData(Record, frozen=True):
    """A tool call with its arguments."""

    callId: str  # noqa: N815
    tool: str
    args: JsonField
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    derived: bool | Absent = ABSENT
    """True if the call was not observed, but derived from model traffic or reported by the framework."""
    sideEffects: list[str] | Absent = ABSENT  # noqa: N815
    """The declared side effects of the tool: tags such as ``fs_write`` or ``payment``."""


class ToolResultData(_OutcomeData, frozen=True, kw_only=True):
    """The outcome of a tool call: *result* if ok, else *error*."""

    callId: str  # noqa: N815
    ok: bool
    result: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    derived: bool | Absent = ABSENT


class NondeterministicData(_OutcomeData, frozen=True, kw_only=True):
    """A nondeterministic value, or a call of the outside world."""

    source: str
    """``clock``, ``rng``, ``network``, ``process`` or a name that the agent chose."""
    key: str
    valueHash: str | Absent = ABSENT  # noqa: N815
    value: JsonField | Absent = ABSENT
    error: JsonField | Absent = ABSENT
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    callId: str | Absent = ABSENT  # noqa: N815
    """Present if the value took time: then one event is the call, and one its outcome."""
    request: JsonField | Absent = ABSENT
    """The request of the call; in the first of the two events."""
    headers: JsonField | Absent = ABSENT
    """The headers of an HTTP request that are not compared, by name."""
    beside: str | Absent = ABSENT
    """The kind of traffic beside the run, such as telemetry; in the first of the two events."""
    background: bool | Absent = ABSENT
    """True if it counts as beside the run only because a library made it in its own thread."""
    program: str | Absent = ABSENT
    """The id of the call that started the program to which this call belongs."""
    talks: bool | Absent = ABSENT
    """True if the run has communicated with that program over a socket, which is not recorded."""


class StateMutationData(Record, frozen=True):
    """A change, or a read, of the agent's state: files, environment, memory."""

    type: str
    callId: str | Absent = ABSENT  # noqa: N815
    """Present for a read, inside which other calls may be made."""
    lane: str | Absent = ABSENT
    parent: str | Absent = ABSENT
    group_id: str | Absent = ABSENT
    source: str | Absent = ABSENT
    path: str | Absent = ABSENT
    content: JsonField | Absent = ABSENT
    """The text that was written to memory."""
    details: JsonField | Absent = ABSENT
    """The data of a change of any other type."""
    value: JsonField | Absent = ABSENT
    """The result of a read."""
    error: JsonField | Absent = ABSENT
    derived: bool | Absent = ABSENT


class _Event(Record, frozen=True, tag_field="type", kw_only=True):
    version: Literal[1]
    captureId: str  # noqa: N815
    runId: str  # noqa: N815
    seq: Count
    ts: int | float
    laterMs: Count | Absent = ABSENT  # noqa: N815
    """For an event that an update recorded: its real time minus *ts*."""
    order: list[str] | Absent = ABSENT
    """The acts of the run's tasks between the event before and this one, in order."""


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
    """A finished manifest; raises if it has a wrong digest of itself.

    A fast path takes a tenth of the time: if the text without the digest in it has that digest, it is the
    text as written.
    """
    line = text.removesuffix(b"\n")
    found = _OWN_DIGEST.search(line)
    if found is not None:
        own = found[1].decode()
        if sha256(line[: found.start()] + line[found.end() :]).hexdigest() == own:
            as_written = manifest_codec.read_canonical(line)
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
    """The text of the manifest, with its digest computed again."""
    return manifest_codec.to_bytes(with_own_digest(manifest)) + b"\n"


def with_own_digest(manifest: CaptureManifest) -> CaptureManifest:
    """The manifest with the digest of itself."""
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

    Without *on_error* the first invalid line raises; with it every invalid line is reported and skipped,
    but a newer version always raises.
    """

    def report(error: FormatError) -> None:
        (raise_error if on_error is None or isinstance(error, UnknownVersion) else on_error)(error)

    expected = 1
    for line, event in read_records(
        stream, event_codec, file=file, max_line_bytes=max_line_bytes, on_error=report
    ):
        # An unreadable line counts too.
        expected = event.seq if on_error is not None and expected < event.seq == line.number else expected
        if event.seq == expected:
            yield line, event
        else:
            reason = f"expected {expected}, found {event.seq}"
            report(FormatError(reason, file=file, line=line.number, json_path="$.seq"))
        expected = event.seq + 1
