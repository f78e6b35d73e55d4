"""``python -m tests.frameworks [NAME[/AGENT]]...``: install, record, replay, write ``docs/supported.md``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from subprocess import SubprocessError

from tests.frameworks.installed import Framework, frameworks
from tests.frameworks.table import is_exact, keep
from tests.frameworks.trial import REPLAYS, Result, try_agent

SCRATCH = Path(tempfile.gettempdir()) / "reenact-frameworks"
"""Outside of any repository, which agents that look for one would find."""


def main(argv: list[str] | None = None) -> int:
    """Try them, say how each went, and say by the exit status whether all were exact."""
    parser = argparse.ArgumentParser(prog="python -m tests.frameworks")
    parser.add_argument("only", nargs="*", help="frameworks by name, or NAME/AGENT; all without any")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args(argv)
    known = {framework.name: framework for framework in frameworks()}
    wanted = [part for word in arguments.only for part in word.split(",") if part] or list(known)
    if unknown := {part.partition("/")[0] for part in wanted} - known.keys():
        parser.error(f"no framework is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    agents = []
    for part in wanted:
        name, _, agent = part.partition("/")
        agents += [(known[name], path) for path in known[name].agents if agent in ("", path.stem)]
    problems = {
        framework.name: _install(framework) for framework in dict.fromkeys(each for each, _ in agents)
    }
    results = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        trials = [
            pool.submit(_try, framework, agent, problems[framework.name]) for framework, agent in agents
        ]
        for trial in as_completed(trials):
            results.append(trial.result())
            keep(results[-1])
    exact = sum(map(is_exact, results))
    print(f"{exact} of {len(results)} agents are exact")
    return 0 if exact == len(results) else 1


def _install(framework: Framework) -> str:
    """What went wrong; nothing when it is there."""
    try:
        framework.install()
    except (SubprocessError, OSError) as error:
        return f"could not be installed: {error}"
    return ""


def _try(framework: Framework, agent: Path, problem: str) -> dict:
    began = time.monotonic()
    result = Result(framework.name, agent.stem, problem, dict.fromkeys(REPLAYS, "not tried"))
    if not problem:
        result = try_agent(framework, agent, SCRATCH / framework.name / agent.stem)
    told = {**result.to_json(), "version": framework.version}
    state = "exact" if is_exact(told) else "FAILED"
    print(f"{framework.name}/{agent.stem}: {state} ({time.monotonic() - began:.0f} s)", flush=True)
    for name, problem in {"recording": result.recorded, **result.replays}.items():
        if problem and not (result.recorded and name != "recording"):
            print(f"    {name}: {problem[:400]}", flush=True)
    return told


if __name__ == "__main__":
    sys.exit(main())
