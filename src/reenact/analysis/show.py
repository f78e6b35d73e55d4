"""Listing or playing the steps of a run, and its transcript."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reenact.analysis.artifact import Artifact, Playback, StepMoment, read_whole
from reenact.analysis.index import Term, parse_terms, refuse_unknown_kinds
from reenact.analysis.steps import RunStep
from reenact.check.kinds import find_kind
from reenact.errors import UsageError
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.paths import takes_addresses
from reenact.store.reader import EventReader, LoneEventReader
from reenact.store.rundir import RunDir
from reenact.store.transcript import transcript_of

_POLL_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0


@takes_addresses("path")
def transcript(path: str | Path) -> str:
    """What was said and done in a run, for review, without ids and times.

    *path* is a capture, or an ``events.jsonl`` by itself. Of the latter the text is the same wherever the
    file is, as git needs it to compare two versions: payloads in blobs are named by their digests.
    """
    file = Path(path)
    if str(file) == os.devnull:  # how git names the side of a file that is new or gone
        return ""
    if file.is_dir():
        return transcript_of(EventReader(RunDir(file), str(path))).decode()
    if find_kind(file) != "events":
        raise UsageError(f"{path}: is not a capture or its events.jsonl; only these have a transcript")
    return transcript_of(LoneEventReader(file)).decode()


def find_steps(
    artifact: Artifact, filters: Sequence[str] = (), *, progress_bar: ProgressBar = no_progress_bar
) -> Iterator[RunStep]:
    """Read the whole run, then return its steps that match all *filters*, such as ``tool:search``."""
    terms = parse_terms(filters)
    _read_whole(artifact, terms, progress_bar)
    return (artifact.at(place) for place in range(len(artifact.rows)) if artifact.fits(place, terms))


def play(
    artifact: Artifact,
    filters: Sequence[str] = (),
    *,
    follow: bool = False,
    speed: float = 0,
    progress_bar: ProgressBar = no_progress_bar,
) -> Iterator[StepMoment]:
    """Return each beginning and end of a step that matches all *filters*, in order.

    With *follow*, the iterator waits for more until the recording of the run ends. *speed* keeps the recorded
    pauses, that many times as fast; 0 does not wait, and no pause is longer than five seconds.
    """
    terms = parse_terms(filters)
    if not artifact.header().is_open:  # a run that is being recorded may yet get steps of any kind
        _read_whole(artifact, terms, progress_bar)
    return _pace(_moments(artifact, terms, follow=follow), speed)


def _read_whole(artifact: Artifact, terms: tuple[Term, ...], progress_bar: ProgressBar) -> None:
    read_whole(artifact, progress_bar)
    refuse_unknown_kinds(terms, artifact.rows)


def _moments(artifact: Artifact, terms: tuple[Term, ...], *, follow: bool) -> Iterator[StepMoment]:
    playback = Playback(artifact)
    while True:
        # This comes before reading on, so that everything written before the end is read.
        is_open = follow and artifact.header().is_open
        is_complete = artifact.index(seconds=0)
        for moment in playback.moments():
            if artifact.fits(moment.step.place, terms):
                yield moment
        if is_complete and not is_open:
            return
        if is_complete:
            time.sleep(_POLL_SECONDS)


def _pace(moments: Iterator[StepMoment], speed: float) -> Iterator[StepMoment]:
    at_ms: float | None = None
    for moment in moments:
        if speed and at_ms is not None:
            time.sleep(min(max(0.0, moment.at_ms - at_ms) / 1000 / speed, _LONGEST_PAUSE_SECONDS))
        at_ms = moment.at_ms
        yield moment
