"""Saves the results and traces of tests, without the values that a test hides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.formats.result import TestResult, write_result
from reenact.store.outfile import write_output
from reenact.suite.values import values_at

HIDDEN: Final = "[redacted]"

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_MAX_NAME_CHARACTERS: Final = 80
_MIN_PART_CHARACTERS: Final = 4


def save(result: TestResult, trace: dict[str, JsonValue] | None, directory: Path, index: int) -> TestResult:
    """Write ``result.json`` and ``trace.json``; return the result with their paths as artifacts.

    *trace* is plain JSON, because a trace with hidden fields may not be a valid trace.
    """
    name = _UNSAFE.sub("_", result.test_case_id or "test")[:_MAX_NAME_CHARACTERS]
    home = directory / f"{index:04d}-{name}"
    artifacts = {**result.artifacts, "result": str(home / "result.json")}
    if trace is not None:
        artifacts["trace"] = str(home / "trace.json")
        text = msgspec.json.format(canonical.encode(trace), indent=2)
        write_output(home / "trace.json", text + b"\n")
    result = msgspec.structs.replace(result, artifacts=artifacts)
    write_output(home / "result.json", write_result(result))
    return result


def hidden_values(trace: dict[str, JsonValue], fields: Iterable[str]) -> list[str]:
    """The texts at *fields* of the trace, longest first; a field is a path, or a name at any depth."""
    found: set[str] = set()
    for field in fields:
        is_name = not field.startswith("$") and "." not in field and "[" not in field
        for hidden in _find_named(trace, field) if is_name else values_at(trace, field):
            found.update(_texts(hidden))
    return sorted(found - {""}, key=lambda text: (-len(text), text))


def _find_named(value: JsonValue, name: str) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from [child] if key == name else _find_named(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _find_named(child, name)


def _texts(value: JsonValue) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _texts(child)


def hide_in_result(result: TestResult, hidden: list[str]) -> TestResult:
    """*result* with the *hidden* texts removed from its messages."""
    assertions = [
        msgspec.structs.replace(
            found,
            message=hide_values(found.message, hidden),
            params=hide_values(found.params, hidden),
            observed=hide_values(found.observed, hidden),
        )
        for found in result.assertions
    ]
    return msgspec.structs.replace(result, assertions=assertions)


def hide_values(value: object, hidden: list[str]) -> Any:
    """*value* with the *hidden* texts replaced; very short ones only as a whole text."""
    if isinstance(value, str):
        for text in hidden:
            if value == text:
                return HIDDEN
            if len(text) >= _MIN_PART_CHARACTERS:
                value = value.replace(text, HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: hide_values(child, hidden) for key, child in value.items()}
    if isinstance(value, list):
        return [hide_values(child, hidden) for child in value]
    return value
