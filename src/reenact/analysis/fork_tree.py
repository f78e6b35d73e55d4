"""The tree of forks that a run belongs to, and the forks between two runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from reenact.errors import ReenactError
from reenact.formats.capture import CaptureManifest, Fork, read_manifest
from reenact.formats.record import ABSENT
from reenact.store.paths import open_inside
from reenact.store.rundir import MANIFEST
from reenact.suite.verdict import shorten

_SHOWN: Final = 60


class ForkNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A run of the tree."""

    path: str
    depth: int
    at: int | None = None
    """The fork point, an event of the parent; 0 for a run that may differ anywhere, ``None`` for the root."""
    change: str = ""
    status: str = ""
    """The status of the run; empty for a missing parent."""


class ForkLink(msgspec.Struct, frozen=True, rename="camel"):
    """A fork and its parent."""

    path: str
    parent: str
    at: int
    """The event of the parent's call at which it was changed; 0 for a run that may differ anywhere."""
    shared_events: int
    """The number of events that the fork shares with its parent; 0 if that is an imported transcript."""
    change: str
    """The change in words; empty without one."""

    def __str__(self) -> str:
        point = f"at event {self.at}" if self.at else "from the start"
        if self.shared_events == 0:
            shared = "its calls were matched with what this transcript tells"
        elif self.shared_events == 1:
            shared = "its start is shared"
        else:
            shared = f"the first {self.shared_events} events are shared"
        return f"{self.path} is a fork of {self.parent} {point}: {self.change or 'no change'}; {shared}"


class Generation(NamedTuple):
    """A run on the way from a fork to its first ancestor."""

    capture_id: str
    path: Path
    manifest: CaptureManifest | None
    """``None`` for a missing parent."""


def list_trees(ways_up: list[list[Generation]], among: Iterable[Path]) -> list[ForkNode]:
    """The trees at the ends of *ways_up*, with their forks *among* these runs."""
    known = {each.capture_id: each for way_up in ways_up for each in way_up}
    for run in sorted(among):
        manifest = _read_manifest(run)
        if manifest is not None:
            known.setdefault(manifest.captureId, Generation(manifest.captureId, run, manifest))
    children: dict[str, list[Generation]] = {}
    for each in known.values():
        if each.manifest is not None and each.manifest.fork is not ABSENT:
            children.setdefault(each.manifest.fork.parent.captureId, []).append(each)
    roots = {way_up[-1].capture_id: way_up[-1] for way_up in ways_up}
    return [node for root in roots.values() for node in _walk_children(root, 0, children, set())]


def fork_links(left: str | Path, right: str | Path) -> list[ForkLink]:
    """The forks from the nearest common ancestor to each of the two runs; empty without one.

    A missing parent also counts as an ancestor.
    """
    ours, theirs = list_ancestors(Path(left)), list_ancestors(Path(right))
    above = {each.capture_id for each in ours} & {each.capture_id for each in theirs}
    names = {each[0].capture_id: str(path) for each, path in ((ours, left), (theirs, right)) if each}
    return [link for way in (ours, theirs) for link in _links(way, above, names) if above]


def describe_change(change: object) -> str:
    """The change of a fork in words: ``$.due = "Friday"``, ``fails with TimeoutError``."""
    if change is ABSENT or not isinstance(change, dict):
        return ""
    return ", ".join(words for name, value in change.items() for words in _describe(name, value))


def _describe(name: str, value: Any) -> list[str]:
    if name == "set" and isinstance(value, dict):
        return [f"{path} = {shorten(new, _SHOWN)}" for path, new in value.items()]
    if name == "replace" and isinstance(value, list) and value:
        return [f"replaced by {shorten(value[0], _SHOWN)}"]
    words = {"error": "fails with", "function": "changed by", "system": "system prompt"}
    text = value if isinstance(value, str) and name != "system" else shorten(value, _SHOWN)
    return [f"{words.get(name, name)} {text}"]


def list_ancestors(path: Path) -> list[Generation]:
    """The run, its parent, and so on as far as they are known."""
    found: list[Generation] = []
    manifest = _read_manifest(path)
    while manifest is not None and manifest.captureId not in {each.capture_id for each in found}:
        found.append(Generation(manifest.captureId, path, manifest))
        if manifest.fork is ABSENT:
            break
        parent = manifest.fork.parent
        path = Path(os.path.normpath(path / parent.path))
        manifest = _read_manifest(path)
        if manifest is None or manifest.captureId != parent.captureId:
            found.append(Generation(parent.captureId, path, None))
            break
    return found


def _links(way: list[Generation], above: set[str], names: dict[str, str]) -> Iterator[ForkLink]:
    for each, parent in pairwise(way):
        if each.capture_id in above:
            return
        assert each.manifest is not None
        fork = each.manifest.fork
        assert isinstance(fork, Fork)
        yield ForkLink(
            path=names.get(each.capture_id, str(each.path)),
            parent=names.get(parent.capture_id, str(parent.path)),
            at=int(fork.at),
            shared_events=int(fork.parent.events),
            change=describe_change(fork.change),
        )


def _walk_children(
    run: Generation, depth: int, children: dict[str, list[Generation]], seen: set[str]
) -> Iterator[ForkNode]:
    seen.add(run.capture_id)
    manifest = run.manifest
    fork = ABSENT if manifest is None else manifest.fork
    yield ForkNode(
        str(run.path),
        depth,
        None if fork is ABSENT or depth == 0 else int(fork.at),
        "" if fork is ABSENT else describe_change(fork.change),
        "" if manifest is None else str(manifest.status),
    )
    for child in sorted(children.get(run.capture_id, ()), key=lambda each: str(each.path)):
        if child.capture_id not in seen:
            yield from _walk_children(child, depth + 1, children, seen)


def runs_around(way_up: list[Generation]) -> Iterator[Path]:
    """The runs in the folders of *way_up*, and in folders of samples there."""
    folders = dict.fromkeys(each.path.parent for each in way_up)
    for folder in folders:
        if not folder.is_dir():
            continue
        for each in folder.iterdir():
            if (each / MANIFEST).is_file():
                yield each
            elif each.is_dir():  # samples are in a folder beside their parent
                yield from (run for run in each.iterdir() if (run / MANIFEST).is_file())


def _read_manifest(path: Path) -> CaptureManifest | None:
    try:
        with open_inside(path, MANIFEST) as stream:
            return read_manifest(stream.read(), file=str(path / MANIFEST))
    except (ReenactError, OSError):
        return None
