"""The replay bundle, ``replay.json``: one run in a form that can be written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from reenact.canonical import JsonValue, child_path, read_json
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.record import ABSENT, Absent, Codec, Record

ADAPTER: Final = "nanoclaw-replay"
SCHEMA_VERSION: Final = "0.1"
"""The version of bundles, test cases, traces and results."""

Trigger: TypeAlias = Literal["user_message", "scheduler"]
StepText: TypeAlias = str | Absent | None
"""Optional text; null means the same as absent, but is kept."""


class FormatProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of a file; a check returns all of them."""

    code: str
    json_path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    line: int | None = None
    """1-based; ``None`` if only the JSON path is known."""
    column: int | None = None

    def to_error(self) -> FormatError:
        """The exception that carries this problem."""
        reason = self.message if self.column is None else f"column {self.column}: {self.message}"
        return FormatError(reason, line=self.line, json_path=self.json_path)


class Message(Record, frozen=True, kw_only=True):
    role: str
    content: Any
    """Text, or the provider's own list of content blocks."""


class Scenario(Record, frozen=True, kw_only=True):
    trigger: Trigger
    group_id: StepText = ABSENT
    session_id: StepText = ABSENT
    task_id: StepText = ABSENT
    scheduler_context: dict[str, Any] | Absent | None = ABSENT


class ScriptStep(Record, frozen=True, kw_only=True, tag_field="type"):
    """The fields of all steps; the scenario has their defaults."""

    event_id: StepText = ABSENT
    ts: StepText = ABSENT
    """RFC 3339, kept as written."""
    group_id: StepText = ABSENT
    session_id: StepText = ABSENT
    task_id: StepText = ABSENT
    agent_id: StepText = ABSENT


class MessageReceived(ScriptStep, frozen=True, kw_only=True, tag="message_received"):
    role: StepText = ABSENT
    content: Any = ABSENT


class ToolCall(ScriptStep, frozen=True, kw_only=True, tag="tool_call"):
    tool: str
    call_id: str
    args: Any = ABSENT


class ToolResult(ScriptStep, frozen=True, kw_only=True, tag="tool_result"):
    tool: str
    call_id: str
    success: bool
    result: Any = ABSENT
    fixture_id: StepText = ABSENT


class MemoryRead(ScriptStep, frozen=True, kw_only=True, tag="memory_read"):
    source: StepText = ABSENT
    path: StepText = ABSENT


class MemoryWrite(ScriptStep, frozen=True, kw_only=True, tag="memory_write"):
    source: StepText = ABSENT
    path: StepText = ABSENT
    change_summary: StepText = ABSENT


class Failure(ScriptStep, frozen=True, kw_only=True, tag="error"):
    """An error of the agent or of one of its tools; ``call_id`` names the call, if any."""

    scope: StepText = ABSENT
    tool: StepText = ABSENT
    call_id: StepText = ABSENT
    error_type: StepText = ABSENT
    message: StepText = ABSENT
    retryable: bool | Absent | None = ABSENT


class FinalOutputStep(ScriptStep, frozen=True, kw_only=True, tag="final_output"):
    role: StepText = ABSENT
    content: StepText = ABSENT


AnyStep: TypeAlias = (
    MessageReceived | ToolCall | ToolResult | MemoryRead | MemoryWrite | Failure | FinalOutputStep
)
STEP_TYPES: Final[tuple[str, ...]] = tuple(kind.__struct_config__.tag for kind in get_args(AnyStep))


class FinalOutput(Record, frozen=True, kw_only=True):
    role: StepText = ABSENT
    content: StepText = ABSENT


class Metrics(Record, frozen=True, kw_only=True):
    timing_ms_total: int | float
    retry_count: int | Absent | None = ABSENT
    token_usage: Any = ABSENT


class Bundle(Record, frozen=True, kw_only=True):
    schema_version: str
    scenario: Scenario
    input_messages: list[Message]
    script: list[AnyStep]
    status: str
    """``success``, ``partial``, ``failed`` or ``blocked`` by convention; others are kept."""
    metrics: Metrics
    adapter: StepText = ABSENT
    capabilities: dict[str, bool] | Absent | None = ABSENT
    final_output: FinalOutput | Absent | None = ABSENT


CODEC: Final = Codec[Bundle](Bundle)


def read_bundle(data: bytes, file: str) -> Bundle:
    """The bundle in *data*; :class:`FormatError` with its first problem."""
    try:
        value = _with_text_version(read_json(data))
        refuse_version(value, "replay bundle")
        _refuse(_check_clauses(value))
        bundle = CODEC.from_json(value)
        _refuse(_check_event_ids(value))
        return bundle
    except FormatError as error:
        raise error.at(file=file) from None


def _refuse(problems: Iterable[FormatProblem]) -> None:
    for problem in problems:
        raise problem.to_error()


def write_bundle(bundle: Bundle) -> bytes:
    """The bundle as an indented file, keys in order."""
    return msgspec.json.format(CODEC.to_bytes(bundle), indent=2) + b"\n"


def refuse_version(value: JsonValue, what: str) -> None:
    """Raise for a ``schema_version`` that is malformed or of a later major; a missing one is accepted."""
    if not isinstance(value, dict) or "schema_version" not in value:
        return
    version = version_text(value["schema_version"])
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        reason = f'must be the text "{SCHEMA_VERSION}", not {version!r:.40}'
        raise FormatError(reason, json_path="$.schema_version")
    if version.partition(".")[0].strip("0"):
        raise UnknownVersion(
            f"{what} version {version} is newer than {SCHEMA_VERSION}, the newest this reenact reads; "
            "install a newer reenact",
            json_path="$.schema_version",
        )


def version_text(version: JsonValue) -> JsonValue:
    """A version without quotes, such as 0.1, as text; any other value unchanged."""
    return repr(version) if type(version) is float else version


def _with_text_version(value: object) -> Any:
    if not isinstance(value, dict) or type(value.get("schema_version")) is not float:
        return value
    return value | {"schema_version": version_text(value["schema_version"])}


_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_REQUIRED: Final = ("schema_version", "scenario", "input_messages", "script", "status", "metrics")
_REQUIRED_IN_STEP: Final[Mapping[str, Mapping[str, type]]] = {
    "tool_call": {"tool": str, "call_id": str},
    "tool_result": {"tool": str, "call_id": str, "success": bool},
}


def check_bundle(value: Any) -> list[FormatProblem]:
    """All problems of a decoded bundle in the order of the format's clauses, then the warnings.

    If the clauses hold, the types are checked too. The bundle is readable if there is no error.
    """
    problems = [*_check_clauses(value)]
    if not problems:
        problems += [*_check_types(value), *_check_event_ids(value)]
    return [*problems, *_check_adapter(value)]


def _check_clauses(value: Any) -> Iterator[FormatProblem]:
    if not isinstance(value, dict):
        yield _wrong_type("$", "an object", value)
        return
    for clause in (_check_keys, _check_scenario, _check_script, _check_final_output, _check_metrics):
        yield from clause(value)


def _check_keys(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    for key in _REQUIRED:
        if key not in value:
            yield _missing("$", key)
    try:
        refuse_version(value, "replay bundle")
    except FormatError as error:
        yield FormatProblem(code="unknown_version", json_path="$.schema_version", message=error.reason)


def _check_scenario(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    scenario = value.get("scenario", {"trigger": "user_message"})
    if not isinstance(scenario, dict):
        yield _wrong_type("$.scenario", "an object", scenario)
        return
    trigger = scenario.get("trigger")
    if trigger is None:
        yield _missing("$.scenario", "trigger")
    elif trigger not in get_args(Trigger):
        message = f"must be {' or '.join(get_args(Trigger))}, not {trigger!r:.60}"
        yield FormatProblem(code="unknown_trigger", json_path="$.scenario.trigger", message=message)
    if trigger == "scheduler" and scenario.get("scheduler_context") is None:
        message = "a run started by the scheduler needs its context; add the object"
        yield FormatProblem(code="missing_field", json_path="$.scenario.scheduler_context", message=message)


def _check_script(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    script = value.get("script", [])
    if not isinstance(script, list):
        yield _wrong_type("$.script", "an array", script)
        return
    calls: set[str] = set()
    for index, step in enumerate(script):
        yield from _check_step(step, child_path("$.script", index), calls)


def _check_step(step: JsonValue, path: str, calls: set[str]) -> Iterator[FormatProblem]:
    """The problems of one step; *calls* are the ids of the calls so far, to which its own is added."""
    if not isinstance(step, dict):
        yield _wrong_type(path, "an object", step)
        return
    kind = step.get("type")
    if kind is None:
        yield _missing(path, "type")
    elif kind not in STEP_TYPES:
        message = f"unknown step type {kind!r:.60}; use one of {', '.join(STEP_TYPES)}"
        yield FormatProblem(code="unknown_type", json_path=f"{path}.type", message=message)
    else:
        yield from _check_step_fields(step, kind, path)
        yield from _check_call(step.get("call_id"), kind, path, calls)


def _check_step_fields(step: dict[str, JsonValue], kind: str, path: str) -> Iterator[FormatProblem]:
    for key, expected in _REQUIRED_IN_STEP.get(kind, {}).items():
        if step.get(key) is None:
            yield _missing(path, key)
        elif not isinstance(step[key], expected):
            yield _wrong_type(child_path(path, key), _NAMES[expected], step[key])


def _check_call(call_id: JsonValue, kind: str, path: str, calls: set[str]) -> Iterator[FormatProblem]:
    if not isinstance(call_id, str):
        return
    if kind == "tool_call":
        calls.add(call_id)
    elif kind in ("tool_result", "error") and call_id not in calls:
        message = f"no earlier tool_call has the id {call_id!r:.60}; put the call before its outcome"
        yield FormatProblem(code="unknown_call", json_path=f"{path}.call_id", message=message)


def _check_final_output(value: dict[str, Any]) -> Iterator[FormatProblem]:
    if value.get("status") != "success":
        return
    outputs = [value.get("final_output")]
    if outputs == [None] and isinstance(value.get("script"), list):
        steps = [step for step in value["script"] if isinstance(step, dict)]
        outputs = [step for step in steps if step.get("type") == "final_output"]
    if not any(isinstance(output, dict) and output.get("content") is not None for output in outputs):
        message = "a successful run has an output; give it here or in a final_output step"
        yield FormatProblem(code="missing_field", json_path="$.final_output.content", message=message)


def _check_metrics(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    metrics = value.get("metrics", {"timing_ms_total": 0})
    if not isinstance(metrics, dict):
        yield _wrong_type("$.metrics", "an object", metrics)
    elif "timing_ms_total" not in metrics:
        yield _missing("$.metrics", "timing_ms_total")


def _check_types(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    try:
        CODEC.from_json(_with_text_version(value))
    except FormatError as error:
        yield FormatProblem(code="wrong_type", json_path=error.json_path or "$", message=error.reason)


def event_id(seq: int, given: object) -> str:
    """The id of the step with number *seq*, from 1: its own, or the one it gets in a trace."""
    return given if isinstance(given, str) else f"evt-{seq}"


def _check_event_ids(value: dict[str, Any]) -> Iterator[FormatProblem]:
    seen: set[str] = set()
    for seq, step in enumerate(value["script"], 1):
        name = event_id(seq, step.get("event_id"))
        if name in seen:
            path = f"{child_path('$.script', seq - 1)}.event_id"
            message = f"the id {name!r:.60} belongs to an earlier step; give each step its own"
            yield FormatProblem(code="duplicate_event_id", json_path=path, message=message)
        seen.add(name)


def _check_adapter(value: JsonValue) -> Iterator[FormatProblem]:
    adapter = value.get("adapter") if isinstance(value, dict) else ADAPTER
    if adapter != ADAPTER:
        found = "missing" if adapter is None else f"{adapter!r:.60}"
        message = f"is {found}; the format was defined for {ADAPTER!r}"
        yield FormatProblem(
            code="foreign_adapter", json_path="$.adapter", message=message, severity="warning"
        )


_NAMES: Final[Mapping[type, str]] = {
    bool: "a boolean",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "an array",
    str: "a string",
    type(None): "null",
}


def _missing(path: str, key: str) -> FormatProblem:
    return FormatProblem(
        code="missing_field", json_path=child_path(path, key), message="required, but missing"
    )


def _wrong_type(path: str, expected: str, value: JsonValue) -> FormatProblem:
    return FormatProblem(
        code="wrong_type", json_path=path, message=f"must be {expected}, not {_NAMES[type(value)]}"
    )
