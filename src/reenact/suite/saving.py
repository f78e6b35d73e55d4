"""Result files, and hiding in them what the test's author does not want to be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact import canonical
from reenact.formats.result import TestResult, write_result
from reenact.store.outfile import write_output
from reenact.suite.values import values_at

DEFAULT_DIRECTORY: Final = Path("test-results")
"""For tests that ask to save their trace when the user named no directory."""
HIDDEN: Final = "[redacted]"

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_MAX_NAME_CHARACTERS: Final = 80
_MIN_PART_CHARACTERS: Final = 4


def save(result: TestResult, trace: dict[str, Any] | None, directory: Path, index: int) -> TestResult:
    """Write ``result.json`` and ``trace.json``; the result with their paths among its artifacts.

    *trace* is plain JSON: with a field hidden it may no longer be a trace to the letter.
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


def hidden_values(trace: dict[str, Any], fields: Iterable[str]) -> list[str]:
    """The texts at *fields* of the trace, longest first; a field is a path, or a name at any depth."""
    found: set[str] = set()
    for field in fields:
        is_name = not field.startswith("$") and "." not in field and "[" not in field
        for hidden in _named(trace, field) if is_name else values_at(trace, field):
            found.update(_texts(hidden))
    return sorted(found - {""}, key=lambda text: (-len(text), text))


def _named(value: Any, name: str) -> Iterable[Any]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from [child] if key == name else _named(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _named(child, name)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _texts(child)


def without_in(result: TestResult, hidden: list[str]) -> TestResult:
    """*result* with the *hidden* texts out of what its assertions say."""
    assertions = [
        msgspec.structs.replace(
            found,
            message=without(found.message, hidden),
            params=without(found.params, hidden),
            observed=without(found.observed, hidden),
        )
        for found in result.assertions
    ]
    return msgspec.structs.replace(result, assertions=assertions)


def without(value: Any, hidden: list[str]) -> Any:
    """*value* with the *hidden* texts replaced wherever they are; very short ones where they stand alone."""
    if isinstance(value, str):
        for text in hidden:
            if value == text:
                return HIDDEN
            if len(text) >= _MIN_PART_CHARACTERS:
                value = value.replace(text, HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: without(child, hidden) for key, child in value.items()}
    if isinstance(value, list):
        return [without(child, hidden) for child in value]
    return value
