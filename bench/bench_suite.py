"""Running ten thousand small tests beside parsing the same files with nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import yaml

from bench.figure import Figure, TimesAsLong

TESTS = 10_000
BUDGET_S = 10.0
"""For all of them, on two cores."""

TEST = """\
schema_version: "0.1"
id: bench.{index}
title: Looks it up and answers briefly
adapter: nanoclaw
mode: replay
scenario: {{trigger: user_message, group_id: home}}
tools: {{available: [search]}}
adapter_input: {{replay_file: replay.json}}
assertions:
  - {{id: looks, type: must_call_tool, params: {{tool: search}}}}
  - {{id: once, type: max_tool_calls, params: {{tool: search, max: 1}}}}
  - {{id: answers, type: output_contains, params: {{any_of: [rain, sun]}}}}
"""
BUNDLE = {
    "schema_version": "0.1",
    "adapter": "nanoclaw-replay",
    "scenario": {"trigger": "user_message", "group_id": "home"},
    "input_messages": [{"role": "user", "content": "Will it rain?"}],
    "script": [
        {"type": "tool_call", "tool": "search", "call_id": "c1", "args": {"query": "weather"}},
        {
            "type": "tool_result",
            "tool": "search",
            "call_id": "c1",
            "success": True,
            "result": {"items": ["rain"]},
        },
    ],
    "final_output": {"role": "assistant", "content": "It will rain."},
    "status": "success",
    "metrics": {"timing_ms_total": 900},
}


def figures() -> Iterator[Figure]:
    """The whole command, start to end, beside its budget; its processor time beside that of bare parsing.

    Processor time, because what else the machine does at the moment is not in it.
    """
    with TemporaryDirectory() as scratch:
        root = Path(scratch)
        files = [*_write(root)]
        (ours_s, ours_cpu_s), beside_cpu_s = _run(root), _parse(files)
    cores = len(os.sched_getaffinity(0))
    what = f"{TESTS} small tests, {cores} cores"
    yield Figure(what, ours_s, "10 s", BUDGET_S, TimesAsLong(1))
    yield Figure(
        "the same, processor time", ours_cpu_s, "libyaml and json alone", beside_cpu_s, TimesAsLong(5)
    )


def _write(root: Path) -> Iterator[Path]:
    bundle = json.dumps(BUNDLE)
    for index in range(TESTS):
        home = root / f"{index // 100:03d}" / f"{index % 100:02d}"
        home.mkdir(parents=True)
        (home / "replay.json").write_text(bundle)
        (home / "test.yaml").write_text(TEST.format(index=index))
        yield home


def _run(root: Path) -> tuple[float, float]:
    """Seconds on the wall, and of all processors together."""
    command = [sys.executable, "-m", "reenact", "test", str(root), "-j", "0"]
    start, before = perf_counter(), _cpu_s_of_children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start, _cpu_s_of_children() - before


def _cpu_s_of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parse(homes: list[Path]) -> float:
    start = process_time()
    for home in homes:
        yaml.load((home / "test.yaml").read_bytes(), Loader=yaml.CSafeLoader)
        json.loads((home / "replay.json").read_bytes())
    return process_time() - start
