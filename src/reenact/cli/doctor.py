"""``reenact doctor``: find values that differ from run to run, and write rules that a replay has proved."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.canonical import JsonValue
from reenact.cli.options import (
    port_option,
    upstream_option,
)
from reenact.cli.record import first_line
from reenact.cli.terminal import DIFFERS, printable, say
from reenact.commands.doctor import DoctorProof, DoctorReport, doctor_command
from reenact.comparing.differences import show_value
from reenact.formats.capture import RedactionProfile
from reenact.formats.volatile import rule_codec
from reenact.redaction import PROFILES
from reenact.volatile.diagnosis import Diagnosis, Source

_HEADINGS: Final = {
    "rule": "volatile; a rule lets it differ",
    "nothing": "volatile; no rule can cover it",
    "recording": "differs, but a replay takes it from the recording",
}
_SOURCES: Final = 20
_STRAYS: Final = 10


def as_text(report: DoctorReport) -> str:
    """The report for people."""
    lines = [*_sources(report.diagnosis), *_strays(report.diagnosis)]
    if report.beside:
        lines += [
            "telemetry and the like, not compared:",
            *(f"  {line}" for line in _describe_beside(report)),
        ]
    if report.written:
        lines.append(f"wrote {plural(len(report.written), 'rule')} to {report.file}")
    lines += _proof_lines(report.captures[-1], report.proof)
    if not report.proof.is_good:
        lines += [f"  no rule covers: {reason}" for reason in report.diagnosis.reasons]
    if report.not_written:
        lines.append(f"nothing was written to {report.file}, because these rules are not enough:")
        lines += [line for rule in report.not_written for line in rule.to_toml().splitlines()]
    return "\n".join(map(printable, lines))


def as_json(report: DoctorReport) -> dict[str, JsonValue]:
    """The report as one JSON object."""
    captures, diagnosis, file, _, proof, _ = report
    return {
        "captures": [str(path) for path in captures],
        "sources": [msgspec.to_builtins(source) for source in diagnosis.sources()],
        "notInEveryRun": [*diagnosis.strays],
        "beside": [*_describe_beside(report)],
        "uncovered": [*diagnosis.reasons],
        "written": {"file": str(file), "rules": [rule_codec.to_json(rule) for rule in report.written]},
        "notWritten": [rule_codec.to_json(rule) for rule in report.not_written],
        "proof": {
            "path": str(captures[-1]),
            "verdict": proof.verdict,
            "answered": proof.answered,
            "divergences": [divergence.to_json() for divergence in proof.divergences],
        },
    }


def _describe_beside(report: DoctorReport) -> list[str]:
    return [f"{name}: {what}, {plural(count, 'request')}" for name, what, count in report.beside]


def _sources(diagnosis: Diagnosis) -> Iterator[str]:
    sources = diagnosis.sources()
    if not sources and not diagnosis.strays:
        yield "nothing differs between the runs"
    for cover, heading in _HEADINGS.items():
        found = [source for source in sources if source.covered_by == cover]
        if found:
            yield f"{heading}:"
        for source in found[:_SOURCES]:
            yield from _source(source)
        if len(found) > _SOURCES:
            yield f"  … and {len(found) - _SOURCES} more places; --json has them all"


def _source(source: Source) -> Iterator[str]:
    yield f"  {source.call} {source.path}"
    yield f"    seen    in {len(source.seqs)} of {plural(source.of, 'call')}, first in event {source.seqs[0]}"
    one, other = source.examples
    yield f"    either  {show_value(one, other)}"
    yield f"    or      {show_value(other, one)}"
    if source.covered_by == "rule":
        yield from (f"    rule    {rule}" for rule in source.rules or ["is in force already"])


def _strays(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.strays:
        yield "calls that only some runs made:"
        yield from (f"  {stray}" for stray in diagnosis.strays[:_STRAYS])
    if len(diagnosis.strays) > _STRAYS:
        yield f"  … and {len(diagnosis.strays) - _STRAYS} more; --json has them all"


def _proof_lines(path: Path, proof: DoctorProof) -> Iterator[str]:
    answered = plural(proof.answered, "call")
    if proof.is_good:
        yield f"proved: {path} replays strictly, {answered} answered from the capture"
        return
    yield f"not reproduced: {path} diverges, {answered} answered from the capture"
    for divergence in proof.divergences[:1]:
        yield from (f"  {line}" for line in divergence.explain().splitlines())


@click.command("doctor", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", metavar="DIR", help="Where to record [runs/doctor-COMMAND-TIME].")
@click.option(
    "--runs", type=click.IntRange(2, 20), default=2, show_default=True, help="How many times to record."
)
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide [default; strict if CI is set].")
@upstream_option
@click.option(
    "--network", is_flag=True, help="Let programs other than Python reach other machines in the replay."
)
@port_option
@click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object; COMMAND's own stdout goes to stderr."
)
@click.argument("words", metavar="[--] COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    output: str | None,
    runs: int,
    redact: RedactionProfile | None,
    upstreams: dict[str, str],
    network: bool,
    port: int | None,
    is_json: bool,
    words: tuple[str, ...],
) -> int:
    """Find what differs from run to run, and write rules for it.

    COMMAND is recorded several times, live, and the runs are compared. Values that would break a replay
    get rules, and a strict replay checks the rules. If it passes, they are added to the nearest
    reenact.toml, or to a new one here; otherwise they are only shown.

    Exit status: 0 when the replay passes, 1 when something remains that no rule can cover.
    """
    with _output_of_children_on_stderr():
        report = doctor_command(
            words,
            output,
            runs=runs,
            redact=redact,
            upstreams=upstreams,
            network=network,
            port=port,
            on_recorded=lambda number, recorded: say(f"run {number} of {runs}: {first_line(recorded)}"),
            on_replay=lambda path, policy: say(f"replaying {path} ({policy})"),
        )
    click.echo(json.dumps(as_json(report), indent=2) if is_json else as_text(report))
    return 0 if report.proof.is_good else DIFFERS


@contextmanager
def _output_of_children_on_stderr() -> Iterator[None]:
    """Redirect the output of child processes to stderr, because stdout is for the report."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
