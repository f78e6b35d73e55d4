"""All that is wrong with the files of a test, not only what was found first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reenact.errors import FormatError
from reenact.formats.bundle import Problem, check_bundle
from reenact.formats.record import ABSENT, parse
from reenact.formats.testcase import TestCase, check_test_case
from reenact.formats.yaml_text import read_yaml


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
        return _lines(check_bundle(parse(bundle.read_bytes())), bundle)
    except (FormatError, OSError):
        return []


def _lines(problems: Iterable[Problem], file: Path) -> list[str]:
    errors = (problem.to_error().at(file=str(file)) for problem in problems if problem.severity == "error")
    return [str(error) for error in errors]
