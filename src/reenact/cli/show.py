"""``reenact show``: list the steps of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from reenact.analysis.artifact import Artifact, open_artifact
from reenact.analysis.show import find_steps, transcript
from reenact.analysis.show import play as play_steps
from reenact.canonical import JsonValue
from reenact.check.kinds import is_folder_of_runs
from reenact.cli.table import Layout, footer, header_lines, run_line
from reenact.cli.terminal import printable, progress_bar, report, safe_json, write_line
from reenact.corpus.runs import fork_tree, show_runs
from reenact.errors import FormatError, UsageError
from reenact.suite.settings import project_prices


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
@click.option(
    "--transcript",
    "as_transcript",
    is_flag=True,
    help="Print what was said and done, for review; of an events.jsonl as git's textconv.",
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
    as_transcript: bool,
    as_json: bool,
) -> int:
    """List the steps of a run, or follow and play it.

    PATH is a capture, its events.jsonl, a REPLAY.jsonl, a replay.json or a trace.json. Each line is one
    call: its event number, its time, its duration, its task, the request and the outcome. A run that is
    being recorded, or was interrupted, is listed as far as it got. For a folder of runs, and for a corpus
    made by `reenact index`, the runs are listed.

    TERM is kind:K, tool:T, name:N, task:N, state:S or text:T. * matches anything, a comma means or, !
    negates. "error" alone means state:error; any other word is searched in the recorded text.
    """
    _refuse_contradictions(seq=seq, filters=filters, follow=follow, play=play, speed=speed)
    if as_transcript:
        if seq is not None or filters or follow or play or tree or as_json:
            raise UsageError("--transcript prints the whole run; leave out the other options")
        click.echo(transcript(path), nl=False)
        return 0
    if tree:
        return _show_tree(path, as_json=as_json)
    if is_folder_of_runs(path):
        if seq is not None or filters or follow or play:
            raise UsageError(f"{path}: is a folder of runs; name one of them")
        return _list_runs(path, as_json=as_json)
    with open_artifact(path, project_prices()) as artifact:
        if seq is not None:  # only this event is read and checked
            click.echo(safe_json(artifact.event_with_files(seq)))
            return 0
        if follow or play:
            pace = (1.0 if speed is None else speed) if play else 0.0
            _play(artifact, filters, follow=follow, speed=pace, as_json=as_json)
            problem = artifact.problem if follow else artifact.find_problem()
        elif as_json:
            problem = _write_json(artifact, filters)
        else:
            _write_text(artifact, filters)
            problem = artifact.find_problem()
    return report(problem) if problem is not None else 0


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
        click.echo("no forks beside it; for forks elsewhere, name a folder that holds both", err=True)
    return 0


def _list_runs(folder: str, *, as_json: bool) -> int:
    found = show_runs(folder)
    status = max(map(report, found.problems), default=0)
    if as_json:
        click.echo(safe_json(msgspec.to_builtins(found.runs)))
        return status
    width = max((len(header.path) for header in found.runs), default=0)
    for header in found.runs:
        write_line(run_line(header, width))
    return status


def _refuse_contradictions(
    *, seq: int | None, filters: tuple[str, ...], follow: bool, play: bool, speed: float | None
) -> None:
    if seq is not None and filters:
        raise UsageError("--at shows one event; leave out --filter")
    if seq is not None and (follow or play):
        raise UsageError("--at shows one event; leave out --follow and --play")
    if speed is not None and not play:
        raise UsageError("--speed is about --play; add it")
    if speed is not None and not 0 <= speed < float("inf"):
        raise UsageError(f"--speed {speed:g}: choose 0 or more")


def _write_text(artifact: Artifact, filters: tuple[str, ...]) -> None:
    header = artifact.header()
    steps = find_steps(artifact, filters, progress_bar=progress_bar)
    counts = artifact.counts()
    for line in header_lines(header, counts):
        write_line(line)
    layout, shown = Layout(counts), 0
    for shown, step in enumerate(steps, 1):
        if shown == 1:
            write_line(layout.titles())
        write_line(layout.row(step))
    for line in footer(counts, is_open=header.is_open, matched=shown if filters else None):
        write_line(line)


def _write_json(artifact: Artifact, filters: tuple[str, ...]) -> FormatError | None:
    """Write one object, step by step; returns the problem of the run, if any."""
    write = sys.stdout.write
    head = safe_json(msgspec.to_builtins(artifact.header()))
    steps = find_steps(artifact, filters, progress_bar=progress_bar)
    write(f'{head[:-2]},\n  "calls": [')
    for place, step in enumerate(steps):
        row = safe_json(msgspec.to_builtins(step), indent=None)
        write(f"{',' if place else ''}\n    {row}")
    end = msgspec.to_builtins(artifact.counts())
    problem = artifact.find_problem()
    if problem is not None:
        end["problem"] = str(problem)
    write(f"\n  ],{safe_json(end)[1:]}\n")
    return problem


def _play(artifact: Artifact, filters: tuple[str, ...], *, follow: bool, speed: float, as_json: bool) -> None:
    moments = play_steps(artifact, filters, follow=follow, speed=speed, progress_bar=progress_bar)
    if as_json:
        for moment in moments:
            value: dict[str, JsonValue] = {"event": moment.seq, "begins": moment.begins, "ends": moment.ends}
            click.echo(safe_json(value | msgspec.to_builtins(moment.step), indent=None))
            sys.stdout.flush()
        return
    artifact.index(seconds=0)
    for line in header_lines(artifact.header(), artifact.counts()):
        write_line(line)
    write_line(Layout(artifact.counts()).titles())
    for moment in moments:
        write_line(Layout(artifact.counts()).moment(moment))
        sys.stdout.flush()
    for line in footer(artifact.counts(), is_open=artifact.header().is_open):
        write_line(line)
