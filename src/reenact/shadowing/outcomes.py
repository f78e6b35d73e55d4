"""The result of a run, and how the results of two runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from reenact import canonical
from reenact.analysis.artifact import open_artifact
from reenact.errors import StoreError
from reenact.formats.record import ABSENT
from reenact.formats.result import verdict
from reenact.formats.shadow import CalledTool, Difference, FirstDifference, RunOutcome
from reenact.formats.testcase import TestCase, read_with_warnings
from reenact.formats.trace import Trace
from reenact.store.reader import CaptureReader
from reenact.suite.judge import judge
from reenact.suite.runner import kinds_for, project_settings
from reenact.suite.settings import Price, find_settings
from reenact.suite.verdict import shorten
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture

_SHOWN: Final = 160
_NOTHING: Final = "nothing more"


class Judging(NamedTuple):
    """The assertions of a test, applied to any run."""

    case: TestCase
    file: str

    @classmethod
    def read(cls, file: Path, *, allow_code: bool = False) -> Judging:
        """Read the test in *file*; raises if it is invalid, or needs project code that is not allowed."""
        try:
            data = file.read_bytes()
        except OSError as error:
            raise StoreError(f"{file}: {error.strerror}; name a test.yaml") from None
        kinds_for(project_settings(allow_code=allow_code))
        return cls(read_with_warnings(data, str(file), strict=False).case, str(file))

    def judge(self, trace: Trace) -> list[str]:
        """The critical assertions that the run fails."""
        settings = find_settings(Path.cwd())
        kinds = kinds_for(settings)
        found = [
            judge(assertion, trace, kinds, settings.defaults, strict=False)
            for assertion in self.case.assertions
        ]
        if verdict(found) == "pass":
            return []
        bad = [each for each in found if each.status == "fail" and each.severity == "critical"]
        return [f"{each.id}: {each.message}" for each in bad] or ["the test failed"]


def read_outcome(
    path: str | Path, judging: Judging | None = None, prices: Mapping[str, Price] | None = None
) -> RunOutcome:
    """Read the result of the run in the capture *path*."""
    reader = CaptureReader(path)
    case = None if judging is None else judging.case
    trace = trace_of_run(read_capture(reader), trace_id=str(path), test_run_id="shadow", case=case)
    with open_artifact(path, dict(prices or {})) as artifact:
        artifact.index()
        counts = artifact.counts()
    manifest = reader.manifest
    exit_status = None if manifest.exitStatus is ABSENT else int(manifest.exitStatus)
    is_ok = manifest.status == "ok" and exit_status in (None, 0)
    printed = "" if manifest.stdout is ABSENT else manifest.stdout.digest
    failed = judging.judge(trace) if judging is not None else []
    tokens = counts.tokens
    return RunOutcome(
        path=str(path),
        capture_id=manifest.captureId,
        exit_status=exit_status,
        is_ok=is_ok,
        output=trace.final_output.content or printed,
        printed=printed,
        tools=_tools_in(trace),
        passed=is_ok if judging is None else not failed,
        failed_assertions=failed,
        tokens=tokens.input + tokens.output if tokens is not None else 0,
        cost=counts.cost,
        duration_ms=_duration_ms(reader),
    )


def _duration_ms(reader: CaptureReader) -> float:
    """From the first call to the end."""
    last = len(reader)
    return float(reader.event(last).ts - reader.event(min(2, last)).ts)


def no_outcome(path: str | Path, problem: str) -> RunOutcome:
    """The result of a run that could not be made."""
    return RunOutcome(path=str(path), is_ok=False, passed=False, problem=problem)


def _tools_in(trace: Trace) -> list[CalledTool]:
    """The tool calls of a run; the id of an event is its line number: ``evt-17``."""
    return [
        CalledTool(
            str(event.data.get("tool")),
            canonical.encode(event.data.get("args")).decode(),
            int(event.event_id.removeprefix("evt-").partition(".")[0]),
        )
        for event in trace.events
        if event.type == "tool_call"
    ]


def compare_outcomes(
    recorded: RunOutcome, candidate: RunOutcome
) -> tuple[Difference, FirstDifference | None]:
    """Find the first difference of *candidate*.

    Parallel tools may start in any order, so only their names and arguments are compared.
    """
    if candidate.problem:
        return "failed", FirstDifference("", candidate.problem)
    where = _first_other_tool(recorded.tools, candidate.tools)
    if recorded.is_ok and not candidate.is_ok:
        ended = f"exit status {candidate.exit_status}" if candidate.exit_status is not None else "an error"
        return "failed", where or FirstDifference("ended well", ended)
    if where is not None:
        return "tools", where
    if recorded.output != candidate.output:
        said = shorten(recorded.output, _SHOWN), shorten(candidate.output, _SHOWN)
        return "words", FirstDifference(*said)
    if recorded.printed and candidate.printed and recorded.printed != candidate.printed:
        return "words", FirstDifference("", "prints something else")
    return "same", None


def _first_other_tool(
    recorded: Sequence[CalledTool], candidate: Sequence[CalledTool]
) -> FirstDifference | None:
    before, now = count_tools(recorded), count_tools(candidate)
    if before == now:
        return None
    lost, new = before - now, now - before
    left = next((use for use in recorded if (use.name, use.args) in lost), None)
    right = next((use for use in candidate if (use.name, use.args) in new), None)
    return FirstDifference(
        str(left) if left else _NOTHING, str(right) if right else _NOTHING, right.seq if right else None
    )


def count_tools(tools: Sequence[CalledTool]) -> Counter[tuple[str, str]]:
    """The number of calls with each name and arguments."""
    return Counter((use.name, use.args) for use in tools)
