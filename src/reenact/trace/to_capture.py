"""Converts a REPLAY.jsonl to a capture: a skeleton with the calls, without the outputs of the tools.

A log has only the hashes of outputs. The capture marks each output as unknown, so that a replay refuses to
return it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats.capture import (
    EVENT_LOG_NAME,
    NO_MODEL,
    CaptureManifest,
    CaptureSeed,
    Integrity,
    Redaction,
    RunStatus,
    seed_codec,
    write_manifest,
)
from reenact.formats.dialects import Event, current
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.formats.rfc3339 import moment
from reenact.store.place import build_folder
from reenact.store.rundir import Recording, RunDir
from reenact.values.codec import to_text

UNKNOWN: Final = {"$py": "opaque", "type": "unknown"}
"""Replaces a value of which the log has only the hash."""
SKELETON: Final = "made from a REPLAY.jsonl: what the tools returned is known by hash only"

_LANE: Final = "0"


def write_capture(
    path: Path,
    events: Iterable[tuple[int, Event]],
    *,
    trajectory_hash: str,
    file: str,
    on_loss: Callable[[Loss], None],
) -> CaptureManifest:
    """Write the skeleton of a log's *events*, each with its line, in the current dialect, into *path*.

    Equal logs give captures with equal bytes. *path* must be new or empty, and is not written if the log
    cannot be read to its end.
    """
    rest = iter(events)
    header, start = _read_beginning(rest, file)
    seed = CaptureSeed(
        version=1,
        captureId=f"cap_{trajectory_hash.removeprefix('sha256:')[:16]}",
        runId=start.session_id,
        createdAt=_ms(header.created_at),
        mode="capture",
        model=NO_MODEL,
        eventLogPath=EVENT_LOG_NAME,
        redaction=Redaction(enabled=False, profile="none"),
        producer=header.producer,
    )
    with build_folder(path) as folder:
        run = RunDir.create(folder, seed_codec.to_bytes(seed) + b"\n")
        try:
            return _Skeleton(run, seed, on_loss).write(start, rest)
        except BaseException:
            run.abandon()
            raise


def _read_beginning(
    events: Iterator[tuple[int, Event]], file: str
) -> tuple[current.ReplayHeader, current.SessionStart]:
    _, header = next(events, (0, None))
    line, start = next(events, (1, None))
    if isinstance(header, current.ReplayHeader) and isinstance(start, current.SessionStart):
        return header, start
    reason = "a capture begins with a session: ReplayHeader and SessionStart must be the first two events"
    raise FormatError(reason, file=file, line=line)


class _Skeleton:
    def __init__(self, run: Recording, seed: CaptureSeed, on_loss: Callable[[Loss], None]) -> None:
        self._run = run
        self._seed = seed
        self._on_loss = on_loss
        self._ts_ms = seed.createdAt
        self._status: RunStatus = "error"

    def write(self, start: current.SessionStart, events: Iterable[tuple[int, Event]]) -> CaptureManifest:
        self._append("run_start", _start_data(start), start)
        for line, event in events:
            self._take(line, event)
        self._run.journal.close()
        manifest = self._manifest()
        self._run.finish(write_manifest(manifest))
        return manifest

    def _take(self, line: int, event: Event) -> None:
        kind, project = _PROJECTIONS.get(type(event), (None, None))
        if kind is None or project is None:
            name = current.DIALECT.name_of(event)  # type: ignore[arg-type]  # of the current dialect, by contract
            self._on_loss(Loss(line, name, None, "a capture has no such event"))
            return
        for field, reason in _LOST.get(type(event), {}).items():
            if getattr(event, field) is not ABSENT:
                self._on_loss(Loss(line, type(event).__name__, field, reason))
        self._append(kind, _unknown(getattr(event, "extra", {})) | project(event), event)
        if isinstance(event, current.SessionEnd):
            self._status = "ok" if event.status == "success" else "error"

    def _append(self, kind: str, data: Mapping[str, object], event: object) -> None:
        time = getattr(event, "ts", ABSENT)
        self._ts_ms = self._ts_ms if time is ABSENT else _ms(time)
        line = {
            "version": 1,
            "captureId": self._seed.captureId,
            "runId": self._seed.runId,
            "seq": self._run.journal.count + 1,
            "ts": self._ts_ms,
            "type": kind,
            "data": data,
        }
        self._run.journal.append(canonical.encode_clean(line))

    def _manifest(self) -> CaptureManifest:
        seed, journal = self._seed, self._run.journal
        return CaptureManifest(
            **{name: getattr(seed, name) for name in seed.__struct_fields__},
            completedAt=self._ts_ms,
            eventCount=journal.count,
            integrity=Integrity(algorithm="sha256", eventsHash=f"sha256:{journal.sha256_hex}"),
            status=self._status,
            warnings=[SKELETON],
        )


def _start_data(event: current.SessionStart) -> dict[str, JsonValue]:
    line = current.DIALECT.to_json(event)
    return _unknown({name: line[name] for name in line if name not in ("type", "ts", "session_id")})


def _unknown(fields: Mapping[str, object]) -> dict[str, Any]:
    """Fields that captures do not have, written so that none looks like a reference."""
    return {name: msgspec.Raw(to_text(value)) for name, value in fields.items()}


def _tool_call_of(event: current.ToolCall) -> dict[str, Any]:
    args = UNKNOWN if event.params is ABSENT else msgspec.Raw(to_text(event.params))
    called = {"callId": event.step_id, "tool": event.tool, "args": args, "lane": _LANE}
    return called | {"paramsHash": event.params_hash}


def _tool_result_of(event: current.ToolResult) -> dict[str, JsonValue]:
    returned: dict[str, Any] = {"callId": event.step_id, "ok": event.ok, "outputHash": event.output_hash}
    if event.ok:
        return returned | {"result": UNKNOWN}
    recorded = event.error
    error = {"type": "error", "message": ""}
    if recorded is not ABSENT:
        error = {"type": recorded.name, "message": recorded.message}
    return returned | {"error": error}


def _run_end_of(event: current.SessionEnd) -> dict[str, JsonValue]:
    ended: dict[str, JsonValue] = {"status": "ok" if event.status == "success" else "error"}
    if event.summary is not ABSENT:
        ended["finalOutput"] = event.summary
    return ended if event.status == "success" else ended | {"error": f"SessionEnd: {event.status}"}


_PROJECTIONS: Final[Mapping[type, tuple[str, Callable[[Any], dict[str, JsonValue]]]]] = {
    current.ToolCall: ("tool_call", _tool_call_of),
    current.ToolResult: ("tool_result", _tool_result_of),
    current.SessionEnd: ("run_end", _run_end_of),
}
_NO_FIELD: Final = "a capture has no such field"
_LOST: Final[Mapping[type, Mapping[str, str]]] = {
    current.ToolResult: {
        "latency_ms": "a capture has the times of call and outcome only",
        "side_effects": _NO_FIELD,
        "step_utility": _NO_FIELD,
    },
    current.SessionEnd: {
        "confidence": _NO_FIELD,
        "total_latency_ms": _NO_FIELD,
        "total_tool_calls": _NO_FIELD,
    },
}


def _ms(time: str) -> int:
    return round(moment(time).timestamp() * 1000)
