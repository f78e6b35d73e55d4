"""A first ``test.yaml`` for a capture: all assertions that hold, for the author to trim."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.bundle import SCHEMA_VERSION
from reenact.formats.testcase import (
    AdapterInput,
    Assertion,
    CaseScenario,
    TestCase,
    Tools,
    write_test_case,
)
from reenact.formats.trace import Trace, TraceEvent
from reenact.store.objects import address_in
from reenact.store.outfile import is_written_through, write_output
from reenact.store.reader import CaptureReader
from reenact.store.remote import local_run, remote_name
from reenact.suite.events import MEMORY_TYPES, calls, of_type
from reenact.suite.judge import BUILT_IN, judge
from reenact.suite.values import bullets, urls
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture

_HEADER: Final = b"""\
# Written from the capture below. Everything here holds now; keep what must hold for ever.
# Run it with: reenact test test.yaml
"""
_MAX_SEQUENCE: Final = 20
_MAX_ARGS_BYTES: Final = 500
_HEADROOM: Final = 2
"""Budgets are this many times the usage of the recorded run."""


def write_first_test(capture: str | Path, path: str | Path = "test.yaml") -> Path:
    """Write a test that holds for *capture* to the new file *path*, or to ``test.yaml`` in that folder.

    The file names the capture relative to itself, or by its address. Returns the file.
    """
    file = Path(path)
    file = file / "test.yaml" if file.is_dir() else file
    if file.exists() and not is_written_through(file):
        raise UsageError(f"{file}: exists already; name another file, or delete it")
    name = remote_name(capture)
    beside = name if address_in(name) else Path(os.path.relpath(name, file.parent)).as_posix()
    with local_run(capture) as folder:
        reader = CaptureReader(folder)
        trace = trace_of_run(read_capture(reader), trace_id=reader.manifest.captureId, test_run_id="init")
        write_output(file, first_test(trace, test_id=folder.resolve().name, capture=beside))
    return file


def first_test(trace: Trace, *, test_id: str, capture: str) -> bytes:
    """The text of the test; *capture* is written as given: an address, or relative to the test file."""
    assertions = [
        assertion for assertion in _candidates(trace) if judge(assertion, trace, BUILT_IN).status == "pass"
    ]
    scenario = trace.scenario
    case = TestCase(
        schema_version=SCHEMA_VERSION,
        id=test_id,
        title=f"{test_id} does what it did when it was recorded",
        adapter=trace.adapter.name,
        mode="replay",
        scenario=CaseScenario(trigger=scenario.trigger),
        tools=Tools(available=sorted({str(event.data.get("tool")) for event in calls(trace)})),
        adapter_input=AdapterInput(capture=capture),
        assertions=assertions,
    )
    return _HEADER + write_test_case(case)


def _candidates(trace: Trace) -> Iterator[Assertion]:
    yield from _assert_tools(trace)
    yield _assertion("no-errors", "no_errors", {})
    yield from _assert_output(trace)
    yield from _assert_state(trace)
    yield from _budgets(trace)


def _assert_tools(trace: Trace) -> Iterator[Assertion]:
    made = calls(trace)
    counts = Counter(str(event.data.get("tool")) for event in made)
    for tool, count in counts.items():
        yield _assertion(f"calls-{tool}", "must_call_tool", {"tool": tool, "min_calls": count})
    if 0 < len(made) <= _MAX_SEQUENCE:
        steps = [_step(event) for event in made]
        yield _assertion("same-calls", "tool_sequence", {"mode": "strict", "steps": steps})
    yield _assertion("no-more-calls", "max_tool_calls", {"max_total": len(made)})
    failed = {str(event.data["tool"]) for event in of_type(trace, "error") if event.data.get("tool")}
    for tool in sorted(failed):
        retries = {"tool": tool, "max_retries": max(0, counts[tool] - 1)}
        yield _assertion(f"retries-{tool}", "retry_policy_respected", retries)


def _step(event: TraceEvent) -> dict[str, JsonValue]:
    """The call with its arguments, unless they are too long for a test file."""
    step = {"tool": event.data.get("tool")}
    args = event.data.get("args")
    return step | {"args": args} if len(canonical.encode(args)) <= _MAX_ARGS_BYTES else step


def _assert_output(trace: Trace) -> Iterator[Assertion]:
    output = trace.final_output.content
    yield _assertion("no-secrets", "no_secret_in_output", {})
    if found := bullets(output):
        limits = {"format": "bullet_list", "min_bullets": len(found), "max_bullets": len(found)}
        yield _assertion("bullets", "output_matches_format", limits)
    yield _assertion("json", "output_matches_format", {"format": "json"})
    if urls(output):
        yield _assertion("real-sources", "no_fabricated_source_or_citation", {})


def _assert_state(trace: Trace) -> Iterator[Assertion]:
    touched = of_type(trace, *MEMORY_TYPES, "state_mutation")
    paths = sorted({path for event in touched if isinstance(path := event.data.get("path"), str)})
    if paths:
        yield _assertion("touches-only", "state_mutation_allowed", {"paths": paths})


def _budgets(trace: Trace) -> Iterator[Assertion]:
    usage = trace.metrics.token_usage
    if isinstance(usage, dict) and isinstance(usage.get("total_tokens"), int):
        yield _assertion("tokens", "token_budget", {"max_total": usage["total_tokens"] * _HEADROOM})


def _assertion(name: str, kind: str, params: dict[str, object]) -> Assertion:
    return Assertion(id=name, type=kind, params=params) if params else Assertion(id=name, type=kind)
