"""What is wrong with the files of a test: all of it, not only what was found first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from reenact.errors import FormatError, ReenactError
from reenact.formats.bundle import Problem, check_bundle
from reenact.formats.json_text import read_json
from reenact.formats.record import ABSENT
from reenact.formats.result import TestError
from reenact.formats.testcase import TestCase, check_test_case
from reenact.formats.yaml_text import read_yaml

PROBLEMS: Final = "problems"
"""The member of an error that lists all problems of a file, where it has more than one."""


def error_of(error: ReenactError | OSError, file: Path, data: bytes, case: TestCase | None) -> TestError:
    """Why the test in *file* could not be run; *data* is the file's text, *case* what could be read of it."""
    if isinstance(error, OSError):
        return TestError(message=error.strerror or str(error), file=str(error.filename or file))
    if not isinstance(error, FormatError):
        return TestError(message=str(error), file=str(file))
    if error.file is None and error.json_path is not None:
        error.at(file=str(file), line=read_yaml(data, str(file)).place(error.json_path).line)
    listed = problems_of_test(file) if case is None else problems_of_source(case, file)
    return TestError(
        message=error.reason,
        file=error.file or str(file),
        line=ABSENT if error.line is None else error.line,
        json_path=ABSENT if error.json_path is None else error.json_path,
        extra={PROBLEMS: listed} if len(listed) > 1 else {},
    )


def problems_of_test(file: Path) -> list[str]:
    """One line per problem, from top to bottom; none where the file cannot even be taken apart."""
    try:
        return _lines(check_test_case(read_yaml(file.read_bytes(), str(file))), file)
    except (FormatError, OSError):
        return []


def problems_of_source(case: TestCase, file: Path) -> list[str]:
    """The same for the bundle of a test; other sources stop at their first problem."""
    if case.adapter_input.replay_file is ABSENT:
        return []
    bundle = file.parent / case.adapter_input.replay_file
    try:
        return _lines(check_bundle(read_json(bundle.read_bytes())), bundle)
    except (FormatError, OSError):
        return []


def _lines(problems: Iterable[Problem], file: Path) -> list[str]:
    errors = (problem.to_error().at(file=str(file)) for problem in problems if problem.severity == "error")
    return [str(error) for error in errors]
