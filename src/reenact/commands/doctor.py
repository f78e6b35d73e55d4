"""Finding what differs from run to run: rules for it, and the proof that they suffice.

The command is recorded some times, the last capture is replayed leniently to see what a replay minds, and
strictly under rules for that; rules that pass are written, others only told.
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
from reenact.volatile.alignment import AlignedCall, aligned
from reenact.volatile.diagnosis import Diagnosis
from reenact.volatile.masking import DEFAULTS, Masking

_INTERRUPTED: Final = 130
_SIGNALLED: Final = 128
"""Exit statuses above are those of commands that a signal killed, as shells say it."""
_ROUNDS: Final = 3
"""A divergence names only so many places; rules for these may bring up others."""

OnRecorded: TypeAlias = Callable[[int, RecordingReport], None]
"""Told of each recording, and which it was, from 1."""
OnReplay: TypeAlias = Callable[[Path, Literal["lenient", "strict"]], None]
"""Told of each replay before it begins."""


class DoctorProof(NamedTuple):
    """How a replay went."""

    verdict: str
    answered: int
    divergences: list[ReplayDivergence]

    @property
    def is_good(self) -> bool:
        return self.verdict == "reproduced"


class DoctorReport(NamedTuple):
    """What differed, and which rules let it."""

    captures: list[Path]
    diagnosis: Diagnosis
    """What differs: its ``sources()`` by place, the calls that not every run made, what no rule covers."""
    file: Path
    """Where rules belong."""
    rules: list[VolatileRule]
    """Those that were not there before; they are written if the proof is good."""
    proof: DoctorProof
    """How the last capture replays under them, strictly."""
    beside: list[tuple[str, str, int]]
    """What libraries sent or looked up by themselves, which is not compared: where, what, how often."""

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
    """Record a command *runs* times, for real, and find out what differs from run to run.

    What a replay of the last recording would mind gets rules, and a strict replay proves them. Rules that are
    proved are added to the nearest ``reenact.toml``, or a new one here. The recordings are folders in *path*.
    """
    project_file_to_write(Path.cwd())  # what is wrong with it is said before anything runs
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
            _stop_where_killed(capture, report.exit_status)
            if not capture.is_dir():
                reason = report.notes[0] if report.notes else str(report.problem)
                raise CheckFailed(f"{capture}: {reason}")
            if on_recorded is not None:
                on_recorded(number, report)
            captures.append(capture)
    finally:
        with suppress(OSError):
            folder.rmdir()  # only while nothing is in it

    def replay(policy: Literal["lenient", "strict"], rules: list[VolatileRule]) -> DoctorProof:
        if on_replay is not None:
            on_replay(captures[-1], policy)
        report = replay_command(
            captures[-1], words, policy=policy, volatile=rules, network=network, port=port, stdout=2
        )
        _stop_where_killed(captures[-1], report.exit_status)
        divergences = [ReplayDivergence.from_json(value) for value in report.receipt.divergences]
        return DoctorProof(report.verdict, report.answered, divergences)

    return _examine(captures, replay)


def _examine(
    captures: list[Path], replay: Callable[[Literal["lenient", "strict"], list[VolatileRule]], DoctorProof]
) -> DoctorReport:
    """Compare the captures, and let the last be replayed until it passes or no rule is left to add."""
    known = project_rules(Path.cwd())
    diagnosis = Diagnosis(Masking([*DEFAULTS, *known]))
    asked = [list(_read_requests(path)) for path in captures]
    for one, other in pairwise(asked):
        diagnosis.add_runs(aligned(one, other))
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


def _stop_where_killed(path: Path, status: int) -> None:
    """Ctrl-C reaches the command; whoever stops that wants no further run."""
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status > _SIGNALLED:
        raise CheckFailed(
            f"{path}: the command was ended by signal {status - _SIGNALLED}; nothing is diagnosed"
        )
