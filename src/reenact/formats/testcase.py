"""The test case, ``test.yaml``: a run, and the assertions about it.

People write these files, for other engines too. An unknown key is kept and reported with the nearest known
name, except in ``params`` and recorded data (messages, fixtures, contexts). A single value is accepted for a
list of one, and a version without quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

import msgspec

from reenact.canonical import JsonValue, child_path
from reenact.errors import FormatError
from reenact.formats.bundle import FormatProblem, Message, Scenario, StepText, refuse_version, version_text
from reenact.formats.record import ABSENT, Absent, Codec, Record

if TYPE_CHECKING:
    from reenact.formats.yaml_text import YamlDocument

Severity: TypeAlias = Literal["critical", "warning"]


class CaseScenario(Scenario, frozen=True, kw_only=True):
    """The expected scenario, which completes that of the bundle."""

    input_messages: list[Message] | Absent | None = ABSENT
    prior_messages: list[Message] | Absent | None = ABSENT
    memory_snapshot: Any = ABSENT
    mounts: Any = ABSENT


class Tools(Record, frozen=True, kw_only=True):
    available: list[Any] | Absent | None = ABSENT
    fixtures: Any = ABSENT
    policy: Any = ABSENT


class AdapterInput(Record, frozen=True, kw_only=True):
    """The run: one of four sources, with paths relative to the test file."""

    replay_file: str | Absent = ABSENT
    capture: str | Absent = ABSENT
    """A capture directory; *command* is replayed from it."""
    replay_log: str | Absent = ABSENT
    command: str | Annotated[list[str], msgspec.Meta(min_length=1)] | Absent = ABSENT


class Assertion(Record, frozen=True, kw_only=True):
    id: str
    type: str
    severity: Severity | Absent | None = ABSENT
    params: dict[str, Any] | Absent | None = ABSENT
    requires_capabilities: list[str] | Absent | None = ABSENT

    @property
    def is_critical(self) -> bool:
        """Whether its failure fails the test; true unless the severity is ``warning``."""
        return self.severity != "warning"


class Expected(Record, frozen=True, kw_only=True):
    """Information for readers of the test, which is not checked."""

    outcome: StepText = ABSENT
    failure_categories: list[str] | Absent | None = ABSENT


class Reporting(Record, frozen=True, kw_only=True):
    save_trace: bool | Absent | None = ABSENT
    redact_fields: list[str] | Absent | None = ABSENT


class TestCase(Record, frozen=True, kw_only=True):
    __test__ = False  # its name makes pytest take it for a class of tests

    schema_version: str
    id: str
    title: StepText = ABSENT
    adapter: str
    mode: Literal["replay", "live"]
    scenario: CaseScenario
    tools: Tools | Absent | None = ABSENT
    adapter_input: AdapterInput
    assertions: Annotated[list[Assertion], msgspec.Meta(min_length=1)]
    description: StepText = ABSENT
    tags: list[str] | Absent | None = ABSENT
    expected: Expected | Absent | None = ABSENT
    reporting: Reporting | Absent | None = ABSENT

    @property
    def name(self) -> str:
        """Its title, or else its id."""
        return self.title or self.id


CODEC: Final = Codec[TestCase](TestCase)

_CLOSED: Final = (TestCase, CaseScenario, Tools, AdapterInput, Assertion, Expected, Reporting)
"""The records in which an unknown key gives a warning."""


class CaseRead(NamedTuple):
    case: TestCase
    warnings: list[FormatProblem]
    """Problems that do not prevent reading: unknown keys, an unsupported mode."""


def read_test_case(data: bytes, file: str, *, strict: bool = False) -> TestCase:
    """The test case in *data*; :class:`FormatError` with line and JSON path of its first problem."""
    return read_with_warnings(data, file, strict=strict).case


def read_with_warnings(data: bytes, file: str, *, strict: bool = False) -> CaseRead:
    """The test case with its warnings; with *strict*, the first warning raises."""
    from reenact.formats.yaml_text import read_yaml  # PyYAML is slow to import

    document = read_yaml(data, file)
    case = _read_good(document.value)
    if case is not None:
        return CaseRead(case, [])
    try:
        refuse_version(document.value, "test case")
        problems = check_test_case(document)
        for problem in problems:
            if problem.severity == "error" or strict:
                raise problem.to_error()
        return CaseRead(CODEC.from_json(_plain_forms(document.value)), problems)
    except FormatError as error:
        line = document.place(error.json_path or "$").line
        raise error.at(file=file, line=line) from None


_LISTS: Final = {
    "$": ("tags",),
    "tools": ("available",),
    "expected": ("failure_categories",),
    "reporting": ("redact_fields",),
}


def _plain_forms(value: object) -> object:
    """*value* with lists in place of single values, and with names and version as text."""
    if not isinstance(value, dict):
        return value
    plain = _with_lists(value, *_LISTS["$"])
    for key in ("tools", "expected", "reporting"):
        if isinstance(plain.get(key), dict):
            plain[key] = _with_lists(plain[key], *_LISTS[key])
    if isinstance(plain.get("assertions"), list):
        plain["assertions"] = [
            _with_lists(each, "requires_capabilities") if isinstance(each, dict) else each
            for each in plain["assertions"]
        ]
    if isinstance(plain.get("scenario"), dict):
        plain["scenario"] = _with_texts(plain["scenario"], "group_id", "session_id", "task_id")
    if "schema_version" in plain:
        plain["schema_version"] = version_text(plain["schema_version"])
    return _with_texts(plain, "id", "title", "description")


def _with_texts(value: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
    """*value* with numbers under *keys* converted to text."""
    return value | {key: str(value[key]) for key in keys if type(value.get(key)) in (int, float)}


def _with_lists(value: dict[str, JsonValue], *keys: str) -> dict[str, Any]:
    lists = {
        key: [value[key]] if isinstance(value[key], str | int | float) else value[key]
        for key in keys
        if key in value
    }
    for key, items in lists.items():
        if isinstance(items, list) and key != "available":
            lists[key] = [str(item) if type(item) in (int, float) else item for item in items]
    return value | lists


def _read_good(value: Any) -> TestCase | None:
    """The test case in *value*; ``None`` if it has any problem, which :func:`check_test_case` finds."""
    try:
        case = CODEC.from_json(_plain_forms(value))
    except FormatError:
        return None
    closed = (case, case.scenario, case.tools, case.adapter_input, case.expected, case.reporting)
    has_unknown_keys = any(record.extra for record in (*closed, *case.assertions) if record)
    is_odd = case.mode == "live" or any(any(check(value)) for check in (_check_version, _check_source))
    return None if has_unknown_keys or is_odd else case


def write_test_case(case: TestCase) -> bytes:
    """The test case as YAML, with fields in the order of the format and without comments."""
    from reenact.formats.yaml_text import write_yaml  # PyYAML is slow to import

    return write_yaml(CODEC.to_json(case))


def check_test_case(document: YamlDocument) -> list[FormatProblem]:
    """All problems of the file, from top to bottom; it is readable if none of them is an error."""
    value = _plain_forms(document.value)
    problems = [*_check(TestCase, value, "$")]
    if isinstance(value, dict):
        problems += [*_check_version(value), *_check_source(value), *_check_mode(value)]
        problems += _check_assertions(value)
    placed = [_with_place(problem, document) for problem in problems]
    return sorted(placed, key=lambda problem: (problem.line, problem.column))


def _with_place(problem: FormatProblem, document: YamlDocument) -> FormatProblem:
    place = document.place(problem.json_path)
    return msgspec.structs.replace(problem, line=place.line, column=place.column)


def _check(kind: object, value: object, path: str) -> Iterator[FormatProblem]:
    """What keeps *value* from being a *kind*, at every closed level."""
    options = list(_options(kind))
    for option in options:
        if isinstance(value, dict) and option in _CLOSED:
            yield from _check_members(option, value, path)
            return
        if isinstance(value, list) and get_origin(option) is list and get_args(option)[0] in _CLOSED:
            for index, item in enumerate(value):
                yield from _check(get_args(option)[0], item, child_path(path, index))
            return
    try:
        _codec(kind).from_json(value)
    except FormatError as error:
        place = path + (error.json_path or "$")[1:]
        yield FormatProblem(code="wrong_type", json_path=place, message=error.reason + _hint(options, value))


def _hint(options: list[object], value: object) -> str:
    choices = [choice for option in options if get_origin(option) is Literal for choice in get_args(option)]
    if choices:
        return f"; use {' or '.join(choices)}"
    return "; put it in quotes" if str in options and isinstance(value, int | float) else ""


def _options(kind: object) -> Iterator[object]:
    """The members of a union, without their constraints."""
    if get_origin(kind) is Annotated:
        yield from _options(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            yield from _options(option)
    else:
        yield kind


@cache
def _codec(kind: object) -> Codec[object]:
    return Codec(kind)


def _check_members(record: type[Record], value: dict[str, JsonValue], path: str) -> Iterator[FormatProblem]:
    fields = _fields(record)
    for name, field in fields.items():
        if name in value:
            yield from _check(field.type, value[name], child_path(path, name))
        elif field.required:
            yield FormatProblem(
                code="missing_field", json_path=child_path(path, name), message="required, but missing"
            )
    for key in value:
        if key not in fields:
            message = _unknown(key, list(fields))
            place = child_path(path, key)
            yield FormatProblem(code="unknown_key", json_path=place, message=message, severity="warning")


@cache  # evaluating the annotations takes longer than reading a file
def _fields(record: type[Record]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(record) if field.name != "extra"}


def _unknown(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; known are {', '.join(known)}"


def _check_version(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    try:
        refuse_version(value, "test case")
    except FormatError as error:
        if isinstance(value["schema_version"], str):  # other types are reported as such
            yield FormatProblem(code="unknown_version", json_path="$.schema_version", message=error.reason)


def _check_source(value: dict[str, object]) -> Iterator[FormatProblem]:
    source = value.get("adapter_input")
    if not isinstance(source, dict):
        return
    given = [key for key in ("replay_file", "capture", "replay_log", "command") if key in source]
    if len(given) != 1 and given != ["capture", "command"]:
        message = (
            f"names {' and '.join(given) or 'no run'}; give one of replay_file, capture, replay_log, command"
        )
        yield FormatProblem(code="ambiguous_source", json_path="$.adapter_input", message=message)


def _check_mode(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    if value.get("mode") == "live":
        message = "nothing is run live here; the recorded run is judged"
        yield FormatProblem(code="live_mode", json_path="$.mode", message=message, severity="warning")


def _check_assertions(value: dict[str, JsonValue]) -> Iterator[FormatProblem]:
    assertions = value.get("assertions")
    if assertions == []:
        message = "a test without assertions proves nothing; add at least one"
        yield FormatProblem(code="no_assertions", json_path="$.assertions", message=message)
    seen: set[str] = set()
    for index, assertion in enumerate(assertions if isinstance(assertions, list) else []):
        name = assertion.get("id") if isinstance(assertion, dict) else None
        if isinstance(name, str) and name in seen:
            path = f"$.assertions[{index}].id"
            message = f"the id {name!r} is used twice; results need different ids"
            yield FormatProblem(code="duplicate_id", json_path=path, message=message, severity="warning")
        seen.add(str(name))
