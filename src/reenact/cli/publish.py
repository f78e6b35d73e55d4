"""``reenact publish``: write a run's log without its private parts."""

from __future__ import annotations

import json
from pathlib import Path

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.check.publishing import POLICIES, PolicyName
from reenact.check.seals.runs import publish
from reenact.cli.terminal import A_PATH, printable, progress_bar


@click.command("publish")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="Where to write the log.",
)
@click.option("--policy", type=click.Choice(POLICIES), default="private", show_default=True)
@click.option(
    "--seal",
    "seal_path",
    metavar="FILE",
    type=A_PATH,
    help="The run's seal; every line then carries its proof.",
)
@click.option(
    "--secret",
    "secret_path",
    metavar="FILE",
    type=A_PATH,
    help="The seal's secret.",
)
@click.option(
    "--withhold",
    metavar="LINE",
    type=click.IntRange(min=2),
    multiple=True,
    help="A line to hide completely; repeatable.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
def command(
    path: Path,
    output: Path,
    policy: PolicyName,
    seal_path: Path | None,
    secret_path: Path | None,
    withhold: tuple[int, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Write a run's log without its private parts.

    PATH is a capture directory or a REPLAY.jsonl. Parameters and outputs are never written; --policy
    decides about texts, names and hashes. With a seal every line carries its proof: `reenact verify
    FILE --seal SEAL --key PUB` needs nothing else. Names and hashes of recorded files go into a file
    beside FILE; their contents are never written.
    """
    report = publish(
        path,
        output,
        policy=policy,
        seal=seal_path,
        secret=secret_path,
        withhold=withhold,
        replace=force,
        progress_bar=progress_bar,
    )
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))
        return
    under = f" under {report.seal}" if report.seal else ""
    withheld = f", {report.withheld} withheld" if report.withheld else ""
    shown = plural(report.shown, "line")
    click.echo(printable(f"{output}: {shown} published{under}{withheld}, policy {policy}"))
    if report.files is not None:
        click.echo(printable(f"{report.files}: names and hashes of the files, no contents"))
