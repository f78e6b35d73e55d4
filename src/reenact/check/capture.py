"""Whether a capture is what was recorded: hash, sequence, links between calls and outcomes, blobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from reenact.check.findings import Finding, Report, Severity
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.formats.capture import (
    CaptureEvent,
    CaptureManifest,
    RunEnd,
    RunStart,
    event_codec,
    read_manifest,
)
from reenact.formats.lines import read_lines
from reenact.store.blobs import BlobStore
from reenact.store.rundir import MANIFEST, RunDir, RunState

BACKWARDS_TOLERANCE_MS: Final = 1000
"""Clocks are set back by small steps; more than this in one step is worth a word."""

Progress = Callable[[int], None]
"""Told how many bytes were read since it was last told."""


def check_capture(path: str | Path, *, progress: Progress | None = None) -> Report:
    """Everything that can be told from the directory alone, in constant memory.

    Raises :class:`~reenact.errors.StoreError` where there is no capture to look at.
    """
    run = RunDir.open(Path(path))
    state = run.state
    check = _CaptureCheck(run)
    if state in (RunState.OPEN, RunState.INTERRUPTED):
        check.find("unfinished", f"the run is {state.value}; there is no manifest to check against", MANIFEST)
        return Report("capture", str(path), check.findings, {"state": state.value})
    manifest = check.read_manifest()
    check.read_events(progress)
    if manifest is not None:
        check.compare(manifest)
    check.read_blobs()
    return Report("capture", str(path), check.findings, {"state": state.value} | check.facts())


class _Hashed:
    """A stream that digests what is read from it."""

    def __init__(self, stream: BinaryIO, progress: Progress | None) -> None:
        self._stream = stream
        self._progress = progress
        self.digest = sha256()

    def readline(self, limit: int = -1) -> bytes:
        text = self._stream.readline(limit)
        self.digest.update(text)
        if self._progress is not None:
            self._progress(len(text))
        return text


class _CaptureCheck:
    def __init__(self, run: RunDir) -> None:
        self._run = run
        self.findings: list[Finding] = []
        self._count = 0
        self._digest = ""
        self._ids: tuple[str, str] | None = None
        self._last_ms: float = 0
        self._last_event: CaptureEvent | None = None
        self._open_calls: dict[str, int] = {}
        self._ended_calls: set[str] = set()
        self._blobs: dict[str, int] = {}
        self._status = ""

    def facts(self) -> dict[str, Any]:
        return {"events": self._count, "blobs": len(self._blobs), "eventsHash": self._digest}

    def find(
        self, code: str, message: str, file: str, *, line: int | None = None, severity: Severity = "error"
    ) -> None:
        self.findings.append(Finding(code, message, file, severity, line))

    def read_manifest(self) -> CaptureManifest | None:
        try:
            return read_manifest(self._run.read_manifest(), file=MANIFEST)
        except DigestMismatch as error:
            self.findings.append(Finding.of("manifest_changed", error, file=MANIFEST))
        except FormatError as error:
            self.findings.append(Finding.of("manifest_unreadable", error, file=MANIFEST))
        return None

    def read_events(self, progress: Progress | None) -> None:
        name = self._run.events_path.name
        with self._run.open_events() as stream:
            hashed: Any = _Hashed(stream, progress)
            lines = read_lines(hashed, file=name, on_error=lambda e: self._unreadable(e, name))
            for line in lines:
                self._count += 1
                try:
                    event = event_codec.from_bytes(line.text)
                except FormatError as error:
                    self._unreadable(error.at(line=line.number), name)
                    continue
                self._check_event(event, name, line.number)
                if b'"$blob"' in line.text:
                    self._note_blobs(event_codec.to_json(event), line.number)
        self._digest = "sha256:" + hashed.digest.hexdigest()

    def _unreadable(self, error: FormatError, name: str) -> None:
        self.findings.append(Finding.of("event_unreadable", error, file=name))

    def _check_event(self, event: CaptureEvent, file: str, line: int) -> None:
        if event.seq != line:
            self.find("sequence", f"seq {event.seq} stands where {line} should", file, line=line)
        self._ids = self._ids or (event.captureId, event.runId)
        if (event.captureId, event.runId) != self._ids:
            self.find("foreign_event", f"belongs to run {event.runId}, not {self._ids[1]}", file, line=line)
        if event.ts < self._last_ms - BACKWARDS_TOLERANCE_MS:
            back_s = (self._last_ms - event.ts) / 1000
            self.find("time", f"goes back by {back_s:.1f} s", file, line=line, severity="warning")
        self._last_ms = event.ts
        if line == 1 and not isinstance(event, RunStart):
            self.find("no_start", "the first event is not run_start", file, line=line)
        if isinstance(self._last_event, RunEnd):
            self.find("after_end", "stands behind run_end", file, line=line)
        self._last_event = event
        self._check_call(event, file, line)

    def _check_call(self, event: CaptureEvent, file: str, line: int) -> None:
        call_id = getattr(event.data, "callId", None)
        if not isinstance(call_id, str):
            return
        if _is_call(event):
            if call_id in self._open_calls or call_id in self._ended_calls:
                self.find("second_call", f"call {call_id} was made before", file, line=line)
            self._open_calls[call_id] = line
        elif call_id in self._open_calls:
            del self._open_calls[call_id]
            self._ended_calls.add(call_id)
        else:
            known = "has an outcome already" if call_id in self._ended_calls else "was never made"
            self.find("outcome_without_call", f"call {call_id} {known}", file, line=line)

    def _note_blobs(self, value: Any, line: int) -> None:
        for digest in _blobs_in(value):
            self._blobs.setdefault(digest, line)

    def compare(self, manifest: CaptureManifest) -> None:
        name = self._run.events_path.name
        if manifest.integrity.eventsHash != self._digest:
            reason = f"are not those that were recorded: expected {manifest.integrity.eventsHash}"
            self.find("events_changed", f"the events {reason}, found {self._digest}", name)
        if manifest.eventCount != self._count:
            self.find("event_count", f"the manifest counts {manifest.eventCount}, found {self._count}", name)
        if self._ids is not None and self._ids != (manifest.captureId, manifest.runId):
            self.find("foreign_manifest", "manifest and events belong to different runs", MANIFEST)
        ended = isinstance(self._last_event, RunEnd)
        if manifest.status == "ok" and not ended:
            self.find("no_end", "the run ended well, but has no run_end", name)
        for call_id, line in self._open_calls.items() if ended else ():
            self.find("no_outcome", f"call {call_id} has no outcome", name, line=line, severity="warning")

    def read_blobs(self) -> None:
        blobs = self._run.blobs
        for digest, line in self._blobs.items():
            self._check_blob(blobs, digest, line)
        for digest in blobs:
            if digest not in self._blobs:
                self.find("blob_unused", f"{digest} is in no event", "blobs", severity="warning")

    def _check_blob(self, blobs: BlobStore, digest: str, line: int) -> None:
        file = self._run.events_path.name
        try:
            blobs.get(digest)
        except DigestMismatch:
            self.find("blob_damaged", f"the bytes of {digest} have another digest", file, line=line)
        except (FormatError, StoreError) as error:
            self.find("blob_missing", str(error), file, line=line)


def _is_call(event: CaptureEvent) -> bool:
    kind = type(event).__struct_config__.tag
    if kind == "nondeterministic":
        return "request" in event.data.extra
    return kind in ("tool_call", "llm_request")


def _blobs_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$blob"), str):
            yield value["$blob"]
        for child in value.values():
            yield from _blobs_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from _blobs_in(child)
