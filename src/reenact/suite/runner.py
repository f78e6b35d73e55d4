"""Finds tests and runs them, in one or several processes.

For a test that cannot be run, all problems of its files are listed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from reenact.canonical import read_json
from reenact.errors import FormatError, ReenactError, StoreError, UsageError
from reenact.formats.bundle import SCHEMA_VERSION, FormatProblem, check_bundle
from reenact.formats.record import ABSENT
from reenact.formats.result import (
    AssertionResult,
    SuiteSummary,
    TestError,
    TestResult,
    TestWarning,
    summarize,
    verdict,
)
from reenact.formats.rfc3339 import rfc3339
from reenact.formats.testcase import CaseRead, Reporting, TestCase, check_test_case, read_with_warnings
from reenact.formats.trace import CODEC as TRACE_CODEC
from reenact.formats.trace import Trace
from reenact.formats.yaml_text import read_yaml
from reenact.store.project import PROJECT_FILE
from reenact.store.reader import CaptureReader
from reenact.suite.files import RunInFiles, allow_commands, command_succeeds_in_workspace
from reenact.suite.judge import Judge, all_kinds, judge, unknown_params_of
from reenact.suite.saving import hidden_values, hide_in_result, hide_values, save
from reenact.suite.settings import Settings, find_settings
from reenact.suite.source import ReplayForTest, read_trace_of
from reenact.suite.verdict import shorten
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture
from reenact.workers import map_batches, worker_count

TEST_FILE_NAME: Final = "test.yaml"


def find_tests(paths: Iterable[Path]) -> list[Path]:
    """Return the files in *paths* and every ``test.yaml`` in its directories, each once, in path order.

    Hidden directories are skipped.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(_find_tests_below(path), key=lambda file: file.parts)))
        elif path.exists():
            found[path] = None
        else:
            raise StoreError(f"{path}: No such file or directory; name a test.yaml or a directory of tests")
    return list(found)


def _raise(error: OSError) -> None:
    raise error


def _find_tests_below(directory: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(directory, onerror=_raise):
        names[:] = [name for name in names if not name.startswith(".")]
        if TEST_FILE_NAME in files:
            yield Path(parent, TEST_FILE_NAME)


DEFAULT_DIRECTORY: Final = Path("test-results")
"""For tests that save their trace, if the user names no directory."""
EVIDENCE_CHARACTERS: Final = 400
"""Printed length of an event, of parameters and of an observation."""


class Plan(NamedTuple):
    """The settings that all tests of one run share; it is pickled for other processes."""

    test_run_id: str
    settings: Settings = Settings()
    name: str | None = None
    """Run only tests whose id, title or path contains it."""
    tags: tuple[str, ...] = ()
    """Run only tests with one of them."""
    strict: bool = False
    """Whether an unknown key or parameter is an error."""
    output_directory: Path | None = None
    """Where result files go; with ``None`` only the traces that tests ask for are written."""
    replay: ReplayForTest | None = None
    """Runs the commands of tests; without it, a test with a command cannot be run."""
    run_in_files: RunInFiles | None = None
    """Runs the commands of assertions; without it, such assertions fail."""


class Outcome(NamedTuple):
    """A result, with more facts for a report for people."""

    result: TestResult
    title: str
    lines: dict[str, int]
    """The line of each assertion in the test file, by id; empty if the test passed without a warning."""
    events: dict[str, str]
    """The events that failed assertions refer to, by id, one line each."""


PROBLEMS: Final = "problems"
"""The member of an error with all problems of a file, if there are several."""


_CHUNK: Final = 64
_MANY_TESTS: Final = 200
"""From this number of tests on, several processes are faster."""


class SuiteReport(msgspec.Struct, frozen=True):
    """The results of :func:`reenact.test`."""

    summary: SuiteSummary
    outcomes: list[Outcome]
    """In the order of the tests."""

    @property
    def passed(self) -> bool:
        """Whether every test was run and passed."""
        return not self.summary.errors and not self.summary.failed


def run_suite(
    *paths: str | Path,
    replay: ReplayForTest | None = None,
    run_in_files: RunInFiles | None = None,
    name: str | None = None,
    tags: Collection[str] = (),
    strict: bool = False,
    out: str | Path | None = None,
    jobs: int | None = 1,
    on: str | None = None,
    allow_code: bool = False,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> SuiteReport:
    """Run the assertions of every test file in *paths* over the recorded runs that they name.

    Commands that tests name are run by *replay*, those of assertions by *run_in_files*; both are functions of
    a module, because they are pickled for other processes. The rest is as in :func:`reenact.rerun.test`.
    """
    settings = project_settings(allow_code=allow_code)
    output_directory = None if out is None else Path(out)
    plan = Plan(
        f"run-{secrets.token_hex(4)}",
        settings,
        name,
        tuple(tags),
        strict,
        output_directory,
        replay,
        run_in_files,
    )
    files = find_tests(map(Path, paths))
    started_at = datetime.now(UTC)
    outcomes = []
    for outcome in run_tests(files, plan, jobs=worker_count(jobs, is_much=len(files) >= _MANY_TESTS), on=on):
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
    if not outcomes:
        what = "no test has this name or tag" if files else "no test.yaml found"
        raise UsageError(f"{', '.join(map(str, paths))}: {what}")
    finished_at = datetime.now(UTC)
    summary = summarize(
        (outcome.result for outcome in outcomes),
        test_run_id=plan.test_run_id,
        started_at=rfc3339(started_at),
        finished_at=rfc3339(finished_at),
        duration_ms=round((finished_at - started_at).total_seconds() * 1000, 3),
    )
    return SuiteReport(summary, outcomes)


def project_settings(*, allow_code: bool) -> Settings:
    """The settings of the project; :class:`UsageError` if they name code that may not be run."""
    settings = find_settings(Path.cwd())
    if settings.assertions and not allow_code:
        raise UsageError(
            f"{PROJECT_FILE} names Python files ({', '.join(settings.assertions)}); they are run with "
            "--allow-code, or where REENACT_ALLOW_CODE=1 is set"
        )
    return settings


def run_tests(
    files: Sequence[Path], plan: Plan, *, jobs: int = 1, on: str | None = None
) -> Iterator[Outcome]:
    """The outcomes in the order of *files*, each as soon as those before it are done."""
    kinds_for(plan.settings)  # reports wrong settings before the first test
    numbered = list(enumerate(files, 1))
    if on is None and (jobs <= 1 or len(files) < 2):
        for index, file in numbered:
            yield from _run_if_chosen(index, file, plan)
        return
    size = max(1, min(_CHUNK, len(files) // (jobs * 4)))
    chunks = [numbered[start : start + size] for start in range(0, len(numbered), size)]
    for outcomes in map_batches(partial(_run_chunk, plan=plan), chunks, jobs=min(jobs, len(chunks)), on=on):
        yield from _from_worker.decode(outcomes)


def _run_chunk(numbered: list[tuple[int, Path]], plan: Plan) -> bytes:
    outcomes = [outcome for index, file in numbered for outcome in _run_if_chosen(index, file, plan)]
    return msgspec.msgpack.encode(outcomes)  # several times as fast as pickling


_from_worker: Final = msgspec.msgpack.Decoder(list[Outcome])


def _run_if_chosen(index: int, file: Path, plan: Plan) -> Iterator[Outcome]:
    outcome = run_test(file, plan, index=index)
    if outcome is not None:
        yield outcome


def kinds_for(settings: Settings) -> dict[str, Judge]:
    """All assertion types under *settings*; loaded once per process, and again if a file changes."""
    return _kinds(tuple((name, _changed_at_ns(name)) for name in settings.assertions))


@cache
def _kinds(files: tuple[tuple[str, int], ...]) -> dict[str, Judge]:
    return all_kinds(Path(name) for name, _ in files)


def _changed_at_ns(name: str) -> int:
    file = Path(name)
    return file.stat().st_mtime_ns if file.is_file() else 0


def run_test(file: Path, plan: Plan, *, index: int = 1) -> Outcome | None:
    """The outcome of one test; ``None`` if the plan does not select it.

    A file that cannot be read is always selected, because its id and tags are unknown.
    """
    started_at = datetime.now(UTC)
    case: TestCase | None = None
    data = b""
    try:
        data = file.read_bytes()
        read = read_with_warnings(data, str(file), strict=plan.strict)
        case = read.case
        if not _is_chosen(case, file, plan):
            return None
        trace = read_trace_of(
            case, file, test_run_id=plan.test_run_id, started_at=started_at, replay=plan.replay
        )
        judged = _judge_all(case, trace, plan)
        result = _result(case, file, trace, judged, started_at, plan)
        result = _with_warnings(result, read, data, plan)
        outcome = Outcome(result, case.name, _assertion_lines(data, judged), _events_behind(judged, trace))
        return _save_outcome(outcome, case, trace, index, plan)
    except (ReenactError, OSError) as error:
        found = _error_of(error, file, data, case)
    except Exception as error:  # a bug of ours must not stop the other tests
        found = TestError(message=f"internal error: {type(error).__name__}: {error}", file=str(file))
    outcome = _failed_outcome(case, file, found, started_at, plan)
    if plan.output_directory is None:
        return outcome
    return outcome._replace(result=save(outcome.result, None, plan.output_directory, index))


def _is_chosen(case: TestCase, file: Path, plan: Plan) -> bool:
    names = (case.id, case.name, str(file))
    has_name = plan.name is None or any(plan.name.casefold() in name.casefold() for name in names)
    return has_name and (not plan.tags or not set(plan.tags).isdisjoint(case.tags or ()))


def judge_capture(
    file: Path, reader: CaptureReader, *, allow_code: bool = False
) -> Literal["passed", "failed"]:
    """Judge a given run by the assertions of the test *file*, whichever run the file names."""
    plan = Plan("export", project_settings(allow_code=allow_code))
    case = read_with_warnings(file.read_bytes(), str(file)).case
    trace = trace_of_run(read_capture(reader), case=case, trace_id=case.id, test_run_id=plan.test_run_id)
    return "passed" if verdict(_judge_all(case, trace, plan)) == "pass" else "failed"


def _judge_all(case: TestCase, trace: Trace, plan: Plan) -> list[AssertionResult]:
    kinds = kinds_for(plan.settings)
    if plan.run_in_files is not None:
        kinds = kinds | {command_succeeds_in_workspace.__name__: allow_commands(plan.run_in_files)}
    defaults = plan.settings.defaults
    return [judge(assertion, trace, kinds, defaults, strict=plan.strict) for assertion in case.assertions]


def _result(
    case: TestCase,
    file: Path,
    trace: Trace,
    judged: list[AssertionResult],
    started_at: datetime,
    plan: Plan,
) -> TestResult:
    finished_at = datetime.now(UTC)
    return TestResult(
        schema_version=SCHEMA_VERSION,
        test_case_id=case.id,
        test_file=str(file),
        test_run_id=plan.test_run_id,
        status=verdict(judged),
        started_at=rfc3339(started_at),
        finished_at=rfc3339(finished_at),
        duration_ms=_milliseconds(started_at, finished_at),
        assertions=judged,
        artifacts={name: str(path) for name, path in trace.artifacts.items()},
    )


def _with_warnings(result: TestResult, read: CaseRead, data: bytes, plan: Plan) -> TestResult:
    """*result* with warnings about unknown keys in the test file, each with its line."""
    found = [(problem.json_path, problem.message) for problem in read.warnings]
    found += [
        (f"$.assertions[{index}].params{name.path}", name.message)
        for index, assertion in enumerate(read.case.assertions)
        for name in unknown_params_of(assertion, kinds_for(plan.settings))
    ]
    if not found:
        return result
    document = read_yaml(data, "")
    placed = [(document.place(path).line, path, message) for path, message in found]
    warnings = [
        TestWarning(message=message, line=line, json_path=path) for line, path, message in sorted(placed)
    ]
    return msgspec.structs.replace(result, warnings=warnings)


def _assertion_lines(data: bytes, judged: list[AssertionResult]) -> dict[str, int]:
    if all(found.status != "fail" for found in judged):
        return {}
    document = read_yaml(data, "")
    return {found.id: document.place(f"$.assertions[{index}]").line for index, found in enumerate(judged)}


def _events_behind(judged: list[AssertionResult], trace: Trace) -> dict[str, str]:
    wanted = {ref for found in judged if found.status == "fail" for ref in found.evidence.event_refs}
    return {
        event.event_id: f"{event.type} {shorten(event.data, EVIDENCE_CHARACTERS)}"
        for event in trace.events
        if event.event_id in wanted
    }


def _save_outcome(outcome: Outcome, case: TestCase, trace: Trace, index: int, plan: Plan) -> Outcome:
    """Write the files of the outcome, without the values that the test hides."""
    reporting = case.reporting or Reporting()
    wants_trace = reporting.save_trace is True
    directory = plan.output_directory or (DEFAULT_DIRECTORY if wants_trace else None)
    if directory is None and not reporting.redact_fields:
        return outcome
    value = TRACE_CODEC.to_json(trace)
    hidden = hidden_values(value, reporting.redact_fields or ())
    events = {name: str(hide_values(text, hidden)) for name, text in outcome.events.items()}
    outcome = outcome._replace(result=hide_in_result(outcome.result, hidden), events=events)
    if directory is None:
        return outcome
    kept = None if reporting.save_trace is False else hide_values(value, hidden)
    return outcome._replace(result=save(outcome.result, kept, directory, index))


def _failed_outcome(
    case: TestCase | None, file: Path, error: TestError, started_at: datetime, plan: Plan
) -> Outcome:
    finished_at = datetime.now(UTC)
    result = TestResult(
        schema_version=SCHEMA_VERSION,
        test_case_id=case.id if case else None,
        test_file=str(file),
        test_run_id=plan.test_run_id,
        status="error",
        started_at=rfc3339(started_at),
        finished_at=rfc3339(finished_at),
        duration_ms=_milliseconds(started_at, finished_at),
        assertions=[],
        artifacts={},
        error=error,
    )
    return Outcome(result, case.name if case else "", {}, {})


def _milliseconds(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds() * 1000, 3)


def _error_of(error: ReenactError | OSError, file: Path, data: bytes, case: TestCase | None) -> TestError:
    """Why the test in *file* could not be run; *data* is its text, *case* the parsed test if any."""
    if isinstance(error, OSError):
        return TestError(message=error.strerror or str(error), file=str(error.filename or file))
    if not isinstance(error, FormatError):
        return TestError(message=str(error), file=str(file))
    if error.file is None and error.json_path is not None:
        error.at(file=str(file), line=read_yaml(data, str(file)).place(error.json_path).line)
    listed = _problems_of_test(file) if case is None else _problems_of_source(case, file)
    return TestError(
        message=error.reason,
        file=error.file or str(file),
        line=ABSENT if error.line is None else error.line,
        json_path=ABSENT if error.json_path is None else error.json_path,
        extra={PROBLEMS: listed} if len(listed) > 1 else {},
    )


def _problems_of_test(file: Path) -> list[str]:
    """One line per problem, from top to bottom; none if the file cannot be parsed."""
    try:
        return _describe_errors(check_test_case(read_yaml(file.read_bytes(), str(file))), file)
    except (FormatError, OSError):
        return []


def _problems_of_source(case: TestCase, file: Path) -> list[str]:
    """The same for the bundle of a test; for other sources only the first problem is known."""
    if case.adapter_input.replay_file is ABSENT:
        return []
    bundle = file.parent / case.adapter_input.replay_file
    try:
        return _describe_errors(check_bundle(read_json(bundle.read_bytes())), bundle)
    except (FormatError, OSError):
        return []


def _describe_errors(problems: Iterable[FormatProblem], file: Path) -> list[str]:
    errors = (problem.to_error().at(file=str(file)) for problem in problems if problem.severity == "error")
    return [str(error) for error in errors]
