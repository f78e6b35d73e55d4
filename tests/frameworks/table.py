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

Small agents on many frameworks, written as their own documentation shows it. Each was recorded with no edit
(`reenact record -- python agent.py`) against a scripted model that really listens on the same machine, and
replayed strictly three times: in the same folder; in another folder; and in another folder with another home,
another time zone and a date 40 days later. Folder and home were each time as the recorded run had found them.
It counts as exact when the verdict is *reproduced*, exit status and standard output are the same, up to
random UUIDs and the run's own folders, and no connection reached the model. *Other output* means that all
calls were the same and something else was printed, such as lines of threads in another order; *other
durations* that nothing differs but how long something took, by a clock that a library read to print it. Such
a clock is not recorded, because it reaches no request: a replay notes what was printed otherwise, and
`--strict-output` makes it a divergence. The agents are in `tests/frameworks/`; `make test-frameworks` makes
this page, and `make test-frameworks ONLY=crewai,dspy` tries some of them.

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
