"""``reenact prove``: that an event stands at its place in a sealed run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from reenact.check.seals.commitments import TreeName
from reenact.check.seals.sealing import event_fields, event_leaves, line_fields, log_leaves, prove
from reenact.cli.command import A_PATH
from reenact.cli.failure import printable
from reenact.cli.sealed_run import RunLog, Secret, seal_in, verify_leaves
from reenact.errors import UsageError
from reenact.formats.record import ABSENT
from reenact.formats.seal import Disclosure, write_disclosure
from reenact.store.outfile import open_output

F = TypeVar("F", bound=Callable[..., Any])


def options(command: F) -> F:
    """What ``prove`` and ``disclose`` take alike."""
    file = A_PATH
    for option in (
        click.option("--force", is_flag=True, help="Replace FILE if it is there."),
        click.option("-o", "--output", metavar="FILE", type=file, help="Where it goes; else to stdout."),
        click.option("--log", is_flag=True, help="SEQ is a line of the sealed log."),
        click.option("--secret", "secret_path", metavar="FILE", type=file, help="The seal's secret."),
        click.option("--seal", "seal_path", metavar="FILE", type=file, required=True, help="The run's seal."),
        click.argument("position", metavar="SEQ", type=click.IntRange(min=1)),
        click.argument("path", metavar="PATH", type=A_PATH),
    ):
        command = option(command)
    return command


@click.command("prove")
@options
def command(
    path: Path,
    position: int,
    seal_path: Path,
    secret_path: Path | None,
    log: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Prove that an event stands at its place in a sealed run.

    Nothing else is told about it. SEQ is the number of an event of the capture, or with --log (and for a
    sealed log) of a line of the log. Whoever has the seal can verify the proof with
    reenact verify FILE --seal SEAL --key PUB.
    """
    run = SealedRun(path, seal_path, secret_path, log)
    give(prove(run.leaves(position), run.tree, position), output, force)


class SealedRun:
    """A run with its seal and its secret, seen as the events of the capture or as the lines of the log."""

    def __init__(self, path: Path, seal_path: Path, secret_path: Path | None, log: bool) -> None:
        self._run = RunLog(path)
        self._seal = seal_in(seal_path)
        self._run.refuse_foreign(self._seal, seal_path)
        self.secret = Secret.of(seal_path, secret_path)
        self.tree: TreeName = "log" if log or self._run.capture is None else "events"

    def leaves(self, position: int) -> list[bytes]:
        """All leaves of the tree, which must have one at *position*."""
        if self.tree == "log":
            tree, leaves = self._seal.log.lines, log_leaves(self.secret.lines(), self.secret.seed)
        else:
            assert self._run.capture is not None
            assert self._seal.capture is not ABSENT
            tree = self._seal.capture.events
            leaves = event_leaves(self._run.capture.lines(), self.secret.seed)
        if position > tree.count:
            what = "lines" if self.tree == "log" else "events"
            raise UsageError(f"there is no {position}: {tree.count} {what} were sealed")
        return verify_leaves([*leaves], tree.root, self.secret)

    def fields(self, position: int) -> dict[str, Any]:
        """What was committed to at *position*."""
        if self.tree == "log":
            return line_fields(next(islice(self.secret.lines(), position - 1, None))).committed
        assert self._run.capture is not None
        return event_fields(self._run.capture.line(position))


def give(disclosure: Disclosure, output: Path | None, force: bool) -> None:
    """Write *disclosure* where it was asked for."""
    text = write_disclosure(disclosure)
    if output is None:
        click.echo(text, nl=False)
        return
    with open_output(output, replace=force) as stream:
        stream.write(text)
    what = "line" if disclosure.tree == "log" else "event"
    click.echo(f"{printable(str(output))}: {what} {disclosure.position}")
