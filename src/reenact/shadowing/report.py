"""A shadow report for a terminal, for JUnit, and as a self-contained page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final, Literal, TypeAlias
from xml.etree import ElementTree as ET

import msgspec

from reenact.analysis.brief import duration, plural
from reenact.canonical import JsonValue
from reenact.formats.shadow import Difference, Rate, RunOutcome, ShadowReport, ShadowRun, StepsReport
from reenact.shadowing.samples import SamplesReport
from reenact.suite.reports import to_xml_text

FailOn: TypeAlias = Literal["worse", "failed", "changed"]
WORDS: Final[dict[Difference, str]] = {
    "same": "the same",
    "words": "other words",
    "tools": "other tools",
    "failed": "failed",
}
_SHOWN: Final = 120


def is_bad(report: ShadowReport, fail_on: FailOn) -> bool:
    """Whether a shadow run fails: no run could be compared, or the result is what *fail_on* names."""
    if not report.comparison.runs:
        return True
    if fail_on == "worse":
        return report.comparison.is_worse
    if fail_on == "failed":
        return bool(report.counts["failed"])
    return report.counts["same"] < report.comparison.runs


def report_lines(report: ShadowReport, *, every: bool = False) -> Iterator[str]:
    """The changed runs and the verdict; with *every*, all runs."""
    for run in report.runs:
        if every or run.set_apart or run.difference != "same" or _verdict_of(run):
            yield from _run_lines(run)
    counts = ", ".join(f"{count} {WORDS[name]}" for name, count in report.counts.items() if count)
    apart = f"; {plural(report.set_apart, 'run')} set apart" if report.set_apart else ""
    yield f"{plural(report.comparison.runs, 'run')}: {counts or 'none to compare'}{apart}"
    yield from (f"  {line}".rstrip() for line in _total_lines(report))
    if report.is_interrupted:
        yield "  interrupted: this is about what was done by then"
    yield report.verdict


def _run_lines(run: ShadowRun) -> Iterator[str]:
    if run.set_apart:
        yield f"{'set apart':<12}  {run.path}"
        yield f"{'':<14}the old agent does not reproduce it: {_shorten(run.set_apart)}"
        return
    verdict = _verdict_of(run)
    yield f"{WORDS[run.difference]:<12}  {run.path}{f'  ({verdict})' if verdict else ''}"
    if run.first is not None:
        place = f"event {run.first.seq}: " if run.first.seq else ""
        if run.first.recorded:
            yield f"{'':<14}{place}{_shorten(run.first.recorded)} -> {_shorten(run.first.candidate)}"
        else:
            yield f"{'':<14}{_shorten(run.first.candidate)}"


def _verdict_of(run: ShadowRun) -> str:
    """How the test result changed; empty if it did not."""
    if not run.candidates:
        return ""
    passed, total = sum(each.passed for each in run.candidates), len(run.candidates)
    if run.recorded.passed == (passed == total) and passed in (0, total):
        return ""
    now = ("passes now" if passed else "fails now") if total == 1 else f"{passed} of {total} pass"
    return now if not run.recorded.passed or passed < total else ""


def _total_lines(report: ShadowReport) -> Iterator[str]:
    found = report.comparison
    yield f"{'':<12}{'recorded':<28}{'candidate':<28}"
    yield f"{'passed':<12}{found.recorded!s:<28}{found.candidate!s:<28}"
    counted = [run for run in report.counted if run.candidates]
    before = [run.recorded for run in counted]
    now = [each for run in counted for each in run.candidates]
    for name, left, right in _mean_figures(before, now):
        yield f"{name:<12}{left:<28}{right:<28}"
    points = [f"{100 * each:+.0f}" for each in (found.difference, found.low, found.high)]
    change = f"{points[0]} points ({points[1]} to {points[2]})"
    yield f"{'difference':<12}{change}, {found.better} better, {found.worse} worse, p = {found.p_value:.2g}"
    if report.samples > 1:
        yield f"{'pass^k':<12}" + ", ".join(f"{k}: {chance:.0%}" for k, chance in report.pass_power.items())
    how = "replayed strictly" if report.baseline == "replayed" else "as recorded, the old agent was not run"
    yield f"{'baseline':<12}{how}"


def _mean_figures(before: Sequence[RunOutcome], now: Sequence[RunOutcome]) -> Iterator[tuple[str, str, str]]:
    """Mean figures per run, over the runs that were made."""
    sides = [[each for each in side if not each.problem] for side in (before, now)]
    if not all(sides):
        return
    tokens = [f"{sum(each.tokens for each in side) / len(side):,.0f}" for side in sides]
    yield "tokens", tokens[0], tokens[1]
    if any(each.cost is not None for side in sides for each in side):
        costs = [f"{sum(each.cost or 0.0 for each in side) / len(side):.4g}" for side in sides]
        yield "cost", costs[0], costs[1]
    times = [duration(sum(each.duration_ms for each in side) / len(side)) for side in sides]
    yield "time", times[0], times[1]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def sample_lines(report: SamplesReport) -> Iterator[str]:
    """The results of samples, the most frequent first."""
    total = len(report.outcomes)
    for group in report.groups:
        outcome, count = group.outcome, len(group.paths)
        yield f"{Rate.of(count, total)}  {_describe_outcome(outcome)}"
        yield f"  {_shorten(outcome.problem or outcome.output or '(no output)')}"
        names = [use.name for use in outcome.tools]
        if names:
            yield f"  tools: {_shorten(', '.join(names))}"
        yield f"  first in {group.paths[0]}"
    made = total - report.failed.count
    wanted = f" of {report.wanted} (interrupted)" if report.is_interrupted else ""
    where = f"at event {report.at} of {report.parent}"
    yield f"{plural(total, 'sample')}{wanted} {where}: {plural(made, 'fork')} in {report.output}"
    yield f"  ended well  {report.ended_well}"
    if report.passed != report.ended_well:
        yield f"  passed      {report.passed}"
    if made:
        yield f"  as recorded {report.same}"


def _describe_outcome(outcome: RunOutcome) -> str:
    if outcome.problem:
        return "no fork"
    ended = f"exit status {outcome.exit_status}" if outcome.exit_status is not None else "ended"
    return (
        ended if outcome.passed else f"{ended}, {_shorten('; '.join(outcome.failed_assertions) or 'failed')}"
    )


def report_json(report: ShadowReport | StepsReport) -> dict[str, JsonValue]:
    """The report as one JSON object, which the viewer opens."""
    value: dict[str, Any] = msgspec.to_builtins(report)
    return value | ({"verdict": report.verdict} if isinstance(report, ShadowReport) else {})


# JUnit


def junit_report(report: ShadowReport) -> bytes:
    """One test case per run: a failure if it fails or no longer passes, skipped if it is set apart."""
    failures = sum(_is_failure(run) for run in report.runs)
    counts = {
        "name": "reenact shadow",
        "tests": str(len(report.runs)),
        "failures": str(failures),
        "errors": "0",
        "time": _seconds(report.runs),
    }
    root = ET.Element("testsuites", counts)
    # The common schema has this attribute only here.
    suite = ET.SubElement(root, "testsuite", counts | {"skipped": str(report.set_apart)})
    for run in report.runs:
        names = {"classname": "shadow", "name": to_xml_text(run.path), "time": _seconds([run])}
        case = ET.SubElement(suite, "testcase", names)
        said = "\n".join(_run_lines(run))
        if run.set_apart:
            ET.SubElement(case, "skipped", {"message": to_xml_text(run.set_apart)})
        elif _is_failure(run):
            message = to_xml_text(_verdict_of(run) or WORDS[run.difference])
            ET.SubElement(case, "failure", {"message": message, "type": run.difference}).text = to_xml_text(
                said
            )
        elif run.difference != "same":
            ET.SubElement(case, "system-out").text = to_xml_text(said)
    ET.SubElement(suite, "system-out").text = to_xml_text("\n".join(report_lines(report)))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _seconds(runs: Iterable[ShadowRun]) -> str:
    return f"{sum(each.duration_ms for run in runs for each in run.candidates) / 1000:.3f}"


def _is_failure(run: ShadowRun) -> bool:
    if run.set_apart or not run.candidates:
        return False
    return run.difference == "failed" or (
        run.recorded.passed and not all(each.passed for each in run.candidates)
    )


# HTML

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#e5e3de, #2e2e35); --muted: light-dark(#6a6760, #a09fa9);
  --good: light-dark(#17704a, #6fd3a0); --bad: light-dark(#b3261e, #ff8f85);
  --warn: light-dark(#855300, #eab95c); --raised: light-dark(#f3f2ef, #222227); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  background: light-dark(#faf9f7, #131316); color: light-dark(#1f1e1c, #e9e8ec); }
h1 { font-size: 1.4rem; } .verdict { font-size: 1.15rem; font-weight: 600; }
.worse { color: var(--bad); } .better { color: var(--good); }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 500; } td { overflow-wrap: anywhere; }
code { font: 13px/1.4 ui-monospace, monospace; }
.mark { white-space: nowrap; border-radius: .3rem; padding: .1rem .4rem; background: var(--raised); }
.tools, .words { color: var(--warn); } .failed { color: var(--bad); } .same { color: var(--good); }
.apart, .muted { color: var(--muted); }
.bar { display: flex; height: .8rem; border-radius: .4rem; overflow: hidden; background: var(--raised); }
.bar span { background: currentColor; }
"""


def html_report(report: ShadowReport) -> bytes:
    """A page that loads nothing else."""
    tone = "" if not report.comparison.is_conclusive else "worse" if report.comparison.is_worse else "better"
    change = ", ".join(f"{name} {_shorten_value(str(value))}" for name, value in report.change.items())
    asked = f"; asked with {change}" if change else ""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width"><title>Shadow report</title>',
        f"<style>{_STYLE}</style></head><body><h1>Shadow report</h1>",
        f'<p class="verdict {tone}">{escape(report.verdict)}</p>',
        f'<p class="muted">{escape(_summary(report) + asked)}</p>',
        _html_bar(report),
        f"<pre><code>{escape(chr(10).join(_total_lines(report)))}</code></pre>",
        "<table><thead><tr><th>run<th>result<th>as recorded<th>baseline<th>candidate<th>first difference"
        f"{''.join(f'<th>{name}' for name in _numbers_in(report))}</tr></thead><tbody>",
        *(_html_row(run, report) for run in sorted(report.runs, key=_severity)),
        "</tbody></table></body></html>\n",
    ]
    return "\n".join(parts).encode("utf-8", "replace")


def _summary(report: ShadowReport) -> str:
    test = f"judged by {report.test}" if report.test else "judged by whether they ended well"
    return f"{plural(report.comparison.runs, 'run')}, {plural(report.samples, 'sample')} each, {test}"


def _html_bar(report: ShadowReport) -> str:
    spans = "".join(
        f'<span class="{name}" style="flex:{count}" title="{count} {WORDS[name]}"></span>'
        for name, count in report.counts.items()
        if count
    )
    legend = ", ".join(f"{count} {WORDS[name]}" for name, count in report.counts.items() if count)
    return f'<div class="bar" role="img" aria-label="{escape(legend)}">{spans}</div><p>{escape(legend)}</p>'


def _severity(run: ShadowRun) -> tuple[bool, int]:
    return bool(run.set_apart), -list(WORDS).index(run.difference)


def _html_row(run: ShadowRun, report: ShadowReport) -> str:
    if run.set_apart:
        why = escape(_shorten(run.set_apart))
        columns = 4 + len(_numbers_in(report))
        return f'<tr class="apart"><td>{escape(run.path)}<td>set apart<td colspan="{columns}">{why}</tr>'
    passed = sum(each.passed for each in run.candidates)
    first = ""
    if run.first is not None:
        before = f"<code>{escape(_shorten(run.first.recorded))}</code> → " if run.first.recorded else ""
        first = f"{before}<code>{escape(_shorten(run.first.candidate))}</code>"
    now = f"{passed} of {len(run.candidates)} pass" if report.samples > 1 else _describe_verdict(passed > 0)
    cells = [
        escape(run.path),
        f'<span class="mark {run.difference}">{WORDS[run.difference]}</span>',
        _describe_verdict(run.recorded.passed),
        "reproduced" if report.baseline == "replayed" else "not run",
        now,
        first,
        *_row_numbers(run, _numbers_in(report)),
    ]
    return "<tr>" + "".join(f"<td>{cell}" for cell in cells) + "</tr>"


def _numbers_in(report: ShadowReport) -> list[str]:
    """The figures that are known for any run; the cost needs prices."""
    known = {name for run in report.counted for name, *_ in _mean_figures_of(run)}
    return [name for name in ("tokens", "cost", "time") if name in known]


def _row_numbers(run: ShadowRun, names: Sequence[str]) -> list[str]:
    found = {name: f"{left} → {right}" for name, left, right in _mean_figures_of(run)}
    return [found.get(name, "–") for name in names]


def _mean_figures_of(run: ShadowRun) -> Iterator[tuple[str, str, str]]:
    return _mean_figures([run.recorded], run.candidates)


def _describe_verdict(passed: bool) -> str:
    return "passes" if passed else '<span class="failed">fails</span>'


def _shorten_value(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"
