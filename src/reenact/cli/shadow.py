"""``reenact shadow``: make recorded runs again with a changed agent, prompt or model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from reenact.canonical import JsonValue
from reenact.cli.fork import read_request_options, show_progress
from reenact.cli.options import (
    allow_code_option,
    allow_option,
    network_option,
    on_miss_option,
    request_options,
    upstream_option,
    volatile_option,
)
from reenact.cli.terminal import A_PATH, DIFFERS, INTERRUPTED, ON, printable, safe_json
from reenact.errors import UsageError
from reenact.forks.change import OnMiss
from reenact.formats.shadow import ShadowReport, StepsReport
from reenact.formats.volatile import VolatileRule
from reenact.shadowing.experiment import shadow
from reenact.shadowing.report import FailOn, html_report, is_bad, junit_report, report_json, report_lines
from reenact.shadowing.steps import shadow_steps, step_lines
from reenact.store.outfile import write_output

_WORDS: Final = "words"
_AT_A_TIME: Final = 4
"""Model requests sent at the same time."""


class _BeforeCommand(click.Command):
    """Separates the words after ``--`` from the arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_WORDS] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


@click.command("shadow", cls=_BeforeCommand)
@click.argument("runs", metavar="RUNS... [-- COMMAND...]", nargs=-1, required=True)
@click.option("--step-by-step", is_flag=True, help="Send each recorded model request again; no COMMAND.")
@request_options
@on_miss_option
@click.option("--test", metavar="FILE", type=A_PATH, help="A test.yaml that decides which runs pass.")
@click.option("--baseline", metavar="COMMAND", help="The old agent; it is replayed strictly first.")
@click.option(
    "-n",
    "--samples",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="Make this many samples of each run.",
)
@click.option("-j", "--jobs", metavar="N", type=click.IntRange(0), help="Runs at a time [all cores].")
@ON
@click.option("-o", "--output", metavar="DIR", type=A_PATH, help="Keep the captures of the new runs here.")
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "failed", "changed"]),
    default="worse",
    show_default=True,
    help="When to exit with 1: worse beyond chance, any run failed, any run changed.",
)
@volatile_option
@upstream_option
@network_option
@allow_option
@allow_code_option
@click.option("--all", "every", is_flag=True, help="Also list runs without a difference.")
@click.option("--json", "json_file", metavar="F", help="Write the report as JSON; - for stdout.")
@click.option("--junit", "junit_file", metavar="F", type=A_PATH, help="Write JUnit XML.")
@click.option("--html", "html_file", metavar="F", type=A_PATH, help="Write a self-contained page.")
def command(
    runs: tuple[str, ...],
    step_by_step: bool,
    model: str | None,
    system: Path | None,
    temperature: float | None,
    on_miss: OnMiss,
    test: Path | None,
    baseline: str | None,
    samples: int,
    jobs: int | None,
    on: str | None,
    output: Path | None,
    fail_on: FailOn,
    volatile: tuple[VolatileRule, ...],
    upstreams: dict[str, str],
    network: bool,
    allowed: tuple[str, ...],
    allow_code: bool,
    every: bool,
    json_file: str | None,
    junit_file: Path | None,
    html_file: Path | None,
) -> int:
    """Make recorded runs again with a changed agent, prompt or model.

    RUNS are captures or folders of captures, here or at an address. In COMMAND, {2} stands for word 2
    of the recorded command and {2:} for all words from there on. Calls that equal recorded ones are
    answered from the recording; --on-miss decides about others. Runs that the old agent does not
    reproduce are listed apart.

    With --step-by-step no agent runs: each recorded model request is sent again on its own.

    Exit status: 0, or 1 as --fail-on says.
    """
    words = click.get_current_context().meta.get(_WORDS, [])
    change = msgspec.to_builtins(read_request_options(model, system, temperature))
    if step_by_step:
        if words:
            raise UsageError("--step-by-step runs no command; leave it out")
        if on is not None:
            raise UsageError("--step-by-step waits for models, which --on does not make faster; use --jobs")
        if junit_file is not None or html_file is not None:
            raise UsageError("--step-by-step writes --json alone, neither --junit nor --html")
        return _steps(runs, change, jobs, upstreams, json_file, every=every)
    if not words:
        raise click.UsageError("Missing argument '-- COMMAND...'", click.get_current_context())
    report = shadow(
        runs,
        words,
        change=change,
        baseline=None if baseline is None else _read_words(baseline),
        test=test,
        samples=samples,
        on_miss=on_miss,
        output=output,
        jobs=jobs,
        on=on,
        volatile=volatile,
        allow=allowed,
        upstreams=upstreams,
        network=network,
        allow_code=allow_code,
        progress_bar=show_progress,
    )
    for line in report_lines(report, every=every):
        click.echo(printable(line), err=json_file == "-")
    _write(report, json_file, junit_file, html_file)
    if report.is_interrupted:
        return INTERRUPTED
    return DIFFERS if is_bad(report, fail_on) else 0


def _steps(
    runs: Sequence[str],
    change: dict[str, JsonValue],
    jobs: int | None,
    upstreams: dict[str, str],
    json_file: str | None,
    *,
    every: bool,
) -> int:
    report = shadow_steps(
        runs, change=change, jobs=jobs or _AT_A_TIME, upstreams=upstreams, progress_bar=show_progress
    )
    for line in step_lines(report, every=every):
        click.echo(printable(line), err=json_file == "-")
    _write_json(report, json_file)
    return INTERRUPTED if report.is_interrupted else 0


def _read_words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--baseline {command}: is not a command: {error}") from None
    if not words:
        raise UsageError("--baseline: is empty; name the command of the old agent")
    return words


def _write(
    report: ShadowReport, json_file: str | None, junit_file: Path | None, html_file: Path | None
) -> None:
    _write_json(report, json_file)
    if junit_file is not None:
        write_output(junit_file, junit_report(report))
    if html_file is not None:
        write_output(html_file, html_report(report))


def _write_json(report: ShadowReport | StepsReport, json_file: str | None) -> None:
    if json_file is None:
        return
    text = safe_json(report_json(report)) + "\n"
    if json_file == "-":
        sys.stdout.write(text)
    else:
        write_output(Path(json_file), text.encode())
