"""Rows of datasets from a capture: their provenance and options, the verdict of the run, rows of calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from reenact.formats import capture
from reenact.formats.capture import LlmRequest, LlmResponse, RedactionProfile
from reenact.formats.record import ABSENT
from reenact.redaction import Redactor
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote
from reenact.trace.model_calls import usage_of
from reenact.values.tags import strip_tags

SEAL_SUFFIX: Final = ".seal.json"
Reasoning: TypeAlias = Literal["keep", "drop"]


class RowOptions(msgspec.Struct, frozen=True):
    """Options of the export, which every row states."""

    reasoning: Reasoning = "drop"
    redact: RedactionProfile = "none"
    """Redacts more than the capture does already."""


class RowSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a row, or one of its continuations, comes from."""

    capture_id: str
    run: str
    """The path of the run relative to the folder of the dataset, or its address."""
    events_hash: str
    first_event: int
    last_event: int
    seal: str
    """Digest of the file with the run's seal; empty if it is not sealed."""
    redaction: str
    """The profile under which the run was recorded."""
    fidelity: str
    """``recorded``, or how faithful the import was."""


class RowPlace(NamedTuple):
    """The folder of a row, and the place of its run."""

    folder: str
    run: str
    """A path, or an address."""


def find_seal(run: Path) -> str:
    """The digest of the seal beside *run*; empty if there is none."""
    home = run.absolute()
    seal = home.parent / f"{home.name}{SEAL_SUFFIX}"
    return f"sha256:{sha256(seal.read_bytes()).hexdigest()}" if seal.is_file() else ""


def row_source(reader: CaptureReader, first: int, last: int, place: RowPlace) -> RowSource:
    """The provenance of a row."""
    manifest = reader.manifest
    try:
        run = Path(os.path.relpath(reader.path, Path(place.folder).absolute())).as_posix()
    except ValueError:  # on another drive
        run = reader.path.as_posix()
    if is_remote(place.run):
        run = place.run
    return RowSource(
        capture_id=manifest.captureId,
        run=run,
        events_hash=manifest.integrity.eventsHash,
        first_event=first,
        last_event=last,
        seal=find_seal(reader.path),
        redaction=manifest.redaction.profile,
        fidelity=fidelity_of(manifest),
    )


def fidelity_of(manifest: capture.CaptureManifest) -> str:
    """``recorded``, or the fidelity of an import."""
    return "recorded" if manifest.imported is ABSENT else manifest.imported.fidelity


def redactor_of(reader: CaptureReader, profile: RedactionProfile) -> Redactor:
    """A redactor for *profile* with the salt of the capture, so that its results are equal everywhere."""
    salt, capture_id = reader.manifest.redaction.salt, reader.manifest.captureId
    known = sha256(capture_id.encode()).digest() if salt is ABSENT else bytes.fromhex(salt)
    return Redactor(profile, secrets=(), salt=known)


def redact_payload(reader: CaptureReader, options: RowOptions, value: object) -> Any:
    """*value* of a row, redacted as *options* say."""
    if options.redact == "none":
        return value
    redact = redactor_of(reader, options.redact).redact_ordered_json
    return msgspec.json.decode(redact(msgspec.json.encode(value)))


class RunVerdict(msgspec.Struct, frozen=True):
    """The quality of a run; numbers are 0 if nothing was rated or verified."""

    status: str
    tests: str = ""
    """``passed`` or ``failed``; empty without a test."""
    verification_delta: int = 0
    verifications: int = 0
    utility: float = 0.0
    """The mean of the rated steps."""
    rated_steps: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """Higher is better: by tests, then status, then verifications, then ratings."""
        return self.tests == "passed", self.status == "ok", self.verification_delta, self.utility


def run_verdict(reader: CaptureReader) -> RunVerdict:
    """The verdict from the events of the run."""
    deltas: list[int] = []
    utilities: list[float] = []
    for line in reader.lines():
        if b'"type":"step_utility"' not in line and b'"type":"verification"' not in line:
            continue
        event = capture.event_codec.from_bytes(line)
        if not isinstance(event, capture.StateMutation) or not isinstance(event.data.details, dict):
            continue
        delta, utility = (event.data.details.get(name) for name in ("verification_delta", "step_utility"))
        if event.data.type == "verification" and isinstance(delta, int):
            deltas.append(delta)
        elif event.data.type == "step_utility" and isinstance(utility, int | float):
            utilities.append(float(utility))
    return RunVerdict(
        status=reader.manifest.status,
        verification_delta=sum(deltas),
        verifications=len(deltas),
        utility=round(sum(utilities) / len(utilities), 6) if utilities else 0.0,
        rated_steps=len(utilities),
    )


class CallRow(msgspec.Struct, frozen=True):
    """One call of a run; its request and outcome are JSON texts."""

    kind: str
    """``model``, ``tool``, ``state``, or the source of a value: ``clock``, ``network``, …"""
    name: str
    lane: str
    at_ms: float
    """Since the epoch."""
    latency_ms: float | None
    ok: bool | None
    """``None`` without an outcome."""
    input: str
    output: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    first_event: int
    last_event: int


def call_rows(reader: CaptureReader, options: RowOptions) -> Iterator[CallRow]:
    """The calls of a run in the order of their outcomes; those without one come last."""
    waiting: dict[str, capture.CaptureEvent] = {}
    for event in reader.events():
        if isinstance(event, capture.RunStart | capture.RunEnd):
            continue
        call_id = event.data.callId
        is_outcome = isinstance(call_id, str) and call_id in waiting
        if is_outcome:
            yield _call_row(reader, options, waiting.pop(str(call_id)), event)
        elif isinstance(event, LlmRequest | capture.ToolCall) or (
            isinstance(event, capture.Nondeterministic)
            and event.data.request is not ABSENT
            and event.data.value is ABSENT
            and event.data.error is ABSENT
        ):
            waiting[str(call_id)] = event
        elif not isinstance(event, LlmResponse | capture.ToolResult):
            yield _call_row(reader, options, event, event)
    for call in waiting.values():
        yield _call_row(reader, options, call, None)


def _call_row(
    reader: CaptureReader,
    options: RowOptions,
    call: capture.CaptureEvent,
    answer: capture.CaptureEvent | None,
) -> CallRow:
    given, result, error = _stored_payloads(call, answer)
    given, result, error = redact_payload(
        reader, options, [strip_tags(reader.resolve(each)) for each in (given, result, error)]
    )
    usage = usage_of(answer.data.usage) if isinstance(answer, LlmResponse) else None
    latency = getattr(answer.data, "latencyMs", ABSENT) if answer is not None else ABSENT
    if latency is ABSENT:
        latency = None if answer is None else answer.ts - call.ts
    lane = getattr(call.data, "lane", ABSENT)
    return CallRow(
        kind=_kind(call),
        name=_name(call),
        lane="0" if lane is ABSENT else str(lane),
        at_ms=float(call.ts),
        latency_ms=None if latency is None else float(latency),
        ok=None if answer is None else error is None,
        input=msgspec.json.encode(given).decode(),
        output=None if answer is None or error is not None else msgspec.json.encode(result).decode(),
        error=None if error is None else msgspec.json.encode(error).decode(),
        input_tokens=(usage or {}).get("input_tokens"),
        output_tokens=(usage or {}).get("output_tokens"),
        first_event=call.seq,
        last_event=call.seq if answer is None else answer.seq,
    )


def _kind(event: capture.CaptureEvent) -> str:
    if isinstance(event, LlmRequest):
        return "model"
    if isinstance(event, capture.ToolCall):
        return "tool"
    if isinstance(event, capture.Nondeterministic):
        return event.data.source
    return "state"


def _name(event: capture.CaptureEvent) -> str:
    if isinstance(event, LlmRequest):
        return event.data.model
    if isinstance(event, capture.ToolCall):
        return event.data.tool
    if isinstance(event, capture.StateMutation):
        return event.data.type
    key = getattr(event.data, "key", None)
    return key if isinstance(key, str) else _kind(event)


def _stored_payloads(
    call: capture.CaptureEvent, answer: capture.CaptureEvent | None
) -> tuple[object, object, object]:
    """The stored request, result and failure of a call; ``None`` for each that is missing."""
    data: Any = call.data
    if isinstance(call, capture.StateMutation):
        given: object = {
            name: getattr(data, name)
            for name in ("group_id", "source", "path", "content", "details")
            if getattr(data, name) is not ABSENT
        }
    else:
        given = data.args if isinstance(call, capture.ToolCall) else data.request
    outcome: Any = None if answer is None else answer.data
    result: object = ABSENT
    if isinstance(answer, LlmResponse):
        result = outcome.pieces if outcome.pieces is not ABSENT else outcome.response
    elif isinstance(answer, capture.ToolResult):
        result = outcome.result
    elif outcome is not None:
        result = outcome.value
    failure = getattr(outcome, "error", ABSENT)
    return tuple(None if each is ABSENT else each for each in (given, result, failure))  # type: ignore[return-value]
