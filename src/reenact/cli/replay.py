"""``reenact replay``: a recorded command again, answered from its capture."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.boundary import ROOT
from reenact.cli.failure import DIFFERS, printable, say
from reenact.cli.volatile import volatile_option
from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.capture import PrintedLines, ProcessData, RunStartData
from reenact.formats.divergence import Observed, ReplayDivergence
from reenact.formats.record import ABSENT, Absent
from reenact.formats.replay_receipt import ReplayReceipt, merge_across_tasks, receipt_codec
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.fence import Fence
from reenact.injected.handover import Handover, Replayed, ToReplay
from reenact.injected.launch import addressed, diverted, handover_folder, injecting, run
from reenact.injected.output import Printed, differing_line
from reenact.injected.processes import beginning, recorded_processes
from reenact.injected.served import ServedReplay
from reenact.replayer.allow import read_allow
from reenact.replayer.engine import OnUnmatched, Policy
from reenact.replayer.report import left_over
from reenact.replayer.source import ReplaySource, lanes_of
from reenact.run.replaying import STALL_S
from reenact.run.rules import check_on_unmatched, choose_policy, project_beside, project_rules
from reenact.store.outfile import write_output
from reenact.store.reader import CaptureReader
from reenact.volatile.defaults import DEFAULTS

_EXPLAINED: Final = 5
"""So many divergences are explained to a person; the first is nearly always the cause of the others."""


@click.command("replay")
@click.argument("directory", metavar="DIR")
@click.option(
    "--policy",
    type=click.Choice(["strict", "lenient"]),
    help="Default: REENACT_POLICY, then reenact.toml, then strict.",
)
@click.option(
    "--on-unmatched",
    type=click.Choice(["error", "empty", "live"]),
    default="error",
    show_default=True,
    help="What a lenient replay does with a call that nothing recorded is alike.",
)
@volatile_option
@click.option("--receipt", "receipt_file", metavar="FILE", help="Write the replay receipt here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on a stdout of its own.")
@click.option("--network", is_flag=True, help="Let programs that are not Python reach other machines.")
@click.option(
    "--allow", "allowed", metavar="HOST:PORT", multiple=True, help="Let COMMAND reach this address."
)
@click.option("--strict-output", is_flag=True, help="Take it for a divergence when COMMAND prints otherwise.")
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway's port; a free one if not given.")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    directory: str,
    policy: Policy | None,
    on_unmatched: OnUnmatched,
    volatile: tuple[VolatileRule, ...],
    receipt_file: str | None,
    as_json: bool,
    network: bool,
    allowed: tuple[str, ...],
    strict_output: bool,
    port: int | None,
    words: tuple[str, ...],
) -> int:
    """Run a command again, answered from its capture.

    Every call is answered from the capture in DIR and nothing goes live. The exit status is 0 when the
    run was reproduced, 1 when it diverged: in a call, or in the exit status of COMMAND where the
    capture knows it. Where COMMAND prints something else than when it was recorded, that is noted, and with
    --strict-output it has diverged. strict stops at the first difference, lenient collects them and answers
    with the nearest recorded call; where none is alike, as --on-unmatched says. What rules name as volatile
    may differ: the capture's, those of the nearest reenact.toml, and those given here.
    """
    if receipt_file is not None and not Path(receipt_file).parent.is_dir():
        raise UsageError(f"{receipt_file}: its folder does not exist; make it first")
    _refuse_strange(allowed)
    policy = choose_policy(policy, Path.cwd())
    check_on_unmatched(on_unmatched, policy)
    project_rules(Path.cwd())  # what is wrong with them is said before anything runs
    project_beside(Path.cwd())
    reader = CaptureReader(directory)
    recorded = reader.manifest.exitStatus
    began = beginning(reader)
    fence = None if network else Fence(os.environ, read_allow(allowed).addresses)
    with handover_folder() as handover:
        served = ServedReplay(
            Path(directory),
            upstreams_of(os.environ) | (began.upstreams or {}),
            policy=policy,
            on_unmatched=on_unmatched,
            volatile=volatile,
            words=words,
            input_copy=handover.input_copy,
        )
        with served.served(port=port or 0, on_call=handover.note_gateway_call) as gateway:
            environ, changes = diverted(os.environ, gateway.address)
            orders = ToReplay(
                str(Path(directory).absolute()), policy, changes, volatile, allowed, on_unmatched
            )
            handover.give(orders)
            if began.python is not ABSENT or began.upstreams is ABSENT:
                environ = injecting(environ, handover, "replay")
            printed = Printed(_salt_of(reader))
            status = run(
                addressed(words, gateway.address),
                environ,
                stdout=2 if as_json else 1,
                printed=printed,
                is_of_no_use=lambda: policy == "strict" and handover.goes_on_diverged(STALL_S),
                fence=fence,
                keep_input=handover.input_copy,
            )
        found = _replayed(directory, handover, served, began)
        replayed = _judged(found, None if recorded is ABSENT else recorded, status)
    replayed = _noting(replayed, fence.notes if fence is not None else [])
    replayed = _with_output(replayed, reader.manifest.stdout, printed, served, is_strict=strict_output)
    receipt = replayed.receipt
    if receipt_file is not None:
        write_output(Path(receipt_file), receipt_codec.to_bytes(receipt) + b"\n")
    if as_json:
        click.echo(json.dumps(_as_json(directory, replayed, status), indent=2))
    else:
        _explain(directory, replayed, _alone(began, fence))
    return 0 if receipt.verdict == "reproduced" else DIFFERS


def _replayed(directory: str, handover: Handover, served: ServedReplay, began: RunStartData) -> Replayed:
    """What the gateway saw and the processes of the command reported, as one."""
    assert served.receipt is not None
    through_gateway = Replayed(served.answered, served.receipt)
    if began.python is ABSENT and began.upstreams is not ABSENT:
        return through_gateway
    in_process = _in_processes(directory, handover, began)
    if began.upstreams is ABSENT and not through_gateway.has_acted:
        return in_process
    return _both(in_process, through_gateway)


def _both(first: Replayed, second: Replayed) -> Replayed:
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
    return _with(Replayed(first.answered + second.answered, receipt), *_renamed_twice(one, other))


def _renamed_twice(one: ReplayReceipt, other: ReplayReceipt) -> Iterator[ReplayDivergence]:
    """Names that two processes of the run paired with different ones."""
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


def _in_processes(directory: str, handover: Handover, began: RunStartData) -> Replayed:
    """What the Python processes of the command reported, as one."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    for why in handover.notes("failed").values():
        raise StoreError(why)
    replays = handover.replays()
    acted = [replay for replay in replays.values() if replay.root or replay.receipt.liveCallsRefused]
    acted.sort(key=lambda replay: replay.root != ROOT)  # of many fingerprints the first process's is kept
    has_diverged = any(replay.receipt.verdict == "diverged" for replay in acted)
    recorded = recorded_processes(began)
    cut_off = set() if has_diverged else _cut_off(directory, handover, recorded)
    if not replays:
        raise CheckFailed(
            f"{directory}: nothing is proved: the command started no Python that reads our PYTHONPATH "
            "(python -I and -E do not), so what it did was not replayed"
        )
    found = reduce(_both, acted or [*replays.values()][:1])
    if has_diverged and found.receipt.matching.policy == "strict":
        return found
    played = {replay.root for replay in acted} | cut_off
    return _with(found, *_never_came(directory, [root for root in recorded if root not in played]))


def _cut_off(directory: str, handover: Handover, recorded: dict[str, ProcessData]) -> set[str | None]:
    """The first lanes of processes that were killed in the recording and have been again."""
    reported, roots = handover.replays(), handover.notes("plays")
    cut_off = {pid: roots.get(pid, "") for pid in handover.notes("started") if pid not in reported}
    for pid, root in cut_off.items():
        if pid in handover.notes("diverged") or root not in recorded or recorded[root].ended:
            process = handover.process(pid)
            raise CheckFailed(f"{directory}: nothing is proved: {process} ended before it could report")
    return set(cut_off.values())


def _never_came(directory: str, roots: Iterable[str]) -> Iterator[ReplayDivergence]:
    """The calls of recorded processes that nobody was; those inside a call come with it, or not at all."""
    for root in roots:
        for divergence in left_over(
            ReplaySource(directory, lanes_of(root), root, project_beside(Path.cwd()))
        ):
            if "parent" not in (divergence.expected or {}).get("data", {}):
                yield divergence


def _judged(replayed: Replayed, recorded: int | None, status: int) -> Replayed:
    """A run that made all its calls but ended otherwise is not reproduced either."""
    if replayed.receipt.verdict == "diverged" or recorded in (None, status):
        return replayed
    divergence = ReplayDivergence(
        code="event_payload_mismatch",
        detail=f"the command ended with exit status {status}, the recorded one with {recorded}",
        expected={"exitStatus": recorded},
        observed=Observed("run_end", {"exitStatus": status}),
    )
    return _with(replayed, divergence)


def _refuse_strange(allowed: tuple[str, ...]) -> None:
    for address in allowed:
        if not read_allow([address]).addresses:
            raise UsageError(f"--allow {address}: is not HOST:PORT; write localhost:5432")


def _salt_of(reader: CaptureReader) -> bytes:
    salt = reader.manifest.redaction.salt
    return bytes.fromhex(salt) if salt is not ABSENT else b""


def _with_output(
    replayed: Replayed,
    recorded: PrintedLines | Absent,
    printed: Printed,
    served: ServedReplay,
    *,
    is_strict: bool,
) -> Replayed:
    """What the command printed, compared where nothing else differs: otherwise that follows from it."""
    if recorded is ABSENT or replayed.receipt.verdict == "diverged":
        return replayed
    difference = differing_line(recorded, printed)
    if difference is None:
        return replayed
    difference = served.redact(difference)
    if not is_strict:
        return _noting(replayed, [difference])
    divergence = ReplayDivergence(
        code="event_payload_mismatch",
        detail=difference,
        expected={"stdout": recorded.digest},
        observed=Observed("run_end", {"stdout": printed.end().digest}),
    )
    return _with(replayed, divergence)


def _with(replayed: Replayed, *found: ReplayDivergence) -> Replayed:
    """*replayed* with what only the one who waited for the processes could find."""
    if not found:
        return replayed
    divergences = [*replayed.receipt.divergences, *(divergence.to_json() for divergence in found)]
    receipt = msgspec.structs.replace(replayed.receipt, divergences=divergences, verdict="diverged")
    return msgspec.structs.replace(replayed, receipt=receipt)


def _noting(replayed: Replayed, notes: list[str]) -> Replayed:
    receipt = msgspec.structs.replace(replayed.receipt, notes=[*replayed.receipt.notes, *notes])
    return msgspec.structs.replace(replayed, receipt=receipt)


def _alone(began: RunStartData, fence: Fence | None) -> str:
    """How far it is sure that nobody outside was asked."""
    if began.upstreams is ABSENT:
        return "nothing went live"
    return "nothing left this machine" if fence is not None and fence.stands else "nothing was passed on"


def _as_json(directory: str, replayed: Replayed, status: int) -> dict[str, Any]:
    return {
        "path": directory,
        "verdict": replayed.receipt.verdict,
        "answered": replayed.answered,
        "exitStatus": status,
        "receipt": receipt_codec.to_json(replayed.receipt),
    }


def _explain(directory: str, replayed: Replayed, alone: str) -> None:
    receipt = replayed.receipt
    answered = f"{plural(replayed.answered, 'call')} answered from the capture"
    if receipt.verdict == "reproduced":
        say(f"{directory}: reproduced, {answered}, {alone}{_accepted(receipt)}")
    else:
        live = f", {plural(len(receipt.liveCalls), 'call')} went live" if receipt.liveCalls else ""
        say(f"{directory}: diverged, {answered}{live}")
    usual = {str(rule) for rule in DEFAULTS}
    for rule in receipt.matching.volatile or ():
        if str(rule) not in usual:
            _indented(f"rule in force: {rule}")
    for refused in receipt.liveCallsRefused:
        place = f"\n  called from  {refused.frame}" if refused.frame else ""
        _indented(f"refused: {refused.kind} {refused.target}{place}")
    for divergence in receipt.divergences[:_EXPLAINED]:
        _indented(ReplayDivergence.from_json(divergence).explain())
    if len(receipt.divergences) > _EXPLAINED:
        rest = plural(len(receipt.divergences) - _EXPLAINED, "further divergence")
        _indented(f"… and {rest}; --receipt FILE or --json has them all")
    if receipt.acrossTasks is not ABSENT:
        moved = plural(receipt.acrossTasks.calls, "call")
        _indented(f"note: {moved} matched that had been recorded in another task")
    for note in receipt.notes:
        _indented(f"note: {note}")


def _accepted(receipt: ReplayReceipt) -> str:
    """How much differed that means nothing; which it was is in the receipt."""
    kinds = (receipt.renamed or (), "generated name"), (receipt.times or (), "time")
    counted = " and ".join(plural(len(found), kind) for found, kind in kinds if found)
    return f"; {counted} differed, as in every run" if counted else ""


def _indented(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {printable(line)}", err=True)
