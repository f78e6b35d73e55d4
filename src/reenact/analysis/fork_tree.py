"""The tree of forks that a run belongs to: up to where it began, down to forks beside their parents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.errors import ReenactError
from reenact.formats.capture import CaptureManifest, read_manifest
from reenact.formats.record import ABSENT
from reenact.store.rundir import MANIFEST
from reenact.suite.verdict import shorten

_SHOWN: Final = 60


class ForkNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A run of the tree."""

    path: str
    depth: int
    at: int | None = None
    """The event of the parent at which it parts; ``None`` for the run at the root."""
    change: str = ""
    status: str = ""


def fork_tree(path: str | Path) -> list[ForkNode]:
    """The runs of the tree, parents before their forks.

    Forks are looked for in the folders of the runs that were found; one that lies elsewhere is not seen. A
    parent that is gone ends the way up.
    """
    root = Path(path)
    seen = {root.resolve()}
    folders = [root.parent]
    while (parent := _parent_of(root)) is not None and parent.resolve() not in seen:
        root = parent
        seen.add(root.resolve())
        folders.append(root.parent)
    return list(_below(root, 0, set(), folders))


def _below(path: Path, depth: int, seen: set[Path], folders: list[Path]) -> Iterator[ForkNode]:
    seen.add(path.resolve())
    manifest = _manifest(path)
    if manifest is None:
        return
    fork = manifest.fork
    yield ForkNode(
        str(path),
        depth,
        None if fork is ABSENT or depth == 0 else int(fork.at),
        "" if fork is ABSENT or fork.change is ABSENT else _describe(fork.change),
        str(manifest.status),
    )
    for folder in dict.fromkeys((path.parent, *_folders_of_samples(path.parent), *folders)):
        for child in sorted(_runs_in(folder)):
            if child.resolve() not in seen and _is_child(child, manifest.captureId):
                yield from _below(child, depth + 1, seen, folders)


def _describe(change: Any) -> str:
    return ", ".join(f"{name} {shorten(value, _SHOWN)}" for name, value in dict(change).items())


def _folders_of_samples(folder: Path) -> list[Path]:
    """Samples lie in a folder beside their parent."""
    beside = (each for each in sorted(folder.iterdir()) if each.is_dir())
    return [each for each in beside if not (each / MANIFEST).exists()]


def _runs_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if (path / MANIFEST).is_file())


def _is_child(path: Path, capture_id: str) -> bool:
    manifest = _manifest(path)
    if manifest is None or manifest.fork is ABSENT:
        return False
    return manifest.fork.parent.captureId == capture_id


def _parent_of(path: Path) -> Path | None:
    manifest = _manifest(path)
    if manifest is None or manifest.fork is ABSENT:
        return None
    parent = Path(os.path.normpath(path / manifest.fork.parent.path))
    return parent if _manifest(parent) is not None else None


def _manifest(path: Path) -> CaptureManifest | None:
    try:
        return read_manifest((path / MANIFEST).read_bytes(), file=str(path / MANIFEST))
    except (ReenactError, OSError):
        return None
