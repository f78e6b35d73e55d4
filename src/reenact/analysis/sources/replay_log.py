"""REPLAY.jsonl in both dialects, published or not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.analysis.sources.source import Header, RunKind, WithoutBlobs
from reenact.errors import FormatError
from reenact.formats.dialects import dialect_of
from reenact.formats.dialects.common import HEADER
from reenact.formats.event import EventHead, RunEvent
from reenact.formats.json_text import read_json
from reenact.store.line_file import LineFile

_STATUSES: Final = {"success": "ok", "failure": "error", "failed": "error"}


class ReplayLogSource(WithoutBlobs):
    """A log; lines without a time have that of the line before."""

    def __init__(self, file: Path) -> None:
        self.path = self.file = str(file)
        self._lines = LineFile(file.open("rb"), file=self.file, takes_tail=True)
        self._first = self._opening()
        self._dialect = dialect_of(self._first)
        self.kind: RunKind = "replay-log" if self._dialect.name == "current" else "replay-log-legacy"
        self._ts_ms = 0.0

    def _opening(self) -> dict[str, Any]:
        try:
            value = read_json(self._lines.first_line())
            dialect = dialect_of(value)
            if dialect.name_in(value) == HEADER:
                dialect.from_json(value)  # refuses what a newer version wrote
        except FormatError as error:
            self.close()
            raise error.at(file=self.file, line=1) from None
        assert isinstance(value, dict)
        return value

    @property
    def count(self) -> int:
        return len(self._lines)

    @property
    def size_bytes(self) -> int:
        return self._lines.size_bytes

    @property
    def read_bytes(self) -> int:
        return self._lines.read_bytes

    @property
    def torn_bytes(self) -> int:
        return 0

    def header(self) -> Header:
        try:
            end = read_json(self._lines.last_line())
        except FormatError:
            end = {}
        end = end if self._dialect.name_in(end) == "SessionEnd" else {}
        status = str(end.get("status")) if end else None
        return Header(
            path=self.path,
            kind=self.kind,
            status=None if status is None else _STATUSES.get(status.lower(), status.lower()),
            run_id=_text(end.get("session_id")),
            created_at_ms=_milliseconds(self._first.get("created_at")),
            completed_at_ms=_milliseconds(end.get(self._dialect.time_field)),
            producer=_text(self._first.get("producer")),
            final_output=end.get("summary"),
        )

    def read_on(self) -> Iterator[EventHead]:
        for number, text in self._lines.read_on():
            event = self._event(number, self._value(number, text)) if text.strip() else None
            if event is not None:
                self._ts_ms = event.ts
                yield self._head(event)

    def _head(self, event: RunEvent) -> EventHead:
        try:
            return event.head()
        except msgspec.ValidationError as error:
            raise FormatError(str(error), file=self.file, line=event.seq) from None

    def raw(self, seq: int) -> Any:
        return self._value(seq, self._lines.line(seq))

    def event(self, seq: int) -> RunEvent | None:
        text = self._lines.line(seq)
        return self._event(seq, self._value(seq, text)) if text.strip() else None

    def close(self) -> None:
        self._lines.close()

    def verify(self) -> None:
        """Its own totals and hashes are for ``reenact verify``."""

    def _value(self, number: int, text: bytes) -> dict[str, Any]:
        try:
            value = read_json(text)
            self._dialect.from_json(value)
        except FormatError as error:
            raise error.at(file=self.file, line=number) from None
        assert isinstance(value, dict)
        return value

    def _event(self, number: int, value: dict[str, Any]) -> RunEvent:
        name = str(self._dialect.name_in(value))
        ts_ms = _milliseconds(value.get(self._dialect.time_field, value.get("created_at")))
        translate = _TRANSLATIONS.get(name, _translate_other)
        kind, data = translate(value)
        return RunEvent(number, self._ts_ms if ts_ms is None else ts_ms, kind or name, data)


def _translate_start(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "run_start", value


def _translate_end(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "run_end", {"status": value.get("status"), "finalOutput": value.get("summary")}


def _translate_call(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    data = {"callId": _call_id(value), "tool": value["tool"], "argsHash": value["params_hash"]}
    return "tool_call", data | ({"args": value["params"]} if "params" in value else {})


def _translate_result(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    ok = value.get("ok", not value.get("exit_code"))
    data = {"callId": _call_id(value), "ok": ok, "resultHash": value["output_hash"]}
    data["latencyMs"], data["utility"] = value.get("latency_ms"), value.get("step_utility")
    if value.get("side_effects"):
        data["sideEffects"] = value["side_effects"]
    if value.get("exit_code"):
        data["error"] = {"type": "exit_code", "message": str(value["exit_code"])}
    elif "error" in value:
        data["error"] = {"type": value["error"]["name"], "message": value["error"]["message"]}
    return "tool_result", data


def _translate_verification(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    commands = value.get("commands", [value.get("command")])
    codes = value.get("exit_codes", [value.get("exit_code")])
    facts = {"commands": commands, "exitCodes": codes, "delta": value.get("verification_delta")}
    data = {"name": "; ".join(map(str, commands)), "value": facts, "latencyMs": value.get("duration_ms")}
    if any(codes):
        data["error"] = {"type": "exit_code", "message": ", ".join(map(str, codes))}
    return "verification", data


def _translate_plan(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    _, data = _translate_other(value)
    return "plan", data


def _translate_other(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    facts = {key: child for key, child in value.items() if key not in ("type", "event", "ts", "t")}
    return "", {"name": str(value.get("step_id", "")), "value": facts}


_TRANSLATIONS: Final = {
    "ReplayHeader": _translate_start,
    "SessionStart": _translate_start,
    "SealLeaves": _translate_start,  # the proof that a published log brings along
    "SessionEnd": _translate_end,
    "ToolCall": _translate_call,
    "ToolResult": _translate_result,
    "Verification": _translate_verification,
    "PlanStart": _translate_plan,
    "StepComplete": _translate_plan,
}


def _call_id(value: dict[str, Any]) -> Any:
    return value.get("id", value.get("step_id")) if "event" in value else value.get("step_id")


def _milliseconds(time: Any) -> float | None:
    if not isinstance(time, str):
        return None
    try:
        # A leap second has no number of its own; the fraction may have nine digits.
        return datetime.fromisoformat(time.replace(":60", ":59")).timestamp() * 1000
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
