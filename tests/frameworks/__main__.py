"""``python -m tests.frameworks [NAME[/AGENT]]...``: install, record, replay, write ``docs/supported.md``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CalledProcessError

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
    wanted = [part for word in arguments.only for part in word.split(",") if part]
    if unknown := {part.partition("/")[0] for part in wanted} - known.keys():
        parser.error(f"no framework is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = [
        known[name] for name in known if not wanted or name in {part.partition("/")[0] for part in wanted}
    ]
    single = {part for part in wanted if "/" in part}
    results = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for framework in chosen:
            agents = [
                path for path in framework.agents if not single or f"{framework.name}/{path.stem}" in single
            ]
            results += [
                {**result, "version": framework.version} for result in _try_all(pool, framework, agents)
            ]
            if not single:
                keep([each for each in results if each["framework"] == framework.name], {framework.name})
    exact = sum(map(is_exact, results))
    print(f"{exact} of {len(results)} agents are exact")
    return 0 if exact == len(results) else 1


def _try_all(pool: ThreadPoolExecutor, framework: Framework, agents: list[Path]) -> list[dict]:
    try:
        framework.install()
    except (CalledProcessError, OSError) as error:
        problem = f"could not be installed: {error}"
        return [
            Result(framework.name, agent.stem, problem, dict.fromkeys(REPLAYS, "not tried")).to_json()
            for agent in agents
        ]
    return list(pool.map(lambda agent: _try(framework, agent), agents))


def _try(framework: Framework, agent: Path) -> dict:
    began = time.monotonic()
    result = try_agent(framework, agent, SCRATCH / framework.name / agent.stem).to_json()
    state = "exact" if is_exact(result) else "FAILED"
    print(f"{framework.name}/{agent.stem}: {state} ({time.monotonic() - began:.0f} s)", flush=True)
    for name, problem in {"recording": result["recorded"], **result["replays"]}.items():
        if problem and not (result["recorded"] and name != "recording"):
            print(f"    {name}: {problem[:400]}", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
