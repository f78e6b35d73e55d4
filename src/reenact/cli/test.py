"""``reenact test``: assertions over recorded runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

import click

from reenact.cli.options import (
    allow_code_option,
)
from reenact.cli.terminal import A_PATH, DIFFERS, INVALID, ON, printable
from reenact.cli.terminal import report as report_error
from reenact.errors import UsageError
from reenact.formats.result import write_summary
from reenact.rerun import TestOptions, test, watch_tests
from reenact.store.outfile import write_output
from reenact.suite.reports import (
    ReportLine,
    all_evidence,
    json_report,
    junit_report,
    last_line,
    test_line,
    workflow_commands,
)
from reenact.suite.runner import SuiteReport

_COLOURS: Final = {"pass": "green", "fail": "red", "error": "magenta", "warning": "yellow"}


class _Reports(NamedTuple):
    json: str | None
    junit: str | None
    output_directory: Path | None
    github: bool


@click.command("test")
@click.argument("paths", metavar="PATH...", nargs=-1, type=A_PATH)
@click.option(
    "-j", "--jobs", type=click.IntRange(0), help="Number of processes; 0 for all cores [all for many tests]."
)
@ON
@click.option("-k", "name", metavar="NAME", help="Only tests whose id, title or path contains NAME.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="Only tests with this tag; repeatable.")
@click.option("--json", "json_file", metavar="F", help="Write summary and results as JSON; - for stdout.")
@click.option("--junit", "junit_file", metavar="F", help="Write JUnit XML.")
@click.option(
    "--out",
    metavar="DIR",
    type=A_PATH,
    help="Write result and trace files.",
)
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions.")
@click.option("--strict", is_flag=True, help="Treat unknown keys and parameters as errors.")
@click.option("--watch", is_flag=True, help="Run again whenever a file changes.")
@allow_code_option
@click.option(
    "--allow-commands",
    is_flag=True,
    envvar="REENACT_ALLOW_COMMANDS",
    help="Run the commands in assertions, on copies of the recorded files.",
)
@click.option(
    "--init",
    "capture",
    metavar="CAPTURE",
    type=A_PATH,
    help="Write a first test.",
)
def command(
    paths: tuple[Path, ...],
    jobs: int | None,
    on: str | None,
    name: str | None,
    tags: tuple[str, ...],
    json_file: str | None,
    junit_file: str | None,
    out: Path | None,
    github: bool,
    strict: bool,
    watch: bool,
    allow_code: bool,
    allow_commands: bool,
    capture: Path | None,
) -> int:
    """Run assertions over recorded runs.

    PATH is a test file, or a directory in which every test.yaml is run. With --init, PATH is a new test
    file: reenact writes a first version that holds for CAPTURE, for you to trim.

    Exit status: 0 all pass, 1 a test failed, 2 a test could not be run, 3 wrong usage or no tests.
    """
    if capture is not None:
        return _write_first_test(capture, paths)
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'", click.get_current_context())
    reports = _Reports(json_file, junit_file, out, github)
    to_stderr = json_file == "-"
    options = TestOptions(
        name=name,
        tags=tags,
        strict=strict,
        out=out,
        jobs=jobs,
        on=on,
        allow_code=allow_code,
        allow_commands=allow_commands,
        on_outcome=lambda outcome: _say(test_line(outcome), err=to_stderr),
    )
    if not watch:
        return _explain(test(*paths, **options), reports)
    for done in watch_tests(*paths, **options):
        try:
            _explain(done.result(), reports)
        except Exception as error:  # also if a report cannot be written
            report_error(error)
        click.echo(f"\nwatching {done.watched_files} files; Ctrl-C ends it", err=True)
    return 0


def _explain(report: SuiteReport, reports: _Reports) -> int:
    for line in [*all_evidence(report.outcomes), ReportLine(""), last_line(report.summary)]:
        _say(line, err=reports.json == "-")
    _write(reports, report)
    return INVALID if report.summary.errors else 0 if report.passed else DIFFERS


def _say(line: ReportLine, *, err: bool) -> None:
    toned = click.style(printable(line.text[: line.toned]), fg=_COLOURS[line.tone]) if line.tone else ""
    click.echo(toned + printable(line.text[line.toned if line.tone else 0 :]), err=err)


def _write(reports: _Reports, report: SuiteReport) -> None:
    summary, outcomes = report.summary, report.outcomes
    if reports.json is not None:
        data = json_report(summary, (outcome.result for outcome in outcomes))
        if reports.json == "-":
            sys.stdout.buffer.write(data)
        else:
            write_output(Path(reports.json), data)
    if reports.junit is not None:
        write_output(Path(reports.junit), junit_report(summary, outcomes))
    if reports.output_directory is not None:
        write_output(reports.output_directory / "summary.json", write_summary(summary))
    if reports.github:
        for annotation in workflow_commands(outcomes):
            click.echo(annotation, err=reports.json == "-")


def _write_first_test(capture: Path, paths: tuple[Path, ...]) -> int:
    from reenact.suite.first_test import write_first_test

    if len(paths) > 1:
        raise UsageError("--init writes one test; name one PATH")
    file = printable(str(write_first_test(capture, *paths)))
    click.echo(f"{file}: written; trim it, then run: reenact test {file}")
    return 0
