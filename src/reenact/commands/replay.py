"""Replays a command: runs it again, answers every call from its capture, and judges the result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from time import time
from typing import Literal

import msgspec

from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.capture import PrintedLines, ProcessData, RunStartData
from reenact.formats.divergence import Observed, ReplayDivergence
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import ReplayReceipt, merge_across_tasks
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.fence import Fence
from reenact.injected.handover import Handover, Replayed, ToReplay, recorded_processes
from reenact.injected.launch import handover_folder, run_again
from reenact.injected.output import Printed, describe_differing_line
from reenact.injected.served import ServedReplay
from reenact.lane_name import ROOT
from reenact.replayer.allow import read_allow
from reenact.replayer.engine import Policy
from reenact.replayer.renaming import spellings
from reenact.replayer.report import describe_left_over
from reenact.replayer.source import ReplaySource, lanes_of
from reenact.replayer.step import OnUnmatched
from reenact.run.replaying import STALL_S
from reenact.run.rules import check_on_unmatched, choose_policy, project_beside, project_rules
from reenact.store.paths import takes_addresses
from reenact.store.reader import CaptureReader, read_run_start
from reenact.workspace.replaying import restore_start


class ReplayReport(msgspec.Struct, frozen=True):
    """The result of a replayed command."""

    path: str
    verdict: Literal["reproduced", "diverged"]
    answered: int
    """The number of calls answered from the capture."""
    exit_status: int
    """The exit status of the command."""
    receipt: ReplayReceipt
    hermetic: str
    """A phrase that says how certain it is that nothing went live."""
    prints_as_recorded: bool = True
    """Whether the command printed the recorded lines; true if none were recorded."""

    @property
    def is_reproduced(self) -> bool:
        return self.verdict == "reproduced"


@takes_addresses("path")
def replay_command(
    path: str | Path,
    words: Sequence[str],
    *,
    policy: Policy | None = None,
    on_unmatched: OnUnmatched = "error",
    volatile: Sequence[VolatileRule] = (),
    allow: Sequence[str] = (),
    network: bool = False,
    strict_output: bool = False,
    port: int | None = None,
    stdout: int = 1,
    workspace: bool = False,
    repository: str | Path | None = None,
) -> ReplayReport:
    """Run the command *words* again, every call answered from the capture in *path*; nothing goes live.

    Without *policy*, ``REENACT_POLICY`` decides, then ``reenact.toml``, then it is ``strict``. *volatile*
    adds rules to those of the capture and of the nearest ``reenact.toml``. *allow* names addresses that the
    command may reach, *network* lets programs other than Python reach other machines. If the command prints
    other output than recorded, a note says so; with *strict_output* it is a divergence. The output of the
    command goes to the file descriptor *stdout*.

    With *workspace* the command runs in a new folder with the recorded files; ``{workspace}`` in *words*
    stands for it. Files that differ before a call or at the end are divergences. *repository* is the git
    repository with the files that the capture only names.
    """
    directory, words, rules, allowed = str(path), tuple(words), tuple(volatile), tuple(allow)
    _refuse_malformed(allowed)
    policy = choose_policy(policy, Path.cwd())
    check_on_unmatched(on_unmatched, policy)
    project_rules(Path.cwd())  # reports wrong rules before anything runs
    project_beside(Path.cwd())
    reader = CaptureReader(directory)
    recorded = reader.manifest.exitStatus
    run_start, salt = read_run_start(reader), reader.manifest.redaction.salt_bytes
    upstreams = upstreams_of(os.environ) | (run_start.upstreams or {})
    fence = None if network else Fence(os.environ, read_allow(allowed).addresses, upstreams.values())
    if workspace:
        rules += tuple(project_rules(Path.cwd()))  # they cannot be found from the new folder
    restoring = restore_start(reader, repository) if workspace else nullcontext()
    with handover_folder() as handover, restoring as files:
        served = ServedReplay(
            Path(directory),
            upstreams,
            policy=policy,
            on_unmatched=on_unmatched,
            volatile=rules,
            words=words,
            input_copy=handover.input_copy,
            workspace=files,
        )
        with served.serve(port=port or 0, on_call=handover.note_gateway_call) as gateway:
            orders = ToReplay(
                path=str(Path(directory).absolute()),
                gateway=gateway.address,
                volatile=rules,
                policy=policy,
                allowed=allowed,
                on_unmatched=on_unmatched,
                clock_shift_s=None if network or allowed else _clock_shift_s(served),
            )
            status, printed = run_again(
                words,
                orders,
                handover,
                run_start,
                salt,
                files=files,
                stdout=stdout,
                is_of_no_use=lambda: policy == "strict" and handover.has_outlived_divergence(STALL_S),
                fence=fence,
                keep_input=handover.input_copy,
            )
        found = _collect_replays(directory, handover, served, run_start)
        found = _compare_exit_status(found, None if recorded is ABSENT else recorded, status)
        if files is not None:
            found = _with_notes(_compare_files(found, served), files.notes)
    found = _with_notes(found, fence.notes if fence is not None else [])
    before = reader.manifest.stdout
    recorded_names = _recorded_names(found.receipt)
    difference = None if before is ABSENT else describe_differing_line(before, printed, recorded_names)
    # After a divergence, other output is a consequence.
    if before is not ABSENT and difference and found.receipt.verdict != "diverged":
        difference = served.redact(difference)
        found = _with_output_difference(found, difference, before, printed, is_strict=strict_output)
    return ReplayReport(
        directory,
        found.receipt.verdict,
        found.answered,
        status,
        found.receipt,
        _hermetic_claim(run_start, fence, allowed),
        prints_as_recorded=difference is None,
    )


def _clock_shift_s(served: ServedReplay) -> float:
    """How much later the recorded run began than this one, in seconds."""
    return served.context.source.times_ms[0] / 1000 - time()


def _compare_files(replayed: Replayed, served: ServedReplay) -> Replayed:
    """Compare the files at the end, unless something else differs: then they are a consequence."""
    if replayed.receipt.verdict == "diverged" or served.context.files is None:
        return replayed
    divergence = served.context.files.at_end()
    return replayed if divergence is None else _with_divergences(replayed, divergence)


def _hermetic_claim(run_start: RunStartData, fence: Fence | None, allowed: Sequence[str]) -> str:
    """A phrase that says how certain it is that nothing went live, except what the user *allowed*."""
    live = [f"what --allow names: {', '.join(allowed)}"] if allowed else []
    if fence is not None and fence.reached and run_start.upstreams is ABSENT:
        live.append(f"connections to {', '.join(fence.reached)}")
    except_for = f" but {' and '.join(live)}" if live else ""
    if run_start.upstreams is ABSENT:
        return f"nothing went live{except_for}"
    if fence is not None and fence.stands:
        return f"nothing left this machine{except_for}"
    return "nothing was passed on"


def _collect_replays(
    directory: str, handover: Handover, served: ServedReplay, run_start: RunStartData
) -> Replayed:
    """Merge the reports of the gateway and of the processes."""
    assert served.receipt is not None
    through_gateway = Replayed(served.answered, served.receipt)
    if run_start.python is ABSENT and run_start.upstreams is not ABSENT:
        return through_gateway
    in_processes = _collect_processes(directory, handover, run_start)
    if run_start.upstreams is ABSENT and not through_gateway.has_acted:
        return in_processes
    return _merge_replays(in_processes, through_gateway)


def _merge_replays(first: Replayed, second: Replayed) -> Replayed:
    one, other = first.receipt, second.receipt
    receipt = msgspec.structs.replace(
        one,
        divergences=[*one.divergences, *other.divergences],
        liveCallsRefused=[*one.liveCallsRefused, *other.liveCallsRefused],
        liveCalls=[*(one.liveCalls or ()), *(other.liveCalls or ())] or ABSENT,
        notes=[*one.notes, *other.notes],
        acrossTasks=merge_across_tasks(one.acrossTasks, other.acrossTasks),
        beside=[*(one.beside or ()), *(other.beside or ())] or ABSENT,
        verdict="reproduced" if one.verdict == other.verdict == "reproduced" else "diverged",
        renamed=[*(one.renamed or ()), *(other.renamed or ())] or ABSENT,
        times=[*(one.times or ()), *(other.times or ())] or ABSENT,
    )
    return _with_divergences(
        Replayed(first.answered + second.answered, receipt), *_find_name_conflicts(one, other)
    )


def _find_name_conflicts(one: ReplayReceipt, other: ReplayReceipt) -> Iterator[ReplayDivergence]:
    """Generated names that two processes mapped to different recorded names."""
    by_recorded = {each.recorded: each for each in one.renamed or ()}
    by_live = {each.live: each for each in one.renamed or ()}
    for each in other.renamed or ():
        earlier = by_recorded.get(each.recorded, by_live.get(each.live, each))
        if (earlier.recorded, earlier.live) != (each.recorded, each.live):
            yield ReplayDivergence(
                code="event_payload_mismatch",
                detail=f"{earlier.recorded} was {earlier.live} at event {earlier.eventSeq} "
                f"{earlier.jsonPath}, and at {each.jsonPath} {each.recorded} was {each.live}, "
                "in another process",
                event_seq=each.eventSeq,
                json_path=each.jsonPath,
            )


def _collect_processes(directory: str, handover: Handover, run_start: RunStartData) -> Replayed:
    """Merge the reports of the Python processes."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    for why in handover.notes("failed").values():
        raise StoreError(why)
    replays = handover.replays()
    acted = [replay for replay in replays.values() if replay.root or replay.receipt.liveCallsRefused]
    acted.sort(key=lambda replay: replay.root != ROOT)  # only the first process's fingerprint is kept
    has_diverged = any(replay.receipt.verdict == "diverged" for replay in acted)
    recorded = recorded_processes(run_start)
    killed = set() if has_diverged else _find_killed_again(directory, handover, recorded)
    if not replays:
        raise CheckFailed(
            f"{directory}: nothing is proved: the command started no Python that reads our PYTHONPATH "
            "(python -I and -E do not), so what it did was not replayed"
        )
    found = reduce(_merge_replays, acted or [*replays.values()][:1])
    if has_diverged and found.receipt.matching.policy == "strict":
        return found
    played = {replay.root for replay in acted} | killed
    return _with_divergences(
        found, *_find_missing_processes(directory, [root for root in recorded if root not in played])
    )


def _find_killed_again(
    directory: str, handover: Handover, recorded: dict[str, ProcessData]
) -> set[str | None]:
    """The first lanes of processes that were killed both in the recording and now."""
    reported, roots = handover.replays(), handover.notes("plays")
    cut_off = {pid: roots.get(pid, "") for pid in handover.notes("started") if pid not in reported}
    for pid, root in cut_off.items():
        if pid in handover.notes("diverged") or root not in recorded or recorded[root].ended:
            process = handover.process(pid)
            raise CheckFailed(f"{directory}: nothing is proved: {process} ended before it could report")
    return set(cut_off.values())


def _find_missing_processes(directory: str, roots: Iterable[str]) -> Iterator[ReplayDivergence]:
    """The calls of recorded processes that no process has replayed, except calls inside an answered call."""
    for root in roots:
        for divergence in describe_left_over(
            ReplaySource(directory, lanes_of(root), root, project_beside(Path.cwd()))
        ):
            if "parent" not in (divergence.expected or {}).get("data", {}):
                yield divergence


def _compare_exit_status(replayed: Replayed, recorded: int | None, status: int) -> Replayed:
    """Add a divergence if the exit status differs, even if all calls were made."""
    if replayed.receipt.verdict == "diverged" or recorded in (None, status):
        return replayed
    divergence = ReplayDivergence(
        code="event_payload_mismatch",
        detail=f"the command ended with exit status {status}, the recorded one with {recorded}",
        expected={"exitStatus": recorded},
        observed=Observed("run_end", {"exitStatus": status}),
    )
    return _with_divergences(replayed, divergence)


def _refuse_malformed(allowed: tuple[str, ...]) -> None:
    for address in allowed:
        if not read_allow([address]).addresses:
            raise UsageError(f"--allow {address}: is not HOST:PORT; write localhost:5432")


def _recorded_names(receipt: ReplayReceipt) -> dict[bytes, bytes]:
    """The recorded names of the generated values of this run, as they may be printed."""
    renamed = [] if receipt.renamed is ABSENT else receipt.renamed
    pairs = (zip(spellings(each.recorded), spellings(each.live), strict=False) for each in renamed)
    return {live.encode(): recorded.encode() for both in pairs for recorded, live in both}


def _with_output_difference(
    replayed: Replayed, difference: str, recorded: PrintedLines, printed: Printed, *, is_strict: bool
) -> Replayed:
    """Add the difference of the printed output to *replayed*, as a note or a divergence."""
    if not is_strict:
        return _with_notes(replayed, [difference])
    divergence = ReplayDivergence(
        code="event_payload_mismatch",
        detail=difference,
        expected={"stdout": recorded.digest},
        observed=Observed("run_end", {"stdout": printed.end().digest}),
    )
    return _with_divergences(replayed, divergence)


def _with_divergences(replayed: Replayed, *found: ReplayDivergence) -> Replayed:
    """Add the divergences that are known only after all processes have ended."""
    if not found:
        return replayed
    divergences = [*replayed.receipt.divergences, *(divergence.to_json() for divergence in found)]
    receipt = msgspec.structs.replace(replayed.receipt, divergences=divergences, verdict="diverged")
    return msgspec.structs.replace(replayed, receipt=receipt)


def _with_notes(replayed: Replayed, notes: list[str]) -> Replayed:
    receipt = msgspec.structs.replace(replayed.receipt, notes=[*replayed.receipt.notes, *notes])
    return msgspec.structs.replace(replayed, receipt=receipt)
