"""Finds values that differ from run to run, and rules for them that a replay has proved.

The command is recorded several times. The last capture is replayed leniently to find what breaks a replay,
and strictly with rules for that. Rules that pass are written, others are only reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from reenact.commands.record import RecordingReport, record_command
from reenact.commands.replay import replay_command
from reenact.errors import CheckFailed
from reenact.formats.capture import RedactionProfile, without_marks
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import VolatileRule
from reenact.gateway.lane import is_of_gateway
from reenact.injected.launch import subject
from reenact.replayer.source import ReplaySource
from reenact.run.rules import project_beside, project_rules
from reenact.store.project import append_to_project, project_file_to_write
from reenact.store.rundir import make_empty_folder
from reenact.volatile.alignment import AlignedCall, align_calls
from reenact.volatile.diagnosis import Diagnosis
from reenact.volatile.masking import DEFAULTS, Masking

_INTERRUPTED: Final = 130
_SIGNALLED: Final = 128
"""Higher exit statuses mean that a signal killed the command, as in shells."""
_ROUNDS: Final = 3
"""A divergence names a limited number of places; rules for these may reveal others."""

OnRecorded: TypeAlias = Callable[[int, RecordingReport], None]
"""Called with the number of each recording, from 1, and its report."""
OnReplay: TypeAlias = Callable[[Path, Literal["lenient", "strict"]], None]
"""Called before each replay begins."""


class DoctorProof(NamedTuple):
    """The result of a replay."""

    verdict: str
    answered: int
    divergences: list[ReplayDivergence]

    @property
    def is_good(self) -> bool:
        return self.verdict == "reproduced"


class DoctorReport(NamedTuple):
    """The differences, and the rules that allow them."""

    captures: list[Path]
    diagnosis: Diagnosis
    """``sources()`` has the differences by place, ``strays`` the calls that only some runs made."""
    file: Path
    """The file for rules."""
    rules: list[VolatileRule]
    """The new rules; they are written if the proof is good."""
    proof: DoctorProof
    """The strict replay of the last capture with these rules."""
    beside: list[tuple[str, str, int]]
    """Traffic of libraries that is not compared: host, kind, count."""

    @property
    def written(self) -> list[VolatileRule]:
        return self.rules if self.proof.is_good else []

    @property
    def not_written(self) -> list[VolatileRule]:
        return [] if self.proof.is_good else self.rules


def doctor_command(
    words: Sequence[str],
    path: str | Path | None = None,
    *,
    runs: int = 2,
    redact: RedactionProfile | None = None,
    upstreams: Mapping[str, str] | None = None,
    network: bool = False,
    port: int | None = None,
    on_recorded: OnRecorded | None = None,
    on_replay: OnReplay | None = None,
) -> DoctorReport:
    """Record a command *runs* times, live, and find what differs from run to run.

    Differences that would break a replay get rules, and a strict replay proves them. Proved rules are added
    to the nearest ``reenact.toml``, or to a new one here. The recordings are folders in *path*.
    """
    project_file_to_write(Path.cwd())  # reports a wrong setting before anything runs
    project_rules(Path.cwd())
    project_beside(Path.cwd())
    now = datetime.now().astimezone()
    folder = Path("runs") / f"doctor-{subject(words)}-{now:%Y%m%d-%H%M%S}" if path is None else Path(path)
    make_empty_folder(folder)
    captures: list[Path] = []
    try:
        for number in range(1, runs + 1):
            capture = folder / str(number)
            report = record_command(words, capture, redact=redact, upstreams=upstreams, port=port)
            _stop_if_killed(capture, report.exit_status)
            if not capture.is_dir():
                reason = report.notes[0] if report.notes else str(report.problem)
                raise CheckFailed(f"{capture}: {reason}")
            if on_recorded is not None:
                on_recorded(number, report)
            captures.append(capture)
    finally:
        with suppress(OSError):
            folder.rmdir()  # only an empty one

    def replay(policy: Literal["lenient", "strict"], rules: list[VolatileRule]) -> DoctorProof:
        if on_replay is not None:
            on_replay(captures[-1], policy)
        report = replay_command(
            captures[-1], words, policy=policy, volatile=rules, network=network, port=port, stdout=2
        )
        _stop_if_killed(captures[-1], report.exit_status)
        divergences = [ReplayDivergence.from_json(value) for value in report.receipt.divergences]
        return DoctorProof(report.verdict, report.answered, divergences)

    return _examine(captures, replay)


def _examine(
    captures: list[Path], replay: Callable[[Literal["lenient", "strict"], list[VolatileRule]], DoctorProof]
) -> DoctorReport:
    """Compare the captures, and replay the last one until it passes or no more rules can be added."""
    known = project_rules(Path.cwd())
    diagnosis = Diagnosis(Masking([*DEFAULTS, *known]))
    asked = [list(_read_requests(path)) for path in captures]
    for one, other in pairwise(asked):
        diagnosis.add_runs(align_calls(one, other))
    rules: list[VolatileRule] = []
    for _ in range(_ROUNDS):
        diagnosis.add_replay(replay("lenient", rules).divergences)
        before, texts = rules, set(map(str, known))
        rules = [rule for rule in diagnosis.rules() if str(rule) not in texts]
        proof = replay("strict", rules)
        if proof.is_good or rules == before:
            break
    file = project_file_to_write(Path.cwd())
    if proof.is_good and rules:
        append_to_project(file, "\n".join(rule.to_toml() for rule in rules))
    source = ReplaySource(captures[-1], beside_hosts=project_beside(Path.cwd()))
    requests = Counter((call.name.partition("/")[2], call.beside) for call in source.beside)
    beside = [(name, what, count) for (name, what), count in requests.items()]
    return DoctorReport(captures, diagnosis, file, rules, proof, beside)


def _read_requests(path: Path) -> Iterator[AlignedCall]:
    source = ReplaySource(path, beside_hosts=project_beside(Path.cwd()))
    seqs = {call.call_id: call.seq for call in source.calls}
    for call in source.calls:
        parent_seq = None if call.parent is None else seqs.get(call.parent)
        request = without_marks(source.request(call))
        has_own_clock = is_of_gateway(call.lane)
        yield AlignedCall(call.seq, call.lane, call.type, call.name, request, parent_seq, has_own_clock)


def _stop_if_killed(path: Path, status: int) -> None:
    """Stop after a command that a signal killed: Ctrl-C goes to the command, and ends the doctor too."""
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status > _SIGNALLED:
        raise CheckFailed(
            f"{path}: the command was ended by signal {status - _SIGNALLED}; nothing is diagnosed"
        )
