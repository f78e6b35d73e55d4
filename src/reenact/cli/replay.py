"""``reenact replay``: run a recorded command again, answered from its capture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from reenact.analysis.brief import plural
from reenact.cli.options import (
    allow_option,
    network_option,
    port_option,
    repository_option,
    volatile_option,
)
from reenact.cli.terminal import DIFFERS, printable, say
from reenact.commands.replay import ReplayReport, replay_command
from reenact.errors import UsageError
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import ReplayReceipt, receipt_codec
from reenact.formats.volatile import VolatileRule
from reenact.replayer.engine import Policy
from reenact.replayer.step import OnUnmatched
from reenact.replayer.volatile import beyond_defaults
from reenact.store.outfile import write_output

_EXPLAINED: Final = 5
"""Divergences that are printed; the first usually causes the others."""


@click.command("replay")
@click.argument("directory", metavar="DIR")
@click.option(
    "--policy",
    type=click.Choice(["strict", "lenient"]),
    help="Default: REENACT_POLICY, else reenact.toml, else strict.",
)
@click.option(
    "--on-unmatched",
    type=click.Choice(["error", "empty", "live"]),
    default="error",
    show_default=True,
    help="What lenient does with a call that resembles no recorded one.",
)
@volatile_option
@click.option("--receipt", "receipt_file", metavar="FILE", help="Write the replay receipt here.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; COMMAND's own stdout goes to stderr."
)
@network_option
@allow_option
@click.option("--strict-output", is_flag=True, help="Different output of COMMAND is a divergence.")
@click.option("--workspace", is_flag=True, help="Run COMMAND in a new folder with the recorded files.")
@repository_option
@port_option
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
    workspace: bool,
    repository: str | None,
    port: int | None,
    words: tuple[str, ...],
) -> int:
    """Run a recorded command again, answered from its capture.

    Every call is answered from the capture in DIR; nothing goes live. strict stops at the first
    difference. lenient collects all differences and answers each with the nearest recorded call;
    --on-unmatched says what happens when there is none.

    Values that a rule names as volatile may differ. Rules come from the capture, from the nearest
    reenact.toml and from --volatile.

    With --workspace, COMMAND runs in a new folder with the recorded files; {workspace} in COMMAND
    stands for it. Files that differ before a call or at the end are divergences. Your own files are not
    touched.

    Exit status: 0 when the run was reproduced, 1 when it diverged, in a call or in the exit status of
    COMMAND. Different output of COMMAND is only reported, unless --strict-output is given.
    """
    if receipt_file is not None and not Path(receipt_file).parent.is_dir():
        raise UsageError(f"{receipt_file}: its folder does not exist; make it first")
    report = replay_command(
        directory,
        words,
        policy=policy,
        on_unmatched=on_unmatched,
        volatile=volatile,
        allow=allowed,
        network=network,
        strict_output=strict_output,
        port=port,
        workspace=workspace,
        repository=repository,
        stdout=2 if as_json else 1,
    )
    if receipt_file is not None:
        write_output(Path(receipt_file), receipt_codec.to_bytes(report.receipt) + b"\n")
    if as_json:
        value = {
            "path": directory,
            "verdict": report.verdict,
            "answered": report.answered,
            "exitStatus": report.exit_status,
            "receipt": receipt_codec.to_json(report.receipt),
        }
        click.echo(json.dumps(value, indent=2))
    else:
        _explain(report)
    return 0 if report.is_reproduced else DIFFERS


def _explain(report: ReplayReport) -> None:
    receipt = report.receipt
    answered = f"{plural(report.answered, 'call')} answered from the capture"
    if report.is_reproduced:
        say(f"{report.path}: reproduced, {answered}, {report.hermetic}{_count_accepted(receipt)}")
    else:
        live = f", {plural(len(receipt.liveCalls), 'call')} went live" if receipt.liveCalls else ""
        say(f"{report.path}: diverged, {answered}{live}")
    for rule in beyond_defaults(receipt.matching.volatile or ()):
        _echo_indented(f"rule in force: {rule}")
    for refused in receipt.liveCallsRefused:
        place = f"\n  called from  {refused.frame}" if refused.frame else ""
        _echo_indented(f"refused: {refused.kind} {refused.target}{place}")
    for divergence in receipt.divergences[:_EXPLAINED]:
        _echo_indented(ReplayDivergence.from_json(divergence).explain())
    if len(receipt.divergences) > _EXPLAINED:
        rest = plural(len(receipt.divergences) - _EXPLAINED, "further divergence")
        _echo_indented(f"… and {rest}; --receipt FILE or --json has them all")
    if receipt.acrossTasks is not ABSENT:
        moved = plural(receipt.acrossTasks.calls, "call")
        _echo_indented(f"note: {moved} matched that had been recorded in another task")
    for note in receipt.notes:
        _echo_indented(f"note: {note}")


def _count_accepted(receipt: ReplayReceipt) -> str:
    """Count the accepted differences; the receipt lists them."""
    kinds = (receipt.renamed or (), "generated name"), (receipt.times or (), "time")
    counted = " and ".join(plural(len(found), kind) for found, kind in kinds if found)
    return f"; {counted} differed, as in every run" if counted else ""


def _echo_indented(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {printable(line)}", err=True)
