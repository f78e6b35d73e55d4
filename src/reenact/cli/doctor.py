"""``reenact doctor``: what differs from run to run, rules for it, and the proof that they suffice.

It is made of the other verbs: the command is recorded some times, the last capture is replayed leniently to
see what a replay minds, and strictly under rules for that; rules that pass are written, others only told.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.cli import invoke
from reenact.cli.terminal import DIFFERS, INTERRUPTED, printable, say
from reenact.comparing.differences import shown
from reenact.errors import CheckFailed
from reenact.formats.capture import RedactionProfile
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import VolatileRule, rule_codec
from reenact.gateway.lane import is_of_gateway
from reenact.injected.subject import subject
from reenact.redaction import PROFILES, without_marks
from reenact.replayer.source import ReplaySource
from reenact.run.rules import project_beside, project_rules
from reenact.store.project import PROJECT_FILE, append_to_project, find_project_file
from reenact.store.rundir import make_empty_folder
from reenact.volatile.alignment import AlignedCall, aligned
from reenact.volatile.defaults import DEFAULTS
from reenact.volatile.diagnosis import Diagnosis, Source
from reenact.volatile.masking import Masking

_HEADINGS: Final = {
    "rule": "volatile; a rule lets it differ",
    "nothing": "volatile; no rule can cover it",
    "recording": "differs, but a replay has it from the recording",
}
_SOURCES: Final = 20
_STRAYS: Final = 10


class Proof(NamedTuple):
    """How a replay went."""

    verdict: str
    answered: int
    divergences: list[ReplayDivergence]

    @property
    def is_good(self) -> bool:
        return self.verdict == "reproduced"


class DoctorFindings(NamedTuple):
    """All there is to tell."""

    captures: list[Path]
    diagnosis: Diagnosis
    file: Path
    """Where rules belong."""
    rules: list[VolatileRule]
    """Those that were not there before; they are written if the proof is good."""
    proof: Proof
    beside: list[str]
    """What libraries sent or looked up by themselves, which is not compared."""

    @property
    def written(self) -> list[VolatileRule]:
        return self.rules if self.proof.is_good else []

    @property
    def not_written(self) -> list[VolatileRule]:
        return [] if self.proof.is_good else self.rules


def as_text(findings: DoctorFindings) -> str:
    """The whole report."""
    lines = [*_sources(findings.diagnosis), *_strays(findings.diagnosis)]
    if findings.beside:
        lines += ["beside the run, not compared:", *(f"  {request}" for request in findings.beside)]
    if findings.written:
        lines.append(f"wrote {plural(len(findings.written), 'rule')} to {findings.file}")
    lines += _proved(findings.captures[-1], findings.proof)
    if not findings.proof.is_good:
        lines += [f"  no rule covers: {reason}" for reason in findings.diagnosis.reasons]
    if findings.not_written:
        lines.append(f"nothing was written to {findings.file}, because these rules alone do not suffice:")
        lines += [line for rule in findings.not_written for line in rule.to_toml().splitlines()]
    return "\n".join(map(printable, lines))


def as_json(findings: DoctorFindings) -> dict[str, Any]:
    """The same as one object."""
    captures, diagnosis, file, _, proof, beside = findings
    return {
        "captures": [str(path) for path in captures],
        "sources": [msgspec.to_builtins(source) for source in diagnosis.sources()],
        "notInEveryRun": diagnosis.strays,
        "beside": beside,
        "uncovered": diagnosis.reasons,
        "written": {"file": str(file), "rules": [rule_codec.to_json(rule) for rule in findings.written]},
        "notWritten": [rule_codec.to_json(rule) for rule in findings.not_written],
        "proof": {
            "path": str(captures[-1]),
            "verdict": proof.verdict,
            "answered": proof.answered,
            "divergences": [divergence.to_json() for divergence in proof.divergences],
        },
    }


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
    yield f"    either  {shown(one, other)}"
    yield f"    or      {shown(other, one)}"
    if source.covered_by == "rule":
        yield from (f"    rule    {rule}" for rule in source.rules or ["is in force already"])


def _strays(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.strays:
        yield "calls that not every run made:"
        yield from (f"  {stray}" for stray in diagnosis.strays[:_STRAYS])
    if len(diagnosis.strays) > _STRAYS:
        yield f"  … and {len(diagnosis.strays) - _STRAYS} more; --json has them all"


def _proved(path: Path, proof: Proof) -> Iterator[str]:
    answered = plural(proof.answered, "call")
    if proof.is_good:
        yield f"proved: {path} replays strictly, {answered} answered from the capture"
        return
    yield f"not reproduced: {path} diverges, {answered} answered from the capture"
    for divergence in proof.divergences[:1]:
        yield from (f"  {line}" for line in divergence.explain().splitlines())


_SIGNALLED: Final = 128
"""Exit statuses above are those of commands that a signal killed, as shells say it."""
_ROUNDS: Final = 3
"""A divergence names only so many places; rules for these may bring up others."""


class DoctorCommand(NamedTuple):
    """What is run, and how the gateway is to serve it."""

    words: tuple[str, ...]
    recording: tuple[str, ...]
    """Options of ``record`` alone."""
    replaying: tuple[str, ...]
    """Options of ``replay`` alone."""
    port: tuple[str, ...]


@click.command("doctor", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", metavar="DIR", help="Where to record; runs/doctor-COMMAND-TIME if not given.")
@click.option("--runs", type=click.IntRange(2, 20), default=2, show_default=True, help="How often to record.")
@click.option("--redact", type=click.Choice(PROFILES), help="What to hide; strict where CI is set.")
@click.option("--upstream", metavar="NAME=URL", multiple=True, help="Who is behind the gateway's /NAME.")
@click.option(
    "--network", is_flag=True, help="Let programs that are not Python reach other machines in replay."
)
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one if not given.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object on a stdout of its own.")
@click.argument("words", metavar="[--] COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    output: str | None,
    runs: int,
    redact: RedactionProfile | None,
    upstream: tuple[str, ...],
    network: bool,
    port: int | None,
    is_json: bool,
    words: tuple[str, ...],
) -> int:
    """Find what differs from run to run, and write rules for it.

    COMMAND is recorded several times, for real, and its runs are compared. What a replay of the last one
    would mind gets rules, and a strict replay proves them. Rules that are proved are added to the nearest
    reenact.toml, or a new one here; others are shown, and nothing is written. The exit status is 0 when
    the replay passes and 1 when something remains that no rule can cover.
    """
    project_rules(Path.cwd())  # what is wrong with them is said before anything runs
    project_beside(Path.cwd())
    folder = Path(output) if output is not None else _new_folder(words, datetime.now().astimezone())
    options = [f"--redact={redact}"] if redact else []
    options += [f"--upstream={name}" for name in upstream]
    replaying = ("--network",) if network else ()
    how = DoctorCommand(words, tuple(options), replaying, (f"--port={port}",) if port else ())
    make_empty_folder(folder)
    try:
        numbers = range(1, runs + 1)
        captures = [_recorded(folder / str(number), how, f"{number} of {runs}") for number in numbers]
    finally:
        with suppress(OSError):
            folder.rmdir()  # only while nothing is in it
    findings = _examined(captures, how)
    click.echo(json.dumps(as_json(findings), indent=2) if is_json else as_text(findings))
    return 0 if findings.proof.is_good else DIFFERS


def _new_folder(words: tuple[str, ...], now: datetime) -> Path:
    return Path("runs") / f"doctor-{subject(words)}-{now:%Y%m%d-%H%M%S}"


def _examined(captures: list[Path], how: DoctorCommand) -> DoctorFindings:
    """Compare the captures, and let the last be replayed until it passes or no rule is left to add."""
    diagnosis = _compared(captures)
    file = find_project_file(Path.cwd()) or Path(PROJECT_FILE).absolute()
    rules: list[VolatileRule] = []
    for _ in range(_ROUNDS):
        diagnosis.add_replay(_replayed(captures[-1], how, "lenient", rules).divergences)
        before, rules = rules, _unknown(diagnosis.rules())
        proof = _replayed(captures[-1], how, "strict", rules)
        if proof.is_good or rules == before:
            break
    if proof.is_good and rules:
        append_to_project(file, "\n".join(rule.to_toml() for rule in rules))
    return DoctorFindings(captures, diagnosis, file, rules, proof, _beside(captures[-1]))


def _beside(path: Path) -> list[str]:
    """What was sent beside the run, each once."""
    source = ReplaySource(path, beside_hosts=project_beside(Path.cwd()))
    requests = Counter((call.name.partition("/")[2], call.beside) for call in source.beside)
    return [f"{name}: {what}, {plural(count, 'request')}" for (name, what), count in requests.items()]


def _recorded(path: Path, how: DoctorCommand, number: str) -> Path:
    """Where the command was recorded now."""
    with _output_of_children_on_stderr(), redirect_stderr(io.StringIO()) as stderr:
        status = invoke("record", ["-o", str(path), *how.recording, *how.port, "--", *how.words])
    _stop_where_killed(path, status)
    if not path.is_dir():
        raise CheckFailed(f"{path}: {_first_line(stderr.getvalue())}")
    say(f"run {number}: {_first_line(stderr.getvalue())}")
    return path


def _replayed(path: Path, how: DoctorCommand, policy: str, rules: list[VolatileRule]) -> Proof:
    say(f"replaying {path} ({policy})")
    options = ["--policy", policy, "--json", *how.replaying, *how.port]
    options += [f"--volatile={rule}" for rule in rules]
    with _output_of_children_on_stderr(), redirect_stdout(io.StringIO()) as printed:
        invoke("replay", [str(path), *options, "--", *how.words])
    found: dict[str, Any] = json.loads(printed.getvalue())
    _stop_where_killed(path, found["exitStatus"])
    divergences = [ReplayDivergence.from_json(value) for value in found["receipt"]["divergences"]]
    return Proof(found["verdict"], found["answered"], divergences)


def _stop_where_killed(path: Path, status: int) -> None:
    """Ctrl-C reaches the command; whoever stops that wants no further run."""
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status > _SIGNALLED:
        raise CheckFailed(
            f"{path}: the command was ended by signal {status - _SIGNALLED}; nothing is diagnosed"
        )


def _compared(captures: list[Path]) -> Diagnosis:
    diagnosis = Diagnosis(Masking([*DEFAULTS, *project_rules(Path.cwd())]))
    runs = [list(_asked(path)) for path in captures]
    for one, other in pairwise(runs):
        diagnosis.add_runs(aligned(one, other))
    return diagnosis


def _asked(path: Path) -> Iterator[AlignedCall]:
    source = ReplaySource(path, beside_hosts=project_beside(Path.cwd()))
    seqs = {call.call_id: call.seq for call in source.calls}
    for call in source.calls:
        parent_seq = None if call.parent is None else seqs.get(call.parent)
        request = without_marks(source.request(call))
        has_own_clock = is_of_gateway(call.lane)
        yield AlignedCall(call.seq, call.lane, call.type, call.name, request, parent_seq, has_own_clock)


def _unknown(rules: list[VolatileRule]) -> list[VolatileRule]:
    """Those that the project does not have yet."""
    known = set(map(str, project_rules(Path.cwd())))
    return [rule for rule in rules if str(rule) not in known]


def _first_line(text: str) -> str:
    return text.partition("\n")[0].removeprefix("reenact: ")


@contextmanager
def _output_of_children_on_stderr() -> Iterator[None]:
    """Stdout is for what we have to say at the end."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
