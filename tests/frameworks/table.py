"""``docs/supported.md``, made from the results that the last tries left."""

from __future__ import annotations

import json
from itertools import groupby

from tests.frameworks.installed import FRAMEWORKS, ROOT, frameworks
from tests.frameworks.trial import DURATIONS, PRINTED, REPLAYS

RESULTS = FRAMEWORKS / "results.json"
PAGE = ROOT / "docs" / "supported.md"

_HEAD = """\
# What replays exactly

These are small agents on many frameworks, written as the documentation of each framework shows it. A test
records each agent without any edit (`reenact record -- python agent.py`) against a scripted model that
listens on the same machine. Then it replays the recording strictly, three times:

1. in the same folder
2. in another folder
3. in another folder, with another home, another time zone and a date 40 days later

Before each replay, folder and home are as the recorded run found them.

- **exact**: the verdict is *reproduced*, exit status and standard output are the same (up to random UUIDs and
  the run's own folders), and no connection reached the model
- **other output**: all calls were the same, but the agent printed something else, such as lines of threads in
  another order
- **other durations**: only printed durations differ. They come from a clock that is not recorded

A replay reports output that differs; `--strict-output` makes it a divergence. The agents are in
`tests/frameworks/`. `make test-frameworks` writes this page; `make test-frameworks ONLY=crewai,dspy` tries
some of them.

"""


def read_results() -> list[dict]:
    """The results as kept; none before the first run."""
    return json.loads(RESULTS.read_bytes()) if RESULTS.exists() else []


def keep(result: dict) -> None:
    """Keep *result* in place of the agent's earlier one, forget agents that are gone, and write the page."""
    there = {(framework.name, agent.stem) for framework in frameworks() for agent in framework.agents}
    kept = {(each["framework"], each["agent"]): each for each in [*read_results(), result]}
    together = [kept[key] for key in sorted(kept) if key in there]
    RESULTS.write_text(json.dumps(together, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(together))


def page(results: list[dict]) -> str:
    """The page about *results*."""
    exact = sum(is_exact(result) for result in results)
    lines = [f"**{exact} of {len(results)} agents are exact in all three.**", ""]
    lines += [
        "| framework | version | agent | " + " | ".join(REPLAYS) + " |",
        "|---|---|---|" + "---|" * len(REPLAYS),
    ]
    for _, group in groupby(results, lambda result: result["framework"]):
        for number, result in enumerate(group):
            name, version = (result["framework"], result["version"]) if not number else ("", "")
            cells = [name, version, result["agent"], *map(_cell, _outcomes(result))]
            lines.append(f"| {' | '.join(cells)} |")
    return _HEAD + "\n".join([*lines, *_failures(results)]) + "\n"


def is_exact(result: dict) -> bool:
    return not any(_outcomes(result))


def _outcomes(result: dict) -> list[str]:
    return [result["recorded"] or result["replays"][name] for name in REPLAYS]


def _cell(problem: str) -> str:
    for said, cell in ((PRINTED, "**other output**"), (DURATIONS, "**other durations**")):
        if problem.startswith(said):
            return cell
    return "**failed**" if problem else "exact"


def _failures(results: list[dict]) -> list[str]:
    failed = [result for result in results if not is_exact(result)]
    if not failed:
        return []
    lines = ["", "## Failures", "", "The first line of what each said.", ""]
    for result in failed:
        problem = next(filter(None, _outcomes(result)))
        lines.append(f"- **{result['framework']}, {result['agent']}**: `{_plain(problem)}`")
    return lines


def _plain(text: str) -> str:
    """On one line and not too long for a page, without marks that would end the code."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= 200 else line[:199] + "…"
