"""Runs at an address or in a pack, read through a copy of just that run.

=================================  ==================================================
``s3://BUCKET/FOLDER/RUN``         a run in object storage; ``gs://`` and ``az://`` alike
``file:///FOLDER/RUN``             a path, written as an address
``FILE.pack#RUN``                  a run in a pack, here or at an address
``s3://BUCKET/FOLDER``, FILE.pack  all runs below, or in it
=================================  ==================================================

A pack is recognized by its first or last bytes; at an address by its name, which ends in ``.pack`` or is
followed by ``#``. A path that exists is always taken as that path.
"""

from __future__ import annotations

import inspect
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from reenact.errors import StoreError, UsageError, relabel_errors
from reenact.store.forked import MAX_GENERATIONS
from reenact.store.objects import ADDRESS, ObjectStore, address_in
from reenact.store.pack import LocalFile, ObjectFile, Pack, is_pack
from reenact.store.rundir import MANIFEST, RunDir

R = TypeVar("R")
PACK_SUFFIX: Final = ".pack"


class RemoteRun(NamedTuple):
    """A run in a list of what is at an address or in a pack."""

    path: str
    """The path that verbs accept."""
    name: str
    """Relative to the listed address or pack."""
    stamp: str
    """Changes when the run does."""
    size_bytes: int


class _InBucket:
    """A run or a folder of runs at an address."""

    def __init__(self, address: str) -> None:
        self.label = address.rstrip("/")
        scheme, _, rest = self.label.partition("://")
        bucket, _, self._key = rest.partition("/")
        self._root = f"{scheme}://{bucket}"
        self.above = f"{self._root}/"
        """The address of the folder that :meth:`fetch` copies to."""

    def is_run(self) -> bool:
        return self._is_capture(self._key) or self._is_object()

    def runs(self) -> list[RemoteRun]:
        runs = ObjectStore(self.label).runs()
        return [
            RemoteRun(
                f"{self.label}/{name}".rstrip("/"),
                name,
                next(each.mark for each in objects if each.path == f"{name}/{MANIFEST}".lstrip("/")),
                sum(each.size_bytes for each in objects),
            )
            for name, objects in sorted(runs.items())
        ]

    def fetch(self, folder: Path) -> Path:
        """Copy the run below *folder*, at the same relative path as in its bucket."""
        if not self._is_capture(self._key):
            return self._fetch_object(folder)
        self._fetch_capture(self._key, folder)
        _fetch_parents(folder, self._key, self._fetch_parent)
        return folder / self._key

    def fetch_all(self, folder: Path) -> None:
        store = ObjectStore(self.label)
        found = store.objects()
        if not found:
            raise StoreError(f"{self.label}: nothing found; check the address")
        store.fetch(found, "", folder)

    def fetch_files(self, folder: Path) -> Path:
        """Copy the object, or all objects below the address, under the last part of its name."""
        if self._is_object():
            return self._fetch_object(folder)
        copy = folder / (posixpath.basename(self._key) or "files")
        copy.mkdir()
        self.fetch_all(copy)
        return copy

    def _is_capture(self, key: str) -> bool:
        return ObjectStore(f"{self._root}/{key}").size_of(MANIFEST) is not None

    def _is_object(self) -> bool:
        folder, _, name = self._key.rpartition("/")
        return bool(name) and ObjectStore(f"{self._root}/{folder}").size_of(name) is not None

    def _fetch_object(self, folder: Path) -> Path:
        above, _, name = self._key.rpartition("/")
        store = ObjectStore(f"{self._root}/{above}")
        found = store.look_at(name) if name else None
        if found is None:
            raise StoreError(f"{self.label}: is not a run; list what is stored there with: reenact ls")
        store.fetch([found], "", folder)
        return folder / name

    def _fetch_parent(self, key: str, folder: Path) -> bool:
        is_there = self._is_capture(key)
        if is_there:
            self._fetch_capture(key, folder)
        return is_there

    def _fetch_capture(self, key: str, folder: Path) -> None:
        store = ObjectStore(f"{self._root}/{key}")
        (folder / key).mkdir(parents=True)
        store.fetch(store.objects(), "", folder / key)


class _InPack:
    """One run in a pack, or all of them."""

    def __init__(self, pack: str, run: str | None) -> None:
        self._pack = pack
        self._run = run
        self.label = pack if run is None else f"{pack}#{run}"
        self.above = f"{pack}#"

    def is_run(self) -> bool:
        """Raises if the named run is not in the pack."""
        if self._run is not None and self._open().find(self._run) is None:
            raise self._missing_run(self._run)
        return self._run is not None

    def runs(self) -> list[RemoteRun]:
        pack = self._open()
        found = pack if self._run is None else filter(None, [pack.find(self._run)])
        return [RemoteRun(pack.label(run.name), run.name, run.digest.hex(), run.size_bytes) for run in found]

    def fetch(self, folder: Path) -> Path:
        if self._run is None:
            raise StoreError(f"{self._pack}: is a pack of runs; name one as {self._pack}#RUN")
        if not self._fetch_run(self._run, folder):
            raise self._missing_run(self._run)
        _fetch_parents(folder, self._run, self._fetch_run)
        return folder / self._run

    def fetch_all(self, folder: Path) -> None:
        pack = self._open()
        for run in pack:
            (folder / run.name).mkdir(parents=True)
            pack.unpack(run, folder / run.name)

    def fetch_files(self, folder: Path) -> Path:
        """Copy the files of the run, or those of all runs."""
        if self._run is not None:
            return self.fetch(folder)
        self.fetch_all(folder)
        return folder

    def _open(self) -> Pack:
        is_address = address_in(self._pack) is not None
        return _open_stored_pack(self._pack) if is_address else Pack(LocalFile(Path(self._pack)))

    def _missing_run(self, name: str) -> StoreError:
        listing = f"list what is in it with: reenact ls {self._pack}"
        return StoreError(f"{self._pack}: there is no run {name!r} in it; {listing}")

    def _fetch_run(self, name: str, folder: Path) -> bool:
        pack = self._open()
        found = pack.find(name)
        if found is not None:
            (folder / name).mkdir(parents=True)
            pack.unpack(found, folder / name)
        return found is not None


@lru_cache(maxsize=8)
def _open_stored_pack(address: str) -> Pack:
    """Cached: a pack never changes, and each of its runs would read the end of the pack again."""
    return Pack(ObjectFile(address))


def _fetch_parents(folder: Path, name: str, fetch: Callable[[str, Path], bool]) -> None:
    """Fetch the parents of a fork; a missing one is reported when the fork is read."""
    for _ in range(MAX_GENERATIONS):
        fork = RunDir(folder / name).event_log().fork
        if fork is None or not fork.is_part:
            return
        name = posixpath.normpath(posixpath.join(name, fork.parent.path))
        if name.startswith(("..", "/")) or (folder / name).exists() or not fetch(name, folder):
            return


def find_local(path: str | Path) -> Path | None:
    """*path* on this machine, also for a ``file://`` address; ``None`` if it is elsewhere or in a pack."""
    text = str(path)
    found = ADDRESS.fullmatch(text)
    if found is not None and found[1] != "file":
        return None
    local = text if found is None else f"/{found[2]}"
    if not os.path.isdir(local) and _find_pack(local) is not None:
        return None
    return Path(local)


def _find_pack(text: str) -> _InPack | None:
    """The pack on this machine that *text* names, or the run in it; ``None`` if there is none."""
    if os.path.isfile(text):
        return _InPack(text, None) if is_pack(Path(text)) else None
    at = text.find("#")
    while at >= 0:
        if is_pack(Path(text[:at])):
            return _InPack(text[:at], text[at + 1 :] or None)
        at = text.find("#", at + 1)
    return None


def path_here(path: str | Path) -> Path:
    """*path*, also of a ``file://`` address; raises :class:`UsageError` if it is elsewhere or in a pack."""
    local = find_local(path)
    if local is None:
        raise UsageError(f"{remote_name(path)}: is not a folder on this machine; fetch it with: reenact pull")
    return local


def local_path(path: str | Path) -> str:
    """*path*, or the path that a ``file://`` address means; the file need not exist yet."""
    text = str(path)
    address = address_in(text)
    return address.removeprefix("file://") if address and address.startswith("file:") else text


def _place_of(path: str | Path) -> _InBucket | _InPack | None:
    """The bucket or pack that *path* names; ``None`` for a plain path."""
    text = local_path(path)
    address = address_in(text)
    if address is None:
        return None if os.path.isdir(text) else _find_pack(text)
    pack, mark, run = address.partition("#")
    if mark or pack.endswith(PACK_SUFFIX):
        return _InPack(pack, run or None)
    return _InBucket(address)


def is_remote(path: str | Path) -> bool:
    """Whether *path* is at an address or in a pack, one run or many."""
    return find_local(path) is None


def remote_name(path: str | Path) -> str:
    """The name of *path* in reports: an address in its usual form, ``file://`` as a path."""
    place = _place_of(path)
    return local_path(path) if place is None else place.label


def is_folder_of_remote_runs(path: str | Path) -> bool:
    """Whether *path* is at an address or in a pack, and is not a run itself."""
    place = _place_of(path)
    return place is not None and not place.is_run()


def list_remote(path: str | Path) -> list[RemoteRun]:
    """The runs at and below an address, or in a pack, by name."""
    place = _place_of(path) or _InBucket(str(address_in(path)))
    return place.runs()


@contextmanager
def local_run(path: str | Path) -> Iterator[Path]:
    """*path* itself, or for the time of the block a copy of the run at an address or in a pack.

    Errors that the block raises name *path*, not the copy.
    """
    place = _place_of(path)
    if place is None:
        yield Path(local_path(path))
        return
    with TemporaryDirectory(prefix="reenact-run-", ignore_cleanup_errors=True) as temp:
        with relabel_errors(f"{temp}/", place.above):
            copy = place.fetch(Path(temp))
        with relabel_errors(str(copy), place.label):
            yield copy


@contextmanager
def local_folder(path: str | Path) -> Iterator[Path]:
    """*path* itself, or for the time of the block a copy of all runs below an address or in a pack."""
    place = _place_of(path)
    if place is None:
        yield Path(local_path(path))
        return
    with (
        TemporaryDirectory(prefix="reenact-folder-", ignore_cleanup_errors=True) as temp,
        relabel_errors(temp, place.label),
    ):
        place.fetch_all(Path(temp))
        yield Path(temp)


@contextmanager
def local_files(path: str | Path) -> Iterator[Path]:
    """*path* itself, or for the time of the block a copy of the files at an address or in a pack.

    These are the object of that name, or all objects below it; the files of a run, or those of all runs.
    """
    place = _place_of(path)
    if place is None:
        yield Path(local_path(path))
        return
    with TemporaryDirectory(prefix="reenact-files-", ignore_cleanup_errors=True) as temp:
        with relabel_errors(temp, place.label):
            copy = place.fetch_files(Path(temp))
        with relabel_errors(str(copy), place.label):
            yield copy


def relabel(value: object, copy: str, label: str) -> Any:
    """The report *value* with *label* in place of *copy* in all texts."""
    if isinstance(value, str):
        return value.replace(copy, label)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := relabel(old, copy, label)) is not old}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        return {key: relabel(each, copy, label) for key, each in value.items()}
    if isinstance(value, list):
        return [relabel(each, copy, label) for each in value]
    if isinstance(value, tuple):
        items = (relabel(each, copy, label) for each in value)
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    return value


def call_with_copies(function: Callable[..., R], bound: inspect.BoundArguments, names: list[str]) -> R:
    """Call *function* with a copy of each of its arguments *names* that is at an address or in a pack."""
    found: list[tuple[str, str]] = []
    with ExitStack() as copies:
        for name in names:
            given: str | Path = bound.arguments[name]
            local = find_local(given)
            if local is None:
                local = copies.enter_context(local_run(given))
                found.append((str(local), remote_name(given)))
            bound.arguments[name] = local if isinstance(given, Path) else str(local)
        result = function(*bound.args, **bound.kwargs)
        for copy, label in found:
            result = relabel(result, copy, label)
        return result
