"""``reenact publish``: a run's log without what is private in it."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from reenact import canonical
from reenact.analysis.brief import plural
from reenact.check.publishing.policies import POLICIES, PolicyName
from reenact.check.publishing.publisher import Publisher
from reenact.check.seals.published_log import WITHHELD_EVENT, published_lines
from reenact.check.seals.sealing import log_leaves
from reenact.cli.command import A_PATH
from reenact.cli.failure import printable
from reenact.cli.sealed_run import RunLog, Secret, seal_in, verify_leaves
from reenact.errors import UsageError
from reenact.formats.replay_log import LEAVES, PUBLISHED
from reenact.formats.seal import SEED_BYTES
from reenact.store.outfile import open_output


@click.command("publish")
@click.argument("path", metavar="PATH", type=A_PATH)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=A_PATH,
    required=True,
    help="Where it goes.",
)
@click.option("--policy", type=click.Choice(POLICIES), default="private", show_default=True)
@click.option(
    "--seal",
    "seal_path",
    metavar="FILE",
    type=A_PATH,
    help="Prove every line by it.",
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
    help="A line of which nothing is shown.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
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
    """Write a run's log without what is private in it.

    PATH is a capture directory or a REPLAY.jsonl. Parameters and outputs are never written; --policy says
    what becomes of texts, names and hashes. Under a seal every line carries its proof, and
    reenact verify FILE --seal SEAL --key PUB needs nothing else.
    """
    run = RunLog(path)
    lines: Iterator[dict[str, Any] | None] = unsealed_lines(run, policy, withhold)
    if seal_path is not None:
        lines = _sealed(run, policy, withhold, seal_path, Secret.of(seal_path, secret_path))
    elif secret_path is not None:
        raise UsageError("--secret belongs to a seal; add --seal FILE")
    with open_output(output, replace=force) as stream:
        counts = _write(lines, stream, run.dialect.tag_field)
        _refuse_beyond(withhold, counts["shown"] + counts["withheld"])
    if as_json:
        done = {"output": str(output), "policy": policy, "seal": seal_path and str(seal_path)}
        click.echo(json.dumps({**done, "shown": counts["shown"], "withheld": counts["withheld"]}, indent=2))
        return
    under = f" under {seal_path}" if seal_path else ""
    withheld = f", {counts['withheld']} withheld" if counts["withheld"] else ""
    shown = plural(counts["shown"], "line")
    click.echo(printable(f"{output}: {shown} published{under}{withheld}, policy {policy}"))


def _write(lines: Iterator[dict[str, Any] | None], stream: BinaryIO, tag_field: str) -> Counter[str]:
    """Write the lines that there are; how many are shown and how many withheld."""
    counts = Counter[str]()
    for line in lines:
        counts[_class_of(line, tag_field)] += 1
        if line is not None:
            stream.write(canonical.encode(line) + b"\n")
    return counts


def _refuse_beyond(withhold: tuple[int, ...], count: int) -> None:
    if withhold and max(withhold) > count:
        raise UsageError(f"there is no line {max(withhold)} to withhold: the log has {count}")


def _class_of(line: dict[str, Any] | None, tag_field: str) -> str:
    name = WITHHELD_EVENT if line is None else line[tag_field]
    return {WITHHELD_EVENT: "withheld", LEAVES: "leaves"}.get(name, "shown")


def unsealed_lines(
    run: RunLog, policy: PolicyName, withhold: Collection[int] = ()
) -> Iterator[dict[str, Any] | None]:
    """The lines of a published log that proves nothing; ``None`` for one of which nothing is shown."""
    seed = secrets.token_bytes(SEED_BYTES)
    publisher = Publisher(run.events(), run.dialect, seed, [policy], run.outputs())
    for position, event in enumerate(run.events(), 1):
        line = None if position in withhold else publisher.publish(event, policy)
        yield {**line, PUBLISHED: policy} if line is not None and position == 1 else line


def _sealed(
    run: RunLog, policy: PolicyName, withhold: Collection[int], seal_path: Path, secret: Secret
) -> Iterator[dict[str, Any]]:
    seal = seal_in(seal_path)
    run.refuse_foreign(seal, seal_path)
    leaves = verify_leaves([*log_leaves(secret.lines(), secret.seed)], seal.log.lines.root, secret)
    yield from published_lines(
        secret.lines(), leaves, secret.seed, dialect=run.dialect, policy=policy, withhold=withhold
    )
