"""Whether a capture is what was recorded: hash, sequence, links between calls and outcomes, blobs.

The event log is scanned in segments, on one core or on several, and the segments are joined in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, get_args

import msgspec
import orjson

from reenact.check.findings import Finding, FindingSeverity, VerifyReport
from reenact.check.integrity.segments import (
    SEGMENT_BYTES,
    LinkFault,
    Links,
    SegmentLinks,
    Suspects,
    follow,
    scan_segments,
)
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.formats.capture import (
    INTERRUPTED,
    RECORDING_FAILED,
    CaptureEvent,
    CaptureManifest,
    event_codec,
    read_manifest,
)
from reenact.formats.lines import TextBlock, lines_of, read_text_blocks, split_block
from reenact.formats.record import ABSENT, Record
from reenact.formats.volatile import read_rules
from reenact.progress import Progress
from reenact.store.blobs import PRUNED, BlobStore
from reenact.store.paths import inside, open_inside
from reenact.store.pruning import pruned_blobs
from reenact.store.reader import CHANGED_LINE_ENDS, EventReader, blobs_in
from reenact.store.rundir import BLOBS, MANIFEST, PARTS, RECOVERED, RunDir, RunState
from reenact.store.transcript import TRANSCRIPT, transcript_of
from reenact.workspace.history import blobs_below, tree_told

_decode_lines: Final = msgspec.json.Decoder().decode_lines
_encode_lines: Final = msgspec.json.Encoder(order="sorted").encode_lines


class Glance:
    """Reads the records of a tagged union *kind*, as values with the same names and fields."""

    def __init__(self, kind: Any) -> None:
        twins = [_twin(member) for member in get_args(kind)]
        self._records = list[reduce(or_, twins)]  # type: ignore[misc]  # a type that is made here

    def from_block(self, text: bytes) -> list[Any] | None:
        """The records of whole lines; ``None`` unless each line is the canonical text of a good one."""
        try:
            values = _decode_lines(text)
            # Equal text proves that nothing was repeated, dropped or spelled otherwise.
            if _encode_lines(values) != text:
                return None
            orjson.dumps(values)  # refuses integers beyond 64 bits and nesting beyond the limit
            records: list[Any] = msgspec.convert(values, self._records)
            return records
        except (msgspec.MsgspecError, UnicodeDecodeError, orjson.JSONEncodeError, RecursionError):
            return None


def _twin(record: type[Record]) -> Any:
    """A type with the fields and the name of *record* that takes unknown fields and forgets them."""
    config = record.__struct_config__
    return msgspec.defstruct(
        record.__name__,
        [_twin_field(field) for field in msgspec.structs.fields(record) if field.name != "extra"],
        tag_field=config.tag_field,
        tag=config.tag,
        kw_only=True,
        frozen=True,
    )


def _twin_field(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind = field.type
    if isinstance(kind, type) and issubclass(kind, Record):
        kind = _twin(kind)
    return (field.name, kind) if field.required else (field.name, kind, ABSENT)


BACKWARDS_TOLERANCE_MS: Final = 1000
"""Clocks are set back by small steps; more than this in one step is worth a word."""

_BLOB: Final = b'"$blob"'
_TREE: Final = b'"workspace"'
_glance: Final = Glance(CaptureEvent)
_decode: Final = msgspec.json.Decoder().decode


class EventSegment(msgspec.Struct):
    """Lines are counted from the beginning of the log, in all members."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    lines: int = 0
    """Without blank ones."""
    links: SegmentLinks = msgspec.field(default_factory=SegmentLinks)
    runs: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """Where each pair of capture and run is first named."""
    blobs: dict[str, int] = msgspec.field(default_factory=dict)
    trees: dict[str, int] = msgspec.field(default_factory=dict)
    """Those of the workspace's files, each where it is first named."""
    """Where each blob is first named."""
    first_time: tuple[int, float] | None = None
    last_time_ms: float | None = None
    first_event: int | None = None
    end: int | None = None
    behind_end: int | None = None
    """The first event behind *end*."""
    starts_run: bool = False
    """Whether the first event is a run_start."""


class CaptureEventBlock(NamedTuple):
    """Some events, the lines they stand on, and those lines."""

    numbers: Sequence[int]
    events: Sequence[Any]
    """Of the types of :mod:`reenact.formats.capture`, or those that stand for them at a glance."""
    text: bytes


class EventScan:
    """Scans the segments of the log *file*."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __call__(self, block: TextBlock) -> EventSegment:
        scan = _Scan(self.file)
        for events in scan.read(block):
            scan.take(events)
        return scan.segment

    def event_blocks(self, block: TextBlock) -> Iterator[CaptureEventBlock]:
        """The events of a segment."""
        return _Scan(self.file).read(block)


class _Scan:
    def __init__(self, file: str) -> None:
        self._file = file
        self.segment = EventSegment()

    def read(self, block: TextBlock) -> Iterator[CaptureEventBlock]:
        """The events of *block*: many at once where nothing is odd, else one by one."""
        for part in split_block(block):
            events = _glance.from_block(part.text)
            if events is None:
                yield from self._read_each(part)
            else:
                self.segment.lines += len(events)
                yield CaptureEventBlock(range(part.number, part.number + len(events)), events, part.text)

    def _read_each(self, part: TextBlock) -> Iterator[CaptureEventBlock]:
        for line in lines_of(part, file=self._file, report=self._unreadable):
            self.segment.lines += 1
            try:
                event = event_codec.from_bytes(line.text)
            except FormatError as error:
                self._unreadable(error.at(line=line.number))
            else:
                yield CaptureEventBlock((line.number,), (event,), line.text)

    def _unreadable(self, error: FormatError) -> None:
        self.segment.findings.append(Finding.of("event_unreadable", error, file=self._file))

    def _find(self, code: str, message: str, line: int, severity: FindingSeverity = "error") -> None:
        self.segment.findings.append(Finding(code, message, self._file, severity, line))

    def take(self, block: CaptureEventBlock) -> None:
        """Check the events of one block."""
        segment = self.segment
        if segment.first_event is None:
            segment.first_event = block.numbers[0]
            segment.starts_run = _name(block.events[0]) == "RunStart"
        self._check_times(block)
        self._check_identity(block)
        links = segment.links
        for number, event in zip(block.numbers, block.events, strict=True):
            if segment.end is not None and segment.behind_end is None:
                segment.behind_end = number
            link = link_of(event)
            if link is not None:
                is_call, call_id = link
                (links.call if is_call else links.outcome)(call_id, number)
            elif _name(event) == "RunEnd":
                segment.end = segment.end or number
            elif _name(event) == "RunStart" and number > 1:
                self._find("second_start", "a run starts once, with the first event", number)
        if _BLOB in block.text or _TREE in block.text:
            self._note_blobs(block)

    def _check_identity(self, block: CaptureEventBlock) -> None:
        """Whether each event is the one of its line, in its run."""
        runs = self.segment.runs
        if not runs.keys() >= {(event.captureId, event.runId) for event in block.events}:
            for number, event in zip(block.numbers, block.events, strict=True):
                runs.setdefault((event.captureId, event.runId), number)
        if [event.seq for event in block.events] != [*block.numbers]:
            for number, event in zip(block.numbers, block.events, strict=True):
                if event.seq != number:
                    self._find("sequence", f"seq {event.seq} stands where {number} should", number)

    def _check_times(self, block: CaptureEventBlock) -> None:
        times = [event.ts for event in block.events]
        segment = self.segment
        segment.first_time = segment.first_time or (block.numbers[0], times[0])
        before = times[0] if segment.last_time_ms is None else segment.last_time_ms
        if times != sorted(times) or times[0] < before:
            for number, time in zip(block.numbers, times, strict=True):
                segment.findings += went_back(before, (number, time), self._file)
                before = time
        segment.last_time_ms = times[-1]

    def _note_blobs(self, block: CaptureEventBlock) -> None:
        for number, line in zip(block.numbers, block.text.split(b"\n"), strict=False):
            for digest in blobs_in(_decode(line)) if _BLOB in line else ():
                self.segment.blobs.setdefault(digest, number)
            if _TREE in line and (tree := tree_told(_decode(line))) is not None:
                self.segment.trees.setdefault(tree, number)


def link_of(event: Any) -> tuple[bool, str] | None:
    """Whether *event* is a call, and its id; ``None`` for one that stands by itself."""
    name = _name(event)
    call_id = getattr(event.data, "callId", ABSENT)
    if call_id is ABSENT or name == "StateMutation":
        return None
    if name == "Nondeterministic":
        return event.data.request is not ABSENT, call_id
    return name in ("ToolCall", "LlmRequest"), call_id


def _name(event: Any) -> str:
    return type(event).__name__


def went_back(before_ms: float, placed: tuple[int, float], file: str) -> list[Finding]:
    """The finding on a time that is earlier than the one *before*, if it is."""
    line, time_ms = placed
    back_ms = before_ms - time_ms
    if back_ms <= BACKWARDS_TOLERANCE_MS:
        return []
    return [Finding("time", f"goes back by {back_ms / 1000:.1f} s", file, "warning", line)]


_LINK_FINDINGS: Final[dict[str, tuple[str, FindingSeverity, str]]] = {
    "second_call": ("second_call", "error", "call {key} was made before"),
    "second_outcome": ("second_outcome", "error", "call {key} has an outcome already"),
    "no_call": ("outcome_without_call", "error", "call {key} was never made"),
    "no_outcome": ("no_outcome", "warning", "call {key} has no outcome"),
}


def check_capture(
    path: str | Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> VerifyReport:
    """Everything that can be told from the directory alone, in constant memory.

    Raises :class:`~reenact.errors.StoreError` where there is no capture to look at.
    """
    run = RunDir.open(Path(path))
    state = run.state
    check = _CaptureCheck(run)
    if state in (RunState.OPEN, RunState.INTERRUPTED):
        check.find("unfinished", f"the run is {state.value}; there is no manifest to check against", MANIFEST)
        return VerifyReport("capture", str(path), check.findings, {"state": state.value})
    manifest = check.read_manifest()
    check.read_events(processes, segment_bytes, progress)
    if manifest is not None:
        check.compare(manifest)
    check.read_blobs()
    check.read_transcript()
    check.look_around(manifest, is_recovered=state is RunState.RECOVERED)
    return VerifyReport("capture", str(path), check.findings, {"state": state.value} | check.facts())


class _Hashed:
    """A stream that digests what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = sha256()

    def read(self, size: int = -1) -> bytes:
        text = self._stream.read(size)
        self.digest.update(text)
        return text

    def readline(self, size: int = -1) -> bytes:
        text = self._stream.readline(size)
        self.digest.update(text)
        return text


class _CaptureCheck:
    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._file = run.events_path.name
        self.findings: list[Finding] = []
        self._count = 0
        self._digest = ""
        self._links = Links()
        self._runs: dict[tuple[str, str], int] = {}
        self._blobs: dict[str, int] = {}
        self._trees: dict[str, int] = {}
        self._last_time_ms: float | None = None
        self._end: int | None = None
        self._behind_end: int | None = None

    def facts(self) -> dict[str, Any]:
        return {"events": self._count, "blobs": len(self._blobs), "eventsHash": self._digest}

    def find(
        self,
        code: str,
        message: str,
        file: str,
        *,
        line: int | None = None,
        severity: FindingSeverity = "error",
    ) -> None:
        self.findings.append(Finding(code, message, file, severity, line))

    def read_manifest(self) -> CaptureManifest | None:
        try:
            manifest = read_manifest(self._run.read_manifest(), file=MANIFEST)
            read_rules(manifest.volatile or (), file=MANIFEST)
            return manifest
        except DigestMismatch as error:
            self.findings.append(Finding.of("manifest_changed", error, file=MANIFEST))
        except FormatError as error:
            self.findings.append(Finding.of("manifest_unreadable", error, file=MANIFEST))
        return None

    def read_events(self, processes: int, segment_bytes: int, progress: Progress | None) -> None:
        scan = EventScan(self._file)
        with self._run.open_events() as stream:
            hashed: Any = _Hashed(stream)
            for block, segment in scan_segments(
                hashed, scan, processes=processes, segment_bytes=segment_bytes
            ):
                self._join(segment)
                if progress is not None:
                    progress(len(block.text))
        self._digest = "sha256:" + hashed.digest.hexdigest()
        self._close(scan)

    def _join(self, segment: EventSegment) -> None:
        """Take the next segment."""
        self.findings += segment.findings
        if segment.first_event is not None and not self._runs and not segment.starts_run:
            self.find("no_start", "the first event is not run_start", self._file, line=segment.first_event)
        if self._last_time_ms is not None and segment.first_time is not None:
            self.findings += went_back(self._last_time_ms, segment.first_time, self._file)
        self._last_time_ms = self._last_time_ms if segment.last_time_ms is None else segment.last_time_ms
        if self._behind_end is None:
            self._behind_end = segment.behind_end if self._end is None else segment.first_event
        self._end = self._end or segment.end
        self._count += segment.lines
        self._links.join(segment.links)
        self._runs = segment.runs | self._runs
        self._blobs = segment.blobs | self._blobs
        self._trees = segment.trees | self._trees

    def _close(self, scan: EventScan) -> None:
        """Judge what only the whole log shows."""
        own = min(self._runs, key=lambda run: self._runs[run], default=None)
        for run, line in self._runs.items():
            if own is not None and run != own:
                self.find("foreign_event", f"belongs to run {run[1]}, not {own[1]}", self._file, line=line)
        if self._behind_end is not None:
            self.find("after_end", "stands behind run_end", self._file, line=self._behind_end)
        suspects = self._links.suspects()
        faults = follow(self._events_of(suspects, scan)) if suspects else []
        for fault in [*faults, *self._links.unanswered(suspects)]:
            self._link(fault)
        self.findings.sort(key=lambda finding: (finding.file != MANIFEST, finding.line or 0, finding.code))

    def _events_of(self, suspects: Suspects, scan: EventScan) -> Iterator[tuple[int, bool, str]]:
        """Every line of a suspect: its number, whether it is a call, and the key."""
        with self._run.open_events() as stream:
            for block in read_text_blocks(stream, block_bytes=SEGMENT_BYTES):
                for numbers, events, _ in scan.event_blocks(block):
                    for number, event in zip(numbers, events, strict=True):
                        link = link_of(event)
                        if link is not None and link[1] in suspects:
                            yield number, *link

    def _link(self, fault: LinkFault) -> None:
        # A run that was killed has calls without an outcome; one that ended has none.
        if fault.fault == "no_outcome" and self._end is None:
            return
        code, severity, message = _LINK_FINDINGS[fault.fault]
        self.find(code, message.format(key=fault.key), self._file, line=fault.line, severity=severity)

    def compare(self, manifest: CaptureManifest) -> None:
        if manifest.integrity.manifestHash is ABSENT:
            self.find("manifest_hash", "integrity.manifestHash is missing: anybody may change it", MANIFEST)
        if manifest.integrity.eventsHash != self._digest:
            reason = f"are not those that were recorded: expected {manifest.integrity.eventsHash}"
            changed = f"the events {reason}, found {self._digest}"
            ends = self._digest_with_plain_ends() == manifest.integrity.eventsHash
            self.find("events_changed", CHANGED_LINE_ENDS if ends else changed, self._file)
        if manifest.eventCount != self._count:
            reason = f"the manifest counts {manifest.eventCount}, found {self._count}"
            self.find("event_count", reason, self._file)
        if self._runs and (manifest.captureId, manifest.runId) not in self._runs:
            self.find("foreign_manifest", "manifest and events belong to different runs", MANIFEST)
        for warning in (manifest.error or "", *(manifest.warnings or ())):
            if warning.startswith(RECORDING_FAILED):
                self.find("recording_failed", f"not all of the run is here: {warning}", MANIFEST)
                break
        if isinstance(manifest.workspaceEnd, str):
            self._trees.setdefault(manifest.workspaceEnd, self._end or self._count)
        if manifest.status == "ok" and self._end is None:
            self.find("no_end", "the run ended well, but has no run_end", self._file)

    def _digest_with_plain_ends(self) -> str:
        digest = sha256()
        with self._run.open_events() as stream:
            for line in stream:
                digest.update(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
        return f"sha256:{digest.hexdigest()}"

    def read_transcript(self) -> None:
        """Hold what a reader sees against the events, where it is there and they are whole."""
        if self.findings or not inside(self._run.path, TRANSCRIPT).exists():
            return
        with open_inside(self._run.path, TRANSCRIPT) as stream:
            found = stream.read()
        if found.replace(b"\r\n", b"\n") != transcript_of(EventReader(self._run)):
            reason = "is not what the events say; make it anew with: reenact recover"
            self.find("transcript", reason, TRANSCRIPT)

    def read_blobs(self) -> None:
        blobs = self._run.blobs
        try:
            gone = {*pruned_blobs(self._run.path)} - {*blobs}
        except FormatError as error:
            self.findings.append(Finding.of("pruned_mark", error, file=PRUNED))
            gone = set()
        self._read_trees(blobs, gone)
        pruned = [digest for digest in self._blobs if digest in gone]
        if pruned:
            gone_of_all = f"{len(pruned)} of {len(self._blobs)}"
            reason = f"{gone_of_all} payloads in blobs were pruned; the run cannot be replayed"
            self.find("pruned", reason, PRUNED, severity="warning")
        for digest, line in self._blobs.items():
            if digest not in gone:
                self._check_blob(blobs, digest, line)
        for digest in blobs:
            if digest not in self._blobs:
                self.find("blob_unused", f"{digest} is in no event", "blobs", severity="warning")

    def _read_trees(self, blobs: BlobStore, gone: set[str]) -> None:
        """Follow the trees of files; what is below one is a blob of the event that names it."""
        seen: set[str] = set()
        for tree, line in self._trees.items():
            self._blobs.setdefault(tree, line)
            try:
                for digest in blobs_below(blobs.get, tree, seen) if tree not in gone else ():
                    self._blobs.setdefault(digest, line)
            except (StoreError, DigestMismatch):
                pass  # it is found with the other blobs
            except FormatError as error:
                self.find("tree_unreadable", str(error), self._file, line=line)

    def look_around(self, manifest: CaptureManifest | None, *, is_recovered: bool) -> None:
        """What else stands in the directory."""
        if is_recovered and manifest is not None and manifest.error != INTERRUPTED:
            self.find("recovered_mark", "the run was not interrupted, so it was never recovered", RECOVERED)
        for name in self._run.names():
            if name == PARTS:
                self.find("parts_left", "not all of the run is joined; run: reenact recover", PARTS)
            elif name not in (MANIFEST, RECOVERED, PRUNED, BLOBS, TRANSCRIPT, self._file):
                self.find("extra_file", "belongs to no capture", name, severity="warning")
        for name in self._run.blobs.strangers():
            self.find("extra_file", "is no blob", f"{BLOBS}/{name}", severity="warning")

    def _check_blob(self, blobs: BlobStore, digest: str, line: int) -> None:
        try:
            blobs.check(digest)
        except DigestMismatch:
            self.find("blob_damaged", f"the bytes of {digest} have another digest", self._file, line=line)
        except (FormatError, StoreError) as error:
            self.find("blob_missing", str(error), self._file, line=line)
