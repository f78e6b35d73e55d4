"""``reenact fork``: run a recorded command again, with something changed on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from reenact import canonical
from reenact.analysis.brief import plural
from reenact.cli.options import (
    allow_code_option,
    allow_option,
    network_option,
    on_miss_option,
    port_option,
    repository_option,
    request_options,
    upstream_option,
    volatile_option,
)
from reenact.cli.terminal import A_PATH, DIFFERS, INTERRUPTED, printable, progress_bar, safe_json, say
from reenact.commands.fork import ForkReport, fork_command
from reenact.errors import FormatError, StoreError, UsageError
from reenact.forks.change import ForkChange, OnMiss, error_type
from reenact.formats.volatile import VolatileRule
from reenact.providers import RequestChange

if TYPE_CHECKING:
    from reenact.shadowing.samples import SamplesReport


@click.command("fork")
@click.argument("directory", metavar="DIR", type=A_PATH)
@click.option("--at", metavar="SEQ", type=int, required=True, help="The event of the call to change.")
@click.option(
    "--set",
    "settings",
    metavar="PATH=VALUE",
    multiple=True,
    help="Set this path of the outcome to a JSON value.",
)
@click.option(
    "--replace", metavar="FILE", type=A_PATH, help="Replace the outcome by the JSON, or body, in FILE."
)
@click.option(
    "--error", metavar="TYPE", help="Let the call fail: an exception or HTTP status, then `: message`."
)
@request_options
@on_miss_option
@click.option("-o", "--output", metavar="OUT", type=A_PATH, help="Where to write the fork [beside DIR].")
@click.option("--standalone", is_flag=True, help="Also store what the fork shares with its parent.")
@click.option(
    "-n", "--samples", metavar="N", type=click.IntRange(1), help="Fork N times, into folders in OUT."
)
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(1), help="Samples to run at a time [all cores]."
)
@click.option("--test", metavar="FILE", type=A_PATH, help="A test.yaml that decides which samples pass.")
@allow_code_option
@volatile_option
@click.option("--workspace", is_flag=True, help="Run COMMAND in a new folder with the recorded files.")
@repository_option
@upstream_option
@network_option
@allow_option
@port_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; COMMAND's own stdout goes to stderr."
)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    directory: Path,
    at: int,
    settings: tuple[str, ...],
    replace: Path | None,
    error: str | None,
    model: str | None,
    system: Path | None,
    temperature: float | None,
    on_miss: OnMiss,
    output: Path | None,
    standalone: bool,
    samples: int | None,
    jobs: int | None,
    test: Path | None,
    allow_code: bool,
    volatile: tuple[VolatileRule, ...],
    workspace: bool,
    repository: str | None,
    upstreams: dict[str, str],
    network: bool,
    allowed: tuple[str, ...],
    port: int | None,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    """Run a recorded command again, with something changed on the way.

    COMMAND is replayed from the capture in DIR up to the call at event SEQ. The outcome of that call is
    changed; --model, --system and --temperature change the model requests from there on. After that, a
    call that equals a recorded one is answered from the capture. --on-miss says what happens to any
    other call: it stops the fork, gets the nearest recorded answer, or goes live. The fork is a capture
    in OUT.

    With --workspace, COMMAND works in a new folder with the recorded files of that step; {workspace} in
    COMMAND stands for it.

    Exit status: that of COMMAND; 1 when a call is missing, when no model answers, or when COMMAND
    differs before the point. With -n: 0, or 1 when no sample could be made.
    """
    change = _read_change_options(settings, replace, error, model, system, temperature)
    if samples is None and (test is not None or jobs is not None):
        raise UsageError("--test and --jobs are for samples; say how many with -n")
    if samples is not None:
        from reenact.shadowing.samples import fork_samples  # slow to import

        if port is not None:
            raise UsageError("--port: samples run in parallel, each with its own port; leave it out")
        sampled = fork_samples(
            directory,
            words,
            at=at,
            samples=samples,
            change=change,
            output=output,
            on_miss=on_miss,
            standalone=standalone,
            test=test,
            jobs=jobs,
            volatile=volatile,
            upstreams=upstreams,
            allow=allowed,
            network=network,
            allow_code=allow_code,
            workspace=workspace,
            repository=repository,
            progress_bar=show_progress,
        )
        return _explain_samples(sampled, as_json=as_json)
    report = fork_command(
        directory,
        words,
        at=at,
        change=change,
        output=output,
        on_miss=on_miss,
        standalone=standalone,
        volatile=volatile,
        upstreams=upstreams,
        allow=allowed,
        network=network,
        port=port,
        workspace=workspace,
        repository=repository,
        stdout=2 if as_json else 1,
    )
    if as_json:
        click.echo(json.dumps(_to_json(report), indent=2))
    else:
        _explain(report)
    return report.exit_status


def _read_change_options(
    settings: Iterable[str],
    replace: Path | None,
    error: str | None,
    model: str | None,
    system: Path | None,
    temperature: float | None,
) -> ForkChange:
    """Build the change of a fork.

    *settings* are texts such as ``$.due="Friday"``, *replace* is a file with JSON, *system* a text file.
    """
    if error is not None:
        error_type(error)
    change = ForkChange(
        set=dict(map(_read_setting, settings)),
        replace=() if replace is None else (_read_replacement(replace),),
        error=error or "",
    ).with_request(read_request_options(model, system, temperature))
    change.check()
    return change


def read_request_options(model: str | None, system: Path | None, temperature: float | None) -> RequestChange:
    """Build the change of model requests."""
    if model is not None and not model.strip():
        raise UsageError("--model: is empty; name the model to ask")
    prompt = None if system is None else _read_prompt(system)
    change = RequestChange(model or "", prompt, temperature)
    change.check()
    return change


def _read_prompt(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8", file=str(file)) from None
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None


def _read_setting(text: str) -> tuple[str, object]:
    path, mark, value = text.partition("=")
    if not mark:
        raise UsageError(f"--set {text}: write PATH=VALUE, as '$.due=\"Friday\"'")
    try:
        return path, canonical.read_json(value.encode("utf-8", "surrogateescape"))
    except FormatError as error:
        if not error.reason.startswith("not JSON"):
            raise UsageError(f"--set {text}: {error.reason}") from None
        quoted = json.dumps(value)
        raise UsageError(f"--set {text}: {value} is not JSON; a text is written '{path}={quoted}'") from None


def _read_replacement(file: Path) -> object:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror}") from None
    try:
        return canonical.read_json(text)
    except FormatError as error:
        raise FormatError(f"is {error.reason}; put a text in quotes", file=str(file)) from None


def show_progress(total: int, what: str) -> AbstractContextManager[Any]:
    """Show a progress bar from two items on: each takes long."""
    return progress_bar(total, what, least=2)


def _explain_samples(report: SamplesReport, *, as_json: bool) -> int:
    from reenact.shadowing.report import sample_lines

    if as_json:
        click.echo(safe_json(msgspec.to_builtins(report)))
    else:
        for line in sample_lines(report):
            click.echo(printable(line))
    if report.is_interrupted:
        return INTERRUPTED
    return 0 if report.has_samples else DIFFERS


def _to_json(report: ForkReport) -> dict[str, object]:
    shares = report.shares
    return {
        "path": report.path,
        "parent": report.parent,
        "at": report.at,
        "exitStatus": report.exit_status,
        "shares": {
            "prefix": shares.prefix,
            "recording": shares.recording,
            "nearest": shares.nearest,
            "live": shares.live,
        },
        "notes": report.notes,
    }


def _explain(report: ForkReport) -> None:
    shares = report.shares
    nearest = f", {shares.nearest} as the nearest one" if shares.nearest else ""
    say(
        f"{report.path}: forked from {report.parent} at event {report.at}: "
        f"{plural(shares.prefix, 'call')} from the prefix, {shares.recording} from the recording{nearest}, "
        f"{shares.live} live"
    )
    for note in report.notes:
        click.echo(f"  note: {note}", err=True)
