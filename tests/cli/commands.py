"""The real command line in a process of its own, and a capture whose process went away."""

import os
import subprocess
import sys
from pathlib import Path

import reenact

AGENTS = Path(__file__).parents[1] / "agents"
PYTHON = sys.executable
CAPTURE_FILES = ["events.jsonl", "manifest.json", "transcript.md"]
_OURS = ("REENACT_", "COLUMNS", "NO_COLOR", "CI", "PYTHONPATH")

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
    "PYTHONPATH": str(Path(reenact.__file__).parents[1]),
}


def command(*words):
    """The words that run ``reenact`` with *words*."""
    return [PYTHON, "-m", "reenact", *map(str, words)]


def run(*words, cwd, timeout_s=60, input="", **environment):  # noqa: A002 — as subprocess calls it
    """Run ``reenact`` with *words* to its end; *input* comes by a pipe, where there is some."""
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env=ENVIRONMENT | environment,
        **({"input": input} if input else {"stdin": subprocess.DEVNULL}),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def interrupted(path, work, torn=b""):
    """Leave in *path* what a process leaves that is killed after *work* and in the middle of *torn*."""
    run = reenact.capture(path)
    run.__enter__()
    work()
    run.abandon()
    run._context._sink._run.abandon()
    with (path / "events.jsonl").open("ab") as log:
        log.write(torn)


def agent(name, *arguments):
    """The words that run an agent of ours."""
    return [PYTHON, str(AGENTS / f"{name}.py"), *arguments]
