"""For GitHub Actions: annotations at the test files, printed as workflow commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reenact.formats.result import AssertionResult
from reenact.suite.runner import Outcome


def workflow_commands(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """One command per failed assertion and per test that could not be run."""
    for outcome in outcomes:
        result = outcome.result
        name = result.test_case_id or result.test_file
        if result.error:
            file = result.error.file or result.test_file
            line = result.error.line if isinstance(result.error.line, int) else 1
            yield _command("error", str(file), line, f"{name} could not be run", result.error.message)
        for warning in result.warnings or ():
            message = f"{warning.json_path}: {warning.message}"
            yield _command("warning", result.test_file, warning.line, f"{name}: read in spite of it", message)
        for found in result.assertions:
            if found.status == "fail":
                title = f"{name}: {found.id} ({found.type})"
                line = outcome.lines.get(found.id, 1)
                yield _command(_level(found), result.test_file, line, title, found.message)


def _level(found: AssertionResult) -> str:
    return "error" if found.severity == "critical" else "warning"


def _command(level: str, file: str, line: int, title: str, message: str) -> str:
    properties = f"file={_property(file)},line={line},title={_property(title)}"
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
