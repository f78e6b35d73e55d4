"""``reenact verify``: whether an artifact is what it says it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from reenact.check.artifact import check_artifact, with_other_log, with_receipt
from reenact.cli.command import A_PATH
from reenact.cli.failure import DIFFERS
from reenact.cli.jobs import processes
from reenact.cli.progress import progress_bar
from reenact.cli.terminal import printer
from reenact.cli.verdict import verdict_lines
from reenact.store.rundir import EVENTS

_MANY_BYTES: Final = 64 * 1024 * 1024
"""From here on all cores are worth their start."""


@click.command("verify")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "--receipt",
    metavar="FILE",
    type=A_PATH,
    help="Hold it against its receipt.",
)
@click.option("--seal", metavar="FILE", type=A_PATH, help="Hold it against a seal.")
@click.option("--key", metavar="FILE", type=A_PATH, help="The signer's public key.")
@click.option(
    "--against",
    metavar="LOG",
    type=A_PATH,
    help="Compare with another log.",
)
@click.option("--lenient", is_flag=True, help="Check also what stands behind lines that cannot be read.")
@click.option("--published", is_flag=True, help="The log is a published one: its calls need no params.")
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(0), help="Processes; 0 for all [all if large]."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    path: Path,
    receipt: Path | None,
    seal: Path | None,
    key: Path | None,
    against: Path | None,
    lenient: bool,
    published: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Check that an artifact is what it says it is.

    PATH is a capture, a REPLAY.jsonl, a receipt of either shape, a replay receipt, a bundle, a trace, an
    action, a record, a pack of records, a seal, a disclosure, a test case, a test result, a suite summary or
    a policy. Every problem is printed with its place. The exit status is 0 when there is none but warnings, 1
    when something does not agree, and 2 when PATH cannot be read at all.
    """
    size_bytes = _size_bytes(path)
    number = processes(jobs, is_much=size_bytes >= _MANY_BYTES)
    with progress_bar(size_bytes, "verifying") as advance:
        report = check_artifact(
            path, lenient=lenient, published=published, processes=number, progress=advance
        )
    if receipt is not None:
        report = with_receipt(report, receipt)
    if seal or key or report.what == "disclosure":
        from reenact.check.seals.verify import with_seal

        with progress_bar(size_bytes, "holding it against the seal") as advance:
            report = with_seal(report, seal, key, processes=number, progress=advance)
    if against is not None:
        report = with_other_log(report, against)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        write = printer()
        for line in verdict_lines(report, [str(other) for other in (receipt, seal, against) if other]):
            write(line)
    return 0 if report.is_good else DIFFERS


def _size_bytes(path: Path) -> int:
    file = path / EVENTS if path.is_dir() else path
    return file.stat().st_size if file.exists() else 0
