"""``reenact show``: a run in the terminal, a line per step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

import click
import msgspec

from reenact.analysis.artifact import Artifact, Playback, StepMoment, open_artifact, read_whole
from reenact.analysis.fork_tree import fork_tree
from reenact.analysis.index import Term, parse_terms, refuse_unknown_kinds
from reenact.analysis.steps import RunStep
from reenact.canonical import JsonValue
from reenact.check.kinds import is_folder_of_runs, name_runs
from reenact.cli.table import Layout, footer, header_lines, run_line
from reenact.cli.terminal import TextLine, printable, printer, progress_bar, report, safe_json
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.workspace import WORKSPACE
from reenact.suite.settings import project_prices
from reenact.trace.sources.source import Header

_POLL_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0


@click.command("show")
@click.argument("path", metavar="PATH")
@click.option(
    "--at",
    "seq",
    metavar="SEQ",
    type=int,
    help="Print the complete event with this number.",
)
@click.option(
    "--filter", "filters", metavar="TERM", multiple=True, help="Only steps that match, such as tool:search."
)
@click.option("--follow", is_flag=True, help="Keep printing while the run is recorded, until it ends.")
@click.option("--play", is_flag=True, help="Show each step at its recorded time.")
@click.option("--speed", metavar="N", type=float, help="With --play: N times as fast; 0 does not wait.")
@click.option(
    "--tree", is_flag=True, help="List the run with its parents and forks; in a folder, all trees below it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; with --follow one per line.")
def command(
    path: str,
    seq: int | None,
    filters: tuple[str, ...],
    follow: bool,
    play: bool,
    speed: float | None,
    tree: bool,
    as_json: bool,
) -> int:
    """List the steps of a run, or follow and play it.

    PATH is a capture, its events.jsonl, a REPLAY.jsonl, a replay.json or a trace.json. Each line is one
    call: its event number, its time, its duration, its task, the request and the outcome. A run that is
    being recorded, or was interrupted, is listed as far as it got. For a folder of runs, the runs are
    listed.

    TERM is kind:K, tool:T, name:N, task:N, state:S or text:T. * matches anything, a comma means or, !
    negates. "error" alone means state:error; any other word is searched in the recorded text.
    """
    terms = parse_terms(filters)
    _refuse_contradictions(seq=seq, terms=terms, follow=follow, play=play, speed=speed)
    if tree:
        return _show_tree(path, as_json=as_json)
    if is_folder_of_runs(path):
        if seq is not None or terms or follow or play:
            raise UsageError(f"{path}: is a folder of runs; name one of them")
        return _list_runs(path, as_json=as_json)
    with open_artifact(path, project_prices(Path.cwd())) as artifact:
        if seq is not None:
            event = artifact.event(seq)  # no more is read, so no more is checked
            if _has_file_changes(event):
                event |= {"files": artifact.changed_files(seq)}
            click.echo(safe_json(event))
            return 0
        showing = _Showing(artifact, terms)
        if follow or play:
            showing.play(_json_moment if as_json else None, follow=follow, speed=_speed(play, speed))
        elif as_json:
            showing.write_json()
        else:
            showing.write_text(printer())
        problem = artifact.problem if follow else showing.problem
    return report(problem) if problem is not None else 0


def _has_file_changes(event: JsonValue) -> bool:
    if not isinstance(event, dict) or event.get("type") != "state_mutation":
        return False
    data = event.get("data")
    return isinstance(data, dict) and data.get("type") == WORKSPACE


def _show_tree(path: str, *, as_json: bool) -> int:
    nodes = fork_tree(path)
    if not nodes:
        raise UsageError(f"{path}: is not a finished capture; only captures have forks")
    if as_json:
        click.echo(safe_json([msgspec.to_builtins(node) for node in nodes]))
        return 0
    for node in nodes:
        where = "" if node.at is None else f"  at event {node.at}" if node.at else "  from the start"
        change = f": {node.change}" if node.change else ""
        mark = "  <- this one" if Path(node.path).resolve() == Path(path).resolve() else ""
        click.echo(printable(f"{'  ' * node.depth}{node.path}{where}{change}{mark}"))
    if len(nodes) == 1:
        click.echo("no fork beside it; of forks elsewhere, name a folder that holds both", err=True)
    return 0


def _list_runs(folder: str, *, as_json: bool) -> int:
    """A line for each run below *folder*; the exit status for those that cannot be read."""
    status, headers = 0, list[Header]()
    for path in name_runs([folder]):
        try:
            with open_artifact(path) as artifact:
                headers.append(artifact.header())
        except (FormatError, StoreError, OSError) as error:
            status = max(status, report(error))
    if as_json:
        click.echo(safe_json([msgspec.to_builtins(header) for header in headers]))
        return status
    write = printer()
    width = max((len(header.path) for header in headers), default=0)
    for header in headers:
        write(run_line(header, width))
    return status


def _refuse_contradictions(
    *, seq: int | None, terms: tuple[Term, ...], follow: bool, play: bool, speed: float | None
) -> None:
    if seq is not None and terms:
        raise UsageError("--at shows one event; leave out --filter")
    if seq is not None and (follow or play):
        raise UsageError("--at shows one event; leave out --follow and --play")
    if speed is not None and not play:
        raise UsageError("--speed is about --play; add it")
    if speed is not None and not 0 <= speed < float("inf"):
        raise UsageError(f"--speed {speed:g}: choose 0 or more")


def _speed(play: bool, speed: float | None) -> float:
    """0 for no pauses."""
    return (1.0 if speed is None else speed) if play else 0.0


class _Showing:
    """A run being shown; one that is damaged is shown as far as it can be, and then complained about."""

    def __init__(self, artifact: Artifact, terms: tuple[Term, ...]) -> None:
        self.artifact = artifact
        self._terms = terms
        self._shown = 0

    @cached_property
    def problem(self) -> FormatError | None:
        """Why a finished capture is not what was recorded, or an unfinished one could not be read on."""
        try:
            self.artifact.verify()
        except FormatError as error:
            return error
        return self.artifact.problem

    def write_text(self, write: Callable[[TextLine], None]) -> None:
        header = self.artifact.header()
        self._read_whole()
        counts = self.artifact.counts()
        for line in header_lines(header, counts):
            write(line)
        layout = Layout(counts)
        for step in self._steps():
            if self._shown == 1:
                write(layout.titles())
            write(layout.row(step))
        matched = self._shown if self._terms else None
        for line in footer(counts, is_open=header.is_open, matched=matched):
            write(line)

    def write_json(self) -> None:
        """One object, written while it is read."""
        write = sys.stdout.write
        head = safe_json(msgspec.to_builtins(self.artifact.header()))
        self._read_whole()
        write(f'{head[:-2]},\n  "calls": [')
        for step in self._steps():
            row = safe_json(msgspec.to_builtins(step), indent=None)
            write(f"{',' if self._shown > 1 else ''}\n    {row}")
        end = msgspec.to_builtins(self.artifact.counts())
        if self.problem is not None:
            end["problem"] = str(self.problem)
        write(f"\n  ],{safe_json(end)[1:]}\n")

    def _read_whole(self) -> None:
        read_whole(self.artifact, progress_bar)
        refuse_unknown_kinds(self._terms, self.artifact.rows)

    def play(self, written: Callable[[StepMoment], str] | None, *, follow: bool, speed: float) -> None:
        """Write each moment as it comes, or when its time comes."""
        header = self.artifact.header()
        write = printer()
        if not header.is_open:  # what is still being recorded may have any kind yet
            self._read_whole()
        if written is None:
            self.artifact.index(seconds=0)
            for line in header_lines(header, self.artifact.counts()):
                write(line)
            write(Layout(self.artifact.counts()).titles())
        for moment in self._pace(follow=follow, speed=speed):
            if written is None:
                write(Layout(self.artifact.counts()).moment(moment))
            else:
                click.echo(written(moment))
            sys.stdout.flush()
        if written is None:
            header = self.artifact.header()
            for line in footer(self.artifact.counts(), is_open=header.is_open):
                write(line)

    def _steps(self) -> Iterator[RunStep]:
        for place in range(len(self.artifact.rows)):
            if self.artifact.fits(place, self._terms):
                self._shown += 1
                yield self.artifact.at(place)

    def _pace(self, *, follow: bool, speed: float) -> Iterator[StepMoment]:
        at_ms: float | None = None
        for moment in self._moments(follow):
            if speed and at_ms is not None:
                time.sleep(min(max(0.0, moment.at_ms - at_ms) / 1000 / speed, _LONGEST_PAUSE_SECONDS))
            at_ms = moment.at_ms
            yield moment

    def _moments(self, follow: bool) -> Iterator[StepMoment]:
        playback = Playback(self.artifact)
        while True:
            # Asked before reading on: what is written before the end is then read for certain.
            is_open = follow and self.artifact.header().is_open
            is_complete = self.artifact.index(seconds=0)
            for moment in playback.moments():
                if self.artifact.fits(moment.step.place, self._terms):
                    yield moment
            if is_complete and not is_open:
                return
            if is_complete:
                time.sleep(_POLL_SECONDS)


def _json_moment(moment: StepMoment) -> str:
    value: dict[str, JsonValue] = {"event": moment.seq, "begins": moment.begins, "ends": moment.ends}
    return safe_json(value | msgspec.to_builtins(moment.step), indent=None)
