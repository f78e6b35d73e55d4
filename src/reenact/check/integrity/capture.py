"""Checks a capture: its hashes, the sequence of events, the links between calls and outcomes, its blobs.

The event log is scanned in segments, by one process or several, and the segments are joined in order.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from reenact.canonical import digest_of_bytes
from reenact.check.findings import Finding, FindingSeverity, VerifyReport, severity_of
from reenact.check.integrity.segments import (
    SEGMENT_BYTES,
    LinkEvent,
    Links,
    SegmentLinks,
    Suspects,
    scan_segments,
)
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.formats.capture import (
    INTERRUPTED,
    RECORDING_FAILED,
    CaptureEvent,
    CaptureManifest,
    Fork,
    LlmRequest,
    LlmResponse,
    Nondeterministic,
    RunEnd,
    RunStart,
    ToolCall,
    ToolResult,
    event_codec,
    read_manifest,
)
from reenact.formats.lines import TextBlock, lines_of, read_text_blocks, split_block
from reenact.formats.record import ABSENT
from reenact.formats.volatile import read_rules
from reenact.progress import Progress
from reenact.store.blobs import PRUNED, BlobStore
from reenact.store.durable import TEMP_PREFIX
from reenact.store.paths import inside, open_inside
from reenact.store.pruning import pruned_blobs
from reenact.store.reader import (
    BLOB_MARK,
    CHANGED_LINE_ENDS,
    EventReader,
    blobs_in_line,
    digest_with_plain_ends,
)
from reenact.store.rundir import BLOBS, MANIFEST, PARTS, RECOVERED, RunDir, RunState
from reenact.store.transcript import EARLIER_MAX_CHARACTERS, MAX_CHARACTERS, TRANSCRIPT, make_transcript
from reenact.workspace.history import TREE_MARK, blobs_below, tree_in_line

BACKWARDS_TOLERANCE_MS: Final = 1000
"""Clocks may be corrected backwards by this much; more is a finding."""


class EventSegment(msgspec.Struct):
    """The results of scanning one segment; all line numbers count from the beginning of the log."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    lines: int = 0
    """Without blank ones."""
    links: SegmentLinks = msgspec.field(default_factory=SegmentLinks)
    runs: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """The first line of each pair of capture id and run id."""
    blobs: dict[str, int] = msgspec.field(default_factory=dict)
    """The first line that names each blob."""
    trees: dict[str, int] = msgspec.field(default_factory=dict)
    """The first line that names each tree of the workspace."""
    first_time: tuple[int, float] | None = None
    last_time_ms: float | None = None
    first_event: int | None = None
    end: int | None = None
    after_end: int | None = None
    """The first event after *end*."""
    starts_run: bool = False
    """Whether the first event is a run_start."""


class CaptureEventBlock(NamedTuple):
    """Some events, their line numbers, and those lines; no event for a line that cannot be read."""

    numbers: Sequence[int]
    events: Sequence[CaptureEvent]
    text: bytes


def read_event_blocks(
    block: TextBlock, *, file: str, report: Callable[[FormatError], None]
) -> Iterator[CaptureEventBlock]:
    """The events of *block*: many at once if all lines are canonical, else one by one."""
    for part in split_block(block):
        events = event_codec.from_block(part.text)
        if events is not None:
            yield CaptureEventBlock(range(part.number, part.number + len(events)), events, part.text)
            continue
        for line in lines_of(part, file=file, report=report):
            try:
                found: tuple[CaptureEvent, ...] = (event_codec.from_bytes(line.text),)
            except FormatError as error:
                report(error.at(line=line.number))
                found = ()
            yield CaptureEventBlock((line.number,), found, line.text)


def scan_segment(file: str, block: TextBlock) -> EventSegment:
    """Check one segment of the log *file* by itself."""
    segment = EventSegment()

    def report(error: FormatError) -> None:
        segment.findings.append(Finding.of("event_unreadable", error, file=file))

    for numbers, events, text in read_event_blocks(block, file=file, report=report):
        segment.lines += len(numbers)
        if not events:
            continue
        if segment.first_event is None:
            segment.first_event = numbers[0]
            segment.starts_run = isinstance(events[0], RunStart)
            segment.first_time = numbers[0], events[0].ts
        _check_events(segment, numbers, events, file)
        if BLOB_MARK in text or TREE_MARK in text:
            _note_blobs(segment, numbers, text)
    return segment


def _check_events(
    segment: EventSegment, numbers: Sequence[int], events: Sequence[CaptureEvent], file: str
) -> None:
    """Check the number, the time, the run and the call of each event."""
    findings, links, runs = segment.findings, segment.links, segment.runs
    before_ms = events[0].ts if segment.last_time_ms is None else segment.last_time_ms
    for number, event in zip(numbers, events, strict=True):
        if event.ts < before_ms:
            findings += check_time_order(before_ms, (number, event.ts), file)
        before_ms = event.ts
        run = event.captureId, event.runId
        if run not in runs:
            runs[run] = number
        if event.seq != number:
            reason = f"seq {event.seq} stands where {number} should"
            findings.append(Finding("sequence", reason, file, line=number))
        if segment.end is not None and segment.after_end is None:
            segment.after_end = number
        link = link_of(event)
        if link is not None:
            links.add(*link, number)
        elif isinstance(event, RunEnd):
            segment.end = segment.end or number
        elif isinstance(event, RunStart) and number > 1:
            reason = "a run starts once, with the first event"
            findings.append(Finding("second_start", reason, file, line=number))
    segment.last_time_ms = before_ms


def _note_blobs(segment: EventSegment, numbers: Sequence[int], text: bytes) -> None:
    for number, line in zip(numbers, text.split(b"\n"), strict=False):
        for digest in blobs_in_line(line):
            segment.blobs.setdefault(digest, number)
        if (tree := tree_in_line(line)) is not None:
            segment.trees.setdefault(tree, number)


def link_of(event: CaptureEvent) -> tuple[bool, str] | None:
    """Whether *event* is a call, and its id; ``None`` for one that is neither a call nor an outcome."""
    match event:
        case ToolCall() | LlmRequest():
            return True, event.data.callId
        case ToolResult() | LlmResponse():
            return False, event.data.callId
        case Nondeterministic() if event.data.callId is not ABSENT:
            return event.data.request is not ABSENT, event.data.callId
    return None


def check_time_order(before_ms: float, placed: tuple[int, float], file: str) -> list[Finding]:
    """A finding if the time at a line is earlier than the time before it by more than the tolerance."""
    line, time_ms = placed
    back_ms = before_ms - time_ms
    if back_ms <= BACKWARDS_TOLERANCE_MS:
        return []
    reason = f"goes back by {back_ms / 1000:.1f} s: a clock was set back, or an older reenact updated the run"
    return [Finding("time", reason, file, "warning", line)]


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
    """Check a capture without any other file, in constant memory.

    Raises :class:`~reenact.errors.StoreError` if there is no capture.
    """
    run = RunDir(Path(path))
    state = run.state
    check = _CaptureCheck(run, posixpath.basename(run.event_log().event_log_path))
    if state in (RunState.OPEN, RunState.INTERRUPTED):
        check.add("unfinished", f"the run is {state.value}; there is no manifest to check against", MANIFEST)
        return VerifyReport("capture", str(path), check.findings, {"state": state.value})
    manifest: CaptureManifest | None
    try:
        manifest = read_manifest(run.read_manifest(), file=MANIFEST)
        if manifest.volatile:
            read_rules(manifest.volatile, file=MANIFEST)
    except FormatError as error:
        manifest = None
        is_changed = isinstance(error, DigestMismatch)
        code = "manifest_changed" if is_changed else "manifest_unreadable"
        check.findings.append(Finding.of(code, error, file=MANIFEST))
    try:
        check.read_events(processes, segment_bytes, progress)
    except DigestMismatch as error:  # in the events that a fork shares with its parent
        check.add("parent_changed", error.reason, MANIFEST)
        return VerifyReport("capture", str(path), check.findings, {"state": state.value})
    if manifest is not None:
        check.compare_with_manifest(manifest)
        if manifest.fork is not ABSENT:
            check.compare_with_parent(manifest.fork)
    check.check_blobs()
    check.check_transcript()
    check.check_other_files(manifest, is_recovered=state is RunState.RECOVERED)
    facts = {"events": check.count, "blobs": len(check.blobs), "eventsHash": check.digest}
    return VerifyReport("capture", str(path), check.findings, {"state": state.value} | facts)


class _CaptureCheck(msgspec.Struct):
    """The state of the check of one capture: its findings, and the joined results of the segments."""

    run: RunDir
    file: str
    """The name of the event log."""
    findings: list[Finding] = []
    count: int = 0
    size_bytes: int = 0
    digest: str = ""
    links: Links = msgspec.field(default_factory=Links)
    runs: dict[tuple[str, str], int] = {}
    """The first line of each pair of capture id and run id; the next two also have first lines."""
    blobs: dict[str, int] = {}
    trees: dict[str, int] = {}
    last_time_ms: float | None = None
    end: int | None = None
    after_end: int | None = None
    reader: EventReader | None = None
    """Opened for the first reference from the transcript to an earlier event or a blob."""

    def add(
        self,
        code: str,
        message: str,
        file: str,
        *,
        line: int | None = None,
        severity: FindingSeverity = "error",
    ) -> None:
        self.findings.append(Finding(code, message, file, severity, line))

    def read_events(self, processes: int, segment_bytes: int, progress: Progress | None) -> None:
        """Scan the log segment by segment, then check what spans segments."""
        with self.run.open_events() as stream:
            digest = sha256()
            while chunk := stream.read(SEGMENT_BYTES):
                digest.update(chunk)
            self.digest = f"sha256:{digest.hexdigest()}"
            stream.seek(0)
            for size_bytes, segment in scan_segments(
                stream, partial(scan_segment, self.file), processes=processes, segment_bytes=segment_bytes
            ):
                self._join(segment)
                self.size_bytes += size_bytes
                if progress is not None:
                    progress(size_bytes)
        own = min(self.runs, key=self.runs.__getitem__, default=None)
        for run, line in self.runs.items():
            if own is not None and run != own:
                self.add("foreign_event", f"belongs to run {run[1]}, not {own[1]}", self.file, line=line)
        if self.after_end is not None:
            self.add("after_end", "stands behind run_end", self.file, line=self.after_end)
        for fault in self.links.find_faults(self._events_of):
            # Calls without an outcome are normal in a run that was killed.
            if fault.fault != "no_outcome" or self.end is not None:
                code, severity, message = _LINK_FINDINGS[fault.fault]
                text = message.format(key=fault.key)
                self.add(code, text, self.file, line=fault.line, severity=severity)
        self.findings.sort(key=lambda finding: (finding.file != MANIFEST, finding.line or 0, finding.code))

    def _join(self, segment: EventSegment) -> None:
        """Add the next segment, in order."""
        self.findings += segment.findings
        if segment.first_event is not None and not self.runs and not segment.starts_run:
            self.add("no_start", "the first event is not run_start", self.file, line=segment.first_event)
        if self.last_time_ms is not None and segment.first_time is not None:
            self.findings += check_time_order(self.last_time_ms, segment.first_time, self.file)
        self.last_time_ms = self.last_time_ms if segment.last_time_ms is None else segment.last_time_ms
        if self.after_end is None:
            self.after_end = segment.after_end if self.end is None else segment.first_event
        self.end = self.end or segment.end
        self.count += segment.lines
        self.links.join(segment.links)
        self.runs = segment.runs | self.runs
        self.blobs = segment.blobs | self.blobs
        self.trees = segment.trees | self.trees

    def _events_of(self, suspects: Suspects) -> Iterator[LinkEvent]:
        """Every event with a key in *suspects*."""
        with self.run.open_events() as stream:
            for block in read_text_blocks(stream, block_bytes=SEGMENT_BYTES):
                for numbers, events, _ in read_event_blocks(block, file=self.file, report=lambda _: None):
                    for number, event in zip(numbers, events, strict=bool(events)):
                        link = link_of(event)
                        if link is not None and link[1] in suspects:
                            yield number, *link

    def compare_with_manifest(self, manifest: CaptureManifest) -> None:
        if manifest.integrity.manifestHash is ABSENT:
            self.add("manifest_hash", "integrity.manifestHash is missing: anybody may change it", MANIFEST)
        if manifest.integrity.eventsHash != self.digest:
            reason = f"are not those that were recorded: expected {manifest.integrity.eventsHash}"
            changed = f"the events {reason}, found {self.digest}"
            with self.run.open_events() as stream:
                has_other_ends = digest_with_plain_ends(stream) == manifest.integrity.eventsHash
            self.add("events_changed", CHANGED_LINE_ENDS if has_other_ends else changed, self.file)
        if manifest.eventCount != self.count:
            reason = f"the manifest counts {manifest.eventCount}, found {self.count}"
            self.add("event_count", reason, self.file)
        if self.runs and (manifest.captureId, manifest.runId) not in self.runs:
            self.add("foreign_manifest", "manifest and events belong to different runs", MANIFEST)
        for warning in (manifest.error or "", *(manifest.warnings or ())):
            if warning.startswith(RECORDING_FAILED):
                self.add("recording_failed", f"not all of the run is here: {warning}", MANIFEST)
                break
        if isinstance(manifest.workspaceEnd, str):
            self.trees.setdefault(manifest.workspaceEnd, self.end or self.count)
        if manifest.status == "ok" and self.end is None:
            self.add("no_end", "the run ended well, but has no run_end", self.file)

    def compare_with_parent(self, fork: Fork) -> None:
        """Report changes of the parent since the fork was made.

        The digest of the fork covers the shared events; it does not need the later events of the parent.
        """
        known = fork.parent
        try:
            parent = self.run.parent()
        except StoreError:
            return  # a fork that stores all its events does not need its parent
        assert parent is not None
        whole, shared, last = sha256(), sha256(), b""
        changed = f"its parent, capture {known.captureId} in {parent.path}, was changed since it was forked"
        try:
            with parent.open_events() as stream:
                for number, line in enumerate(stream, 1):
                    whole.update(line)
                    if number <= known.events:
                        shared.update(line)
                        last = line
        except (StoreError, FormatError) as error:
            self.add("parent_differs", f"{changed}: {error}", MANIFEST, severity="warning")
            return
        if f"sha256:{shared.hexdigest()}" != known.eventsHash:
            reason = f"{changed}, before they part; the fork has all of its events itself"
            self.add("parent_differs", reason, MANIFEST, severity="warning")
        elif digest_of_bytes(last.rstrip(b"\n")) != known.eventHash:
            reason = f"fork.parent.eventHash is not that of the parent's event {known.events}"
            self.add("parent_event", reason, MANIFEST)
        elif known.logHash not in (ABSENT, f"sha256:{whole.hexdigest()}"):
            reason = f"{changed}, behind event {known.events}; the fork does not use that part"
            self.add("parent_differs", reason, MANIFEST, severity="warning")

    def check_transcript(self) -> None:
        """Compare ``transcript.md`` with a transcript made from the events, if the events are intact."""
        is_intact = "error" not in map(severity_of, self.findings)
        if not is_intact or not inside(self.run.path, TRANSCRIPT).exists():
            return
        with open_inside(self.run.path, TRANSCRIPT) as stream:
            found = stream.read().replace(b"\r\n", b"\n")
        for max_characters in (MAX_CHARACTERS, EARLIER_MAX_CHARACTERS):
            with self.run.open_events() as lines:
                said = make_transcript(
                    lines, self._resolve, size_bytes=self.size_bytes, max_characters=max_characters
                )
            if found == said:
                return
        remedy = f"write it again with: reenact recover {shlex.quote(str(self.run.path))}"
        self.add("transcript", f"is not what the events say; {remedy}", TRANSCRIPT)

    def _resolve(self, value: object) -> object:
        if self.reader is None:
            self.reader = EventReader(self.run)
        return self.reader.resolve(value)

    def check_blobs(self) -> None:
        """Compare the stored blobs with those that the events name."""
        if not self.blobs and not self.trees and {BLOBS, PRUNED}.isdisjoint(os.listdir(self.run.path)):
            return
        blobs = self.run.blobs
        kept, gone = {*blobs}, set[str]()
        if inside(self.run.path, PRUNED).exists():
            try:
                gone = {*pruned_blobs(self.run.path)} - kept
            except FormatError as error:
                self.findings.append(Finding.of("pruned_mark", error, file=PRUNED))
        if self.trees:
            self._follow_trees(blobs, gone)
        if pruned := gone & self.blobs.keys():
            gone_of_all = f"{len(pruned)} of {len(self.blobs)}"
            reason = f"{gone_of_all} payloads in blobs were pruned; the run cannot be replayed"
            self.add("pruned", reason, PRUNED, severity="warning")
        for digest, line in self.blobs.items():
            if digest not in gone:
                self._check_blob(blobs, digest, line)
        for digest in sorted(kept - self.blobs.keys()):
            self.add("blob_unused", f"{digest} is in no event", "blobs", severity="warning")

    def _follow_trees(self, blobs: BlobStore, gone: set[str]) -> None:
        """Add the blobs of each tree to those of the event that names the tree."""
        seen: set[str] = set()
        for tree, line in self.trees.items():
            self.blobs.setdefault(tree, line)
            try:
                for digest in blobs_below(blobs.get, tree, seen) if tree not in gone else ():
                    self.blobs.setdefault(digest, line)
            except (StoreError, DigestMismatch):
                pass  # reported with the other blobs
            except FormatError as error:
                self.add("tree_unreadable", str(error), self.file, line=line)

    def check_other_files(self, manifest: CaptureManifest | None, *, is_recovered: bool) -> None:
        """Report files that do not belong in a capture."""
        if is_recovered and manifest is not None and manifest.error != INTERRUPTED:
            self.add("recovered_mark", "the run was not interrupted, so it was never recovered", RECOVERED)
        for name in sorted(os.listdir(self.run.path)):
            if name == PARTS:
                self.add("parts_left", "not all of the run is joined; run: reenact recover", PARTS)
            elif name == BLOBS:
                for foreign in self.run.blobs.find_foreign_names():
                    self.add("extra_file", "is no blob", f"{BLOBS}/{foreign}", severity="warning")
            elif name not in (MANIFEST, RECOVERED, PRUNED, TRANSCRIPT, self.file) and (
                not name.startswith(TEMP_PREFIX)
            ):
                self.add("extra_file", "belongs to no capture", name, severity="warning")

    def _check_blob(self, blobs: BlobStore, digest: str, line: int) -> None:
        try:
            blobs.check(digest)
        except DigestMismatch:
            self.add("blob_damaged", f"the bytes of {digest} have another digest", self.file, line=line)
        except (FormatError, StoreError) as error:
            self.add("blob_missing", str(error), self.file, line=line)
